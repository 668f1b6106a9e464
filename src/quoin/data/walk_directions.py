"""Generated texts whose class is in the order of their symbols alone: walks of a Markov chain, read forwards or
backwards.

A walk and its reverse have the same symbols, so that who counts them can only guess; the best possible guess is known,
for the chain is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.data.chains import make_markov_source
from quoin.data.padding import pad_sequences
from quoin.data.pairs import Pairs
from quoin.data.tokenizers import CharTokenizer
from quoin.display import shown
from quoin.errors import UserError
from quoin.prob import MarkovChain

__all__ = ["WalkDirections", "make_walk_directions"]

BACKWARDS, FORWARDS = "backwards", "forwards"  # class 0 and class 1: classes are numbered in the order of their names


@shown
@dataclass(frozen=True, eq=False)
class WalkDirections:
    """A chain in its stationary distribution, whose walks are written in letters from a on; both directions are equally
    probable."""

    chain: MarkovChain

    @property
    def letters(self) -> CharTokenizer:
        return CharTokenizer(chr(ord("a") + symbol) for symbol in range(len(self.chain.initial)))

    def sample(self, num_texts: int, *, shortest: int, longest: int, generator: torch.Generator) -> Pairs:
        """Texts with their directions; every length from `shortest` to `longest` is equally probable."""
        if not 1 <= shortest <= longest or num_texts < 1:
            got = f"{num_texts} of {shortest} to {longest}"
            raise UserError(
                f"expected one text or more, and lengths from 1 on in rising order, got {got}; choose others"
            )
        paths = self.chain.sample_paths(longest - 1, num_texts, generator=generator)
        lengths = torch.randint(shortest, longest + 1, (num_texts,), generator=generator).tolist()
        forwards = (torch.rand(num_texts, generator=generator) < 0.5).tolist()
        walks = [
            path[:length] if ahead else path[:length].flip(0) for path, length, ahead in zip(paths, lengths, forwards)
        ]
        texts = tuple(self.letters.decode(walk) for walk in walks)
        return Pairs("directions", texts, tuple(FORWARDS if ahead else BACKWARDS for ahead in forwards))

    def posterior(self, texts: Sequence[str]) -> Float[Tensor, "texts 2"]:
        """P(backwards | text) and P(forwards | text) by Bayes' rule, where P(text | backwards) is that of the reversed
        text forwards.

        >>> transition = torch.tensor([[0.0, 0.9, 0.1], [0.1, 0.0, 0.9], [0.9, 0.1, 0.0]])
        >>> always_up = WalkDirections(MarkovChain(torch.full((3,), 1 / 3), transition))
        >>> always_up.posterior(["abca", "acba", "a"])
        tensor([[0.0014, 0.9986],
                [0.9986, 0.0014],
                [0.5000, 0.5000]])
        """
        walks = [self.letters.encode(text) for text in texts]
        odds = self._log_steps([walk.flip(0) for walk in walks]) - self._log_steps(walks)
        return torch.stack([odds.sigmoid(), (-odds).sigmoid()], dim=-1)

    def _log_steps(self, walks: Sequence[Tensor]) -> Tensor:  # -> (n,)
        """sum_t ln A(x_t, x_{t+1}) + ln ν(x_1), of all walks at once."""
        walks_at_once, lengths = pad_sequences(walks)
        steps = self.chain.transition.log()[walks_at_once[:, :-1], walks_at_once[:, 1:]]
        real = torch.arange(1, walks_at_once.shape[1]) < lengths[:, None]
        return self.chain.initial.log()[walks_at_once[:, 0]] + torch.where(real, steps, 0.0).sum(dim=-1)


def make_walk_directions(num_symbols: int = 8, *, sharpness: float = 1.0, generator: torch.Generator) -> WalkDirections:
    """Walks of a random chain; the sharper its distributions, the easier a text is to classify.

    Args:
        num_symbols: States of the chain.
        sharpness: As in `make_markov_source`.
    """
    return WalkDirections(make_markov_source(num_symbols, sharpness=sharpness, generator=generator).chain)
