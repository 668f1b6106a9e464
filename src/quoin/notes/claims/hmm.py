"""Hidden Markov models: what the forward algorithm computes, what a function of a chain is, and that learning never
makes it worse."""

import math
from itertools import pairwise, product

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.processes import FIVE, LABELS
from quoin.notes.claims.rounding import gap, max, randint, roundings
from quoin.prob import (
    CategoricalEmission,
    GaussianEmission,
    HiddenMarkovModel,
    MarkovChain,
    baum_welch,
    function_distribution,
    hmm_forward_definition,
    stationary_distribution,
)

CASES = 25


def distribution(*shape: int, generator: torch.Generator) -> Float[Tensor, "..."]:
    """Distributions on the last axis, sampled evenly among all."""
    waits = -torch.rand(shape, generator=generator, dtype=torch.float64).log()
    return waits / waits.sum(dim=-1, keepdim=True)


def random_model(states: int, symbols: int, generator: torch.Generator) -> HiddenMarkovModel:
    chain = MarkovChain(distribution(states, generator=generator), distribution(states, states, generator=generator))
    return HiddenMarkovModel(chain, CategoricalEmission(distribution(states, symbols, generator=generator)))


@claim(
    "D5.1-10",
    "the forward algorithm finds in n k² steps what the sum over all kⁿ hidden paths is, in log space and by "
    "scaled blocks",
)
def forward_is_the_sum_over_paths(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        states, symbols, steps = randint(1, 3, generator), randint(1, 4, generator), randint(1, 5, generator)
        model = random_model(states, symbols, generator)
        seen = torch.randint(symbols, (steps,), generator=generator)
        spoken = model.emission.log_prob(seen).exp()
        total = math.fsum(
            math.exp(float(model.chain.log_prob(torch.tensor(path))))
            * math.prod(float(spoken[t, state]) for t, state in enumerate(path))
            for path in product(range(states), repeat=steps)
        )
        scaled = model.log_prob(seen)
        in_logs = hmm_forward_definition(*model.log_tables(seen))[-1].logsumexp(dim=-1)
        worst = max(
            worst, gap(torch.stack([scaled, in_logs]), torch.tensor([math.log(total)] * 2, dtype=torch.float64))
        )
    return Evidence(
        "largest |ln P(o) - ln of the sum over paths|, relative",
        worst,
        roundings(256),
        "256 roundings in 5 steps",
        2 * CASES,
    )


@claim(
    "D5.1-10",
    "a function of a Markov chain is a hidden Markov model with deterministic emissions, so the forward algorithm "
    "gives its distribution",
)
def function_of_a_chain_is_hidden(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 0
    for _ in range(CASES):
        states, values, steps = randint(2, 5, generator), randint(1, 3, generator), randint(0, 4, generator)
        labels = torch.cat(
            [torch.arange(values), torch.randint(values, (max(states - values, 0),), generator=generator)]
        )[:states]
        chain = MarkovChain(
            distribution(states, generator=generator), distribution(states, states, generator=generator)
        )
        speaks = torch.nn.functional.one_hot(labels, int(labels.max()) + 1).double()
        model = HiddenMarkovModel(chain, CategoricalEmission(speaks))
        joint = function_distribution(chain, labels, steps)
        every = torch.cartesian_prod(*[torch.arange(speaks.shape[1])] * (steps + 1)).reshape(-1, steps + 1)
        worst, cases = max(worst, gap(model.log_prob(every).exp(), joint.flatten())), cases + len(every)
    return Evidence(
        "largest |P(o) by forward - distribution of f(X)|", worst, roundings(256), "256 roundings in 5 steps", cases
    )


@claim(
    "D5.1-10",
    "the forward algorithm on the five hidden states finds P[2 | 1, 1] = 5/24 and P[2 | 1, 2] = 1/6 of the "
    "observations",
)
def five_states_by_forward(generator: torch.Generator) -> Evidence:
    """Two ratios of P(o), from the stationary start: the next observation depends on more than the present one."""
    chain = MarkovChain(stationary_distribution(FIVE.mT.contiguous()), FIVE.mT.contiguous())
    model = HiddenMarkovModel(chain, CategoricalEmission(torch.nn.functional.one_hot(LABELS).double()))
    whole, past = model.log_prob(torch.tensor([[0, 0, 1], [1, 0, 1]])), model.log_prob(torch.tensor([[0, 0], [1, 0]]))
    worst = gap((whole - past).exp(), torch.tensor([5 / 24, 1 / 6], dtype=torch.float64))
    return Evidence("largest |P by forward - exact|", worst, roundings(256), "256 roundings", 2)


@claim(
    "D5.1-10",
    "no step of Baum-Welch makes the observations less probable",
    not_shown="that Baum-Welch ends at the highest likelihood: it need not",
)
def likelihood_never_falls(generator: torch.Generator) -> Evidence:
    worst, steps = 0.0, 0
    for case in range(8):
        states, count = randint(1, 4, generator), randint(1, 3, generator)
        if case % 2:
            symbols = randint(2, 5, generator)
            seen = random_model(states, symbols, generator).sample(40, count, generator=generator).output
            model = random_model(states, symbols, generator)
        else:
            seen = torch.randn(count, 40, 1, generator=generator, dtype=torch.float64)
            means = torch.randn(states, 1, generator=generator, dtype=torch.float64)
            chain = MarkovChain(
                distribution(states, generator=generator), distribution(states, states, generator=generator)
            )
            model = HiddenMarkovModel(chain, GaussianEmission(means, torch.ones(states, 1, 1, dtype=torch.float64)))
        found = baum_welch(model, seen, max_iter=5).log_probs
        worst = max(worst, *((before - after) / (1 + abs(before)) for before, after in pairwise(found)))
        # A random model has something to learn; found[0] is its own, and NaN would end the search there.
        worst = worst if found[-1] > found[0] + 1e-3 and all(map(math.isfinite, found)) else math.inf
        steps += len(found) - 1
    return Evidence(
        "largest fall of ln P(o), relative", worst, roundings(4096), "rounding over 120 observations", steps
    )
