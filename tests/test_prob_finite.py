"""Finite probability: enumeration as the second opinion, batches, gradients against the equation, and the words of each
refusal."""

import itertools
import math
import types
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import distributions as families

import quoin.prob
from quoin.errors import UserError
from quoin.prob import (
    Density,
    ProbabilitySpace,
    RandomVariable,
    are_independent,
    bayes_rule,
    bayes_rule_from_log,
    condition_discrete,
    conditional_table,
    covariance,
    distribution_of,
    expectation,
    independence_gap,
    joint_from_conditional,
    joint_table,
    joint_variable,
    log_likelihood,
    mle,
    variance,
)

DTYPES = [torch.float32, torch.float64]
DICE = ProbabilitySpace.uniform(itertools.product(range(1, 7), repeat=2))


def positive(shape, seed, dtype=torch.float64):
    """A positive distribution over all axes after the first, by softmax of scores that take gradients."""
    scores = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    return scores.flatten(1).softmax(-1).reshape(shape).requires_grad_()


def agree(ours, theirs, inputs):
    torch.testing.assert_close(ours, theirs)
    upstream = torch.randn(ours.shape, generator=torch.Generator().manual_seed(0), dtype=ours.dtype)
    torch.testing.assert_close(
        *(torch.autograd.grad(each, inputs, upstream, retain_graph=True) for each in (ours, theirs))
    )


def test_no_public_name_is_hidden_by_a_file_of_the_same_name():
    assert not [name for name in quoin.prob.__all__ if isinstance(getattr(quoin.prob, name), types.ModuleType)]


# ---- spaces, variables, distributions ---------------------------------------------------------------------------


def test_two_dice_by_counting():
    total, low = RandomVariable(DICE, sum), RandomVariable(DICE, min)
    for value, probability in zip(
        distribution_of(total).outcomes, distribution_of(total).probabilities.tolist(), strict=True
    ):
        rolls = [roll for roll in DICE.outcomes if sum(roll) == value]
        assert probability == pytest.approx(len(rolls) / 36, abs=1e-15)
    assert float(expectation(total)) == pytest.approx(7)
    assert float(variance(total)) == pytest.approx(float(Fraction(35, 6)))
    assert float(DICE.given(lambda roll: sum(roll) >= 10).probability(lambda roll: 6 in roll)) == pytest.approx(5 / 6)
    rolls = [Fraction(sum(roll) * min(roll), 36) for roll in DICE.outcomes]
    mean_low = sum(Fraction(min(roll), 36) for roll in DICE.outcomes)
    assert float(covariance(DICE, total, low)) == pytest.approx(float(sum(rolls) - 7 * mean_low))
    table = joint_table(total, low)
    assert table.shape == (11, 6)
    assert float(table[total.values.index(9), low.values.index(4)]) == pytest.approx(2 / 36)
    pairs = distribution_of(joint_variable(total, low))
    assert float(pairs.probability(lambda pair: pair == (9, 4))) == pytest.approx(2 / 36)


def test_float32_does_not_make_independent_variables_depend():
    law_x, law_y = torch.tensor([0.1, 0.2, 0.7]), torch.tensor([0.3, 0.3, 0.4])
    space = ProbabilitySpace(itertools.product(range(3), range(3)), torch.outer(law_x, law_y).flatten())
    x, y = RandomVariable(space, lambda pair: pair[0]), RandomVariable(space, lambda pair: pair[1])
    assert are_independent(x, y)
    assert not are_independent(x, RandomVariable(space, sum))


@pytest.mark.parametrize("seed", range(5))
def test_a_batch_of_measures_is_each_measure_alone(seed):
    generator = torch.Generator().manual_seed(seed)
    table = positive((3, 2, 6), seed).reshape(3, 2, 6) * 2  # (3, 2) distributions on six outcomes
    table = (table / table.sum(-1, keepdim=True)).detach()
    values, others = torch.randint(0, 3, (2, 6), generator=generator).tolist()
    batch = ProbabilitySpace("abcdef", table)
    x, y = ({o: v[i] for i, o in enumerate("abcdef")}.__getitem__ for v in (values, others))
    whole = RandomVariable(batch, x)
    for i, j in itertools.product(range(3), range(2)):
        alone = ProbabilitySpace("abcdef", table[i, j])
        one = RandomVariable(alone, x)
        torch.testing.assert_close(distribution_of(whole).probabilities[i, j], distribution_of(one).probabilities)
        torch.testing.assert_close(variance(whole)[i, j], variance(one))
        torch.testing.assert_close(covariance(batch, x, y)[i, j], covariance(alone, x, y))
        torch.testing.assert_close(
            batch.given(lambda o: o in "abc").probabilities[i, j], alone.given(lambda o: o in "abc").probabilities
        )
        torch.testing.assert_close(
            joint_table(whole, RandomVariable(batch, y))[i, j], joint_table(one, RandomVariable(alone, y))
        )


