"""n-gram language models: the chain rule, the Markov property, smoothing that stays normalized, and what perplexity
means."""

import itertools
import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin.info import StaticModel, arithmetic_decode, arithmetic_encode
from quoin.losses import cross_entropy, token_nll, token_nll_definition
from quoin.metrics import perplexity
from quoin.models import (
    MarkovModel,
    NgramModel,
    chain_rule_log_prob,
    chain_rule_log_prob_definition,
    kneser_ney_ngram,
    laplace_bigram,
    laplace_ngram,
    laplace_trigram,
    laplace_unigram,
    markov_log_prob_definition,
    ngram_counts,
    ngram_counts_definition,
    relative_frequencies,
)
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.rounding import gap, max, randint, roundings
from quoin.prob import MarkovChain

CASES = 30


def random_text(generator: torch.Generator, vocab_size: int, length: int) -> Int[Tensor, "n"]:
    """Tokens of which the first are common and the last may be missing."""
    weights = torch.rand(vocab_size, generator=generator, dtype=torch.float64) ** 2 + 1e-3
    return torch.multinomial(weights, length, replacement=True, generator=generator)


def random_distribution(generator: torch.Generator, *shape: int) -> Float[Tensor, "..."]:
    waits = -torch.rand(*shape, generator=generator, dtype=torch.float64).log()
    return waits / waits.sum(dim=-1, keepdim=True)


def random_ngram(generator: torch.Generator) -> NgramModel:
    """Of a short text, so that many contexts are new; with either smoothing."""
    m, order = randint(2, 4, generator), randint(1, 4, generator)
    counts = ngram_counts(random_text(generator, m, randint(order, 40, generator)), m, order)
    if randint(0, 1, generator):
        return kneser_ney_ngram(counts, dtype=torch.float64)
    return laplace_ngram(
        counts, [0.1 + 3 * float(torch.rand((), generator=generator)) for _ in range(order)], dtype=torch.float64
    )


def every_text(vocab_size: int, length: int) -> Int[Tensor, "texts length"]:
    return torch.tensor(list(itertools.product(range(vocab_size), repeat=length)))


