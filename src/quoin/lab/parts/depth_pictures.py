"""Deep networks at their start: how large signals and gradients are at each layer, what a narrow layer lets through."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.inspect import StabilityRow, intermediates, jacobian_rank, stability_report
from quoin.layers import init_weights, kaiming_normal, xavier_normal
from quoin.models import MLP
from quoin.runs import Run

__all__ = ["ACTIVATIONS", "DeepStart", "Narrowed", "deep_model", "deep_start", "narrow_model", "narrowed", "weights_of"]

ACTIVATIONS = {"ReLU": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "identity": nn.Identity}
SEED = 0  # not chosen: over 45 layers of 64 units the size of the signal drifts by chance as well
WIDTH, BINS = 64, 80  # of the layers; of the histograms, over forty powers of ten


class DeepStart(NamedTuple):
    """A network before its first update: a row for each hidden layer's activation, and its histogram."""

    rows: tuple[StabilityRow, ...]
    histograms: Float[Tensor, "bins layers"]  # of log10 |h| from -20 (the last row) to 20 (the first)

    @property
    def returned(self) -> float:
        """The gradient at the first layer as a multiple of that at the last."""
        return self.rows[0].gradient_norm / self.rows[-1].gradient_norm


def deep_model(gain: float, depth: int, activation: str) -> tuple[MLP, Float[Tensor, "batch inputs"]]:
    """`depth` layers of 64 units whose weights are `gain` times those of He (ReLU) or Xavier (others), and inputs."""
    rule = kaiming_normal if activation == "ReLU" else xavier_normal
    generator = torch.Generator().manual_seed(SEED)
    model = MLP([WIDTH] * (depth + 1) + [1], activation=ACTIVATIONS[activation], generator=generator)
    init_weights(model, lambda out, inputs, made: gain * rule(out, inputs, made), generator=generator)
    return model.double(), torch.randn(16, WIDTH, generator=generator, dtype=torch.float64)


@functools.lru_cache(maxsize=64)
def deep_start(gain: float, depth: int, activation: str) -> DeepStart:
    """Signals and gradients of `deep_model` in one pass there and back."""
    model, x = deep_model(gain, depth, activation)
    kind = ACTIVATIONS[activation].__name__
    rows = tuple(row for row in stability_report(model, x, torch.mean).rows if row.kind == kind)
    with torch.no_grad():
        hidden = [step.output for step in intermediates(model, x) if type(step.module).__name__ == kind]
    columns = [torch.histc(h[h != 0].abs().log10().clamp(-20, 20), BINS, -20, 20).flip(0) / h.numel() for h in hidden]
    return DeepStart(rows, torch.stack(columns, dim=1))


class Narrowed(NamedTuple):
    """What is left behind a narrow layer: singular values of the Jacobian at a point and of the activations of 40."""

    jacobian: Float[Tensor, " n"]
    activations: Float[Tensor, " n"]
    jacobian_rank: int
    activation_rank: int


def narrow_model(narrow: int, activation: str) -> tuple[MLP, Float[Tensor, "batch inputs"]]:
    """A network 12-12-narrow-12-12 with random biases, and inputs."""
    generator = torch.Generator().manual_seed(1)
    model = MLP([12, 12, narrow, 12, 12], activation=ACTIVATIONS[activation], generator=generator).double()
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.bias, generator=generator)
    return model, torch.randn(40, 12, generator=generator, dtype=torch.float64)


@functools.lru_cache(maxsize=64)
def narrowed(narrow: int, activation: str) -> Narrowed:
    """Singular values and ranks of `narrow_model`; the activations are those of the layer behind the narrow one."""
    model, x = narrow_model(narrow, activation)
    with torch.no_grad():
        after = model.features(x)
    jacobian = torch.func.jacrev(lambda example: model(example.unsqueeze(0))[0])(x[0]).detach()
    return Narrowed(
        torch.linalg.svdvals(jacobian),
        torch.linalg.svdvals(after),
        jacobian_rank(model, x[0]),
        int(torch.linalg.matrix_rank(after)),
    )


def weights_of(path: Path | None) -> list[tuple[str, Float[Tensor, "out inputs"]]]:
    """The weight of every layer of a run's model that is a matrix; without a run those of a fresh network."""
    return _weights(path, path.stat().st_mtime_ns if path and path.exists() else 0)


@functools.lru_cache(maxsize=4)  # a run that is still written has another time, and is read again
def _weights(path: Path | None, time: int) -> list[tuple[str, Float[Tensor, "out inputs"]]]:
    model = Run.open(path).model if path else MLP([20, 64, 64, 64, 5], generator=torch.Generator().manual_seed(0))
    found = [
        (name.removesuffix(".weight"), value.detach().double().cpu().flatten(1))
        for name, value in model.named_parameters()
        if value.ndim >= 2 and min(value.shape) > 1
    ]
    if not found:
        raise UserError("expected a model with matrices of weights, got none; open another run")
    return found[:40]