def test_moments_are_differentiable_in_the_probabilities():
    p = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64, requires_grad=True)
    values = torch.tensor([1.0, 4.0, -2.0], dtype=torch.float64)
    x = RandomVariable(ProbabilitySpace(range(3), p), values.tolist().__getitem__)
    agree(distribution_of(x).probabilities, p[[2, 0, 1]], (p,))  # sorted by value
    agree(expectation(x, lambda v: v**3), (p * values**3).sum(), (p,))
    mean = (p * values).sum()
    agree(variance(x), (p * (values - mean) ** 2).sum(), (p,))


def test_independence():
    first, second = (RandomVariable(DICE, lambda roll, i=i: roll[i]) for i in range(2))
    assert are_independent(first, second)
    assert not are_independent(first, RandomVariable(DICE, sum))
    # The sum modulo six tells nothing about one die, nor the parity of one die about the parity of the other.
    assert are_independent(first, RandomVariable(DICE, lambda roll: sum(roll) % 6))
    # Pairwise independent, yet two of them settle the third.
    signs = ProbabilitySpace.uniform(itertools.product((-1, 1), repeat=2))
    x, y, z = (RandomVariable(signs, f) for f in (lambda w: w[0], lambda w: w[1], lambda w: w[0] * w[1]))
    assert all(are_independent(*pair) for pair in ((x, y), (y, z), (x, z)))
    assert not are_independent(joint_variable(x, y), z)


def test_values_without_an_order_stay_as_they_came():
    mixed = RandomVariable(ProbabilitySpace.uniform("abc"), {"a": "x", "b": 2, "c": "x"}.__getitem__)
    assert mixed.values == ("x", 2)
    assert distribution_of(mixed).probabilities.tolist() == pytest.approx([2 / 3, 1 / 3])


# ---- tables -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=25, deadline=None)
@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 5), st.integers(0, 99))
def test_kernels_by_the_equation(dtype, batch, n, m, seed):
    joint = positive((batch, n, m), seed, dtype)
    by_columns = torch.stack([condition_discrete(joint, y) for y in range(m)], dim=-2)
    agree(conditional_table(joint), by_columns, (joint,))
    agree(conditional_table(joint), (joint / joint.sum(-2, keepdim=True)).mT, (joint,))
    torch.testing.assert_close(joint_from_conditional(conditional_table(joint), joint.sum(-2)), joint)
    product = joint.sum(-1, keepdim=True) * joint.sum(-2, keepdim=True)
    agree(independence_gap(joint), (joint - product).abs().sum((-2, -1)) / 2, (joint,))


def test_rows_of_probability_zero_are_laws_and_have_gradients():
    joint = torch.tensor([[0.25, 0.0], [0.75, 0.0]], dtype=torch.float64, requires_grad=True)
    assert conditional_table(joint).tolist() == [[0.25, 0.75], [0.25, 0.75]]
    other = torch.tensor([1.0, 0.0], dtype=torch.float64)
    assert conditional_table(joint, fallback=other).tolist() == [[0.25, 0.75], [1.0, 0.0]]
    (slope,) = torch.autograd.grad(conditional_table(joint, fallback=other)[:, 0].sum(), joint)
    assert bool(slope.isfinite().all())
    with pytest.raises(UserError, match="Y = 1 of probability 0"):
        condition_discrete(joint, 1)


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=25, deadline=None)
@given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 99))
def test_both_forms_of_bayes(dtype, batch, n, seed):
    prior = positive((batch, n), seed, dtype)
    likelihood = positive((batch, n), seed + 100, dtype)
    agree(bayes_rule(prior, likelihood), bayes_rule_from_log(prior, likelihood.log()), (prior, likelihood))
    joint = prior * likelihood
    agree(bayes_rule(prior, likelihood), joint / joint.sum(-1, keepdim=True), (prior, likelihood))


