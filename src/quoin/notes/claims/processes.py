"""Stochastic processes: what makes a chain Markov, what a function of it loses, what carrying the past along restores,
and kernels."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.rounding import gap, max, randint, roundings
from quoin.prob import (
    GaussianRandomWalk,
    GaussianTransition,
    InhomogeneousChain,
    MarkovChain,
    RandomWalk,
    augment_history,
    chain_distribution,
    chain_distribution_definition,
    function_distribution,
    history_chain,
    iid_distribution,
    lumpability_test,
    markov_test,
    next_distribution,
    stationary_distribution,
)

CASES = 30
# The matrix of the notes' example, whose columns sum to one. From its transpose: 1 → 3 or 5, 2 → 1, 3 → 2, 4 → any, 5 →
# 4.
FIVE = torch.tensor(
    [[0, 1, 0, 0.2, 0], [0, 0, 1, 0.2, 0], [0.5, 0, 0, 0.2, 0], [0, 0, 0, 0.2, 1], [0.5, 0, 0, 0.2, 0]],
    dtype=torch.float64,
)
LABELS = torch.tensor([0, 0, 0, 1, 1])  # f(1) = f(2) = f(3) and f(4) = f(5)


def random_rows(*shape: int, generator: torch.Generator) -> Float[Tensor, "..."]:
    """Distributions along the last axis, a third of their entries zero."""
    weights = torch.rand(shape, generator=generator, dtype=torch.float64) + 0.05
    weights = weights * (torch.rand(shape, generator=generator) < 0.7)
    weights[..., 0] += (weights.sum(dim=-1) == 0).double()
    return weights / weights.sum(dim=-1, keepdim=True)


def random_chain(generator: torch.Generator, num_states: int | None = None) -> MarkovChain:
    k = num_states or randint(2, 4, generator)
    return MarkovChain(random_rows(k, generator=generator), random_rows(k, k, generator=generator))


def second_order(generator: torch.Generator, length: int = 4) -> Float[Tensor, "..."]:
    """The joint distribution of X_0, ..., X_{length - 1} on two states where each step depends on the last two, and
    differently at both."""
    joint = torch.full((2, 2), 0.25, dtype=torch.float64)
    stay = 0.6 + 0.3 * torch.rand(
        2, generator=generator, dtype=torch.float64
    )  # P[1 | 1 before last], and P[0 | 0 before last]
    step = torch.stack(
        [torch.stack([stay[0], 1 - stay[0]]), torch.stack([1 - stay[1], stay[1]])]
    )  # by X_{t-2}, whatever X_{t-1}
    for _ in range(length - 2):
        joint = joint.unsqueeze(-1) * step.unsqueeze(1)  # (..., X_{t-2}, X_{t-1}, X_t)
    return joint


def dependence_on_the_past(joint: Float[Tensor, "k k k k k"]) -> float:
    """The largest |P[past, present, future] P[present] - P[past, present] P[present, future]|, the middle of five times
    the present."""
    k = joint.shape[0]
    table = joint.reshape(k * k, k, k * k)
    present, before, after = table.sum(dim=(0, 2)), table.sum(dim=2), table.sum(dim=0)
    return gap(table * present[:, None], before.unsqueeze(-1) * after)


@claim(
    "D5.1-3",
    "given the present of a Markov chain, its future and its past are independent; of a process that depends on "
    "two steps back not",
    not_shown="infinite pasts and futures, and general state spaces: finite chains over a few steps",
)
def future_is_independent_of_past(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        worst = max(worst, dependence_on_the_past(random_chain(generator).joint_distribution(4)))
        transitions = random_rows(4, 3, 3, generator=generator)
        worst = max(
            worst, dependence_on_the_past(InhomogeneousChain(transitions[0, 0], transitions).joint_distribution(4))
        )
        # P[1, ·, 1] - P[1, ·] P[·, 1] is at least 0.05 for these, so that the measure is seen to see.
        if dependence_on_the_past(second_order(generator, 5)) < 1e-3:
            worst = math.inf
    return Evidence(
        "largest dependence in exact path distributions", worst, roundings(16), "16 float64 roundings", 2 * CASES
    )


@claim(
    "D5.1-4",
    "sums of independent ±1 steps are a Markov chain, that of the matrix with `up_probability` above and 1 - up "
    "below the diagonal",
)
def random_walk_is_markov(generator: torch.Generator) -> Evidence:
    worst, num_steps, cases = 0.0, 3, 10
    for _ in range(cases):
        walk = RandomWalk(float(torch.rand((), generator=generator)))
        size = 2 * num_steps + 3
        steps = iid_distribution(
            torch.tensor([1 - walk.up_probability, walk.up_probability], dtype=torch.float64), num_steps + 1
        )
        paths = (2 * torch.cartesian_prod(*[torch.arange(2)] * (num_steps + 1)) - 1).cumsum(
            dim=-1
        )  # every path, in the table's order
        joint = torch.zeros((size,) * (num_steps + 1), dtype=torch.float64)
        joint[tuple((paths + num_steps + 1).unbind(dim=-1))] = steps.reshape(-1)
        distribution = torch.zeros(size, dtype=torch.float64).index_add(
            0, walk.distribution(num_steps).positions + num_steps + 1, walk.distribution(num_steps).output
        )
        last = joint.sum(dim=tuple(range(num_steps)))
        worst = max(
            worst,
            markov_test(joint).output,
            gap(walk.chain(num_steps).joint_distribution(num_steps), joint),
            gap(distribution, last),
        )
    return Evidence(
        "largest departure of the distribution of sums from the chain's",
        worst,
        roundings(64),
        "64 float64 roundings",
        cases,
    )


@claim(
    "D5.1-6",
    "the distribution of X_n is νAⁿ, the row vector times the power: the sum over all paths, and what simulated "
    "paths do",
    not_shown="infinite state spaces",
)
def distribution_is_the_matrix_power(generator: torch.Generator) -> Evidence:
    worst, paths = 0.0, 4000
    for _ in range(CASES):
        chain, n = random_chain(generator), randint(0, 6, generator)
        distribution = chain.distribution(n)
        for other in (
            chain.joint_distribution(n).reshape(-1, len(distribution)).sum(dim=0),
            chain_distribution_definition(chain.initial, chain.transition.expand(n, -1, -1)),
            chain.initial @ torch.linalg.matrix_power(chain.transition, n),
        ):
            worst = max(worst, gap(distribution, other) / roundings(64))
        # Hoeffding: a fraction of 4000 samples is off by 0.05 with probability 2 e^{-20}, and there are at most 4 · 30
        # of them.
        counts = torch.bincount(chain.sample_paths(n, paths, generator=generator)[:, -1], minlength=len(distribution))
        worst = max(worst, gap(counts / paths, distribution) / 0.05)
        if bool(((distribution == 0) & (counts > 0)).any()):
            worst = math.inf  # what is impossible never happens
    source = "64 float64 roundings; Hoeffding's bound, broken less than once in a million times"
    return Evidence(
        "largest difference from paths summed and simulated, as a fraction of its bound", worst, 1.0, source, CASES
    )


def rows_sum_to_one(weights: Float[Tensor, "k k"]) -> Float[Tensor, "k k"]:
    return weights / weights.sum(dim=1, keepdim=True)


def columns_sum_to_one(weights: Float[Tensor, "k k"]) -> Float[Tensor, "k k"]:
    return weights / weights.sum(dim=0)


@claim(
    "DE49",
    "νA is a distribution for every distribution ν if A's rows sum to one, not if columns do",
    right=rows_sum_to_one,
    printed=columns_sum_to_one,
)
def mass_is_kept(form: Callable[[Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst, shown = 0.0, ""
    for case in range(CASES):
        weights = (
            torch.rand(4, 4, generator=generator, dtype=torch.float64)
            if case
            else FIVE.mT
            if form is rows_sum_to_one
            else FIVE
        )
        matrix, k = form(weights), len(weights)
        mass = chain_distribution(torch.eye(k, dtype=torch.float64), matrix.expand(k, -1, -1), 1).sum(
            dim=-1
        )  # from each unit vector
        if abs(float(mass[0]) - 1) > 0.1 and not shown:
            shown = f"a mass of {float(mass[0]):.2g} one step after the first state"
        worst = max(worst, gap(mass, torch.ones_like(mass)))
    return Evidence(
        "largest |mass of νA - 1|", worst, roundings(16), "16 float64 roundings", CASES, counterexample=shown
    )


def over_the_next_state(density: Float[Tensor, "n m"], spacing: float, inside: Bool[Tensor, "m"]) -> Float[Tensor, "n"]:
    """∫ A(x, dy) for each x."""
    return density.sum(dim=1) * spacing


def over_the_present_state(
    density: Float[Tensor, "n m"], spacing: float, inside: Bool[Tensor, "m"]
) -> Float[Tensor, "1"]:
    """∫ A(x, B) dx for B = [0, 2]."""
    return (density[:, inside].sum(dim=1) * spacing).sum(dim=0, keepdim=True) * spacing


@claim(
    "DE51",
    "a kernel has A(x, V) = 1 for every x; ∫ A(x, B) dx may be any",
    right=over_the_next_state,
    printed=over_the_present_state,
)
def kernel_is_a_distribution_for_each_state(
    form: Callable[[Tensor, float, Tensor], Tensor], generator: torch.Generator
) -> Evidence:
    worst, grid = 0.0, torch.linspace(-12, 14, 1041, dtype=torch.float64)  # 1/40 apart, with 0 and 2 on it
    inside = (grid >= 0) & (grid < 2)
    for _ in range(8):
        kernel = GaussianTransition(0.2 + torch.rand(1, 1, generator=generator, dtype=torch.float64))
        x = grid[(grid > -2) & (grid < 4)] if form is over_the_next_state else grid
        pairs = torch.stack(torch.broadcast_tensors(x[:, None], grid), dim=-1)
        density = kernel.log_prob(pairs[..., 1:], pairs[..., :1]).exp()
        total = form(density, float(grid[1] - grid[0]), inside)
        worst = max(worst, gap(total, torch.ones_like(total)))
    shown = f"over x the integral of A(x, [0, 2]) is {1 + worst:.3g}" if worst > 0.5 else ""
    source = (
        "the trapezium rule is exact to rounding for a Gaussian sampled this finely; 9 standard deviations are cut off"
    )
    return Evidence("largest |integral - 1|", worst, 1e-12, source, 8, counterexample=shown)


@claim(
    "D5.1-9",
    "the walk with steps N(0, Σ) has distribution N(x_0, nΣ) after n steps: one step more is ∫ N(z; x_0, nΣ) A(z, "
    "y) dz",
)
def gaussian_walk_adds_covariances(generator: torch.Generator) -> Evidence:
    worst, line = 0.0, torch.linspace(-14, 14, 141, dtype=torch.float64)
    z = torch.cartesian_prod(line, line)
    for n in (1, 2, 3):
        root = torch.randn(2, 2, generator=generator, dtype=torch.float64)
        covariance = root @ root.mT / root.square().sum() + 0.3 * torch.eye(2, dtype=torch.float64)
        walk = GaussianRandomWalk(torch.randn(2, generator=generator, dtype=torch.float64) / 2, covariance)
        y = walk.initial + torch.randn(5, 2, generator=generator, dtype=torch.float64)
        step = walk.kernel.log_prob(y.unsqueeze(1).expand(-1, len(z), -1), z.expand(5, -1, -1)).exp()
        integral = (step * walk.distribution(n).log_prob(z).exp()).sum(dim=1) * float(line[1] - line[0]) ** 2
        worst = max(worst, gap(integral, walk.distribution(n + 1).log_prob(y).exp()))
    return Evidence(
        "largest |∫ N(z; x_0, nΣ) A(z, y) dz - N(y; x_0, (n+1)Σ)|",
        worst,
        1e-11,
        "trapezium rule, exact to rounding here",
        15,
    )


def as_printed(matrix: Float[Tensor, "k k"]) -> Float[Tensor, "k k"]:
    return matrix


def transposed(matrix: Float[Tensor, "k k"]) -> Float[Tensor, "k k"]:
    return matrix.mT.contiguous()


@claim(
    "DE52",
    "the five-state matrix must be transposed to be a chain's; then f(X) is not Markov",
    right=transposed,
    printed=as_printed,
)
def five_states_need_the_transpose(form: Callable[[Tensor], Tensor], generator: torch.Generator) -> Evidence:
    chain = MarkovChain(stationary_distribution(form(FIVE)), form(FIVE))
    found = markov_test(function_distribution(chain, LABELS, 2))
    return Evidence(
        "largest difference between two pasts with one present",
        found.output,
        0.5 - roundings(64),
        "exact: 1 against 1/2",
        1,
        ">=",
    )


@claim(
    "D5.1-10",
    "from the stationary start, P[Y₂=2 | Y₁=1, Y₀=1] = 5/24 but P[Y₂=2 | Y₁=1, Y₀=2] = 1/6: f(X) is not Markov; X is",
)
def function_of_a_chain_is_not_markov(generator: torch.Generator) -> Evidence:
    chain = MarkovChain(stationary_distribution(transposed(FIVE)), transposed(FIVE))
    joint = function_distribution(chain, LABELS, 2)
    # Enumerating X's 125 paths is the second way to the same table.
    members = torch.nn.functional.one_hot(LABELS).double()
    worst = gap(joint, torch.einsum("abc,ai,bj,ck->ijk", chain.joint_distribution(2), members, members, members))
    same, changed = next_distribution(joint, (0, 0))[1], next_distribution(joint, (1, 0))[1]
    worst = max(worst, abs(float(same) - 5 / 24), abs(float(changed) - 1 / 6))
    if markov_test(joint).holds or lumpability_test(chain, LABELS).holds:
        worst = math.inf
    if not (markov_test(chain.joint_distribution(3)).holds and lumpability_test(chain, torch.arange(5)).holds):
        worst = math.inf
    cases = 0
    for _ in range(CASES):  # where all states of one value go to each value alike, f(X) is a chain, from every start
        k, m = 6, randint(2, 3, generator)
        labels = torch.cat([torch.arange(m), torch.randint(m, (k - m,), generator=generator)])
        between = random_rows(m, m, generator=generator)
        within = torch.rand(k, k, generator=generator, dtype=torch.float64)
        block_mass = torch.stack([within[:, labels == value].sum(dim=1) for value in labels.tolist()], dim=1)
        lumpable = MarkovChain(random_rows(k, generator=generator), within / block_mass * between[labels][:, labels])
        worst = max(
            worst,
            lumpability_test(lumpable, labels).output,
            markov_test(function_distribution(lumpable, labels, 4)).output,
        )
        cases += 1
    source = "exact up to 1000 float64 roundings"
    return Evidence(
        "largest error of an exact probability, every verdict right", worst, roundings(1000), source, cases + 2
    )


def history_distribution(joint: Float[Tensor, "..."], words: Int[Tensor, "words times"]) -> Float[Tensor, "..."]:
    """The joint distribution of Y_t = (X_0, ..., X_t, 0, ...), with words[s] for state s, from the one of X."""
    paths = torch.cartesian_prod(*[torch.arange(size) for size in joint.shape])
    pasts = augment_history(paths)  # (paths, times, times)
    states = (pasts.unsqueeze(-2) == words).all(dim=-1).long().argmax(dim=-1)  # (paths, times)
    distribution = torch.zeros((len(words),) * joint.ndim, dtype=joint.dtype)
    distribution[tuple(states.unbind(dim=-1))] = joint.reshape(-1)
    return distribution


@claim(
    "D5.1-11",
    "Y_t = (X_0, ..., X_t, 0, ...) is a Markov chain for any process X, also for one that depends on two steps back",
    not_shown="all processes: those tried, over a few steps",
)
def history_is_markov(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for case in range(CASES):
        any_joint = random_rows(8, generator=generator).reshape(2, 2, 2)  # no structure at all
        joint = second_order(generator, 3) if case % 2 else any_joint
        if case % 2 and markov_test(joint).output < 0.2:  # 0.2 by construction: 2 stays of at least 0.6 each
            worst = math.inf
        history = history_chain(joint)
        distribution = history_distribution(joint, history.words)
        worst = max(worst, markov_test(distribution).output, gap(history.output.joint_distribution(2), distribution))
    return Evidence(
        "largest departure from a chain, exact distributions", worst, roundings(16), "16 float64 roundings", CASES
    )


def given_the_past(joint: Float[Tensor, "..."], path: tuple[int, ...]) -> Float[Tensor, ""]:
    """P[Y_n = y_n | Y_0, ..., Y_{n-1}], for X's path."""
    return next_distribution(joint, path[:-1])[path[-1]]


