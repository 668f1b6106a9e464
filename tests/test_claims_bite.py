"""Claims fail where they should: a wrong block, or a wrong rival, for each claim that once let it pass."""

import contextlib
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.distributions import MixtureSameFamily, Normal

from quoin import autodiff, data, expressivity, layers, losses, models, optim, prob, tensor
from quoin.errors import UserError
from quoin.layers import Affine
from quoin.notes import claims
from quoin.notes.claims import dense_spans, portmanteau
from quoin.notes.claims.dense_spans import (
    LINE,
    failure_of_density,
    polynomials_in,
    random_units,
    slowest_fall,
    sup_error_at,
    sup_error_between,
)
from wrong_blocks import claim_modules

Mutant = Callable[[Callable], Callable]


def replace_in_claims(monkeypatch: pytest.MonkeyPatch, original: Callable, mutant: Callable) -> None:
    """Put the mutant wherever a file of claims has imported the original."""
    places = [(module, name) for module in claim_modules() for name, value in vars(module).items() if value is original]
    assert places
    for module, name in places:
        monkeypatch.setattr(module, name, mutant)


def some_claim_fails(id: str) -> bool:
    return any(one.run().verdict == "fails" for one in claims.select(claims.collect(), [id]))


# ---- mutants: each takes the block and gives a wrong one ----------------------------------------------------------


def degree_twenty(relu):
    return lambda z: sum((-1) ** k * (z / 12) ** k for k in range(21))


def first_41_columns(sup_error_in_span):
    return lambda columns, values: sup_error_in_span(columns[:, :41], values)


def cells_twice_as_wide(narrow_convex_net):
    return lambda g, eps, box, curvature: narrow_convex_net(g, 4 * eps, box, curvature=curvature)


def rests_at_once(partial_sawtooth_net):
    half = [Affine(torch.zeros(1, 1).double(), torch.zeros(1).double()) for _ in range(2)]
    half[1] = Affine(torch.zeros(1, 1).double(), torch.full((1,), 0.5).double())
    return lambda k, pieces: expressivity.relu_network(half)


def more_than_is_true(sawtooth_l1_lower_bound):
    return lambda k, pieces: 2.02 * sawtooth_l1_lower_bound(k, pieces)


def first_coordinate_alone(kl_divergence):
    def mutant(p, q, *base):
        planar = getattr(p, "dim", 1) == 2
        return kl_divergence(p.marginal(0), q.marginal(0)) if planar else kl_divergence(p, q, *base)

    return mutant


def first_function_alone(weak_gap):
    return lambda first, second, functions: weak_gap(first, second, functions[:1])


def no_further_than_a_tenth(prokhorov_distance):
    def mutant(p, q, distances):
        found = prokhorov_distance(p, q, distances)
        return found._replace(output=found.output.clamp(max=0.1)) if len(p) >= 7 else found

    return mutant


def without_tails(iid_sample):
    def mutant(quantile, *shape, generator):
        return iid_sample(lambda u: quantile(u.clamp(1e-4, 1 - 1e-4)), *shape, generator=generator)

    return mutant


def prefers_a_middle_width(kl_divergence):
    def mutant(p, q, *base):
        widths = [float(each.scale) for each in (p, q) if isinstance(each, Normal)]
        return kl_divergence(p, q, *base) / (20 if any(1.5 < width < 3.5 for width in widths) else 1)

    return mutant


def by_a_quadrant(independence_gap_of_density):
    """Twice |P[X < ½, Y < ½] - P[X < ½] P[Y < ½]| on the unit square, and what it was elsewhere."""

    def mutant(joint, *first):
        if not all(float(edges[0]) == 0 and float(edges[-1]) == 1 for edges in joint.edges):
            return independence_gap_of_density(joint, *first)
        sides = [joint.marginal(axis).probability((0, 0.5)) for axis in (0, 1)]
        return 2 * (joint.probability((0, 0.5), (0, 0.5)) - sides[0] * sides[1]).abs()

    return mutant


def forgets_the_second(joint_variable):
    def mutant(first, second):
        nothing = prob.RandomVariable(second.space, lambda outcome: (0,) * len(second(outcome)))
        return joint_variable(first, nothing)

    return mutant


def always_diagonal(joint_table):
    def mutant(first, second):
        table = joint_table(first, second)
        return torch.diag(table.sum(dim=1)) if table.shape[0] == table.shape[1] else table

    return mutant


