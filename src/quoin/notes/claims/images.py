"""Images: neighbouring pixels resemble each other; channels take the place of resolution, and carry features
together."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from quoin.data import load
from quoin.layers import conv_output_size, cross_correlate2d
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.rounding import gap, max, min, roundings

EDGE = torch.tensor(
    [[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]], dtype=torch.float64
)  # Sobel's: dark left, light right


def correlation_at_distance(images: Float[Tensor, "n h w"], distance: int) -> float:
    """The mean correlation, over the images, of two pixels so many steps apart along rows and columns together."""
    height, width = images.shape[1:]
    pixels = images.flatten(1) - images.flatten(1).mean(dim=0)
    pixels = pixels / pixels.norm(dim=0).clamp(min=1e-300)  # a pixel that never changes correlates with nothing
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    apart = (rows.flatten()[:, None] - rows.flatten()).abs() + (columns.flatten()[:, None] - columns.flatten()).abs()
    return float((pixels.T @ pixels)[apart == distance].mean())


def scrambled(images: Float[Tensor, "n h w"], order: Int[Tensor, "h*w"]) -> Float[Tensor, "n h w"]:
    return images.flatten(1)[:, order].reshape(images.shape)


@claim(
    "Z7.1c",
    "in the digits, pixels side by side correlate most, less two steps apart, still less at three; scrambled "
    "pixels do not",
)
def neighbours_correlate(generator: torch.Generator) -> Evidence:
    digits, scrambles = load("digits").features[:, 0].double(), 50
    near = [correlation_at_distance(digits, distance) for distance in (1, 2, 3)]
    lost = max(
        correlation_at_distance(scrambled(digits, torch.randperm(64, generator=generator)), 1) for _ in range(scrambles)
    )
    least = min(near[0] - near[1], near[1] - near[2], near[0] - lost)
    return Evidence(
        "least fall of the mean correlation",
        least,
        0.0,
        "the data are fixed, the permutations sampled",
        scrambles,
        ">=",
    )


@claim(
    "Z7.14",
    "halving each side and doubling the channels leaves a layer's cost as it was, with half as many entries and "
    "four times the weights",
)
def channels_for_resolution(generator: torch.Generator) -> Evidence:
    wrong, side, channels, depth = 0, 32, 4, 3
    x = torch.randn(1, channels, side, side, generator=generator)
    costs, entries, weights = [], [], []
    for _ in range(depth):
        weight = torch.randn(channels, channels, 3, 3, generator=generator)
        with FlopCounterMode(display=False) as counter:
            cross_correlate2d(x, weight, padding=1)
        costs.append(counter.get_total_flops())
        entries.append(x.numel())
        weights.append(weight.numel())
        down = torch.randn(2 * channels, channels, 3, 3, generator=generator)
        x = cross_correlate2d(x, down, stride=2, padding=1)
        wrong += x.shape[-1] != conv_output_size(side, 3, stride=2, total_padding=2) or x.shape[-1] != side // 2
        side, channels = side // 2, 2 * channels
    wrong += costs != [2 * 9 * 4 * 4 * 32 * 32] * depth
    wrong += entries != [entries[0] // 2**level for level in range(depth)] or weights != [
        weights[0] * 4**level for level in range(depth)
    ]
    return Evidence("levels with other counts", wrong, 0, "exact: a count", depth, "==")


@claim(
    "Z7.14",
    "an edge may be a direction in channel space: no channel is the edge filter, yet a 1×1 mixture of nine "
    "channels is, exactly",
)
def an_edge_is_a_mixture(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 10
    for _ in range(cases):
        basis = torch.linalg.qr(torch.randn(9, 9, generator=generator, dtype=torch.float64)).Q
        kernels, target = basis.reshape(9, 1, 3, 3), EDGE / EDGE.norm()
        mixture = basis @ target.flatten()  # the coordinates of the edge filter in these nine channels
        x = torch.randn(2, 1, 10, 10, generator=generator, dtype=torch.float64)
        channels = cross_correlate2d(x, kernels)
        edges = cross_correlate2d(x, target[None, None])
        worst = max(worst, gap(cross_correlate2d(channels, mixture.reshape(1, 9, 1, 1)), edges))
        alone = float(mixture.abs().max())  # the largest cosine of one channel with the edge filter
        worst = max(worst, 1.0 if alone > 0.999 else 0.0)
    return Evidence(
        "largest |mixture - edges|", worst, roundings(64), "64 float64 roundings of sums of 81 terms", cases
    )


@claim("Z7.14", "gradient descent on the squared error learns the kernel that made the edges")
def an_edge_kernel_is_learnt(generator: torch.Generator) -> Evidence:
    x = torch.randn(8, 1, 12, 12, generator=generator, dtype=torch.float64)
    edges = cross_correlate2d(x, EDGE[None, None])
    patches = nn.functional.unfold(x, 3).movedim(1, -1).flatten(0, 1)  # (8 10 10, 9)
    curvature = torch.linalg.eigvalsh(2 * patches.T @ patches / len(patches))
    lr, steps = float(1 / curvature.max()), 12
    kernel = torch.zeros(1, 1, 3, 3, dtype=torch.float64, requires_grad=True)
    for _ in range(steps):
        (gradient,) = torch.autograd.grad((cross_correlate2d(x, kernel) - edges).square().mean(), kernel)
        kernel = (kernel - lr * gradient).detach().requires_grad_()
    bound = float(1 - lr * curvature.min()) ** steps * float(EDGE.norm()) + roundings(1000)
    source = "each step shrinks the error by 1 - smallest/largest curvature at least"
    return Evidence(
        "Frobenius norm of learnt - true kernel", float((kernel[0, 0] - EDGE).detach().norm()), bound, source, 1
    )
