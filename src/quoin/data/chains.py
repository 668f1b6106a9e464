"""Generated texts of known entropy: symbols of a Markov chain or of a hidden one, so that the best possible loss is
known.

`quoin.info.entropy_rate` and `hmm_entropy_rate_bounds` give it.   m symbols, r symbols of context
"""

from bisect import bisect_right

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin.data.corpus import Corpus, tokenize_text
from quoin.data.text import Text
from quoin.data.tokenizers import CharTokenizer
from quoin.display import shown
from quoin.errors import UserError
from quoin.prob import CategoricalEmission, HiddenMarkovModel, MarkovChain, stationary_distribution

__all__ = ["MarkovSource", "make_hmm_source", "make_markov_source", "make_symbol_corpus"]

_FIRST_LETTER = ord("a")
MOST_ENTRIES = 2**24  # of the chain's matrix: 128 MiB of float64


@shown
class MarkovSource:
    """Symbols of which each depends on the r before it: `transition[s_1, ..., s_r]` is the distribution of the next.

    Its `chain` is the same source as a Markov chain of first order, in its stationary distribution: the states are the
    contexts (s_1, ..., s_r), numbered sum_i s_i m^{r-i}.
    """

    def __init__(self, transition: Float[Tensor, "*contexts m"]):
        m, order = transition.shape[-1], transition.ndim - 1
        if order < 1 or set(transition.shape) != {m}:
            raise UserError(
                "expected distributions of shape (m, ..., m), one for each context, got "
                f"{tuple(transition.shape)}; reshape them"
            )
        contexts = m**order
        if contexts**2 > MOST_ENTRIES:
            raise UserError(
                f"expected at most {MOST_ENTRIES} entries in the chain's matrix, got {contexts}^2; lower the order"
            )
        self.order, self.num_symbols = order, m
        self.transition = transition.reshape(contexts, m)
        after = (torch.arange(contexts) * m % contexts)[:, None] + torch.arange(
            m
        )  # the oldest symbol is forgotten, the next comes last
        matrix = torch.zeros(contexts, contexts, dtype=transition.dtype).scatter_(1, after, self.transition)
        self.chain = MarkovChain(stationary_distribution(matrix), matrix)

    def sample(self, num_tokens: int, *, generator: torch.Generator) -> Int[Tensor, "{num_tokens}"]:
        """One long text, from a context that is sampled too and not returned.

        >>> alternating = MarkovSource(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
        >>> alternating.sample(5, generator=torch.Generator().manual_seed(0)).diff().abs()
        tensor([1, 1, 1, 1])
        """
        sums = self.transition.double().cumsum(dim=-1).tolist()
        context = int(torch.multinomial(self.chain.initial, 1, generator=generator))
        m, contexts, tokens = self.num_symbols, len(sums), []
        for u in torch.rand(num_tokens, dtype=torch.float64, generator=generator).tolist():
            row = sums[context]
            symbol = bisect_right(row, u * row[-1], 0, m - 1)  # quicker by far than a call of torch for each
            tokens.append(symbol)
            context = context * m % contexts + symbol
        return torch.tensor(tokens, dtype=torch.int64)


def make_markov_source(
    num_symbols: int, order: int = 1, *, sharpness: float = 2.0, generator: torch.Generator
) -> MarkovSource:
    """A source of random distributions: with sharpness 0 all symbols are equally probable; the larger it is, the more
    predictable is the next.

    Args:
        order: How many symbols before it the next one depends on.
        sharpness: Factor on the standard normal logits of each distribution, from 0 for a uniform one to 100.
    """
    if order < 1:
        raise UserError(
            f"expected an order of 1 or more, got {order}; give the number of symbols that the next one depends on"
        )
    return MarkovSource(_random_probs((num_symbols,) * (order + 1), sharpness, generator))


def make_hmm_source(
    num_states: int, num_symbols: int, *, sharpness: float = 2.0, generator: torch.Generator
) -> HiddenMarkovModel[CategoricalEmission]:
    """A hidden Markov model in its stationary distribution, with transitions and emissions sampled like those of
    `make_markov_source`.

    Args:
        num_states: Hidden states.
        sharpness: As in `make_markov_source`.
    """
    transition = _random_probs((num_states, num_states), sharpness, generator)
    emission = _random_probs((num_states, num_symbols), sharpness, generator)
    return HiddenMarkovModel(
        MarkovChain(stationary_distribution(transition), transition), CategoricalEmission(emission)
    )


def make_symbol_corpus(
    name: str,
    source: MarkovSource | HiddenMarkovModel[CategoricalEmission],
    num_tokens: int,
    *,
    generator: torch.Generator,
) -> Corpus:
    """A text of `source` in three splits, one letter from a on for each symbol: bits per character are bits per
    symbol.

    Args:
        num_tokens: Symbols of all three splits together.
    """
    if isinstance(source, MarkovSource):
        tokens, num_symbols = source.sample(num_tokens, generator=generator), source.num_symbols
    else:
        states = MarkovSource(source.chain.transition).sample(num_tokens, generator=generator)
        tokens, num_symbols = source.emission.sample(states, generator=generator), source.emission.num_symbols
    letters = CharTokenizer(chr(_FIRST_LETTER + symbol) for symbol in range(num_symbols))
    return tokenize_text(Text(name, letters.decode(tokens)), letters)


def _random_probs(shape: tuple[int, ...], sharpness: float, generator: torch.Generator) -> Tensor:
    """Distributions along the last axis, softmax of independent normal scores, in double precision: no symbol is
    impossible."""
    if min(shape) < 1 or not 0 <= sharpness <= 100:
        raise UserError(
            f"expected 1 symbol or more and a sharpness from 0 to 100, got {min(shape)} and {sharpness}; choose others"
        )
    return (sharpness * torch.randn(shape, dtype=torch.float64, generator=generator)).softmax(dim=-1)