def deaf_to_y(condition_density):
    def mutant(joint, given, *, fallback=None):
        (axis,) = given
        if len(joint.edges[axis]) != 3 or joint.dim != 2:  # elsewhere as it was, for other claims
            return condition_density(joint, given, fallback=fallback)
        return joint.marginal(1 - axis)

    return mutant


def undefined_for_infinite(kl_divergence):
    def mutant(p, q, *base):
        found = kl_divergence(p, q, *base)
        return torch.where(found.isinf(), torch.nan, found)

    return mutant


def by_two_moments(kl_divergence):
    """A mixture taken for the Gaussian of its mean and variance."""

    def plain(each):
        return Normal(each.mean, each.stddev) if isinstance(each, MixtureSameFamily) else each

    return lambda p, q, *base: kl_divergence(plain(p), plain(q), *base)


def in_the_other_order(chain_distribution_definition):
    return lambda initial, transitions: chain_distribution_definition(initial, transitions.flip(-3))


def with_the_biased_variance(update_running_stats):
    return lambda running, batch, count, **momentum: update_running_stats(running, batch, 10**12, **momentum)


def slope_two(hinge_loss):
    return lambda margins: 2 * hinge_loss(margins)


def twice_the_adjoints(backward):
    return lambda output: {variable: 2 * adjoint for variable, adjoint in backward(output).items()}


def always_true(test):
    return lambda *arguments, **named: True


def much_too_coarse(narrow_net):
    return lambda f, eps, interval, lipschitz: narrow_net(f, eps, interval, lipschitz=lipschitz / 20)


def scrambled(load):
    order = torch.randperm(64, generator=torch.Generator().manual_seed(0))

    def mutant(name):
        found = load(name)
        return replace(found, features=found.features.flatten(1)[:, order].reshape(found.features.shape))

    return mutant


def never_complains(power_iteration):
    def mutant(A, **named):
        with contextlib.suppress(UserError):
            return power_iteration(A, **named)

    return mutant


def one_region(max_regions):
    return lambda widths, d: 1


def one_region_less(regions_in_window):
    return lambda net: range(len(regions_in_window(net)) - 1)


MUTANTS = [
    ("D1.1-6", layers.relu, degree_twenty),
    ("D1.1-11", expressivity.sup_error_in_span, first_41_columns),
    ("D1.1-13", expressivity.narrow_convex_net, cells_twice_as_wide),
    ("D1.1-15", expressivity.partial_sawtooth_net, rests_at_once),
    ("D1.1-15", expressivity.sawtooth_l1_lower_bound, more_than_is_true),
    ("D6-6", prob.kl_divergence, first_coordinate_alone),
    ("D5-26", prob.weak_gap, first_function_alone),
    ("D5-26", prob.prokhorov_distance, no_further_than_a_tenth),
    ("D5-33", prob.iid_sample, without_tails),
    ("M24", prob.kl_divergence, prefers_a_middle_width),
    ("D5-7", prob.independence_gap_of_density, by_a_quadrant),
    ("DE37", prob.joint_variable, forgets_the_second),
    ("D5-8", prob.joint_table, always_diagonal),
    ("D5-10", prob.condition_density, deaf_to_y),
    ("D6-5", prob.kl_divergence, undefined_for_infinite),
    ("D1.4-17", prob.kl_divergence, by_two_moments),
    ("D5.1-7", prob.chain_distribution_definition, in_the_other_order),
    ("D1.6-12", layers.update_running_stats, with_the_biased_variance),
    ("M11", losses.hinge_loss, slope_two),
    ("Z2.6", autodiff.backward, twice_the_adjoints),
    ("Z12.3", optim.is_convex_set, always_true),
    ("ZE29", optim.is_convex, always_true),
    ("ZE3", tensor.is_norm, always_true),
    ("D1.1-13", expressivity.narrow_net, much_too_coarse),
    ("Z7.1c", data.load, scrambled),
    ("Z13.2", tensor.power_iteration, never_complains),
    ("DE10", expressivity.max_regions, one_region),
    ("D1.1-14", expressivity.regions_in_window, one_region_less),
]


@pytest.mark.parametrize(("id", "block", "mutant"), MUTANTS, ids=[f"{id}-{m.__name__}" for id, _, m in MUTANTS])
def test_a_claim_catches_the_wrong_block(id: str, block: Callable, mutant: Mutant, monkeypatch: pytest.MonkeyPatch):
    replace_in_claims(monkeypatch, block, mutant(block))
    assert some_claim_fails(id)


