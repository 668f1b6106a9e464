"""Random numbers that belong to the rows of a batch, whoever draws them.

A batch may be shared out over processes and cut into micro-batches. Its noise is a function of a key, such as the seed
and the step, and of the row: each process draws that of its own rows, and the result is the same for any sharing out.
"""

import copy
import functools
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from quoin.data.seeds import keyed_seed
from quoin.display import shown

__all__ = ["RowNoise", "bernoulli_filler", "keep_draws_out_of_graphs", "rounded_probability", "row_noise"]

# Numbers drawn by one call of a generator, at least: on the CPU seeding takes as long as a thousand of them, and on a
# GPU a call as long as a million.
BLOCK, GPU_BLOCK = 2**16, 2**20
LEVELS = 2**16  # of a probability: of 64 random bits four true or false are made, not one


def row_noise(source: "RowNoise | torch.Generator", num_rows: int) -> "RowNoise":
    """The noise that a function of a batch was given, or that of a generator, which gives its key."""
    if isinstance(source, RowNoise):
        return source
    return RowNoise(int(torch.randint(2**62, (), generator=source, device=source.device)), num_rows=num_rows)


def rounded_probability(p: float) -> float:
    """The probability that `RowNoise.bernoulli` has for `p`: the nearest multiple of 2^-16."""
    return round(p * LEVELS) / LEVELS


@shown
class RowNoise:
    """The noise of rows `start` to `stop` of a batch of `num_rows`. Each call draws anew; calls come in the same order
    everywhere.

    Rows are drawn in blocks, each by a generator of its own, so that a process draws little more than its own rows.

    >>> whole = RowNoise("loss", 0, 17, num_rows=100).normal(3)
    >>> part = RowNoise("loss", 0, 17, num_rows=100, start=40, stop=60).normal(3)
    >>> torch.equal(part, whole[40:60])
    True

    Args:
        key: What the noise is a function of.
        stop: The end of the batch unless given.
        device: Where the numbers are drawn; another kind of device draws others.
    """

    def __init__(
        self,
        *key: str | int,
        num_rows: int,
        start: int = 0,
        stop: int | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.seed, self.num_rows, self.start = keyed_seed(*key), num_rows, start
        self.stop = num_rows if stop is None else stop
        self.generator = torch.Generator(device)
        self.num_draws = 0  # so far
        self.chosen: Tensor | None = None  # numbers within the part, where only some of its rows are wanted

    def __len__(self) -> int:
        return self.stop - self.start if self.chosen is None else len(self.chosen)

    def rows(self, start: int, stop: int) -> "RowNoise":
        """The noise of rows of this part, counted from its first, before anything was drawn."""
        found = copy.copy(self)
        found.start, found.stop, found.num_draws = self.start + start, self.start + stop, 0
        return found

    def select(self, numbers: Int[Tensor, "selected"]) -> "RowNoise":
        """The noise of the rows of these numbers in the batch, in any order, before anything was drawn."""
        found = copy.copy(self)
        found.start, found.stop, found.num_draws = 0, self.num_rows, 0
        found.chosen = numbers.to(self.generator.device)
        return found

    def normal(self, *row_shape: int, dtype: torch.dtype | None = None) -> Float[Tensor, "rows *row_shape"]:
        """Standard normal numbers."""
        return self.draw(row_shape, lambda block, generator: block.normal_(generator=generator), dtype)

    def uniform(self, *row_shape: int, dtype: torch.dtype | None = None) -> Float[Tensor, "rows *row_shape"]:
        """Numbers from [0, 1)."""
        return self.draw(row_shape, lambda block, generator: block.uniform_(generator=generator), dtype)

    def integers(self, low: int, high: int, *row_shape: int) -> Int[Tensor, "rows *row_shape"]:
        """Whole numbers from `low` to `high` - 1."""
        return self.draw(row_shape, lambda block, generator: block.random_(low, high, generator=generator), torch.int64)

    def bernoulli(self, p: float, *row_shape: int) -> Bool[Tensor, "rows *row_shape"]:
        """True with probability `rounded_probability(p)`."""
        return self.draw(row_shape, bernoulli_filler(rounded_probability(p)), torch.bool)

    def draw(
        self,
        row_shape: tuple[int, ...],
        fill: Callable[[Tensor, torch.Generator], object],
        dtype: torch.dtype | None = None,
        key: tuple[int, ...] | None = None,
    ) -> Shaped[Tensor, "rows *row_shape"]:
        """A tensor of this part's rows that `fill` fills in place, block by block, each in one dimension; `key` in
        place of the number of the draw."""
        numbers = torch.Size(row_shape).numel()
        least = BLOCK if self.generator.device.type == "cpu" else GPU_BLOCK
        size = max(1, min(self.num_rows, -(-least // max(1, numbers))))
        first, last = self.start // size, -(-self.stop // size)
        begin, end = first * size, min(last * size, self.num_rows)
        found = torch.empty((end - begin) * numbers, dtype=dtype, device=self.generator.device)
        if key is None:
            key = (self.num_draws,)
            self.num_draws += 1
        for number in range(first, last):
            place = (number * size - begin) * numbers
            block = found[place : place + size * numbers] if last - first > 1 else found
            fill(block, self.generator.manual_seed(keyed_seed(self.seed, *key, number)))
        found = found.view(end - begin, *row_shape)
        if end - begin != self.stop - self.start:
            # a copy, for a view would keep all of its blocks in memory, as long as a backward pass needs the mask
            found = found[self.start - begin : self.stop - begin].clone()
        return found if self.chosen is None else found[self.chosen]


@functools.cache
def keep_draws_out_of_graphs() -> None:
    """Have torch.compile leave draws as they are: a generator that is seeded is nothing for a graph. To say so takes
    imports of a second, so it is said only where something is compiled."""
    RowNoise.draw = torch.compiler.disable(RowNoise.draw)  # pyright: ignore[reportAttributeAccessIssue]


@functools.cache
def bernoulli_filler(p: float) -> Callable[[Tensor, torch.Generator], object]:
    """What fills a tensor with true or false, or with 1 or 0; `p` is a rounded probability."""
    below = round(p * LEVELS) - LEVELS // 2

    def fill(block: Tensor, generator: torch.Generator) -> None:
        if block.device.type != "cpu" or p in (0.0, 1.0):
            block.bernoulli_(p, generator=generator)
            return
        # torch's own draws a float64 for each, which takes ten times as long
        count = block.numel()
        bits = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(2**63), None, generator=generator)
        bits = bits.view(torch.int16)
        torch.lt(bits if len(bits) == count else bits[:count], below, out=block)

    return fill
