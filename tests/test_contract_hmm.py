"""Hidden Markov models: the fast form against log space, log space against every path, all against hmmlearn."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from quoin.errors import UserError
from quoin.prob import (
    CategoricalEmission,
    GaussianEmission,
    HiddenMarkovModel,
    MarkovChain,
    baum_welch,
    baum_welch_step,
    hmm_backward_definition,
    hmm_fast,
    hmm_forward_definition,
    hmm_log_prob,
    hmm_posterior,
    hmm_posterior_definition,
    viterbi,
)
from quoin.prob.hmm import log_sum, log_table
from quoin.prob.hmm_fast import folded
from quoin.prob.hmm_fit import expected_counts

seeds = st.integers(0, 2**32 - 1)
QUICK = settings(deadline=None, max_examples=20)


def law(*shape, generator, zeros=0.0, dtype=torch.float64):
    """Distributions on the last axis; each entry is a structural zero with probability `zeros`, but never all of a
    distribution."""
    x = -torch.rand(shape, generator=generator, dtype=torch.float64).log()
    keep = torch.rand(shape, generator=generator) >= zeros
    keep.scatter_(-1, torch.randint(shape[-1], (*shape[:-1], 1), generator=generator), True)
    x = x * keep
    return (x / x.sum(dim=-1, keepdim=True)).to(dtype)


def tables(seed, batch, n, k, *, zeros=0.0, stick=0.0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    start = law(k, generator=generator, zeros=zeros)
    transition = stick * torch.eye(k, dtype=torch.float64) + (1 - stick) * law(k, k, generator=generator, zeros=zeros)
    log_emission = torch.randn(*batch, n, k, generator=generator, dtype=torch.float64)
    return tuple(x.to(dtype) for x in (log_table(start), log_table(transition), log_emission))


def every_path(log_initial, log_transition, log_emission):
    """ln P(x, o) for each of the k^n paths x: nothing but the product that defines the model."""
    n, k = log_emission.shape
    paths = torch.tensor(list(itertools.product(range(k), repeat=n)))
    joint = log_initial[paths[:, 0]] + log_emission[0][paths[:, 0]]
    for t in range(1, n):
        joint = joint + log_transition[paths[:, t - 1], paths[:, t]] + log_emission[t][paths[:, t]]
    return paths, joint


def model_of(seed, k, m, *, zeros=0.0):
    generator = torch.Generator().manual_seed(seed)
    chain = MarkovChain(law(k, generator=generator, zeros=zeros), law(k, k, generator=generator, zeros=zeros))
    return HiddenMarkovModel(chain, CategoricalEmission(law(k, m, generator=generator, zeros=zeros)))


def gaussian_model(seed, k, d, apart=3.0):
    generator = torch.Generator().manual_seed(seed)
    root = torch.randn(k, d, d, generator=generator, dtype=torch.float64) / 2
    means = apart * torch.randn(k, d, generator=generator, dtype=torch.float64)
    chain = MarkovChain(law(k, generator=generator), law(k, k, generator=generator))
    return HiddenMarkovModel(chain, GaussianEmission(means, root @ root.mT + torch.eye(d, dtype=torch.float64) / 2))


# ---- log space against every path -------------------------------------------------------------------------------


@QUICK
@given(seeds, st.integers(1, 5), st.integers(1, 3), st.sampled_from([0.0, 0.4]))
def test_log_space_is_the_sum_over_all_paths(seed, n, k, zeros):
    given_tables = tables(seed, (), n, k, zeros=zeros)
    paths, joint = every_path(*given_tables)
    total = joint.logsumexp(dim=0)
    if total == -math.inf:
        with pytest.raises(UserError, match="probability zero"):
            hmm_posterior_definition(*given_tables)
        return
    share = (joint - total).exp()
    found = hmm_posterior_definition(*given_tables)
    states = torch.stack([(share.unsqueeze(-1) * (paths[:, t, None] == torch.arange(k))).sum(dim=0) for t in range(n)])
    steps = torch.zeros(k, k, dtype=torch.float64)
    for t in range(n - 1):
        steps.index_put_((paths[:, t], paths[:, t + 1]), share, accumulate=True)
    torch.testing.assert_close(found.log_prob, total)
    torch.testing.assert_close(found.output, states)
    torch.testing.assert_close(found.transitions, steps)
    best = viterbi(*given_tables)
    torch.testing.assert_close(best.log_prob, joint.max())
    where = int((paths == best.output).all(dim=-1).nonzero())
    torch.testing.assert_close(joint[where], joint.max())  # the path it names has the probability it states


@QUICK
@given(seeds, st.integers(1, 6), st.integers(1, 4))
def test_forward_times_backward_is_the_same_at_every_step(seed, n, k):
    log_initial, log_transition, log_emission = tables(seed, (2,), n, k)
    alpha, beta = (
        hmm_forward_definition(log_initial, log_transition, log_emission),
        hmm_backward_definition(log_transition, log_emission),
    )
    total = (alpha + beta).logsumexp(dim=-1)
    torch.testing.assert_close(total, total[:, :1].expand_as(total))


# ---- the contract: scaled blocks against log space --------------------------------------------------------------

SHAPES = st.sampled_from(
    [((), 1, 1), ((), 9, 3), ((3,), 8, 2), ((2, 2), 13, 4), ((), 200, 3), ((2,), 333, 5), ((0,), 4, 3)]
)


@QUICK
@given(
    seeds,
    SHAPES,
    st.sampled_from([0.0, 0.3]),
    st.sampled_from([0.0, 0.9, 0.999]),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_scaled_blocks_agree_with_log_space(seed, shape, zeros, stick, dtype):
    exact = tables(seed, *shape, zeros=zeros, stick=stick)
    fast, slow = ([x.to(to).requires_grad_() for x in exact] for to in (dtype, torch.float64))
    log_prob, by_definition = hmm_log_prob(*fast), log_sum(hmm_forward_definition(*slow)[..., -1, :], dim=-1)
    if bool((by_definition == -math.inf).any()):
        assert torch.equal(log_prob == -math.inf, by_definition == -math.inf)
        return
    close = 1e-4 if dtype == torch.float32 else 1e-9
    torch.testing.assert_close(log_prob.double(), by_definition, rtol=close, atol=close)
    tilt = torch.linspace(0.5, 2, max(log_prob.numel(), 1), dtype=torch.float64)[: log_prob.numel()].reshape(
        log_prob.shape
    )
    (log_prob * tilt).sum().backward()
    (by_definition * tilt).sum().backward()
    for mine, other, name in zip(fast, slow, ("start", "transition", "emission"), strict=True):
        expected = torch.zeros_like(other) if other.grad is None else other.grad  # one step has no transition
        assert mine.grad is not None
        torch.testing.assert_close(
            mine.grad.double(), expected, msg=lambda text, name=name: f"{name}: {text}", rtol=close, atol=close
        )
    if log_prob.numel():
        found, definition = hmm_posterior(*(x.detach() for x in fast)), hmm_posterior_definition(*exact)
        for one, other in zip(found, definition, strict=True):
            torch.testing.assert_close(one.double(), other, rtol=close, atol=close)


def test_gradients_against_finite_differences():
    """Of all tables of the model, with structural zeros, which are no parameters and have gradient zero."""
    scores = [
        torch.randn(shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
        for shape in ((3,), (3, 3), (3, 4))
    ]
    allowed = torch.tensor([[1, 1, 0], [0, 1, 1], [0, 0, 1]], dtype=torch.bool)
    seen = torch.tensor([[0, 1, 3, 2, 2, 1], [2, 2, 0, 1, 0, 3]])

    def log_prob(start, transition, emission):
        chain = MarkovChain(start.softmax(-1), transition.masked_fill(~allowed, -torch.inf).softmax(-1))
        return HiddenMarkovModel(chain, CategoricalEmission(emission.softmax(-1))).log_prob(seen)

    assert torch.autograd.gradcheck(log_prob, [x.requires_grad_() for x in scores])

    def of_gaussians(means, roots):
        chain = MarkovChain(torch.tensor([0.6, 0.4]).double(), torch.tensor([[0.7, 0.3], [0.0, 1.0]]).double())
        emission = GaussianEmission(means, roots @ roots.mT + torch.eye(2, dtype=torch.float64))
        return HiddenMarkovModel(chain, emission).log_prob(numbers)

    generator = torch.Generator().manual_seed(6)
    numbers, means, roots = (
        torch.randn(shape, generator=generator, dtype=torch.float64) for shape in ((5, 2), (2, 2), (2, 2, 2))
    )
    assert torch.autograd.gradcheck(of_gaussians, [means.requires_grad_(), roots.requires_grad_()])


def test_blocks_that_do_not_forget_run_until_they_agree(monkeypatch):
    """A chain that stays where it is for ever: no guess is right until the first message has come through."""
    log_initial, log_transition, log_emission = tables(3, (), 700, 3, stick=1.0)
    sweeps = []
    sweep = hmm_fast._sweep
    monkeypatch.setattr(hmm_fast, "_sweep", lambda *a: (sweeps.append(len(a[2])), sweep(*a))[1])
    found = hmm_posterior(log_initial, log_transition, log_emission)
    assert len(sweeps) > 10  # several for each of the two directions
    exact = (log_initial + log_emission.sum(dim=0)).softmax(dim=-1)  # the state is one draw: n observations of it
    torch.testing.assert_close(found.output, exact.expand_as(found.output))


@QUICK
@given(seeds, st.lists(st.integers(1, 150), min_size=1, max_size=4))
def test_lengths_are_sequences_by_themselves(seed, lengths):
    log_initial, log_transition, log_emission = tables(seed, (len(lengths),), max(lengths), 3)
    given_lengths = torch.tensor(lengths)
    for row, length in enumerate(lengths):
        log_emission[row, length:] = torch.nan  # must not be looked at
    found = hmm_posterior(log_initial, log_transition, log_emission, given_lengths)
    for row, length in enumerate(lengths):
        alone = hmm_posterior_definition(log_initial, log_transition, log_emission[row, :length])
        torch.testing.assert_close(found.output[row, :length], alone.output)
        assert not found.output[row, length:].any()
        torch.testing.assert_close(found.transitions[row], alone.transitions)
        torch.testing.assert_close(found.log_prob[row], alone.log_prob)


def test_hundred_thousand_steps():
    """Against the recursion in plain numpy, scaled at every step."""
    generator = torch.Generator().manual_seed(1)
    chain = MarkovChain(law(4, generator=generator), law(4, 4, generator=generator, zeros=0.2))
    model = HiddenMarkovModel(chain, CategoricalEmission(law(4, 6, generator=generator)))
    seen = torch.randint(6, (100_000,), generator=generator)
    start, transition, emission = (
        x.numpy() for x in (model.chain.initial, model.chain.transition, model.emission.probabilities)
    )
    message, total = start, 0.0
    for symbol in seen.tolist():
        message = message * emission[:, symbol]
        scale = message.sum()
        total += math.log(scale)
        message = message / scale @ transition
    assert float(model.log_prob(seen)) == pytest.approx(total, rel=1e-12)
    posterior = model.posterior(seen)
    torch.testing.assert_close(posterior.output.sum(dim=-1), torch.ones(100_000, dtype=torch.float64))
    assert float(posterior.transitions.sum()) == pytest.approx(99_999, rel=1e-10)


@pytest.mark.parametrize(
    ("turn", "each"), [(15, 100.0), (100, 20.0)]
)  # to a sum of zero at once; and too little by little to show
def test_what_scaling_loses_is_found_in_log_space(turn, each):
    """Evidence of e^-turn each against state 1, then of more for it: scaled messages would have counted it as
    impossible."""
    log_initial, log_transition = (
        torch.full((2,), 0.5, dtype=torch.float64).log(),
        log_table(torch.eye(2, dtype=torch.float64)),
    )
    log_emission = torch.zeros(2 * turn + 1, 2, dtype=torch.float64)
    log_emission[:turn, 1], log_emission[turn:, 0] = -each, -each
    found = hmm_posterior(log_initial, log_transition, log_emission)
    exact = math.log(0.5) - turn * each
    assert float(found.log_prob) == pytest.approx(exact)
    torch.testing.assert_close(found.output[:, 1], torch.ones(2 * turn + 1, dtype=torch.float64))
    assert float(hmm_log_prob(log_initial, log_transition, log_emission)) == pytest.approx(exact)


# ---- Baum-Welch -------------------------------------------------------------------------------------------------


@QUICK
@given(seeds, st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(1, 100), st.booleans())
def test_the_likelihood_never_falls(seed, k, m, sequences, n, ragged):
    model, true = model_of(seed, k, m), model_of(seed + 1, k, m)
    generator = torch.Generator().manual_seed(seed)
    seen = true.sample(n, sequences, generator=generator).output
    lengths = torch.randint(1, n + 1, (sequences,), generator=generator) if ragged else None
    found = baum_welch(model, seen, max_iter=6, lengths=lengths).log_probs
    assert len(found) == 7
    assert all(after >= before - 1e-9 * (1 + abs(before)) for before, after in itertools.pairwise(found))


@QUICK
@given(seeds, st.integers(1, 3), st.integers(1, 2))
def test_the_likelihood_of_gaussians_never_falls(seed, k, d):
    seen = gaussian_model(seed, k, d, apart=2.0).sample(150, 2, generator=torch.Generator().manual_seed(seed)).output
    model, found = gaussian_model(seed, k, d), []
    for _ in range(6):
        try:
            step = baum_welch_step(model, seen)
        except UserError:  # a state has shrunk onto a point, where the likelihood has no bound and the fit is refused
            break
        found.append(float(step.log_prob))
        model = step.output
    assume(len(found) > 1)
    assert all(after >= before - 1e-9 * (1 + abs(before)) for before, after in itertools.pairwise(found))


def test_seen_states_are_counted():
    """Where each state says its own symbol nothing is hidden, and one step gives the counts of the sequence."""
    seen = torch.tensor([[0, 0, 1, 0, 1, 1, 1, 0]])
    even = torch.full((2, 2), 0.5, dtype=torch.float64)
    found = baum_welch_step(
        HiddenMarkovModel(MarkovChain(even[0], even), CategoricalEmission(torch.eye(2, dtype=torch.float64))), seen
    )
    torch.testing.assert_close(found.output.chain.initial, torch.tensor([1.0, 0.0]).double())
    torch.testing.assert_close(found.output.chain.transition, torch.tensor([[1 / 3, 2 / 3], [1 / 2, 1 / 2]]).double())
    assert float(found.log_prob) == pytest.approx(8 * math.log(0.5))


@pytest.mark.parametrize(("num_steps", "num_blocks", "filled"), [(640, 10, False), (660, 10, False), (641, 10, True)])
def test_expected_counts_of_blocks_are_the_posterior(num_steps, num_blocks, filled):
    """Blocks that divide the sequence and blocks that are filled up: the posterior of log space, summed."""
    layout = folded(2, num_steps, None)
    assert (layout.num_blocks, layout.valid is not None) == (num_blocks, filled)
    generator = torch.Generator().manual_seed(num_steps)
    initial, *rows = torch.rand(7, 3, generator=generator, dtype=torch.float64).split([1, 3, 3])
    transition, emission = ((each + 0.1) / (each + 0.1).sum(dim=-1, keepdim=True) for each in rows)
    model = HiddenMarkovModel(MarkovChain(initial[0] / initial.sum(), transition), CategoricalEmission(emission))
    seen = torch.randint(3, (2, num_steps), generator=generator)
    chain, found = model.chain, expected_counts(model, seen)
    tables = chain.initial.log(), chain.transition.log(), model.emission.log_prob(seen)
    states, transitions, log_prob = hmm_posterior_definition(*tables)
    torch.testing.assert_close(found.starts, states[:, 0].sum(dim=0))
    torch.testing.assert_close(found.steps, transitions.sum(dim=0))
    torch.testing.assert_close(found.log_prob, log_prob.sum())
    spoken = torch.stack([states[seen == symbol].sum(dim=0) for symbol in range(3)])
    torch.testing.assert_close(found.emission[0], spoken)


def test_a_state_that_is_never_visited_keeps_its_laws():
    chain = MarkovChain(torch.tensor([1.0, 0.0]), torch.tensor([[1.0, 0.0], [0.25, 0.75]]))
    model = HiddenMarkovModel(chain, CategoricalEmission(torch.tensor([[0.5, 0.5], [0.1, 0.9]])))
    found = baum_welch_step(model, torch.tensor([0, 1, 1])).output
    assert torch.equal(found.chain.transition[1], chain.transition[1])
    torch.testing.assert_close(found.emission.probabilities, torch.tensor([[1 / 3, 2 / 3], [0.1, 0.9]]))


def test_it_stops_at_the_tolerance():
    model = model_of(4, 2, 3)
    seen = model_of(5, 2, 3).sample(400, generator=torch.Generator().manual_seed(0)).output
    found = baum_welch(model, seen, max_iter=1000, tol=1e-4).log_probs
    assert len(found) < 1000
    gains = [(after - before) / 400 for before, after in itertools.pairwise(found)]
    assert gains[-2] <= 1e-4 < gains[-3]  # the last is after the step that was taken


# ---- the peer ---------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=10)
@given(seeds, st.integers(2, 5), st.integers(2, 5), st.lists(st.integers(2, 200), min_size=1, max_size=3))
def test_agreement_with_hmmlearn(seed, k, m, lengths):
    hmm = pytest.importorskip("hmmlearn.hmm")
    model = model_of(seed, k, m)
    generator = torch.Generator().manual_seed(seed)
    seen = torch.randint(m, (len(lengths), max(lengths)), generator=generator)
    peer = hmm.CategoricalHMM(k, n_features=m, init_params="", n_iter=4, tol=-np.inf, implementation="scaling")
    peer.startprob_, peer.transmat_ = model.chain.initial.numpy(), model.chain.transition.numpy()
    peer.emissionprob_ = model.emission.probabilities.numpy()
    joined = torch.cat([row[:length] for row, length in zip(seen, lengths, strict=True)]).unsqueeze(-1).numpy()
    log_prob, posterior = peer.score_samples(joined, lengths)
    mine = model.posterior(seen, torch.tensor(lengths))
    assert float(mine.log_prob.sum()) == pytest.approx(log_prob, rel=1e-9)
    pieces = torch.cat([row[:length] for row, length in zip(mine.output, lengths, strict=True)])
    np.testing.assert_allclose(pieces.numpy(), posterior, atol=1e-9)
    best, _ = peer.decode(joined, lengths)
    paths = [model.viterbi(row[:length]).log_prob for row, length in zip(seen, lengths, strict=True)]
    assert float(sum(paths)) == pytest.approx(best, rel=1e-9)
    peer.fit(joined, lengths)
    fitted = baum_welch(model, seen, max_iter=4, lengths=torch.tensor(lengths))
    np.testing.assert_allclose(
        fitted.log_probs[:4], list(peer.monitor_.history), rtol=1e-8, atol=1e-12
    )  # ln 1 is rounding
    for one, other in (
        (fitted.output.chain.initial, peer.startprob_),
        (fitted.output.chain.transition, peer.transmat_),
        (fitted.output.emission.probabilities, peer.emissionprob_),
    ):
        np.testing.assert_allclose(one.numpy(), other, atol=1e-7)


@settings(deadline=None, max_examples=8)
@given(seeds, st.integers(2, 4), st.integers(1, 3))
def test_agreement_with_hmmlearn_on_gaussians(seed, k, d):
    hmm = pytest.importorskip("hmmlearn.hmm")
    model = gaussian_model(seed, k, d)
    seen = gaussian_model(seed, k, d, apart=2.0).sample(300, generator=torch.Generator().manual_seed(seed)).output[0]
    how = {"covars_prior": 0, "covars_weight": 0, "means_weight": 0}  # its priors off: the likelihood alone
    peer = hmm.GaussianHMM(k, "full", init_params="", n_iter=3, tol=-np.inf, implementation="scaling", **how)
    peer.startprob_, peer.transmat_ = model.chain.initial.numpy(), model.chain.transition.numpy()
    peer.means_, peer.covars_ = model.emission.means.numpy(), model.emission.covariances.numpy()
    peer.fit(seen.numpy())
    fitted = baum_welch(model, seen, max_iter=3)
    np.testing.assert_allclose(fitted.log_probs[:3], list(peer.monitor_.history), rtol=1e-8)
    np.testing.assert_allclose(fitted.output.emission.means.numpy(), peer.means_, atol=1e-6)
    np.testing.assert_allclose(fitted.output.emission.covariances.numpy(), peer.covars_, atol=1e-6)


# ---- draws and mistakes -----------------------------------------------------------------------------------------


def test_samples_follow_the_model():
    """Frequencies of (X_0, o_0, X_1) over many draws, within six deviations of their probabilities."""
    model = model_of(7, 2, 3)
    count = 20_000
    drawn = model.sample(2, count, generator=torch.Generator().manual_seed(1))
    found = torch.zeros(2, 3, 2, dtype=torch.float64)
    found.index_put_(
        (drawn.states[:, 0], drawn.output[:, 0], drawn.states[:, 1]), torch.tensor(1.0).double(), accumulate=True
    )
    start, transition, emission = model.chain.initial, model.chain.transition, model.emission.probabilities
    exact = start[:, None, None] * emission[:, :, None] * transition[:, None, :]
    assert ((found / count - exact).abs() <= 6 * (exact * (1 - exact) / count).sqrt()).all()
    gaussian = gaussian_model(3, 2, 2)
    numbers = gaussian.emission.sample(torch.ones(count, dtype=torch.long), generator=torch.Generator().manual_seed(4))
    torch.testing.assert_close(numbers.mT.cov(), gaussian.emission.covariances[1], rtol=0.1, atol=0.1)
    torch.testing.assert_close(numbers.mean(dim=0), gaussian.emission.means[1], rtol=0.05, atol=0.05)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32])
def test_symbols_of_any_whole_dtype_are_the_same(dtype):
    """As many observations as symbols: bytes would fit as a mask too."""
    chain = MarkovChain(torch.tensor([0.5, 0.5]), torch.tensor([[0.9, 0.1], [0.2, 0.8]]))
    hidden = HiddenMarkovModel(chain, CategoricalEmission(torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])))
    seen = torch.tensor([1, 2, 1])
    assert hidden.log_prob(seen.to(dtype)) == hidden.log_prob(seen)
    assert hidden.viterbi(seen.to(dtype)).output.tolist() == hidden.viterbi(seen).output.tolist()
    ours, same = baum_welch_step(hidden, seen.to(dtype)), baum_welch_step(hidden, seen)
    assert torch.equal(ours.output.emission.probabilities, same.output.emission.probabilities)


EVEN = MarkovChain(torch.tensor([0.5, 0.5]), torch.eye(2))
ONE_EACH = HiddenMarkovModel(EVEN, CategoricalEmission(torch.eye(2)))  # never changes its state, so never its symbol
NUMBERS = HiddenMarkovModel(EVEN, GaussianEmission(torch.zeros(2, 1), torch.ones(2, 1, 1)))


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (lambda: ONE_EACH.posterior(torch.tensor([[0, 0], [0, 1]])), r"probability zero \(sequence 1\)"),
        (lambda: ONE_EACH.viterbi(torch.tensor([0, 1])), "probability zero;"),
        (lambda: baum_welch_step(ONE_EACH, torch.tensor([0, 1])), "probability zero"),
        (lambda: ONE_EACH.log_prob(torch.tensor([0, 2])), "labels from 0 to 1"),
        (lambda: ONE_EACH.log_prob(torch.tensor([0.0, 1.0])), "integer labels"),
        (lambda: ONE_EACH.log_prob(torch.tensor(0)), "axis for the steps"),
        (lambda: ONE_EACH.log_prob(torch.zeros(2, 0).long()), "at least one observation"),
        (lambda: ONE_EACH.log_prob(torch.tensor([[0, 0]]), torch.tensor([3])), r"from 1 to 2 .* got \[3\]"),
        (lambda: baum_welch_step(ONE_EACH, torch.tensor([[0, 0]]), torch.tensor([[1]])), "for each sequence"),
        (lambda: HiddenMarkovModel(EVEN, CategoricalEmission(torch.eye(3))), "2 states, got 3"),
        (lambda: MarkovChain(torch.tensor([0.5, 0.5]), torch.tensor([[0.5, 0.5], [0.5, 0.6]])), "row 1"),
        (lambda: CategoricalEmission(torch.tensor([[0.5, 0.6]])), "0.1 away"),
        (lambda: GaussianEmission(torch.zeros(2, 1), torch.tensor([[[1.0]], [[0.0]]])), "state 1's"),
        (lambda: GaussianEmission(torch.zeros(1, 2), torch.tensor([[[1.0, 0.5], [0.0, 1.0]]])), "symmetric"),
        (lambda: NUMBERS.log_prob(torch.ones(4, 2)), "axis d"),
        (lambda: NUMBERS.log_prob(torch.full((4, 1), math.nan)), "NaN|finite"),
        (lambda: baum_welch(ONE_EACH, torch.tensor([0, 0]), max_iter=-1), "from 0 up"),
        (lambda: ONE_EACH.sample(0, generator=torch.Generator()), "at least one step"),
        (lambda: hmm_log_prob(torch.zeros(2), torch.zeros(3, 3), torch.zeros(4, 3)), "axis k"),
    ],
)
def test_mistakes_are_told_in_one_line(mistake, words):
    with pytest.raises(UserError, match=words) as told:
        mistake()
    assert "\n" not in str(told.value)


def test_what_cannot_happen_has_probability_zero():
    model = ONE_EACH
    assert float(model.log_prob(torch.tensor([0, 1]))) == -math.inf
    torch.testing.assert_close(model.log_prob(torch.tensor([[0, 1], [1, 1]])), torch.tensor([-math.inf, math.log(0.5)]))