@claim(
    "Z9.1",
    "P(x₁ … x_T) is the product of the distributions of each next token, and these products sum to 1 over all "
    "texts of a length",
    not_shown="texts without a bound on their length",
)
def chain_rule_gives_a_distribution_of_texts(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for case in range(CASES):
        model = random_ngram(generator)
        if case % 3 == 0:  # a chain that was not counted
            m = randint(2, 4, generator)
            model = MarkovModel(
                [random_distribution(generator, *(m,) * read) for read in range(1, randint(2, 4, generator))]
            )
        texts = every_text(model.vocab_size, randint(1, 5, generator))
        first = model.first_logits()
        whole = chain_rule_log_prob(model, texts, first).detach()
        worst = max(
            worst, abs(float(whole.exp().sum()) - 1), gap(whole, chain_rule_log_prob_definition(model, texts, first))
        )
        if isinstance(model, NgramModel):  # and the probability of each token, looked up alone
            worst = max(worst, gap(whole, model.token_log_probs(texts).sum(dim=1)))
    bound, source = roundings(2048), "2 float64 roundings for each of 4⁵ texts"
    return Evidence("largest |Σ P - 1|, |ln P at once - step by step|", worst, bound, source, CASES)


@claim(
    "Z9.2",
    "in a Markov model the next token depends on the last k tokens alone; at k = 1 it is the chain of its two tables",
)
def markov_model_forgets(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        m, order = randint(2, 4, generator), randint(1, 3, generator)
        distributions = [random_distribution(generator, *(m,) * (read + 1)) for read in range(order + 1)]
        model = MarkovModel(distributions)
        texts = torch.randint(m, (8, 12), generator=generator)
        others = texts.clone()
        others[:, :-order] = torch.randint(m, (8, 12 - order), generator=generator)  # another past, the same last k
        worst = max(worst, gap(model(texts)[:, -1], model(others)[:, -1]))
        by_tables = torch.stack([markov_log_prob_definition(distributions, text) for text in texts])
        worst = max(worst, gap(chain_rule_log_prob(model, texts, model.first_logits()), by_tables))
        chain, pair = MarkovChain(distributions[0], distributions[1]), MarkovModel(distributions[:2])
        worst = max(worst, gap(chain_rule_log_prob(pair, texts, pair.first_logits()), chain.log_prob(texts)))
    return Evidence(
        "largest change by another past, and gap to the chain", worst, roundings(64), "64 float64 roundings", CASES
    )


@claim(
    "Z9.6c",
    "smoothed rows sum to 1; ε → ∞ gives the lower-order model, ε → 0 the frequency, or the lower-order model "
    "after an unseen context",
)
def smoothing_is_a_distribution_between_frequency_and_backoff(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        m = randint(2, 6, generator)
        text = random_text(generator, m, randint(3, 40, generator))
        strengths = [
            10 ** randint(-3, 3, generator) * torch.rand((), generator=generator, dtype=torch.float64) for _ in range(3)
        ]
        single, pairs, triples = (ngram_counts_definition(text, m, length) for length in (1, 2, 3))
        unigram = laplace_unigram(single, strengths[0])
        distributions = (
            unigram,
            laplace_bigram(pairs, unigram, strengths[1]),
            laplace_trigram(triples, unigram, strengths[2]),
        )
        worst = max(worst, *(float((distribution.sum(dim=-1) - 1).abs().max()) for distribution in distributions))
        seen = pairs.sum(dim=1) > 0
        for strength in (0.0, 1e-300, math.inf, 1e300):
            limit = laplace_bigram(pairs, unigram, strength)
            near = (
                unigram.expand(m, m)
                if strength > 1
                else torch.where(seen[:, None], relative_frequencies(pairs.double()), unigram)
            )
            worst = max(worst, gap(limit, near))
    return Evidence("largest |Σ P - 1|, |P - its limit|", worst, roundings(64), "64 float64 roundings", CASES)


@claim(
    "Z9.9",
    "perplexity is 1 for a model always sure and right, infinite after one token of probability 0, m for the "
    "uniform distribution",
)
def perplexity_at_its_extremes(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        m, n = randint(2, 200, generator), randint(1, 50, generator)
        tokens = torch.randint(m, (n,), generator=generator)
        sure = torch.full((n, m), -math.inf, dtype=torch.float64).scatter(1, tokens[:, None], 0.0)
        uniform = torch.full((n, m), float(torch.randn((), generator=generator)), dtype=torch.float64)
        found = torch.stack([perplexity(cross_entropy(sure, tokens)), perplexity(cross_entropy(uniform, tokens)) / m])
        worst = max(worst, gap(found, torch.ones(2)))
        probs = torch.rand(n, generator=generator, dtype=torch.float64)
        probs[randint(0, n - 1, generator)] = 0.0
        missed = uniform.scatter(
            1, tokens[-1:, None], -math.inf
        )  # the first row alone; its token is that of the last position
        missed_tokens = torch.cat([tokens[-1:], tokens[1:]])
        for nll in (-probs.log(), cross_entropy(missed, missed_tokens)):
            worst = max(worst, 0.0 if math.isinf(perplexity(nll)) else math.inf)
    return Evidence(
        "largest |PPL - 1|, |PPL/m - 1|; infinite where PPL was not",
        worst,
        roundings(64),
        "64 float64 roundings",
        CASES,
    )


@claim(
    "Z9.10",
    "the uniform distribution costs log₂ m bits a token, as storing without compression does, and counting the "
    "text costs no more",
)
def uniform_distribution_is_storage(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for case in range(CASES):
        m = 2 ** randint(1, 8, generator) if case % 2 else randint(2, 256, generator)
        n = randint(1, 300, generator)
        tokens = random_text(generator, m, n)
        uniform = torch.full((m,), 1 / m, dtype=torch.float64)
        bits = n * float(token_nll(uniform.log().expand(n, m), tokens)) / math.log(2)
        worst = max(worst, abs(bits - n * math.log2(m)) / n)
        code = arithmetic_encode(tokens.tolist(), StaticModel(uniform))
        # The coder ends on a whole byte and rounds each step to 2^-24 of its width.
        as_sent = (
            abs(8 * len(code) - bits) <= 16 + 1e-6 * n
            and arithmetic_decode(code, StaticModel(uniform), n) == tokens.tolist()
        )
        worst = max(worst, 0.0 if as_sent else math.inf)
        counted = laplace_unigram(torch.bincount(tokens, minlength=m), torch.tensor(0.0, dtype=torch.float64))
        worst = max(worst, n * float(token_nll_definition(counted[tokens])) / math.log(2) - bits)
    source = "float64 roundings of up to 300 terms of up to 8 bits"
    return Evidence(
        "largest |bits - n log₂ m| / n, bits that counting cost more", worst, roundings(2 * 300 * 8), source, CASES
    )


def successors(tokens: Int[Tensor, "n"], vocab_size: int) -> Int[Tensor, "vocab"]:
    """n(x) as occurrences of x that something follows."""
    return torch.bincount(tokens[:-1], minlength=vocab_size)


def occurrences(tokens: Int[Tensor, "n"], vocab_size: int) -> Int[Tensor, "vocab"]:
    """n(x) as occurrences of x."""
    return torch.bincount(tokens, minlength=vocab_size)


@claim("ZE20", "smoothed pairs are divided by how often the first has a successor: only so they sum to 1",
       right=successors, printed=occurrences)  # fmt: skip
def contexts_are_counted(form: Callable[[Tensor, int], Tensor], generator: torch.Generator) -> Evidence:
    def largest(text: Tensor, m: int, strength: float) -> float:
        """How far the distributions after all tokens are from summing to one, or from those of `laplace_bigram`."""
        unigram, pairs = (
            laplace_unigram(torch.bincount(text, minlength=m).double(), 1.0),
            ngram_counts_definition(text, m, 2),
        )
        distribution = (pairs + strength * unigram) / (form(text, m).double().unsqueeze(1) + strength)
        return max(
            float((distribution.sum(dim=-1) - 1).abs().max()),
            gap(distribution, laplace_bigram(pairs, unigram, strength)),
        )

    letters = torch.tensor([ord(letter) - ord("a") for letter in "abacabadabcaab"])
    worst = largest(letters, 4, 0.5)
    message = (
        f"after the last letter of abacabadabcaab the distribution is {worst:.4f} short of 1" if worst > 1e-9 else ""
    )
    for _ in range(CASES):
        m, strength = randint(2, 6, generator), 0.1 + float(torch.rand((), generator=generator))
        worst = max(worst, largest(random_text(generator, m, randint(2, 40, generator)), m, strength))
    return Evidence(
        "largest |Σ P(x'|x) - 1|", worst, roundings(64), "64 float64 roundings", CASES + 1, counterexample=message
    )