def test_d5_16_catches_a_density_that_is_wrong_in_fewer_dimensions(monkeypatch):
    """The mean and covariance are right, and so are exponential moments; only log_prob of the image is not."""
    affine = prob.MultivariateNormal.affine

    class Shifted(prob.MultivariateNormal):
        def log_prob(self, x):
            return super().log_prob(x) - 0.1

    def mutant(self, A, b=None):
        image = affine(self, A, b)
        if A.shape[-2] < A.shape[-1]:
            image.__class__ = Shifted
        return image

    monkeypatch.setattr(prob.MultivariateNormal, "affine", mutant)
    assert some_claim_fails("D5-16")


def one_step_short(self, num_steps):
    return prob.MultivariateNormal(self.initial, (num_steps - 1 + 1e-9) * self.kernel.step.covariance)


def with_a_unit_apart(forward):
    def mutant(self, x):
        first = next(each for each in self.modules() if isinstance(each, nn.Linear))
        return forward(self, x) + first.weight[0].sum()

    return mutant


def test_claims_catch_wrong_methods(monkeypatch):
    """Each of these methods, wrong, is seen by the claim of its block."""
    wrong = [
        ("D5.1-7", prob.InhomogeneousChain, "distribution", lambda self, n: self.initial),
        ("D5.1-7", prob.InhomogeneousChain, "transition_at", lambda self, t: self.transitions[0]),
        ("D5.1-1", prob.BrownianMotion, "covariance", lambda self, times: torch.maximum(times[:, None], times)),
        ("D5.1-8", prob.GaussianTransition, "sample", lambda self, x, *, generator: x),
        ("D6-11", prob.DiagonalNormal, "transform", lambda self, noise: self.mean + self.std**2 * noise),
        ("D5.1-9", prob.GaussianRandomWalk, "distribution", one_step_short),
        ("D1.6-8", layers.Residual, "forward", lambda self, x: self.body(x)),
        (
            "Z12.11",
            optim.GradientDescent,
            "step",
            lambda self, x, gradient, state: (x - 1.001 * self.lr * gradient, None),
        ),
        ("Z5.18", models.MLP, "forward", with_a_unit_apart(models.MLP.forward)),
        ("Z4.2", models.SoftmaxRegression, "forward", lambda self, x: self.linear(x.flatten(1)).softmax(dim=1)),
        ("D4.1-12", layers.PerformerAttention, "forward", lambda self, q, k, v: (q @ k.mT).softmax(dim=-1) @ v),
        ("Z9.0", nn.utils, "clip_grad_norm_", nn.utils.clip_grad_value_),
    ]
    for id, owner, name, method in wrong:
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, method)
            assert some_claim_fails(id), (owner, name)


def test_a_span_of_bounded_degree_is_not_called_dense():
    dense = polynomials_in(LINE)
    assert slowest_fall(dense, LINE.abs(), dense_spans.SIZES) < 1 / 3
    assert slowest_fall(lambda degree: dense(min(degree, 40)), LINE.abs(), dense_spans.SIZES) > 0.9


@pytest.mark.parametrize(("d", "degree"), [(1, 1), (1, 8), (1, 20), (1, 23), (2, 2), (2, 3)])
def test_polynomial_activations_are_not_called_dense(d, degree):
    generator = torch.Generator().manual_seed(degree)
    assert failure_of_density(lambda z: (z / 100) ** degree + z / 100, d, generator) > 1
    assert failure_of_density(torch.tanh, d, generator) < 1


def test_a_fit_that_is_right_at_its_own_points_alone_is_found_out():
    """More units than points, which oscillate unseen between two of them."""
    generator = torch.Generator().manual_seed(0)
    sampled = random_units(lambda z: (300 * z).sin(), 1, 24, 600, generator)
    assert sup_error_at(sampled, 24 * 20 + 1) < 1e-6
    assert sup_error_between(sampled, 24 * 20 + 1) > 1


def test_each_test_of_the_portmanteau_theorem_refuses_something():
    """A test that always said yes, or always no, would agree with the others on half of the sequences only."""
    converging, others = portmanteau.sequences()
    both = [*converging, *others]
    verdicts = [portmanteau.accepted(each) for each in both]
    for name in verdicts[0]:
        assert {each[name] for each in verdicts} == {True, False}, name


def test_a_sequence_that_alternates_is_refused_though_every_second_value_is_the_limit():
    (sign,) = [each for each in portmanteau.sequences()[1] if each.name == "the sign (-1)^n"]
    assert all(portmanteau.tests_of_convergence(sign.values(200), sign.limit).values())
    assert not any(portmanteau.accepted(sign).values())
