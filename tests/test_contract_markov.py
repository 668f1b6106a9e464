"""Markov chains: definition against fast form in value and gradient, NumPy and brute force as peers, closed forms, the
refusals."""

import math

import networkx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from quoin.errors import UserError
from quoin.prob import (
    InhomogeneousChain,
    MarkovChain,
    absorption,
    chain_distribution,
    chain_distribution_definition,
    check_stochastic,
    closed_classes,
    hitting_probability,
    hitting_time,
    stationary_distribution,
    stationary_distributions,
)

DTYPES = [torch.float32, torch.float64]
seeds = st.integers(0, 10**6)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def sparse_rows(seed: int, *shape: int, dtype=torch.float64) -> torch.Tensor:
    """Random distributions with half of their entries zero."""
    g = generator(seed)
    weights = (torch.rand(shape, generator=g, dtype=dtype) + 0.05) * (torch.rand(shape, generator=g) < 0.5)
    weights[..., -1] += (weights.sum(-1) == 0).to(dtype)
    return weights / weights.sum(-1, keepdim=True)


def ruin(size: int, up: float) -> torch.Tensor:
    """The gambler's matrix: up with probability `up`, down else, ruined at 0 and rich at the last state."""
    matrix = torch.zeros(size, size, dtype=torch.float64)
    inner = torch.arange(1, size - 1)
    matrix[inner, inner + 1], matrix[inner, inner - 1] = up, 1 - up
    matrix[0, 0] = matrix[-1, -1] = 1
    return matrix


@given(seeds, st.integers(1, 5), st.integers(0, 20), st.sampled_from([(), (3,), (2, 2)]), st.sampled_from(DTYPES))
@settings(max_examples=25, deadline=None)
def test_repeated_squaring_is_the_product(seed, k, n, batch, dtype):
    g = generator(seed)
    start = torch.rand(*batch, k, generator=g, dtype=dtype).softmax(-1).requires_grad_()
    matrix = torch.rand(*batch, k, k, generator=g, dtype=dtype).softmax(-1).requires_grad_()
    ours = chain_distribution(start, matrix, n)
    theirs = chain_distribution_definition(start, matrix.unsqueeze(-3).expand(*batch, n, k, k))
    torch.testing.assert_close(ours, theirs)
    if n:
        upstream = torch.randn(ours.shape, generator=g, dtype=dtype)
        grads = [torch.autograd.grad(each, (start, matrix), upstream) for each in (ours, theirs)]
        torch.testing.assert_close(
            *grads, rtol=1e-4 if dtype == torch.float32 else 1e-9, atol=1e-4 if dtype == torch.float32 else 1e-9
        )
    power = np.linalg.matrix_power(matrix.detach().double().numpy(), n)
    expected = np.einsum("...i,...ij->...j", start.detach().double().numpy(), power)
    np.testing.assert_allclose(ours.detach().double().numpy(), expected, atol=1e-5 if dtype == torch.float32 else 1e-12)


def test_gradient_of_the_law_against_differences():
    start, matrix = torch.rand(3).double().softmax(-1), torch.rand(3, 3, generator=generator(0)).double()
    torch.autograd.gradcheck(lambda s: chain_distribution(start, s.softmax(-1), 5), matrix.requires_grad_())
    torch.autograd.gradcheck(lambda s: stationary_distribution(s.softmax(-1)), matrix)
    target = torch.tensor([True, False, False])
    torch.autograd.gradcheck(lambda s: hitting_time(s.softmax(-1), target), matrix)


def test_a_million_steps_keep_the_mass_in_float32():
    matrix = torch.rand(5, 5, generator=generator(1)).softmax(-1)
    law = chain_distribution(torch.full((5,), 0.2), matrix, 10**6)
    assert float((law.sum() - 1).abs()) < 1e-5
    torch.testing.assert_close(law, stationary_distribution(matrix), atol=1e-5, rtol=0)


@given(seeds, st.integers(1, 4), st.integers(0, 4))
@settings(max_examples=25, deadline=None)
def test_law_paths_and_joint_law_agree(seed, k, n):
    transitions = sparse_rows(seed, n, k, k)
    start = sparse_rows(seed + 1, k)
    chain = InhomogeneousChain(start, transitions)
    joint = chain.joint_distribution(n)
    assert joint.shape == (k,) * (n + 1)
    np.testing.assert_allclose(joint.reshape(-1, k).sum(0), chain.distribution(n), atol=1e-15)
    paths = torch.cartesian_prod(*[torch.arange(k)] * (n + 1)).reshape(-1, n + 1)
    for path, probability in zip(paths.tolist(), chain.log_prob(paths).exp().tolist()):
        by_hand = float(start[path[0]])
        for t in range(n):
            by_hand *= float(transitions[t, path[t], path[t + 1]])
        assert probability == pytest.approx(by_hand, rel=1e-12)
        assert float(joint[tuple(path)]) == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize("kind", ["one matrix", "many"])
