"""Residual connections: what a shortcut guarantees the gradient, what it does not, and the two block shapes built on
it."""

import math
from collections.abc import Callable
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.layers import (
    Bottleneck,
    ConvNorm,
    Residual,
    ResNeXtBlock,
    bottleneck_definition,
    residual_definition,
    resnext_definition,
)
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import normal
from quoin.notes.claims.rounding import excess, gap, max, randint, roundings

DEPTH, WIDTH = 50, 12
Block = TypeVar("Block", bound=nn.Module)


def jacobian(function: Callable[[Tensor], Tensor], x: Float[Tensor, "n"]) -> Float[Tensor, "m n"]:
    found = torch.autograd.functional.jacobian(function, x)
    assert isinstance(found, Tensor)
    return found


def dense_body(width: int, norm: float, generator: torch.Generator) -> nn.Sequential:
    """tanh(A x) with |A| = norm in the spectral norm: as tanh' is at most one, no Jacobian of it exceeds that norm."""
    linear = nn.Linear(width, width, bias=False, dtype=torch.float64)
    weight = normal(width, width, generator=generator)
    with torch.no_grad():
        linear.weight.copy_(norm * weight / torch.linalg.matrix_norm(weight, 2))
    return nn.Sequential(linear, nn.Tanh())


def shaken(block: Block, generator: torch.Generator) -> Block:
    """The block in float64 with every weight, scale and shift sampled anew: a start of ones and zeros would hide a
    mistake."""
    block = block.double()
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.copy_(normal(*parameter.shape, generator=generator) / math.sqrt(max(1, parameter[0].numel())))
    return block


def conv_norm(convolution: nn.Module, norm: nn.Module) -> ConvNorm:
    assert isinstance(convolution, nn.Conv2d)
    assert isinstance(norm, nn.BatchNorm2d)
    return ConvNorm(convolution.weight, norm.weight, norm.bias)


def parts(block: Bottleneck | ResNeXtBlock) -> tuple[ConvNorm, ConvNorm, ConvNorm, ConvNorm | None]:
    project = None if block.downsample is None else conv_norm(block.downsample[0], block.downsample[1])
    return (
        conv_norm(block.conv1, block.bn1),
        conv_norm(block.conv2, block.bn2),
        conv_norm(block.conv3, block.bn3),
        project,
    )