def test_bayes_at_its_edges():
    prior = torch.tensor([0.0, 0.4, 0.6], dtype=torch.float64, requires_grad=True)
    logs = torch.tensor([-1.0, -2000.0, -2001.0], dtype=torch.float64, requires_grad=True)
    posterior = bayes_rule_from_log(prior, logs)  # bayes itself would find 0 / 0
    odds = 0.4 / 0.6 * math.e
    assert posterior.tolist() == pytest.approx([0, odds / (1 + odds), 1 / (1 + odds)])
    assert all(bool(each.isfinite().all()) for each in torch.autograd.grad(posterior[1], (prior, logs)))
    for form, evidence in ((bayes_rule, [0.3, 0.0, 0.0]), (bayes_rule_from_log, [-1.0, -math.inf, -math.inf])):
        with pytest.raises(UserError, match=r"P\(B\) = 0"):
            form(prior, torch.tensor(evidence, dtype=torch.float64))


# ---- moments of torch distributions -----------------------------------------------------------------------------

PEERS = [
    (families.Normal(1.5, 0.3), stats.norm(1.5, 0.3)),
    (families.Normal(-1e4, 1e-3), stats.norm(-1e4, 1e-3)),
    (families.Gamma(0.7, 2.0), stats.gamma(0.7, scale=0.5)),
    (families.Gamma(60.0, 2.0), stats.gamma(60.0, scale=0.5)),
    (families.Beta(2.0, 5.0), stats.beta(2.0, 5.0)),
    (families.Beta(0.6, 0.8), stats.beta(0.6, 0.8)),
    (families.Laplace(1.0, 2.0), stats.laplace(1.0, 2.0)),
    (families.Exponential(3.0), stats.expon(scale=1 / 3)),
    (families.Uniform(2.0, 5.0), stats.uniform(2.0, 3.0)),
    (families.LogNormal(0.0, 0.8), stats.lognorm(0.8)),
    (families.StudentT(5.0, 1.0, 2.0), stats.t(5.0, 1.0, 2.0)),
    (families.Gumbel(1.0, 2.0), stats.gumbel_r(1.0, 2.0)),
    (families.Weibull(2.0, 1.5), stats.weibull_min(1.5, scale=2.0)),
    (families.Poisson(3.5), stats.poisson(3.5)),
    (families.Geometric(0.03), stats.geom(0.03, loc=-1)),
    (families.NegativeBinomial(4.0, 0.6), stats.nbinom(4, 0.4)),
    (families.Binomial(9, 0.3), stats.binom(9, 0.3)),
    (families.Bernoulli(0.3), stats.bernoulli(0.3)),
]


def as_double(distribution):
    counts = isinstance(distribution, families.Binomial | families.NegativeBinomial)
    names = ("total_count", "probs") if counts else [name for name in distribution.arg_constraints if name != "logits"]
    return type(distribution)(
        **{name: torch.tensor(round(float(getattr(distribution, name)), 7), dtype=torch.float64) for name in names}
    )


@pytest.mark.parametrize(("distribution", "peer"), PEERS, ids=lambda each: type(each).__name__)
def test_moments_agree_with_scipy(distribution, peer):
    for each, rel in ((as_double(distribution), 2e-7), (distribution, 2e-3)):
        assert float(expectation(each)) == pytest.approx(peer.mean(), rel=rel)
        assert float(variance(each)) == pytest.approx(peer.var(), rel=rel)
    third = expectation(as_double(distribution), lambda x: ((x - peer.mean()) / peer.std()) ** 3)
    assert float(third) == pytest.approx(float(peer.stats("s")), abs=1e-5)