def given_the_event_too(joint: Float[Tensor, "..."], path: tuple[int, ...]) -> Float[Tensor, ""]:
    """P[Y_n = y_n | Y_0, ..., Y_n]: all of the path is given, its last state too."""
    return joint[path] / joint[path]


@claim(
    "DE53",
    "the history process conditions on times 0 … n-1; on 0 … n it is certain",
    right=given_the_past,
    printed=given_the_event_too,
)
def history_conditions_on_the_past(
    form: Callable[[Tensor, tuple[int, ...]], Tensor], generator: torch.Generator
) -> Evidence:
    step = torch.tensor([[0.9, 0.1], [0.1, 0.9]], dtype=torch.float64)  # by the state before last
    joint = torch.full((2, 2, 1), 0.25, dtype=torch.float64) * step.unsqueeze(1)
    history, worst = history_chain(joint), 0.0
    for path in torch.cartesian_prod(*[torch.arange(2)] * 3):
        before, after = ((augment_history(path)[time] == history.words).all(dim=-1).long().argmax() for time in (1, 2))
        conditional = form(joint, tuple(path.tolist()))
        plain = (
            joint.sum(dim=0)[path[1], path[2]] / joint.sum(dim=(0, 2))[path[1]]
        )  # 0.5: the present alone says nothing here
        exact = 0.9 if path[0] == path[2] else 0.1
        worst = max(
            worst,
            abs(float(conditional) - exact),
            abs(float(history.output.transition[before, after]) - exact),
            abs(float(plain) - 0.5),
        )
    shown = f"it gives 1 where the chain steps with probability {1 - worst:.2g}" if worst > 0.1 else ""
    return Evidence(
        "largest error of a step's probability", worst, roundings(16), "16 float64 roundings", 8, counterexample=shown
    )
