"""Computations as graphs, with the numbers that went forward and the adjoints that came back."""

import torch
from torch import Tensor

from quoin.autodiff import plot_graph, trace
from quoin.notes.figures.figure import figure
from quoin.plot import Plot


@figure(
    "Z5.16",
    "The graph of a small network's loss with weight decay: each box has its value v and the adjoint dv of the loss.",
)
def regularized_loss() -> Plot:
    generator = torch.Generator().manual_seed(0)
    W1, W2 = torch.randn(4, 3, generator=generator), torch.randn(1, 4, generator=generator)

    def objective(x: Tensor, W1: Tensor, W2: Tensor, y: Tensor) -> Tensor:
        h = torch.relu(W1 @ x)
        loss = (W2 @ h - y).square().sum() / 2
        decay = 0.05 * (W1.square().sum() + W2.square().sum())
        return loss + decay

    inputs = torch.randn(3, generator=generator), W1, W2, torch.randn(1, generator=generator)
    return plot_graph(trace(objective, *inputs), title="J = ½ (W₂ relu(W₁ x) - y)² + ½ λ (‖W₁‖² + ‖W₂‖²),  λ = 0.1")


@figure(
    "Z2.6",
    "Reverse mode on y = exp(x₁ x₂) + sin(x₁ x₂): values go down, adjoints come up, and where ways meet they add.",
)
def reverse_mode() -> Plot:
    def f(x1: Tensor, x2: Tensor) -> Tensor:
        u = x1 * x2
        return u.exp() + u.sin()

    one = torch.tensor
    return plot_graph(
        trace(f, one(0.5, dtype=torch.float64), one(2.0, dtype=torch.float64)), title="y = exp(x₁x₂) + sin(x₁x₂)"
    )
