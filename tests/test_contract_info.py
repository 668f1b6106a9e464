"""The contract of information on tables and torch distributions: definitions, peers, zeros, units, and the words of
each refusal."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats
from sklearn.metrics import mutual_info_score
from torch import Tensor
from torch.distributions import (
    Bernoulli,
    Beta,
    Binomial,
    Categorical,
    Cauchy,
    Exponential,
    Gamma,
    Laplace,
    Normal,
    Poisson,
    Uniform,
)

from near import assert_each_near
from quoin.errors import UserError
from quoin.info import (
    conditional_cross_entropy,
    conditional_entropy,
    convert_base,
    density_ratio,
    distribution_cross_entropy,
    entropy,
    fisher_information,
    fisher_information_definition,
    is_absolutely_continuous,
    joint_entropy,
    kl_divergence,
    mutual_information,
    mutual_information_definition,
    pmi,
    radon_nikodym,
    self_information,
)
from quoin.losses import expected_nll
from quoin.prob import MulticlassModel, divergence, kl_divergence_definition

TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-12}

dtypes = st.sampled_from([torch.float32, torch.float64])
bases = st.sampled_from([math.e, 2.0])
seeds = st.integers(0, 2**32)
batches = st.lists(st.integers(1, 3), max_size=2)
sizes = st.integers(1, 5)
few = settings(deadline=None, max_examples=30)


def drawn(shape: list[int], axes: int, dtype: torch.dtype, seed: int, *, zeros: bool = True) -> Tensor:
    """Probabilities over the last `axes` axes, about a third of them zero."""
    generator = torch.Generator().manual_seed(seed)
    weights = torch.rand(shape, generator=generator, dtype=dtype) + 0.05
    if zeros:
        weights = weights * (torch.rand(shape, generator=generator) < 0.7)
        weights.flatten(-axes)[..., 0] += 0.05
    return (weights / weights.flatten(-axes).sum(dim=-1).reshape(shape[:-axes] + [1] * axes)).requires_grad_()


def assert_same_slopes(ours: Tensor, theirs: Tensor, leaves: tuple[Tensor, ...], seed: int) -> None:
    assert_each_near(ours, theirs, TOLERANCE)
    upstream = torch.randn(ours.shape, generator=torch.Generator().manual_seed(seed), dtype=ours.dtype)
    for mine, its in zip(
        torch.autograd.grad(ours, leaves, upstream), torch.autograd.grad(theirs, leaves, upstream), strict=True
    ):
        assert mine.isfinite().all()
        assert_each_near(mine, its, TOLERANCE)


# ---- the contract: definition and fast form ---------------------------------------------------------------------


@few
@given(batches, sizes, dtypes, seeds, st.booleans())
def test_kl_in_blocks_is_kl(batch, n, dtype, seed, zeros):
    p, q = (drawn([*batch, n], 1, dtype, each, zeros=zeros).detach() for each in (seed, seed + 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(divergence, "_BLOCK", 0 if seed % 2 else 2 * n)  # one row a block, or two
        blocked = kl_divergence(p, q)  # infinite here and there
        covering = ((p + q) / 2).requires_grad_()
        p.requires_grad_()
        followed = kl_divergence(p, covering)
    assert_each_near(blocked, kl_divergence_definition(p.detach(), q), TOLERANCE)
    assert_same_slopes(followed, kl_divergence_definition(p, covering), (p, covering), seed)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # torch's own, at its first tangent
def test_blocks_follow_no_gradient_but_a_tangent():
    p, q = (drawn([3, 4], 1, torch.float64, seed, zeros=False).detach() for seed in (0, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(divergence, "_BLOCK", 4)
        tangent = torch.func.jvp(lambda law: kl_divergence(law, q), (p,), (p.clone(),))[1]
        compiled = torch.compile(kl_divergence, backend="eager", fullgraph=True)(p, q)
    assert_each_near(tangent, kl_divergence_definition(p, q) + 1, TOLERANCE)  # along p itself, where sum p = 1
    assert_each_near(compiled, kl_divergence_definition(p, q), TOLERANCE)


@few
@given(batches, sizes, sizes, dtypes, bases, seeds, st.booleans())
def test_mutual_information_two_ways(batch, n, m, dtype, base, seed, zeros):
    joint = drawn([*batch, n, m], 2, dtype, seed, zeros=zeros)
    assert_same_slopes(mutual_information(joint, base), mutual_information_definition(joint, base), (joint,), seed)


@few
@given(st.integers(2, 5), dtypes, seeds)
def test_fisher_information_two_ways(n, dtype, seed):
    theta = torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=dtype).requires_grad_()

    def family(scores: Tensor) -> Tensor:
        return torch.cat([scores.softmax(-1), torch.zeros(1, dtype=dtype)])

    ours, theirs = fisher_information(family, theta), fisher_information_definition(family, theta)
    assert_same_slopes(ours, theirs, (theta,), seed)
    p = theta.detach().softmax(-1)
    assert_each_near(theirs.detach(), torch.diag(p) - torch.outer(p, p), TOLERANCE)
    assert not fisher_information(family, theta.detach()).requires_grad


# ---- peers, and sums written out --------------------------------------------------------------------------------


@few
@given(batches, sizes, dtypes, bases, seeds)
def test_laws_against_scipy_and_torch(batch, n, dtype, base, seed):
    p, q = (drawn([*batch, n], 1, dtype, each) for each in (seed, seed + 1))
    a, b = p.detach().double().numpy(), q.detach().double().numpy()
    near = TOLERANCE[dtype]
    own = torch.as_tensor(stats.entropy(a, base=base, axis=-1))
    torch.testing.assert_close(entropy(p, base).detach().double(), own, rtol=near, atol=near)
    theirs = torch.as_tensor(special.rel_entr(a, b).sum(axis=-1) / math.log(base))
    torch.testing.assert_close(kl_divergence(p, q, base).detach().double(), theirs, rtol=near, atol=near)
    torch.testing.assert_close(
        distribution_cross_entropy(p, q, base).detach().double(), theirs + own, rtol=near, atol=near
    )
    assert_each_near(entropy(p, base).detach(), entropy(Categorical(p), base).detach(), TOLERANCE)
    assert is_absolutely_continuous(p, q).equal(~kl_divergence(p, q).isinf())


@few
@given(sizes, sizes, bases, seeds)
def test_pairs_against_sums_and_sklearn(n, m, base, seed):
    counts = (1000 * drawn([n, m], 2, torch.float64, seed).detach()).round()
    joint = counts / counts.sum()
    p = {(x, y): float(joint[x, y]) for x in range(n) for y in range(m)}
    p_x = [sum(p[x, y] for y in range(m)) for x in range(n)]
    p_y = [sum(p[x, y] for x in range(n)) for y in range(m)]
    seen = {pair: each for pair, each in p.items() if each > 0}
    both = -sum(each * math.log(each, base) for each in seen.values())
    left = -sum(each * math.log(each / p_x[x], base) for (x, _), each in seen.items())
    assert joint_entropy(joint, base).item() == pytest.approx(both, abs=1e-12)
    assert conditional_entropy(joint, base).item() == pytest.approx(left, abs=1e-12)
    shared = mutual_info_score(None, None, contingency=counts.numpy()) / math.log(base)
    assert mutual_information(joint, base).item() == pytest.approx(shared, abs=1e-12)
    for (x, y), each in p.items():
        expected = math.log(each / (p_x[x] * p_y[y]), base) if each else -math.inf
        assert pmi(joint, base)[x, y].item() == pytest.approx(expected, abs=1e-12)


def test_a_batch_is_its_members():
    joint = drawn([2, 3, 4, 5], 2, torch.float64, 0)
    for quantity in (joint_entropy, conditional_entropy, mutual_information, mutual_information_definition, pmi):
        each = torch.stack([torch.stack([quantity(table, 2) for table in row]) for row in joint])
        assert_each_near(quantity(joint, 2), each, TOLERANCE)


LAWS = [
    (Normal(0.3, 1.5), stats.norm(0.3, 1.5)),
    (Exponential(2.0), stats.expon(scale=0.5)),
    (Laplace(0.0, 3.0), stats.laplace(0, 3)),
    (Gamma(2.5, 2.0), stats.gamma(2.5, scale=0.5)),
    (Beta(2.0, 3.0), stats.beta(2, 3)),
    (Uniform(1.0, 4.0), stats.uniform(1, 3)),
    (Bernoulli(torch.tensor(0.3)), stats.bernoulli(0.3)),
    (Binomial(3, torch.tensor(0.3)), stats.binom(3, 0.3)),
]


@pytest.mark.parametrize(("ours", "theirs"), LAWS, ids=lambda law: type(law).__name__)
def test_entropy_of_distributions_against_scipy(ours, theirs):
    for base in (math.e, 2):
        assert entropy(ours, base).item() == pytest.approx(float(theirs.entropy()) / math.log(base), rel=1e-5)
    assert distribution_cross_entropy(ours, ours, 2).item() == pytest.approx(
        float(theirs.entropy()) / math.log(2), rel=1e-5
    )
    assert kl_divergence(ours, ours).item() == pytest.approx(0, abs=1e-6)


def test_divergence_of_distributions():
    near, far = Normal(torch.tensor([0.0, 1.0]), 1.0), Normal(2.0, 2.0)
    expected = [math.log(2) + (1 + (mean - 2) ** 2) / 8 - 0.5 for mean in (0, 1)]
    assert kl_divergence(near, far).tolist() == pytest.approx(expected, rel=1e-6)
    assert kl_divergence(near, far, 2).tolist() == pytest.approx([each / math.log(2) for each in expected], rel=1e-6)
    assert distribution_cross_entropy(near, far).tolist() == pytest.approx(
        [each + 0.5 * math.log(2 * math.pi * math.e) for each in expected], rel=1e-6
    )
    assert kl_divergence(Uniform(0.0, 1.0), Uniform(0.0, 0.5)).item() == math.inf
    assert distribution_cross_entropy(Uniform(0.0, 1.0), Uniform(0.0, 0.5)).item() == math.inf
    assert kl_divergence(Exponential(1.0), Normal(0.0, 1.0)).isfinite()
    assert kl_divergence(Normal(0.0, 1.0), Exponential(1.0)).item() == math.inf


# ---- zeros and other edges --------------------------------------------------------------------------------------


QUANTITIES = [
    entropy,
    self_information,
    lambda p: distribution_cross_entropy(p, p),
    lambda p: kl_divergence(p, p),
    lambda p: radon_nikodym(p, p),
]


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_slopes_are_numbers_where_values_are(quantity):
    p = torch.tensor([0.0, 0.4, 0.6], requires_grad=True)
    value = quantity(p)
    (slope,) = torch.autograd.grad(value[value.isfinite()].sum(), p)
    assert slope[1:].isfinite().all()
    assert slope[0].isfinite() or quantity is self_information


def test_slope_of_a_divergence_at_zero():
    p = torch.tensor([0.0, 0.4, 0.6], requires_grad=True)
    (slope,) = torch.autograd.grad(kl_divergence(p, torch.tensor([0.2, 0.3, 0.5])), p)
    assert slope.tolist() == pytest.approx([-math.log(0.2), math.log(0.4 / 0.3) + 1, math.log(0.6 / 0.5) + 1], rel=1e-6)


@pytest.mark.parametrize(
    "joint", [[[0.5, 0.0], [0.0, 0.5]], [[0.5, 0.5], [0.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]], [[0.2, 0.0], [0.3, 0.5]]]
)
def test_slopes_of_pairs_are_numbers(joint):
    joint = torch.tensor(joint, dtype=torch.float64, requires_grad=True)
    q = torch.tensor([[1.0, 0.0], [0.5, 0.5]], dtype=torch.float64, requires_grad=True)
    values = [
        joint_entropy(joint),
        conditional_entropy(joint),
        mutual_information(joint),
        mutual_information_definition(joint),
    ]
    values += [conditional_cross_entropy(joint, q)] if joint[0, 1] == 0 else []
    associations = pmi(joint)
    values.append(associations[joint > 0].sum())
    for value in values:
        assert value.isfinite()
        assert torch.autograd.grad(value, joint, retain_graph=True)[0].isfinite().all()


@pytest.mark.parametrize(
    "quantity",
    [
        entropy,
        lambda p: kl_divergence(p, p.flip(-1)),
        lambda p: distribution_cross_entropy(p.flip(-1), p),
        lambda p: radon_nikodym(p, p.flip(-1)),
    ],
)
def test_slopes_against_differences(quantity):
    scores = torch.randn(2, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda each: quantity(each.softmax(-1)), scores)
    for pair in (joint_entropy, conditional_entropy, mutual_information, pmi):
        assert torch.autograd.gradcheck(lambda each, pair=pair: pair(each.flatten().softmax(-1).reshape(2, 4)), scores)


def test_certain_is_plain_zero():
    certain = torch.tensor([1.0, 0.0])
    for value in (
        entropy(certain),
        self_information(certain[0]),
        joint_entropy(torch.diag(certain)),
        mutual_information(torch.diag(certain)),
    ):
        assert str(value.item()) == "0.0"
    assert self_information(certain[1]).item() == math.inf


def test_the_least_floats_are_not_lost():
    tiny = 1e-23  # its square is below float32
    joint = torch.tensor([[tiny, 0.0], [0.0, 1.0]])
    assert mutual_information(joint).item() == pytest.approx(-tiny * math.log(tiny), rel=1e-5)
    assert pmi(joint)[0, 0].item() == pytest.approx(-math.log(tiny), rel=1e-6)
    least = 1e-41  # p / q is above float32
    p, q = torch.tensor([[0.5, 0.5]]), torch.tensor([[least, 1.0]])
    expected = 0.5 * math.log(0.5 / float(q[0, 0])) + 0.5 * math.log(0.5)
    assert kl_divergence(p, q).item() == pytest.approx(expected, rel=1e-5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(divergence, "_BLOCK", 0)
        assert kl_divergence(p, q).item() == pytest.approx(expected, rel=1e-5)


def test_categorical_with_zeros():
    p = torch.tensor([0.5, 0.5, 0.0], requires_grad=True)
    q = torch.tensor([0.25, 0.25, 0.5])
    forth = kl_divergence(Categorical(p), Categorical(q))
    assert forth.item() == pytest.approx(math.log(2), rel=1e-6)
    assert kl_divergence(Categorical(q), Categorical(p)).item() == math.inf
    assert torch.autograd.grad(forth, p)[0].isfinite().all()


# ---- one distribution as seen from another ----------------------------------------------------------------------


@few
@given(st.integers(1, 5), dtypes, seeds)
def test_radon_nikodym_reweights_every_event(n, dtype, seed):
    p, other = (drawn([n], 1, dtype, each).detach() for each in (seed, seed + 1))
    q = (p + other) / 2
    weights = radon_nikodym(p, q) * q
    for event in itertools.product([False, True], repeat=n):
        assert weights[list(event)].sum().item() == pytest.approx(p[list(event)].sum().item(), abs=TOLERANCE[dtype])
    assert (radon_nikodym(p, q)[q == 0] == 0).all()


def test_density_ratio_reweights():
    x = torch.linspace(-20, 20, 4001, dtype=torch.float64)
    p, q = Normal(torch.tensor(1.0).double(), 1.0), Normal(torch.tensor(0.0).double(), 2.0)
    ratio = density_ratio(lambda at: p.log_prob(at).exp(), lambda at: q.log_prob(at).exp(), x)
    mean = torch.trapezoid(x * ratio * q.log_prob(x).exp(), x)  # E_Q[X dP/dQ] = E_P[X]
    assert mean.item() == pytest.approx(1, abs=1e-9)
    nowhere = density_ratio(torch.ones_like, torch.zeros_like, x)
    assert (nowhere == 0).all()


@few
@given(st.integers(1, 4), st.integers(1, 4), seeds)
def test_conditional_cross_entropy_is_the_expected_loss(n, m, seed):
    generator = torch.Generator().manual_seed(seed)
    counts = torch.randint(0, 4, (n, m), generator=generator)
    counts[0, 0] += 1
    scores = torch.randn(n, m, generator=generator, dtype=torch.float64)
    x, y = (
        torch.cat([place.expand(int(count)) for place, count in zip(each, counts.flatten())]) for each in places(n, m)
    )
    model = MulticlassModel(lambda row: scores[row])
    q = scores.softmax(-1).requires_grad_()
    joint = counts / counts.sum().double()
    assert_each_near(conditional_cross_entropy(joint, q), expected_nll(model, y, x), TOLERANCE)
    # At the conditional distributions themselves the slope in scores vanishes, and the value is H(Y | X).
    rows = (joint + 1e-300) / (joint + 1e-300).sum(dim=-1, keepdim=True)
    assert_each_near(conditional_cross_entropy(joint, rows, 2), conditional_entropy(joint, 2), TOLERANCE)
    best = rows.log().requires_grad_()
    (slope,) = torch.autograd.grad(conditional_cross_entropy(joint, best.softmax(-1)), best)
    assert slope.abs().max().item() < 1e-12


def places(n: int, m: int) -> tuple[Tensor, Tensor]:
    x, y = torch.meshgrid(torch.arange(n), torch.arange(m), indexing="ij")
    return x.flatten(), y.flatten()


def test_fisher_information_by_hand():
    def coin(theta: Tensor) -> Tensor:
        return torch.stack([theta[0], 1 - theta[0]])

    for family in (coin, lambda theta: Bernoulli(theta[0])):
        assert fisher_information(family, torch.tensor([0.2])).item() == pytest.approx(1 / 0.16, rel=1e-5)
    theta = torch.tensor([1.0, 2.0], requires_grad=True)
    fisher = fisher_information(lambda given: Normal(given[0], given[1]), theta)
    assert_each_near(fisher.detach(), torch.diag(torch.tensor([0.25, 0.5])), TOLERANCE)
    assert torch.autograd.grad(fisher[1, 1], theta)[0].tolist() == pytest.approx(
        [0, -0.5]
    )  # 2 / sigma^2 changes by -4 / sigma^3
    many = fisher_information(lambda given: Poisson(given.expand(3)), torch.tensor([2.0]))
    assert many.item() == pytest.approx(3 / 2, rel=1e-5)  # three independent counts, 1 / rate each


# ---- refusals ---------------------------------------------------------------------------------------------------


HALVES, THIRDS = torch.tensor([0.5, 0.5]), torch.full((3,), 1 / 3)
REFUSALS = [
    (lambda: entropy(torch.tensor([0.5, 0.4])), "sum to one .* a sum 0.1 away"),
    (lambda: entropy(torch.tensor([1, 0])), "as floats"),
    (lambda: entropy(HALVES, base=1), "a finite base above 1, got 1; give 2 for bits"),
    (lambda: convert_base(HALVES, math.nan), "a finite base above 1, got nan"),
    (lambda: entropy(Poisson(1.0)), "closed form, got Poisson; give a table"),
    (lambda: self_information(torch.tensor([0.5, 1.5])), "from 0 to 1, got 0.5 to 1.5"),
    (lambda: self_information(torch.tensor([math.nan])), "from 0 to 1, got nan"),
    (lambda: self_information(torch.tensor(3)), "probabilities as floats"),
    (lambda: joint_entropy(HALVES), "joint with at least 2 axes"),
    (lambda: mutual_information(torch.tensor([[0.5, 0.5], [0.5, 0.5]])), "joint table, .* a sum 1 away from one"),
    (lambda: pmi(torch.tensor([[1.5, -0.5]])), "least entry of -0.5"),
    (lambda: kl_divergence(HALVES, THIRDS), "axis n of q to be 2 as in p, got 3"),
    (lambda: distribution_cross_entropy(HALVES, THIRDS), "axis n of q to be 2"),
    (
        lambda: kl_divergence(HALVES, Categorical(HALVES)),
        "two tables, or two torch distributions or densities, got Tensor and Categorical",
    ),
    (
        lambda: distribution_cross_entropy(Categorical(HALVES), HALVES),
        "two tables, or two torch distributions or densities",
    ),
    (lambda: kl_divergence(Categorical(HALVES), Categorical(THIRDS)), "same outcomes, got 2 and 3 of them"),
    (lambda: kl_divergence(Categorical(torch.ones(1)), Categorical(THIRDS)), "same outcomes, got 1 and 3 of them"),
    (lambda: kl_divergence(Normal(torch.zeros(2), 1.0), Normal(torch.zeros(3), 1.0)), r"got shapes \(2,\) and \(3,\)"),
    (
        lambda: kl_divergence(torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2)), Normal(0.0, 1.0)),
        "on one space",
    ),
    (lambda: kl_divergence(Binomial(3, torch.tensor(0.3)), Poisson(1.0)), "closed form, got Binomial and Poisson"),
    (
        lambda: kl_divergence(Normal(torch.zeros(2), 1.0), Cauchy(0.0, 1.0)),
        "one distribution on the line .* got Normal of batch shape",
    ),
    (lambda: radon_nikodym(HALVES, torch.tensor([1.0, 0.0])), r"p = 0 wherever q = 0, got p = 0.5 at \(1,\)"),
    (lambda: radon_nikodym(HALVES, 2 * HALVES), "1 away from one"),
    (lambda: radon_nikodym(HALVES, THIRDS), "axis n of q"),
    (lambda: is_absolutely_continuous(HALVES, THIRDS), "axis n of q"),
    (
        lambda: conditional_cross_entropy(torch.full((2, 2), 0.25), torch.full((2, 2), 0.25)),
        "each row of q .* 0.5 away",
    ),
    (lambda: conditional_cross_entropy(torch.full((2, 2), 0.25), torch.full((2, 3), 1 / 3)), "axis m of q"),
    (
        lambda: fisher_information_definition(lambda theta: 2 * theta.softmax(-1), torch.zeros(2)),
        "family's distribution .* 1 away from one",
    ),
    (lambda: fisher_information(lambda theta: theta.softmax(-1), torch.zeros(2, 2)), "theta with 1 axis"),
    (
        lambda: fisher_information(lambda theta: theta.softmax(-1), torch.zeros(2, dtype=torch.long)),
        "parameters as floats",
    ),
]


@pytest.mark.parametrize(("asked", "words"), REFUSALS)
def test_refusals(asked, words):
    with pytest.raises(UserError, match=words) as caught:
        asked()
    assert "\n" not in str(caught.value)
