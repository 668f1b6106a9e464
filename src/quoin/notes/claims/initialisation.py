"""Products of Jacobians: vanishing and exploding signals, narrow layers, and initialisations that keep the signal's
size."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin import data
from quoin.inspect import gradient_norms, intermediates, jacobian_rank, stability_report
from quoin.layers import init_weights, kaiming_normal, small_normal, tanh_derivative, torch_default, xavier_normal
from quoin.layers.init import Rule
from quoin.losses import cross_entropy
from quoin.metrics import empirical_risk
from quoin.models import MLP, mlp_definition
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_networks import CASES, inputs_of, linears, random_mlp
from quoin.notes.claims.rounding import gap, max, min, randint, roundings


@claim(
    "Z5.17",
    "the adjoint of a hidden layer is the product of the transposed Jacobians after it with the adjoint of the output",
)
def adjoints_are_products_of_jacobians(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        model = random_mlp(generator, activation=nn.Tanh)
        x = inputs_of(model, generator)[:1]
        rows = stability_report(model, x, lambda output: output.square().sum() / 2).rows
        adjoint, expected = model(x)[0].detach(), []
        steps = intermediates(model, x)
        for layer, step in reversed(list(zip(linears(model), (s for s in steps if isinstance(s.module, nn.Linear))))):
            if layer is not model.head:
                adjoint = tanh_derivative(step.output[0]) * adjoint
            expected.append(adjoint.norm())
            adjoint = layer.weight.T @ adjoint
        found = [row.gradient_norm for row in reversed(rows) if row.kind == "Linear"]
        worst = max(worst, gap(torch.tensor(found, dtype=torch.float64), torch.stack(expected)))
    return Evidence(
        "largest |reported - product of Jacobians|, relative", worst, roundings(256), "256 float64 roundings", CASES
    )


@claim(
    "Z5.18",
    "a product of L standard normal n x n matrices grows like exp(L (ψ(n/2) + log 2) / 2): gradients explode",
    not_shown="other widths and depths: 100 layers of width 4",
)
def gaussian_products_explode(generator: torch.Generator) -> Evidence:
    products, length, n = 30, 100, 4
    none, logs = [torch.zeros(n, dtype=torch.float64)] * length, []
    for _ in range(products):
        weights = [torch.randn(n, n, generator=generator, dtype=torch.float64) for _ in range(length)]
        x = torch.randn(n, generator=generator, dtype=torch.float64)
        end = mlp_definition(x, weights, none, nn.Identity()).output
        logs.append(2 * float(torch.log(end.norm() / x.norm())))
    # Whatever the vector, a normal matrix multiplies its squared length by an independent chi-square of n degrees.
    half = torch.tensor(n / 2, dtype=torch.float64)
    mean, variance = float(torch.digamma(half)) + math.log(2), float(torch.polygamma(1, half))
    measured = abs(sum(logs) / (products * length) - mean)
    bound = 6 * math.sqrt(variance / (products * length))
    return Evidence(
        "|mean log growth of the square - expected|",
        measured,
        bound,
        "6 standard errors, exact distribution",
        products * length,
    )


@claim(
    "D1.6-6",
    "in a deep sigmoid network the log of the gradient norm falls towards the input by log(4/||W||) or more a layer",
)
def sigmoid_gradients_vanish(generator: torch.Generator) -> Evidence:
    excess, depth = -math.inf, 20
    for _ in range(10):
        model = MLP([32, *[32] * depth, 1], activation=nn.Sigmoid, generator=generator).double()
        init_weights(model, xavier_normal, generator=generator)
        x = torch.randn(1, 32, generator=generator, dtype=torch.float64)
        norms = torch.tensor(
            gradient_norms(model, x, torch.sum)[:-1:2], dtype=torch.float64
        ).log()  # of the linear layers' outputs
        steps = torch.arange(len(norms), dtype=torch.float64)
        steps = steps - steps.mean()
        fall = float((steps * norms).sum() / steps.square().sum())  # per layer on the way back: the fitted line's slope
        # sigma' <= 1/4: a layer multiplies the norm by ||W||/4 at most, and a fitted slope is a mean of the steps.
        largest = max(float(torch.linalg.matrix_norm(layer.weight.detach(), 2)) for layer in linears(model)[1:-1])
        vanishing = largest < 4 and len(norms) == depth
        excess = max(excess, math.log(4 / largest) - fall if vanishing else math.inf)
    return Evidence("largest log(4/||W||) - fall of log norm per layer", excess, 0.0, "exact: σ' ≤ 1/4", 10)


@claim(
    "D1.6-7", "past a narrow layer of width w the Jacobian has rank at most w and the next affine map's data rank w + 1"
)
def narrow_layers_bound_the_rank(generator: torch.Generator) -> Evidence:
    wrong, grown = 0, 0
    for _ in range(CASES):
        narrow = randint(1, 4, generator)
        sizes = [10, 9, narrow, 9, 8]
        model = MLP(sizes, activation=nn.Tanh, generator=generator).double()
        for layer in linears(model):
            nn.init.normal_(layer.bias, generator=generator)
        x = torch.randn(40, 10, generator=generator, dtype=torch.float64)
        stages = [nn.Sequential(*list(model.features)[:stop]) for stop in (2, 4, 6)] + [model]
        wrong += sum(jacobian_rank(stage, x[0]) > min(sizes[: index + 2]) for index, stage in enumerate(stages))
        wrong += jacobian_rank(model, x[0]) != narrow  # of generic weights the bound is met
        after = [step.output for step in intermediates(model, x)]
        wrong += int(torch.linalg.matrix_rank(after[4])) > narrow + 1  # the affine map behind the narrow layer
        grown += int(torch.linalg.matrix_rank(after[5])) > narrow + 1  # and tanh of it: another matter
    measured = wrong if grown > 0 else math.inf
    return Evidence(
        "ranks above their bound", measured, 0, "exact: rank of a product; ranks to 1e-15 relative", 6 * CASES, "=="
    )


@claim(
    "Z5.19",
    "He initialisation keeps the mean square through 100 ReLU layers, forward and back; variances without the "
    "widths do not",
)
def he_keeps_the_signal(generator: torch.Generator) -> Evidence:
    width, depth = 400, 100
    model = MLP([width] * (depth + 2), generator=generator)
    x = torch.randn(1, width, generator=generator)
    init_weights(model, kaiming_normal, generator=generator)
    rows = stability_report(model, x, lambda output: (output * x).sum()).rows
    forward = torch.tensor([row.output_rms for row in rows if row.kind == "ReLU"], dtype=torch.float64).square()
    backward = torch.tensor([row.gradient_norm for row in rows if row.kind == "ReLU"], dtype=torch.float64).square()
    factors = [forward[1:] / forward[:-1], backward[:-1] / backward[1:]]
    far = max(abs(float(factor.mean()) - 1) for factor in factors)
    kept = all(1e-4 < float(ends[-1] / ends[0]) < 1e4 for ends in (forward, backward))
    for rule in (small_normal, torch_default):
        init_weights(model, rule, generator=generator)
        with torch.no_grad():
            kept = kept and float(model.features(x).double().square().mean()) < 1e-30
    # A layer's factor is the mean of n terms of mean 1 and variance at most 5.
    bound = 6 * math.sqrt(5 / (width * (depth - 1)))
    return Evidence(
        "|mean factor of a layer - 1|", far if kept else math.inf, bound, "6 standard errors", 2 * (depth - 1)
    )


@claim("Z5.19", "Xavier's factors are 2 n_in/(n_in + n_out) forward and 2 n_out/(n_in + n_out) back, of mean one")
def xavier_balances_both_ways(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 0
    for inputs, outputs in ((300, 600), (600, 300), (500, 500)):
        forward, backward = [], []
        for _ in range(30):
            weight = xavier_normal(outputs, inputs, generator)
            x, adjoint = torch.randn(inputs, generator=generator), torch.randn(outputs, generator=generator)
            forward.append(mean_square(weight @ x) / mean_square(x))
            backward.append(mean_square(adjoint @ weight) / mean_square(adjoint))
        for factors, fan, terms in ((forward, inputs, outputs), (backward, outputs, inputs)):
            expected = 2 * fan / (inputs + outputs)
            error = math.sqrt(2 / terms / len(factors))  # a mean of squares of `terms` normals
            worst = max(worst, abs(sum(factors) / len(factors) / expected - 1) / error)
            cases += len(factors)
    return Evidence("largest deviation, in standard errors", worst, 6, "6 standard errors, exact distribution", cases)


def mean_square(x: Float[Tensor, "..."]) -> float:
    return float(x.double().square().mean())


@claim(
    "Z5.18",
    "hidden units that start equal stay equal, however long they are trained: only chance breaks the symmetry",
    not_shown="however long: the steps that were run",
)
def equal_units_stay_equal(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(5):
        x, y = (torch.randn(32, size, generator=generator, dtype=torch.float64) for size in (3, 1))
        differences = []
        for equal in (True, False):
            model = MLP([3, 5, 1], generator=generator).double()
            if equal:
                with torch.no_grad():
                    model.head.weight.fill_(0.3)
                    first = linears(model)[0]
                    first.weight.copy_(first.weight[:1].expand(5, 3).clone())
            sgd = torch.optim.SGD(model.parameters(), 0.05)
            for _ in range(30):
                sgd.zero_grad()
                (model(x) - y).square().mean().backward()
                sgd.step()
            weights = torch.cat([linears(model)[0].weight, model.head.weight.T], dim=1).detach()
            differences.append(float((weights - weights[:1]).abs().max()))
        worst = max(worst, differences[0] if differences[1] > 0.01 else math.inf)
    source = "rounding: 30 steps on units of size one"
    return Evidence("largest difference of two units after training", worst, roundings(1000), source, 5)


@claim(
    "Z5.20",
    "small normal weights or the framework's default train a network of one hidden layer, and leave one of 50 at "
    "chance",
)
def default_start_is_for_moderate_depth(generator: torch.Generator) -> Evidence:
    digits = data.load("digits")
    pixels, labels = digits.features.flatten(1), digits.targets
    accuracy = {
        depth: [trained_accuracy(depth, rule, pixels, labels, generator) for rule in (small_normal, torch_default)]
        for depth in (1, 50)
    }
    measured = max(accuracy[50]) if min(accuracy[1]) > 0.5 else math.inf
    message = f"with one hidden layer the least accuracy is {min(accuracy[1]):.2f}"
    return Evidence(
        "training accuracy at depth 50",
        measured,
        0.15,
        "the largest class is 0.102 of the rows",
        2,
        counterexample=message,
    )


def trained_accuracy(
    depth: int, rule: Rule, pixels: Float[Tensor, "n 64"], labels: Int[Tensor, "n"], generator: torch.Generator
) -> float:
    model = MLP([64, *[64] * depth, 10], generator=generator)
    init_weights(model, rule, generator=generator)
    sgd = torch.optim.SGD(model.parameters(), 0.5)
    for _ in range(80):
        batch = torch.randint(len(pixels), (128,), generator=generator)
        sgd.zero_grad()
        empirical_risk(cross_entropy, model(pixels[batch]), labels[batch]).backward()
        sgd.step()
    with torch.no_grad():
        return float((model(pixels).argmax(dim=-1) == labels).double().mean())