def test_moments_of_a_batch_and_their_gradients():
    mean = torch.tensor([[0.0, 50.0, -3.0]], dtype=torch.float64).T.expand(3, 2).clone().requires_grad_()
    std = torch.tensor([0.1, 4.0], dtype=torch.float64).expand(3, 2).clone().requires_grad_()
    agree(expectation(families.Normal(mean, std), lambda x: x**2), mean**2 + std**2, (mean, std))
    agree(variance(families.Normal(mean, std)), std**2, (mean, std)[1:])
    low, high = (torch.tensor(each, dtype=torch.float64, requires_grad=True) for each in (1.0, 4.0))
    agree(expectation(families.Uniform(low, high), lambda x: x**2), (low**2 + low * high + high**2) / 3, (low, high))
    rate = torch.tensor([0.5, 8.0], dtype=torch.float64, requires_grad=True)
    agree(variance(families.Poisson(rate)), rate * 1, (rate,))
    agree(
        expectation(families.Normal(mean, std), lambda x: (x / 5).cos()),
        (mean / 5).cos() * (-(std**2) / 50).exp(),
        (mean, std),
    )


def test_a_mean_that_is_infinite_is_refused():
    for each in (families.Cauchy(0.0, 1.0), families.Pareto(1.0, 0.9), families.HalfCauchy(1.0)):
        with pytest.raises(UserError, match="infinite"):
            expectation(each)
    with pytest.raises(UserError, match="infinite"):
        variance(families.StudentT(torch.tensor(1.5, dtype=torch.float64)), lambda x: x**2)
    # What is impossible costs nothing, whatever f says of it.
    assert float(expectation(ProbabilitySpace("ab", [1.0, 0.0]), {"a": 2.0, "b": math.inf}.__getitem__)) == 2


# ---- likelihood -------------------------------------------------------------------------------------------------


def sample(family, seed):
    torch.manual_seed(seed)
    return family.sample((200,)).double()


@pytest.mark.parametrize("seed", range(3))
def test_fits_agree_with_scipy(seed):
    with torch.random.fork_rng(devices=[]):
        x = sample(families.Normal(1.0, 2.0), seed)
        fitted = mle(families.Normal, x)
        assert (float(fitted.loc), float(fitted.scale)) == pytest.approx(stats.norm.fit(x.numpy()))
        positive = sample(families.Gamma(0.7 + seed, 3.0), seed)
        gamma = mle(families.Gamma, positive)
        shape, _, scale = stats.gamma.fit(positive.numpy(), floc=0)
        assert (float(gamma.concentration), float(gamma.rate)) == pytest.approx((shape, 1 / scale), rel=1e-5)
        assert float(mle(families.Exponential, positive).rate) == pytest.approx(
            1 / stats.expon.fit(positive.numpy(), floc=0)[1]
        )
        laplace = mle(families.Laplace, x)
        assert (float(laplace.loc), float(laplace.scale)) == pytest.approx(stats.laplace.fit(x.numpy()))
        sigma, _, median = stats.lognorm.fit(positive.numpy(), floc=0)
        log_normal = mle(families.LogNormal, positive)
        assert (float(log_normal.loc), float(log_normal.scale)) == pytest.approx((math.log(median), sigma), rel=1e-4)
        vectors = torch.randn(50, 3, dtype=torch.float64) @ torch.randn(3, 3, dtype=torch.float64)
        fitted = mle(families.MultivariateNormal, vectors)
        peer_mean, peer_covariance = stats.multivariate_normal.fit(vectors.numpy())
        torch.testing.assert_close(fitted.mean, torch.tensor(peer_mean))
        torch.testing.assert_close(fitted.covariance_matrix, torch.tensor(peer_covariance))


def test_fits_by_hand():
    throws = torch.tensor([1, 1, 0, 1])
    assert float(mle(families.Bernoulli, throws).mean) == 0.75
    assert mle(families.Categorical, torch.tensor([0, 2, 2, 1])).probs.tolist() == pytest.approx([0.25, 0.25, 0.5])
    assert float(mle(families.Poisson, torch.tensor([2.0, 5.0])).rate) == 3.5
    assert float(mle(families.Geometric, torch.tensor([0.0, 2.0])).probs) == 0.5
    uniform = mle(families.Uniform, torch.tensor([3.0, 1.0, 2.0]))
    assert float(uniform.low) == 1
    assert float(log_likelihood(uniform, torch.tensor([3.0, 1.0, 2.0]))) == pytest.approx(-3 * math.log(2))
    side_by_side = mle(families.Normal, torch.tensor([[0.0, 1.0], [2.0, 5.0]]))
    assert side_by_side.mean.tolist() == [1, 3]
    assert side_by_side.stddev.tolist() == [1, 2]
    assert float(log_likelihood(families.Bernoulli(0.5), throws.double())) == pytest.approx(4 * math.log(0.5))


