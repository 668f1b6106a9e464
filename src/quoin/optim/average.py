"""The weights of the last many steps, averaged: what a noisy training run hovers around, and what generative models
sample with.
"""

import copy
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError

__all__ = ["EMAModel", "ema_definition"]


def ema_definition(values: Float[Tensor, "n *shape"], decay: float) -> Float[Tensor, "*shape"]:
    """Σ_k d^(n-k) w_k / Σ_k d^(n-k), k = 1 ... n: a value counts d times as much as the one after it.

    >>> ema_definition(torch.tensor([0.0, 3.0]), 0.5)  # (0.5 · 0 + 1 · 3) / 1.5
    tensor(2.)
    """
    weights = decay ** torch.arange(len(values) - 1, -1, -1).to(values)
    return torch.tensordot(weights / weights.sum(), values, dims=1)


@shown
class EMAModel:
    """A copy of a module, its parameters moving averages of the module's: m_n = m_{n-1} + (1 - d)/(1 - d^n) (w_n -
    m_{n-1}).

    The divisor makes it `ema_definition` of what it was shown, from the first update on and with nothing left of the
    start. Buffers are counts and statistics, no weights: they are taken as they are.

    Args:
        decay: d, at least 0 and below 1; the average is over about 1 / (1 - d) updates.

    >>> model = nn.Linear(1, 1, bias=False)
    >>> average = EMAModel(model, decay=0.5)
    >>> for weight in (0.0, 3.0):
    ...     _ = nn.init.constant_(model.weight, weight)
    ...     average.update(model)
    >>> float(average.module.weight)
    2.0
    """

    def __init__(self, module: nn.Module, *, decay: float):
        if not 0 <= decay < 1:
            raise UserError(
                f"expected a decay of at least 0 and below 1, got {decay}; 0.999 averages about a thousand steps"
            )
        self.decay, self.updates = decay, 0
        self.module: Any = copy.deepcopy(module).requires_grad_(False).eval()  # offers whatever the module offers

    @torch.no_grad()
    def update(self, module: nn.Module) -> None:
        """Take in the weights as they are now, after a step."""
        kept, now = dict(self.module.named_parameters()), dict(module.named_parameters())
        if {name: each.shape for name, each in kept.items()} != {name: each.shape for name, each in now.items()}:
            raise UserError(
                "expected the module whose weights are averaged, got one with other parameters; give the same one"
            )
        self.updates += 1
        weight = (1 - self.decay) / (1 - self.decay**self.updates)
        torch._foreach_lerp_(list(kept.values()), [now[name] for name in kept], weight)  # pyright: ignore[reportPrivateImportUsage]
        for average, buffer in zip(self.module.buffers(), module.buffers()):
            average.copy_(buffer)

    def state_dict(self) -> dict[str, Any]:
        """All of it, for a checkpoint."""
        return {"updates": self.updates, "weights": self.module.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        self.updates = state["updates"]
        self.module.load_state_dict(state["weights"])
