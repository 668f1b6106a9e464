"""Entropies and their kin where a probability is zero: the gradient is what its docstring says, and the limit in a
softmax's scores.

Every public function of info's entropy.py, relative.py and mutual.py has a line here, or a reason.
"""

import math

import pytest
import torch

from quoin import info
from quoin.prob import jensen_shannon_divergence, kl_divergence_definition

double = lambda *x: torch.tensor(x, dtype=torch.float64)  # noqa: E731
P, Q, Q0 = double(0.5, 0.5, 0.0), double(0.25, 0.5, 0.25), double(0.25, 0.75, 0.0)
JOINT = double(0.5, 0.0, 0.1, 0.2, 0.2, 0.0, 0.0, 0.0, 0.0).reshape(3, 3)
MODEL = double(0.5, 0.25, 0.25).expand(3, 3)

# name: function, arguments, and for each argument {place: the gradient there}, from the docstring
STATED = [
    ("entropy", info.entropy, [P], [{2: 0.0, 0: math.log(2) - 1}]),
    ("joint_entropy", info.joint_entropy, [JOINT], [{(0, 1): 0.0, (2, 2): 0.0, (0, 0): math.log(2) - 1}]),
    (
        "conditional_entropy",
        info.conditional_entropy,
        [JOINT],
        [{(0, 1): 1.0, (1, 2): 1.0, (2, 0): 0.0, (0, 0): math.log(1.2)}],
    ),
    ("kl_divergence", info.kl_divergence, [P, Q], [{2: math.log(4), 0: math.log(2) + 1}, {2: 0.0, 0: -2.0}]),
    ("kl_divergence, both zero", info.kl_divergence, [P, Q0], [{2: 0.0, 0: math.log(2) + 1}, {2: 0.0, 0: -2.0}]),
    ("kl_divergence, infinite", info.kl_divergence, [Q, P], [{2: math.inf}, {2: -math.inf}]),
    ("kl_divergence_definition", kl_divergence_definition, [P, Q], [{2: math.log(4)}, {2: 0.0}]),
    (
        "distribution_cross_entropy",
        info.distribution_cross_entropy,
        [P, Q],
        [{2: math.log(4), 0: math.log(4)}, {2: 0.0, 0: -2.0}],
    ),
    ("distribution_cross_entropy, both zero", info.distribution_cross_entropy, [P, Q0], [{2: 0.0}, {2: 0.0}]),
    ("distribution_cross_entropy, infinite", info.distribution_cross_entropy, [Q, P], [{2: math.inf}, {2: -math.inf}]),
    (
        "conditional_cross_entropy",
        info.conditional_cross_entropy,
        [JOINT, MODEL],
        [{(0, 1): math.log(4)}, {(0, 1): 0.0, (0, 2): -0.4}],
    ),
    (
        "mutual_information",
        info.mutual_information,
        [JOINT],
        [{(0, 1): -2.0, (2, 0): -1.0, (0, 0): math.log(0.5 / 0.6 / 0.7) - 1}],
    ),
    (
        "mutual_information_definition",
        info.mutual_information_definition,
        [JOINT],
        [{(0, 1): -2.0, (2, 0): -1.0, (0, 0): math.log(0.5 / 0.6 / 0.7) - 1}],
    ),
    ("self_information", info.self_information, [P], [{2: -math.inf, 0: -2.0}]),
]
REASONS = {
    "pmi": "minus infinity at zero itself, and so without a slope",
    "is_absolutely_continuous": "a truth value",
    "radon_nikodym": "a quotient: no logarithm",
    "density_ratio": "a quotient: no logarithm",
}


def test_every_function_of_a_table_is_listed():
    modules = [__import__(f"quoin.info.{name}", fromlist=["__all__"]) for name in ("entropy", "relative", "mutual")]
    public = {name for module in modules for name in module.__all__}
    listed = {name.split(",")[0] for name, *_ in STATED}
    assert public <= listed | set(REASONS), public - listed - set(REASONS)
    for name in public & listed:
        assert "radient" in getattr(info, name).__doc__, f"{name} does not say what gradient it gives at zero"


@pytest.mark.parametrize(("name", "function", "given", "stated"), STATED, ids=[case[0] for case in STATED])
def test_the_gradient_at_zero_is_the_stated_one(name, function, given, stated):
    taken = [each.clone().requires_grad_() for each in given]
    gradients = torch.autograd.grad(function(*taken).sum(), taken)
    for gradient, said in zip(gradients, stated):
        assert not gradient.isnan().any()
        for place, expected in said.items():
            assert float(gradient[place]) == pytest.approx(expected, abs=1e-12), (name, place)


# In scores z with p = softmax(z), a probability that underflows changes nothing: value and gradient are those of the
# scores without it.
SCORES = double(0.3, -1.0, 0.7, 0.1)


def through_scores(function):
    return lambda z, *rest: function(torch.softmax(z, -1), *rest)


def table(z):
    return torch.softmax(z.flatten(), -1).reshape(z.shape)


@pytest.mark.parametrize(
    ("function", "others"),
    [
        (info.entropy, ()),
        (info.kl_divergence, (double(0.2, 0.3, 0.4, 0.1),)),
        (info.distribution_cross_entropy, (double(0.2, 0.3, 0.4, 0.1),)),
        (lambda p, q: info.kl_divergence(q, p), (double(0.2, 0.3, 0.5, 0.0),)),
        (lambda p, q: info.distribution_cross_entropy(q, p), (double(0.2, 0.3, 0.5, 0.0),)),
        (jensen_shannon_divergence, (double(0.2, 0.3, 0.4, 0.1),)),
    ],
)
def test_in_a_softmaxs_scores_the_gradient_is_the_limit(function, others):
    gone = SCORES.clone()
    gone[3] = -2000.0
    scores = gone.requires_grad_()
    value = through_scores(function)(scores, *others)
    (found,) = torch.autograd.grad(value, scores)
    near = SCORES.clone()
    near[3] = -40.0  # p = 1e-18: the limit but for 40 times that
    near = near.requires_grad_()
    (expected,) = torch.autograd.grad(through_scores(function)(near, *others), near)
    assert found[3] == 0
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-15)


OF_PAIRS = [info.joint_entropy, info.conditional_entropy, info.mutual_information, info.mutual_information_definition]


@pytest.mark.parametrize("function", OF_PAIRS)
def test_in_a_softmaxs_scores_of_pairs_the_gradient_is_the_limit(function):
    z = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    gradients = []
    for low in (-2000.0, -40.0):
        scores = z.clone()
        scores[0, 1] = scores[2, 3] = low
        scores[1] = low
        scores = scores.requires_grad_()
        gradients += torch.autograd.grad(function(table(scores)), scores)
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-15)