def test_sampled_paths_follow_the_path_law(kind):
    start, transitions = sparse_rows(3, 3), sparse_rows(4, 2, 3, 3)
    chain = MarkovChain(start, transitions[0]) if kind == "one matrix" else InhomogeneousChain(start, transitions)
    paths, draws = chain.sample_paths(2, 20_000, generator=generator(5)), 20_000
    counts = torch.zeros(27).index_add(0, paths @ torch.tensor([9, 3, 1]), torch.ones(draws)).reshape(3, 3, 3)
    joint = chain.joint_distribution(2)
    assert bool((counts[joint == 0] == 0).all())  # the impossible never happens
    deviations = (counts / draws - joint).abs() / (joint / draws).sqrt().clamp(min=1e-9)
    assert float(deviations[joint > 0].max()) < 6
    again = chain.sample_paths(2, 20_000, generator=generator(5))
    assert torch.equal(paths, again)


def test_sampling_never_leaves_the_support_at_the_top():
    chain = MarkovChain(
        torch.tensor([1.0, 0.0]), torch.tensor([[0.99995, 0.0], [0.5, 0.5]])
    )  # float32 rounding is let through
    assert int(chain.sample_paths(50, 2000, generator=generator(0)).max()) == 0


@given(seeds, st.integers(1, 7))
@settings(max_examples=30, deadline=None)
def test_closed_classes_and_stationary_laws(seed, k):
    matrix = sparse_rows(seed, k, k)
    graph = networkx.DiGraph(list(zip(*np.nonzero(matrix.numpy()))))
    expected = sorted(sorted(int(i) for i in part) for part in networkx.attracting_components(graph))
    classes = closed_classes(matrix)
    assert sorted(states.tolist() for states in classes) == expected
    laws = stationary_distributions(matrix)
    np.testing.assert_allclose(laws @ matrix, laws, atol=1e-13)
    np.testing.assert_allclose(laws.sum(1), 1, atol=1e-13)
    for law, states in zip(laws, classes):
        assert sorted(law.nonzero().squeeze(-1).tolist()) == states.tolist()
    if len(classes) == 1:
        np.testing.assert_allclose(stationary_distribution(matrix), laws[0], atol=1e-12)
        # Cesàro means of the distributions go there too, from every start, periodic or not.
        powers = np.mean([np.linalg.matrix_power(matrix.numpy(), n) for n in range(200, 200 + 420)], axis=0)
        np.testing.assert_allclose(powers, np.broadcast_to(laws[0].numpy(), (k, k)), atol=2e-2)
    else:
        with pytest.raises(UserError, match=rf"got {len(classes)}, .*stationary_distributions"):
            stationary_distribution(matrix)


def test_stationary_law_of_a_batch():
    matrices = torch.rand(4, 3, 3, generator=generator(2)).double().softmax(-1)
    laws = stationary_distribution(matrices)
    for matrix, law in zip(matrices, laws):
        values, vectors = np.linalg.eig(matrix.T.numpy())
        vector = vectors[:, np.argmin(np.abs(values - 1))].real
        np.testing.assert_allclose(law, vector / vector.sum(), atol=1e-12)


@pytest.mark.parametrize("up", [0.5, 0.4, 0.7])
@pytest.mark.parametrize("size", [3, 6, 11])
def test_gamblers_ruin(up, size):
    matrix, i, top = ruin(size, up), np.arange(size), size - 1
    odds = (1 - up) / up
    rich = i / top if up == 0.5 else (1 - odds**i) / (1 - odds**top)
    time = i * (top - i) if up == 0.5 else (i - top * rich) / (1 - 2 * up)
    found = absorption(matrix)
    assert [states.tolist() for states in found.classes] == [[0], [top]]
    np.testing.assert_allclose(found.output[:, 1], rich, atol=1e-12)
    np.testing.assert_allclose(found.output.sum(1), 1, atol=1e-12)
    np.testing.assert_allclose(found.time, time, atol=1e-9)
    to_the_top = hitting_time(matrix, torch.arange(size) == top)
    assert to_the_top[-1] == 0
    assert bool(to_the_top[:-1].isinf().all())


