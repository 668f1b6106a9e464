"""Training in one line, for problems small enough to see all their data at every step: choose the parameters of least
loss.

Minibatches, checkpoints and reports are quoin.train's work.
"""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError

__all__ = ["Fit", "minimize_lbfgs"]


@shown
class Fit(NamedTuple):
    """Where a fit ended."""

    loss: float
    gradient: float  # its largest entry, in size; zero at a minimiser
    num_steps: int
    converged: bool  # whether the gradient fell below the tolerance


def minimize_lbfgs(
    parameters: Iterable[Float[Tensor, "..."]], loss_fn: Callable[[], Tensor], *, tol: float = 1e-6, max_iter: int = 500
) -> Fit:
    """θ* ∈ argmin risk(θ), sought by L-BFGS from where the parameters stand; they are changed in place.

    `loss_fn` is the whole loss as it is now: the mean over pairs (x_i, y_i) of a loss of f_θ(x_i) and y_i, labels or
    vectors, or of -ln P_θ(y_i | x_i). Where it is not convex, θ* is a stationary point near the start. Not `converged`
    may mean that more steps are needed, or that there is no minimiser: on separable data the loss of logistic
    regression falls for ever. Use float64: the rounding of a float32 loss hides gradients below about 1e-3.

    Args:
        tol: What no entry of the gradient exceeds in size at convergence.
        max_iter: L-BFGS steps, each of which may evaluate the loss several times.

    >>> weight = torch.zeros(2, requires_grad=True)
    >>> x, y = torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([3.0, 4.0])
    >>> minimize_lbfgs([weight], lambda: (x @ weight - y).square().mean()).converged
    True
    >>> weight.detach().round(decimals=4)
    tensor([3., 2.])

    Notes: D1.3-4, D1.3-8, M3.
    """
    free = [parameter for parameter in parameters if parameter.requires_grad]
    if not free:
        raise UserError(
            "expected at least one parameter to fit, got none that takes a gradient; give model.parameters()"
        )
    if not (tol > 0 and max_iter >= 1):
        raise UserError(
            f"expected a positive tolerance and at least one step, got {tol} and {max_iter}; give e.g. 1e-6 and 500"
        )
    descent = torch.optim.LBFGS(
        free,
        max_iter=max_iter,
        max_eval=10 * max_iter,  # a step may evaluate several points along its line
        tolerance_grad=tol,
        tolerance_change=0.0,  # stop at a small gradient, not at a small step
        history_size=20,
        line_search_fn="strong_wolfe",
    )

    def loss_and_gradient() -> Tensor:
        descent.zero_grad()
        loss = loss_fn()
        if loss.ndim or not math.isfinite(loss.item()):
            got = f"{loss.item()}" if loss.ndim == 0 else f"shape {tuple(loss.shape)}"
            raise UserError(f"expected the loss as one finite number, got {got}; take a mean over finite examples")
        loss.backward()
        return loss.detach()

    descent.step(loss_and_gradient)
    loss = float(loss_and_gradient())
    gradient = max(float(parameter.grad.abs().max()) if parameter.grad is not None else 0.0 for parameter in free)
    descent.zero_grad()
    num_steps = int(descent.state[free[0]]["n_iter"])
    return Fit(loss, gradient, num_steps, gradient <= tol)