@claim(
    "D1.6-8",
    "with an identity shortcut the Jacobian is I + ∂F/∂x, and its smallest singular value at least 1 - ‖∂F/∂x‖",
)
def the_jacobian_keeps_an_identity(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 30
    for _ in range(cases):
        width = randint(1, WIDTH, generator)
        body = dense_body(width, 1.5 * float(torch.rand((), generator=generator)), generator)
        x = normal(width, generator=generator)
        whole, inner = jacobian(Residual(body), x), jacobian(body, x)
        smallest = float(torch.linalg.svdvals(whole)[-1])
        guaranteed = 1 - float(torch.linalg.matrix_norm(inner, 2))
        worst = max(worst, gap(whole, torch.eye(width, dtype=torch.float64) + inner), guaranteed - smallest)
    return Evidence(
        "largest |J - (I + ∂F/∂x)| and shortfall of σ_min", worst, roundings(100), "100 float64 roundings", cases
    )


@claim(
    "D1.6-8",
    "fifty layers with ‖∂F/∂x‖ ≤ 0.1 shrink a gradient below 0.1⁵⁰ on their own, but with shortcuts keep 0.9⁵⁰ of it",
)
def gradients_pass_fifty_layers(generator: torch.Generator) -> Evidence:
    worst, cases, norm = -math.inf, 4, 0.1
    for _ in range(cases):
        bodies = [dense_body(WIDTH, norm, generator) for _ in range(DEPTH)]
        upstream = normal(WIDTH, generator=generator)
        kept = []
        for model in (nn.Sequential(*bodies), nn.Sequential(*(Residual(body) for body in bodies))):
            x = normal(WIDTH, generator=generator).requires_grad_()
            (gradient,) = torch.autograd.grad(model(x), x, upstream)
            kept.append(math.log(float(gradient.norm() / upstream.norm())))
        plain, skipped = kept
        worst = max(worst, plain - DEPTH * math.log(norm), DEPTH * math.log(1 - norm) - skipped)
    source = "|J v| ≤ ‖J‖ |v| and |v + J v| ≥ (1 - ‖J‖) |v|, layer by layer"
    return Evidence(
        "largest excess of log |gradient| over 50 log 0.1, and shortfall from 50 log 0.9", worst, 0.0, source, 2 * cases
    )


def only_below_one(norm: float) -> float:
    return max(0.0, 1 - norm)


def without_risk(norm: float) -> float:
    return 1e-3  # any positive fraction of the gradient, whatever F is


@claim(
    "DE69",
    "a shortcut guarantees only the fraction 1 - ‖∂F/∂x‖ of a gradient: I + ∂F/∂x may be singular",
    right=only_below_one,
    printed=without_risk,
)
def a_shortcut_is_no_guarantee(form: Callable[[float], float], generator: torch.Generator) -> Evidence:
    worst, where, cases = -math.inf, "", 0
    scales = [-1.0, -0.6, 0.6, *(2 * torch.rand(10, generator=generator) - 1.5).tolist()]
    for scale in scales:
        width = randint(1, WIDTH, generator)
        orthogonal = torch.linalg.qr(normal(width, width, generator=generator)).Q
        for matrix in (scale * torch.eye(width, dtype=torch.float64), scale * orthogonal):
            body = nn.Linear(width, width, bias=False, dtype=torch.float64)
            body.weight.data.copy_(matrix)
            whole = jacobian(Residual(body), normal(width, generator=generator))
            smallest = torch.linalg.svdvals(whole)[-1]
            shortfall = excess(
                torch.full_like(smallest, form(abs(scale))), smallest
            )  # |∂F/∂x| = |scale| for both matrices
            if shortfall > worst:
                worst, where = (
                    shortfall,
                    f"F(x) = A x with ‖A‖ = {abs(scale):.2f} lets the fraction {smallest:.2g} of some gradient through",
                )
            cases += 1
    return Evidence(
        "largest guaranteed fraction less σ_min",
        worst,
        roundings(100),
        "100 float64 roundings",
        cases,
        counterexample=where,
    )


@claim(
    "D1.6-9",
    "a body that gives zero makes the block the identity, up to its closing ReLU; without the shortcut it gives zero",
)
def zero_residual_is_the_identity(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 20
    for case in range(cases):
        filters = randint(1, 4, generator)
        shape = (randint(2, 4, generator), 4 * filters, randint(1, 6, generator), randint(2, 6, generator))
        x = normal(*shape, generator=generator)
        block = shaken(Bottleneck(4 * filters, filters), generator).train(case % 2 == 0)
        nn.init.zeros_(block.bn3.weight)
        nn.init.zeros_(block.bn3.bias)
        outer, inner = shaken(nn.Linear(shape[-1], 5), generator), shaken(nn.Linear(5, shape[-1]), generator)
        for parameter in inner.parameters():
            nn.init.zeros_(parameter)
        body = nn.Sequential(outer, nn.ReLU(), inner)
        apart = residual_definition(x, body)
        with torch.no_grad():
            pairs = [
                (block(x), x.relu()),
                (Residual(body)(x), x),
                (apart.output, x),
                (apart.residual, torch.zeros_like(x)),
            ]
            worst = max(worst, *(float((got - want).abs().max()) for got, want in pairs))
    return Evidence(
        "largest |out - x|, or |out - relu(x)| after the ReLU",
        worst,
        0.0,
        "exact: x + 0 = x",
        4 * cases,
        comparison="==",
    )


def one_to_three_to_one(
    x: Float[Tensor, "b c h w"], narrow: ConvNorm, across: ConvNorm, widen: ConvNorm, project: ConvNorm
) -> Float[Tensor, "b d h w"]:
    return bottleneck_definition(x, narrow, across, widen, project).output


def one_convolution(
    x: Float[Tensor, "b c h w"], narrow: ConvNorm, across: ConvNorm, widen: ConvNorm, project: ConvNorm
) -> Float[Tensor, "b d h w"]:
    return residual_definition(x, narrow, project, torch.relu).output


@claim(
    "DE23",
    "a bottleneck's main path goes 1×1, 3×3, 1×1 to the 4f channels of its shortcut",
    right=one_to_three_to_one,
    printed=one_convolution,
)
def the_main_path_has_three_convolutions(
    form: Callable[[Tensor, ConvNorm, ConvNorm, ConvNorm, ConvNorm], Tensor], generator: torch.Generator
) -> Evidence:
    worst, cases = 0.0, 10
    for _ in range(cases):
        filters, inputs = randint(2, 8, generator), randint(1, 3, generator)
        x = normal(
            randint(1, 3, generator), inputs, randint(3, 7, generator), randint(3, 7, generator), generator=generator
        )
        block = shaken(Bottleneck(inputs, filters), generator)
        narrow, across, widen, project = parts(block)
        assert project is not None  # inputs are fewer than 4 filters
        worst = max(worst, gap(form(x, narrow, across, widen, project), block(x)))
    return Evidence(
        "largest |definition - torch's layers in a row|", worst, roundings(10_000), "10⁴ float64 roundings", cases
    )


@claim(
    "Z8.9",
    "a bottleneck with a grouped 3×3 convolution is a sum over narrow bottlenecks side by side, one for each group",
)
def groups_are_branches(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 12
    for case in range(cases):
        groups, width_per_group, stride = randint(1, 4, generator), randint(1, 3, generator), 1 + case % 2
        inputs, outputs = randint(1, 6, generator), randint(1, 6, generator)
        x = normal(
            randint(2, 3, generator), inputs, randint(3, 7, generator), randint(3, 7, generator), generator=generator
        )
        block = shaken(
            ResNeXtBlock(inputs, outputs, groups=groups, width_per_group=width_per_group, stride=stride), generator
        )
        worst = max(worst, gap(resnext_definition(x, *parts(block), groups=groups, stride=stride).output, block(x)))
    return Evidence(
        "largest |sum over branches - grouped convolution|", worst, roundings(10_000), "10⁴ float64 roundings", cases
    )