@given(seeds, st.integers(2, 6))
@settings(max_examples=25, deadline=None)
def test_hitting_probabilities_are_limits(seed, k):
    matrix, target = sparse_rows(seed, k, k), torch.arange(k) == seed % k
    stopped = matrix.clone()
    stopped[target] = torch.eye(k).double()[target]
    # P[hit within n steps] is the mass on the target after n steps of the chain that stops there; it rises to the
    # answer.
    within = chain_distribution(torch.eye(k).double(), stopped.expand(k, k, k), 4096)[:, target].squeeze(-1)
    hit = hitting_probability(matrix, target)
    np.testing.assert_allclose(hit, within, atol=1e-9)
    times = hitting_time(matrix, target)
    assert torch.equal(times.isfinite(), hit > 1 - 1e-9)
    later = torch.where(target, 0, 1 + matrix @ torch.where(times.isfinite(), times, 0))
    np.testing.assert_allclose(times[times.isfinite()], later[times.isfinite()], rtol=1e-10)


def test_hitting_time_against_simulation():
    matrix = torch.rand(4, 4, generator=generator(8)).double().softmax(-1)
    target = torch.tensor([False, False, True, False])
    paths = MarkovChain(torch.eye(4).double()[0], matrix).sample_paths(100, 2000, generator=generator(9))
    first = (paths == 2).long().argmax(dim=1).double()  # every path has been there
    assert float((first.mean() - hitting_time(matrix, target)[0]).abs()) < 6 * float(first.std()) / math.sqrt(2000)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: check_stochastic(torch.tensor([[0.5, 0.5], [0.5, 0.7]]), "A"), "row 1 .* sum 1.2"),
        (lambda: check_stochastic(torch.tensor([[1.5, -0.5], [0.5, 0.5]]), "A"), "row 0 .*-0.5"),
        (lambda: check_stochastic(torch.tensor([[0.5, 0.5], [math.nan, 0.5]]), "A"), "row 1 .*nan"),
        (lambda: check_stochastic(torch.tensor([[0.2, 0.2], [0.8, 0.8]]), "A"), "columns sum to one, so transpose"),
        (lambda: check_stochastic(torch.stack([torch.eye(2), torch.ones(2, 2)]), "A"), r"row 0 of matrix \(1,\)"),
        (lambda: check_stochastic(torch.ones(2, 3), "A"), "square matrix"),
        (lambda: MarkovChain(torch.tensor([0.5, 0.6]), torch.eye(2)), "initial .*0.1 away from one"),
        (lambda: MarkovChain(torch.ones(3) / 3, torch.eye(2)), "axis k of transition"),
        (lambda: MarkovChain(torch.ones(2).double() / 2, torch.eye(2)), "one dtype"),
        (lambda: MarkovChain(torch.ones(2) / 2, torch.eye(2)).distribution(-1), "from 0 up"),
        (lambda: MarkovChain(torch.ones(2) / 2, torch.eye(2)).joint_distribution(40), "fewer steps"),
        (lambda: MarkovChain(torch.ones(2) / 2, torch.eye(2)).log_prob(torch.tensor([0, 2])), "from 0 to 1"),
        (lambda: MarkovChain(torch.ones(2) / 2, torch.eye(2)).log_prob(torch.tensor([])), "at least one state"),
        (
            lambda: InhomogeneousChain(torch.ones(2) / 2, torch.eye(2).expand(3, 2, 2)).distribution(4),
            "at most 3 steps",
        ),
        (
            lambda: InhomogeneousChain(torch.ones(2) / 2, torch.eye(2).expand(3, 2, 2)).joint_distribution(4),
            "more matrices",
        ),
        (
            lambda: chain_distribution(torch.ones(2) / 2, torch.tensor([[0.5, 0.5], [0.3, 0.3]]), 4),
            "row 1 with .* sum 0.6",
        ),
        (lambda: chain_distribution(torch.ones(2), torch.eye(2), 4), "initial .*1 away from one"),
        (
            lambda: chain_distribution_definition(torch.ones(2) / 2, torch.full((3, 2, 2), 0.3)),
            r"row 0 of matrix \(0,\) with .* sum 0.6",
        ),
        (lambda: hitting_time(torch.eye(2), torch.tensor([False, False])), "0 states marked"),
        (lambda: hitting_time(torch.eye(2), torch.tensor([0, 1])), "truth values"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(UserError, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)