# ---- refusals ---------------------------------------------------------------------------------------------------

HALF = torch.tensor([0.5, 0.5])
REFUSED = [
    (lambda: ProbabilitySpace("ab", [0.5, 0.6]), "0.1 away from one"),
    (lambda: ProbabilitySpace("ab", [-0.5, 1.5]), "least entry of -0.5"),
    (lambda: ProbabilitySpace("ab", [math.nan, 1.0]), "nan"),
    (lambda: ProbabilitySpace("abc", [0.5, 0.5]), "3 outcomes, got 2"),
    (lambda: ProbabilitySpace("aa", [0.5, 0.5]), "'a' twice"),
    (lambda: ProbabilitySpace.uniform([]), "at least one outcome"),
    (lambda: DICE.given(lambda roll: sum(roll) > 12), "probability 0"),
    (lambda: RandomVariable(DICE, sum)((7, 7)), "outcome of the space"),
    (
        lambda: joint_variable(RandomVariable(DICE, sum), RandomVariable(ProbabilitySpace.uniform("ab"), ord)),
        "one probability space",
    ),
    (lambda: expectation(ProbabilitySpace.uniform("ab")), "one number for each outcome, got 'a'"),
    (lambda: expectation(DICE), "one number for each outcome"),
    (lambda: expectation(0.5), "got 0.5"),  # pyright: ignore[reportArgumentType]
    (
        lambda: expectation(families.MultivariateNormal(torch.zeros(2), torch.eye(2))),
        "continuous distribution on the line",
    ),
    (lambda: expectation(families.Binomial(torch.tensor([2.0, 3.0]), 0.5)), "mixed batch of Binomial"),
    (lambda: expectation(families.Poisson(1e9)), "sample from it"),
    (lambda: expectation(families.VonMises(0.0, 1.0)), "sum to one"),
    (lambda: conditional_table(torch.full((2, 2), 0.3)), "0.2 away from one"),
    (lambda: conditional_table(HALF), "at least 2 axes"),
    (lambda: conditional_table(torch.eye(2) / 2, fallback=torch.ones(3) / 3), "2 values of X, got 3"),
    (lambda: condition_discrete(torch.eye(2) / 2, 2), "from 0 to 1, got 2"),
    (lambda: joint_from_conditional(torch.eye(2), torch.ones(3) / 3), "axis m"),
    (lambda: bayes_rule(HALF, torch.tensor([0.5, -0.1])), "-0.1"),
    (lambda: bayes_rule(HALF, torch.tensor([0.5, math.nan])), "NaN"),
    (lambda: bayes_rule(HALF, torch.ones(3)), "axis n"),
    (lambda: bayes_rule(HALF * 2, HALF), "1 away from one"),
    (lambda: mle(families.Normal, torch.ones(5)), "two different"),
    (lambda: mle(families.Normal, torch.tensor([1.0, math.nan])), "finite"),
    (lambda: mle(families.Normal, torch.zeros(0)), "at least one"),
    (lambda: mle(families.Bernoulli, torch.tensor([0.0, 2.0])), "zeros and ones, got 2"),
    (lambda: mle(families.Gamma, torch.tensor([0.0, 2.0])), "above 0, got 0"),
    (lambda: mle(families.Poisson, torch.tensor([0.5])), "counts from 0 on, got 0.5"),
    (lambda: mle(families.Categorical, torch.tensor([0, -1])), "labels from 0 on, got -1"),
    (
        lambda: mle(families.MultivariateNormal, torch.ones(4, 1) @ torch.ones(1, 2) * torch.arange(4.0)[:, None]),
        "all 2 directions",
    ),
    (lambda: mle(families.Cauchy, torch.ones(3)), "got Cauchy"),
    (lambda: mle(Density, torch.ones(3)), "got Density"),  # pyright: ignore[reportArgumentType]
]


@pytest.mark.parametrize(("mistaken", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_refusals_say_what_came(mistaken, words):
    with pytest.raises(UserError) as caught:
        mistaken()
    assert words in str(caught.value)
    assert str(caught.value).startswith("expected")
    assert "\n" not in str(caught.value)
