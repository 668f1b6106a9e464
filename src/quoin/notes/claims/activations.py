"""ReLU beside the saturating activations: derivatives, zeros, dead units, folding, growth, confidence, speed."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin import data
from quoin.inspect import activation_sparsity, confidence_along_ray, dead_units, num_connected_components
from quoin.layers import (
    affine_definition,
    dense_definition,
    init_weights,
    kaiming_normal,
    relu,
    relu_derivative,
    sigmoid,
    sigmoid_derivative,
    tanh,
    xavier_normal,
)
from quoin.losses import cross_entropy
from quoin.metrics import empirical_risk
from quoin.models import MLP, mlp_definition
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_networks import CASES, ROUNDING, ROUNDING_SOURCE, inputs_of, linears, random_mlp
from quoin.notes.claims.rounding import gap, max, min, randint, roundings


@claim("Z5.8", "the derivative of ReLU is 0 below zero, 1 above, and 0 at zero by convention, in all of its forms")
def derivative_of_relu(generator: torch.Generator) -> Evidence:
    size = torch.rand(1000, generator=generator, dtype=torch.float64) + 1e-300
    x = torch.cat([-size, torch.zeros(1, dtype=torch.float64), size]).requires_grad_()
    expected = torch.cat([torch.zeros(1001), torch.ones(1000)])
    wrong = int((relu_derivative(x) != expected).sum())
    for form in (relu, MLP([1, 1, 1]).features[1]):
        (gradient,) = torch.autograd.grad(form(x).sum(), x)
        wrong += int((gradient != expected).sum())
    return Evidence("points with another derivative", wrong, 0, "exact", 3 * len(x), "==")


@claim("D1-13", "the derivative of ReLU jumps at zero: difference quotients are 0 on the left and 1 on the right")
def relu_one_sided_derivatives(generator: torch.Generator) -> Evidence:
    step = 2.0 ** -torch.arange(1, 1000, dtype=torch.float64)
    at_zero = relu(torch.zeros(1, dtype=torch.float64))
    right, left = (relu(step) - at_zero) / step, (relu(-step) - at_zero) / -step
    worst = max(gap(right, torch.ones_like(step)), gap(left, torch.zeros_like(step)))
    return Evidence(
        "largest distance from 1 (right), 0 (left)", worst, 0.0, "exact: powers of two divide exactly", 2 * len(step)
    )


def quotient(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    return (1 - (-2 * x).exp()) / (1 + (-2 * x).exp())


@claim(
    "D1-4",
    "tanh is 2 sigmoid(2x) - 1; evaluated as the bare quotient it is no number for x = -1000",
    right=tanh,
    printed=quotient,
)
def tanh_everywhere(form: Callable[[Tensor], Tensor], generator: torch.Generator) -> Evidence:
    x = torch.cat(
        [torch.randn(1000, generator=generator, dtype=torch.float64) * 3, torch.tensor([-1000.0, 0.0, 1000.0])]
    )
    worst = max(gap(form(x), 2 * sigmoid(2 * x) - 1), gap(form(x)[-3:], torch.tensor([-1.0, 0.0, 1.0])))
    return Evidence("largest |form - (2 sigmoid(2x) - 1)|", worst, roundings(8), "8 float64 roundings", len(x))


@claim(("D1-5", "Z5.18"), "the derivative of the sigmoid is sigmoid (1 - sigmoid), at most 1/4, and that at 0")
def sigmoid_derivative_is_at_most_a_quarter(generator: torch.Generator) -> Evidence:
    x = torch.cat(
        [torch.randn(2000, generator=generator, dtype=torch.float64) * 5, torch.zeros(1, dtype=torch.float64)]
    )
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(sigmoid(x).sum(), x)
    y = sigmoid(x).detach()
    worst = max(gap(gradient, y * (1 - y)), gap(sigmoid_derivative(x), y * (1 - y)), abs(float(gradient.max()) - 0.25))
    return Evidence(
        "largest |derivative - s(1 - s)|, and |max derivative - 1/4|",
        worst,
        roundings(8),
        "8 float64 roundings",
        len(x),
    )


@claim(
    "D1-11",
    "ReLU commutes with a positive factor, so scaling one layer up and the next down leaves a network as it was",
)
def positive_homogeneity(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        model = random_mlp(generator)
        x, factor = inputs_of(model, generator), math.exp(float(torch.randn((), generator=generator)))
        worst = max(worst, gap(relu(factor * x), factor * relu(x)))
        weights, biases = (
            [layer.weight.detach() for layer in linears(model)],
            [layer.bias.detach() for layer in linears(model)],
        )
        weights[:2] = [factor * weights[0], weights[1] / factor]
        biases[0] = factor * biases[0]
        worst = max(worst, gap(mlp_definition(x, weights, biases).output, model(x)))
    return Evidence("largest change under rescaling", worst, ROUNDING, ROUNDING_SOURCE, CASES)


@claim("D1-12", "a unit that is negative on all the data gets no gradient, in any weight that enters or leaves it")
def dead_unit_has_no_gradient(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        model = MLP([4, 6, 3], generator=generator).double()
        x, labels = inputs_of(model, generator), torch.randint(3, (16,), generator=generator)
        (first, last), dead = linears(model), randint(0, 5, generator)
        with torch.no_grad():
            first.bias[dead] = -1 - (x @ first.weight[dead]).max()
        found = dead_units(model, x)[0].dead
        loss = empirical_risk(cross_entropy, model(x), labels)
        entering, offset, leaving = torch.autograd.grad(loss, (first.weight, first.bias, last.weight))
        at_dead = torch.cat([entering[found].flatten(), offset[found], leaving[:, found].flatten()])
        # Were the unit not found, or all gradients zero, nothing would be shown.
        shown = bool(found[dead]) and bool(entering[~found].any())
        worst = max(worst, gap(at_dead, torch.zeros_like(at_dead)) if shown else math.inf)
    return Evidence("largest gradient at a dead unit", worst, 0.0, "exact: a sum of zeros", CASES)


@claim(
    "D1-9", "at initialisation half of the activations of a ReLU network are exactly zero, and of a tanh network none"
)
def half_of_the_activations_are_zero(generator: torch.Generator) -> Evidence:
    nets, width, depth = 20, 500, 4
    fractions, tanh_zeros = [], 0
    for _ in range(nets):
        model = MLP([16, *[width] * depth, 2], generator=generator)
        x = torch.randn(1, 16, generator=generator)
        fractions += [layer.fraction for layer in activation_sparsity(model, x)]
        tanh_zeros += int((torch.tanh(linears(model)[0](x)) == 0).sum())
    # Given the layer before, the signs of a layer's units are independent fair coins: all zeros are one binomial
    # sample.
    measured = abs(sum(fractions) / len(fractions) - 0.5) if tanh_zeros == 0 else math.inf
    bound = 6 * 0.5 / math.sqrt(nets * depth * width)
    return Evidence(
        "|fraction of zeros - 1/2|", measured, bound, "6 standard errors of a binomial fraction", nets * depth * width
    )


@claim(
    "D1-13c",
    "with weights that have a density no pre-activation of a non-zero input is zero; of a zero input without bias "
    "all are",
)
def zeros_have_probability_zero(generator: torch.Generator) -> Evidence:
    cases, width = 200, 500
    wrong = 0
    for _ in range(cases):
        weight = torch.randn(width, 8, generator=generator, dtype=torch.float64)
        bias = torch.zeros(width, dtype=torch.float64)
        x = torch.randn(8, generator=generator, dtype=torch.float64)
        wrong += int((affine_definition(x, weight, bias) == 0).sum()) + int(
            (affine_definition(0 * x, weight, bias) != 0).sum()
        )
    source = "probability 0; about 1e-16 for each in float64"
    return Evidence("zeros for x, and non-zeros for 0", wrong, 0, source, 2 * cases * width, "==")


def structural_zeros(width: int) -> float:
    return 2.0**-width


def no_zeros(width: int) -> float:
    return 0.0


@claim(
    "DE77",
    "behind a ReLU layer of w units without bias a pre-activation is exactly zero with probability 2^-w, so "
    "ReLU'(0) matters",
    right=structural_zeros,
    printed=no_zeros,
)
def exact_zeros_behind_a_dead_layer(form: Callable[[int], float], generator: torch.Generator) -> Evidence:
    nets, inputs, worst = 20_000, 6, 0.0
    for width in (1, 2, 3, 4):
        first = torch.randn(nets, width, inputs, generator=generator, dtype=torch.float64)
        second = torch.randn(nets, 1, width, generator=generator, dtype=torch.float64)
        x = torch.randn(nets, inputs, generator=generator, dtype=torch.float64)
        none = torch.zeros(width, dtype=torch.float64)
        hidden = torch.vmap(lambda x, weight, bias=none: dense_definition(x, weight, bias))(x, first)
        before = torch.vmap(lambda h, weight: affine_definition(h, weight, torch.zeros(1, dtype=torch.float64)))(
            hidden, second
        )
        worst = max(worst, abs(float((before == 0).double().mean()) - form(width)))
    bound = 6 * 0.5 / math.sqrt(nets)
    return Evidence(
        "largest |fraction of zeros - form|",
        worst,
        bound,
        "6 standard errors of a binomial fraction, at most",
        4 * nets,
    )


@claim(
    "D1-10",
    "an invertible affine map and ReLU can merge two circles and flatten each; the same map and tanh keeps them apart",
)
def relu_folds_what_tanh_keeps(generator: torch.Generator) -> Evidence:
    angle = 2 * math.pi * torch.arange(300, dtype=torch.float64) / 300
    circle = 0.4 * torch.stack([angle.cos(), angle.sin()], dim=1)
    # Side by side left of the axis where the first unit starts to work: ReLU sees only their heights.
    seen = torch.cat([circle + torch.tensor([-1.0, 1.0]), circle + torch.tensor([-2.0, 1.0])])
    wrong = 0
    for _ in range(CASES):
        left, right = torch.linalg.qr(torch.randn(2, 2, 2, generator=generator, dtype=torch.float64)).Q
        stretch = 0.5 + 1.5 * torch.rand(
            2, generator=generator, dtype=torch.float64
        )  # far from singular: gaps stay above spacings
        weight = left * stretch @ right
        bias = torch.randn(2, generator=generator, dtype=torch.float64)
        points = torch.linalg.solve(weight, (seen - bias).T).T
        folded, kept = dense_definition(points, weight, bias, relu), dense_definition(points, weight, bias, tanh)
        counts = [num_connected_components(layer, radius=1.01 * spacing(layer)) for layer in (points, folded, kept)]
        flat = bool((folded[:, 0] == 0).all())
        wrong += counts != [2, 1, 2] or not flat
    return Evidence(
        "cases with other component counts than 2 -> 1 (ReLU), 2 (tanh)", wrong, 0, "exact: counts", CASES, "=="
    )


def spacing(points: Float[Tensor, "n 2"]) -> float:
    """The largest distance between neighbours on the two closed curves."""
    curves = points.reshape(2, -1, 2)
    return float((curves - curves.roll(1, dims=1)).norm(dim=-1).max())


@claim(
    "D1-14i",
    "with N(0, g/n) weights and no bias E||h_L||² = (g/2)^L ||x||²: ReLU signals grow without bound, tanh's do not",
)
def growth_over_depth(generator: torch.Generator) -> Evidence:
    rounds, nets, width, depth, g = 8, 400, 64, 8, 3.0
    x = torch.randn(width, generator=generator)
    head, none = torch.zeros(nets, 1, width), [*[torch.zeros(width)] * depth, torch.zeros(1)]
    growth, within = [], True

    def ends(*weights: Tensor) -> tuple[Tensor, Tensor]:
        return mlp_definition(x, weights, none).hidden[-1], mlp_definition(x, weights, none, tanh).hidden[-1]

    for _ in range(rounds):
        weights = [
            math.sqrt(g / width) * torch.randn(nets, width, width, generator=generator) for _ in range(depth)
        ] + [head]
        last, tame = torch.vmap(ends)(*weights)
        growth.append(last.double().square().sum(dim=-1) / float(x.double().square().sum()))
        within = within and bool((tame.norm(dim=-1) <= math.sqrt(width)).all())
    expected = (g / 2) ** depth
    measured = abs(float(torch.cat(growth).mean()) / expected - 1) if within else math.inf
    # The growth of a layer is (g/2) times a mean of n terms of mean 1 and variance 5, independent of the others.
    deviation = math.sqrt(((1 + 5 / width) ** depth - 1) / (rounds * nets))
    return Evidence(
        f"|mean growth / {expected:.1f} - 1|",
        measured,
        7 * deviation,
        "7 standard errors, exact variance",
        rounds * nets,
    )


@claim(
    "D1-14",
    "far out on almost every ray a ReLU classifier is certain, wherever its last affine piece has one largest row",
)
def certainty_far_away(generator: torch.Generator) -> Evidence:
    least, rays = 1.0, 0
    for _ in range(CASES):
        model = random_mlp(generator, least_input=2)
        weights, none = (
            [layer.weight.detach() for layer in linears(model)],
            [0 * layer.bias.detach() for layer in linears(model)],
        )
        for x in inputs_of(model, generator):
            # f(ax)/a tends to the network without its biases at x: the gradients of the last linear piece of the ray.
            growth = mlp_definition(x, weights, none).output
            best = growth.topk(2).values
            margin = float(best[0] - best[1])
            if margin > 1e-6 * float(growth.abs().max()):
                rays += 1
                least = min(
                    least, float(confidence_along_ray(model, x, torch.tensor([1e6 / margin], dtype=torch.float64)))
                )
    # The biases move the logits by a bounded amount, far less than the 1e6 by which the largest leads.
    return Evidence(
        "least confidence far out",
        least,
        1 - roundings(8),
        "8 roundings: 2 exp(-1e5) is 0",
        rays if rays > 100 else 0,
        ">=",
    )


@claim(
    "D1-14", "on a ray that ends where all units are dead the classifier stays unsure: certainty needs distinct rows"
)
def no_certainty_on_a_dead_ray(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        model = random_mlp(generator, least_input=2)
        first = linears(model)[0]
        with torch.no_grad():
            first.weight.copy_(-first.weight.abs())
            first.bias.copy_(-first.bias.abs())
        x = torch.rand(model.sizes[0], generator=generator, dtype=torch.float64)
        confidence = confidence_along_ray(model, x, 10.0 ** torch.arange(12, dtype=torch.float64))
        at_zero = confidence_along_ray(model, 0 * x, torch.ones(1, dtype=torch.float64))
        worst = max(worst, gap(confidence, at_zero.expand(12)) if float(at_zero) < 1 else math.inf)
    return Evidence("largest change of the confidence up to 10^11 x", worst, roundings(8), "8 float64 roundings", CASES)


@claim(
    "D1-8", "on raw grey levels 0 to 16, at one learning rate, a ReLU network needs fewer epochs than a tanh network"
)
def relu_needs_fewer_epochs(generator: torch.Generator) -> Evidence:
    digits = data.load("digits")
    pixels, labels = digits.features.flatten(1), digits.targets
    chosen = torch.randperm(len(pixels), generator=generator)[:600]
    pixels, labels = pixels[chosen] - pixels[chosen].mean(dim=0), labels[chosen]
    raw, scaled = (
        [
            sum(epochs_needed(unit, scale * pixels, labels, lr, generator) for _ in range(2))
            for unit in (nn.ReLU, nn.Tanh)
        ]
        for scale, lr in ((16, 0.01), (1, 0.1))
    )
    source = "a measurement: 0.33, standard deviation 0.04 over samples"
    message = f"no general rule: pixels in [0, 1], learning rate 0.1, tanh not saturated: {scaled[0] / scaled[1]:.2f}"
    return Evidence(
        "epochs to 10% training error, ReLU / tanh", raw[0] / raw[1], 0.75, source, 4, counterexample=message
    )


def epochs_needed(
    unit: type[nn.Module],
    pixels: Float[Tensor, "n 64"],
    labels: Int[Tensor, "n"],
    lr: float,
    generator: torch.Generator,
) -> int:
    model = MLP([64, 64, 64, 64, 10], activation=unit, generator=generator)
    init_weights(
        model, kaiming_normal if unit is nn.ReLU else xavier_normal, generator=generator
    )  # each its own best start
    sgd = torch.optim.SGD(model.parameters(), lr)
    for epoch in range(1, 51):
        for batch in torch.randperm(len(pixels), generator=generator).split(50):
            sgd.zero_grad()
            empirical_risk(cross_entropy, model(pixels[batch]), labels[batch]).backward()
            sgd.step()
        with torch.no_grad():
            if float((model(pixels).argmax(dim=-1) != labels).float().mean()) <= 0.1:
                return epoch
    return 51
