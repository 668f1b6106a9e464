"""Lion in place, for training: the rule `Lion` of rules.py, which torch.optim lacks, on all tensors at once."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.optim.rules import Lion

__all__ = ["LionOptimizer"]


class LionOptimizer(torch.optim.Optimizer):
    """`Lion` for the parameters of a model, in place and by torch's foreach kernels.

    It keeps one tensor for each parameter, `exp_avg`, where Adam keeps two.

    >>> weight = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
    >>> weight.square().sum().backward()
    >>> LionOptimizer([weight], 0.1).step()
    >>> weight.detach()
    tensor([ 0.9000, -1.9000])
    """

    def __init__(
        self,
        params: Iterable[Float[Tensor, "..."]] | Iterable[dict[str, Any]],
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
    ) -> None:
        Lion(lr, *betas, weight_decay)  # what it refuses is refused here
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step of every parameter that has a gradient; gives what `closure`, which computes them, gives."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            parameters = [each for each in group["params"] if each.grad is not None]
            if parameters:
                self._move(parameters, group["lr"], group["betas"], group["weight_decay"])
        return loss

    def _move(self, parameters: list[Tensor], lr: float, betas: tuple[float, float], weight_decay: float) -> None:
        gradients = [each.grad for each in parameters if each.grad is not None]
        for each in parameters:
            if not self.state[each]:
                self.state[each]["exp_avg"] = torch.zeros_like(each, memory_format=torch.preserve_format)
        means = [self.state[each]["exp_avg"] for each in parameters]
        ops: Any = torch  # its foreach functions are not declared public
        directions = ops._foreach_sign(ops._foreach_lerp(means, gradients, 1 - betas[0]))
        ops._foreach_mul_(parameters, 1 - lr * weight_decay)
        ops._foreach_add_(parameters, directions, alpha=-lr)
        ops._foreach_lerp_(means, gradients, 1 - betas[1])
