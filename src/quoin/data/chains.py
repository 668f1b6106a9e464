"""Generated texts of known entropy: symbols of a Markov chain or of a hidden one, so that the best possible loss is known.

`quoin.info.entropy_rate` and `hidden_entropy_rate_bounds` give it.   m symbols, r symbols remembered, k hidden states, n tokens
"""

from bisect import bisect_right

import torch
from torch import Tensor

from quoin.data.corpus import Corpus, tokenize_text
from quoin.data.text import Text
from quoin.data.vocabulary import CharacterVocabulary
from quoin.errors import Mistake
from quoin.prob import CategoricalEmission, HiddenMarkovModel, MarkovChain, stationary_law

__all__ = ["MarkovSource", "hidden_source", "markov_source", "symbol_corpus"]

_FIRST_LETTER = ord("a")
MOST_ENTRIES = 2**24  # of the chain's matrix: 128 MiB of float64


class MarkovSource:
    """Symbols of which each depends on the r before it: `laws[s_1, ..., s_r]` is the law of the next.

    Its `chain` is the same source as a Markov chain of first order, in the law it settles in: the states are the contexts (s_1, ..., s_r),
    numbered sum_i s_i m^{r-i}.
    """

    def __init__(self, laws: Tensor):  # (m, ..., m, m)
        m, order = laws.shape[-1], laws.ndim - 1
        if order < 1 or set(laws.shape) != {m}:
            raise Mistake(f"expected laws of shape (m, ..., m), one for each context, came {tuple(laws.shape)}; reshape them")
        contexts = m**order
        if contexts**2 > MOST_ENTRIES:
            raise Mistake(f"expected at most {MOST_ENTRIES} entries in the chain's matrix, came {contexts}^2; lower the order")
        self.order, self.num_symbols = order, m
        self.laws = laws.reshape(contexts, m)
        after = (torch.arange(contexts) * m % contexts)[:, None] + torch.arange(m)  # the oldest symbol is forgotten, the next comes last
        transition = torch.zeros(contexts, contexts, dtype=laws.dtype).scatter_(1, after, self.laws)
        self.chain = MarkovChain(stationary_law(transition), transition)

    def sample(self, num_tokens: int, *, generator: torch.Generator) -> Tensor:  # -> (n,), int64
        """One long text, from a context that is drawn too and not told.

        >>> alternating = MarkovSource(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
        >>> alternating.sample(5, generator=torch.Generator().manual_seed(0)).diff().abs()
        tensor([1, 1, 1, 1])
        """
        sums = self.laws.double().cumsum(dim=-1).tolist()
        context = int(torch.multinomial(self.chain.start, 1, generator=generator))
        m, contexts, tokens = self.num_symbols, len(sums), []
        for chance in torch.rand(num_tokens, dtype=torch.float64, generator=generator).tolist():
            row = sums[context]
            symbol = bisect_right(row, chance * row[-1], 0, m - 1)  # quicker by far than a call of torch for each
            tokens.append(symbol)
            context = context * m % contexts + symbol
        return torch.tensor(tokens, dtype=torch.int64)


def markov_source(num_symbols: int, order: int = 1, *, sharpness: float = 2.0, generator: torch.Generator) -> MarkovSource:
    """A source of random laws: with sharpness 0 all symbols are equally likely, and the larger it is, the nearer to certain is the next."""
    if order < 1:
        raise Mistake(f"expected an order of 1 or more, came {order}; give the number of symbols that are remembered")
    return MarkovSource(_laws((num_symbols,) * (order + 1), sharpness, generator))


def hidden_source(
    num_states: int, num_symbols: int, *, sharpness: float = 2.0, generator: torch.Generator
) -> HiddenMarkovModel[CategoricalEmission]:
    """A hidden Markov model in its settled law, with transitions and emissions drawn like the laws of `markov_source`."""
    transition = _laws((num_states, num_states), sharpness, generator)
    emission = _laws((num_states, num_symbols), sharpness, generator)
    return HiddenMarkovModel(MarkovChain(stationary_law(transition), transition), CategoricalEmission(emission))


def symbol_corpus(
    name: str, source: MarkovSource | HiddenMarkovModel[CategoricalEmission], num_tokens: int, *, generator: torch.Generator
) -> Corpus:
    """A text of `source` in three parts, one letter from a on for each symbol: bits per character are bits per symbol."""
    if isinstance(source, MarkovSource):
        tokens, num_symbols = source.sample(num_tokens, generator=generator), source.num_symbols
    else:
        states = MarkovSource(source.chain.transition).sample(num_tokens, generator=generator)
        tokens, num_symbols = source.emission.sample(states, generator=generator), source.emission.num_symbols
    letters = CharacterVocabulary(chr(_FIRST_LETTER + symbol) for symbol in range(num_symbols))
    return tokenize_text(Text(name, letters.decode(tokens)), letters)


def _laws(shape: tuple[int, ...], sharpness: float, generator: torch.Generator) -> Tensor:
    """Laws along the last axis, softmax of independent normal scores, in double precision: no symbol is impossible."""
    if min(shape) < 1 or not 0 <= sharpness <= 100:
        raise Mistake(f"expected 1 symbol or more and a sharpness from 0 to 100, came {min(shape)} and {sharpness}; choose others")
    return (sharpness * torch.randn(shape, dtype=torch.float64, generator=generator)).softmax(dim=-1)
