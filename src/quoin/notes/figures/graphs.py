"""Computations as graphs, with the numbers that went forward and the adjoints that came back."""

import torch
from torch import Tensor

from quoin.autodiff import plot_graph, trace
from quoin.notes.figures.figure import figure
from quoin.plot import Plot


@figure(
    "Z5.16",
    "The graph of a small network's loss with weight decay: each box has its value v and the adjoint dv of the loss.",
    {"weight_decay": (0, 10), "hidden_dim": (1, 64)},
)
def regularized_loss(weight_decay: float = 0.1, hidden_dim: int = 4) -> Plot:
    generator = torch.Generator().manual_seed(0)
    W1, W2 = torch.randn(hidden_dim, 3, generator=generator), torch.randn(1, hidden_dim, generator=generator)

    def objective(x: Tensor, W1: Tensor, W2: Tensor, y: Tensor) -> Tensor:
        h = torch.relu(W1 @ x)
        loss = (W2 @ h - y).square().sum() / 2
        decay = weight_decay / 2 * (W1.square().sum() + W2.square().sum())
        return loss + decay

    inputs = torch.randn(3, generator=generator), W1, W2, torch.randn(1, generator=generator)
    return plot_graph(
        trace(objective, *inputs), title=f"J = ½ (W₂ relu(W₁ x) - y)² + ½ λ (‖W₁‖² + ‖W₂‖²),  λ = {weight_decay:g}"
    )


@figure(
    "Z2.6",
    "Reverse mode on y = exp(x₁ x₂) + sin(x₁ x₂): values go down, adjoints come up, and where ways meet they add.",
    {"x1": (-20, 20), "x2": (-20, 20)},
)
def reverse_mode(x1: float = 0.5, x2: float = 2.0) -> Plot:
    def f(x1: Tensor, x2: Tensor) -> Tensor:
        u = x1 * x2
        return u.exp() + u.sin()

    one = torch.tensor
    return plot_graph(
        trace(f, one(x1, dtype=torch.float64), one(x2, dtype=torch.float64)), title="y = exp(x₁x₂) + sin(x₁x₂)"
    )
