"""Prefix codes at full speed: codewords packed into 64-bit words, bytes decoded by an automaton in many streams.

The definitions are in prefix.py, whose `PrefixCode` is the way in.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Int, Integer
from torch import Tensor

from quoin.errors import UserError

__all__ = ["Packer", "Unpacker"]

_CHUNK = 1 << 16  # symbols packed at a time, which stay in the cache
_WORD = 64
_MOST_ENTRIES = 1 << 18  # of the automaton's table
_SEGMENTS, _SHORTEST_SEGMENT = 512, 64


class Packer:
    """Symbols to bytes."""

    def __init__(self, codewords: Sequence[str | None]):
        self._words = codewords
        self._lengths = np.array([-1 if word is None else len(word) for word in codewords])
        short = [word if word and len(word) <= _WORD else "0" for word in codewords]
        self._values = np.array([int(word, 2) for word in short], dtype=np.uint64)

    def pack(self, symbols: Integer[Tensor, "symbols"] | bytes) -> bytes:
        numbers = self._numbers(symbols)
        lengths = np.take(self._lengths, numbers)
        if len(numbers) and lengths.min() < 0:
            index = int(lengths.argmin())
            raise UserError(
                f"expected symbols of the code, got {numbers[index]}, which has none; give it some probability"
            )
        total = int(lengths.sum())
        if total and lengths.max() > _WORD:
            bits = "".join(str(self._words[number]) for number in numbers)
            return int(bits.ljust(total + -total % 8, "0"), 2).to_bytes(-(-total // 8))
        packed = np.zeros(-(-total // _WORD) + 1, dtype=np.uint64)
        end = 0
        for start in range(0, len(numbers) if total else 0, _CHUNK):
            piece = slice(start, start + _CHUNK)
            end = self._pack_piece(packed, numbers[piece], lengths[piece], end)
        return packed.astype(">u8").tobytes()[: -(-total // 8)]

    def _pack_piece(self, packed: np.ndarray, numbers: np.ndarray, lengths: np.ndarray, start: int) -> int:
        """Write codewords from bit `start` on, and say where they end; each lies in one word, or its end in the
        next."""
        ends = start + np.cumsum(lengths)
        begins = ends - lengths
        words = begins >> 6  # 2^6 bits each
        over = lengths + (begins & 63) - _WORD  # bits that go to the next word, if positive; else bits that stay free
        values = self._values[numbers]
        spilt = over > 0
        inside = np.where(
            spilt, values >> np.maximum(over, 0).astype(np.uint64), values << np.maximum(-over, 0).astype(np.uint64)
        )
        first = np.flatnonzero(np.diff(words, prepend=-1))  # words only grow, so those of one word stand together
        packed[words[first]] |= np.bitwise_or.reduceat(inside, first)
        packed[words[spilt] + 1] |= values[spilt] << (_WORD - over[spilt]).astype(np.uint64)
        return int(ends[-1])

    def _numbers(self, symbols: Tensor | bytes) -> np.ndarray:
        k = len(self._words)
        if isinstance(symbols, (bytes, bytearray, memoryview)):
            numbers = np.frombuffer(symbols, dtype=np.uint8)
        else:
            numbers = symbols.detach().cpu().numpy()
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise UserError(
                f"expected one axis of whole numbers as symbols, got {numbers.dtype} of shape {numbers.shape}; "
                "flatten them"
            )
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < k:
            wrong = numbers[(numbers < 0) | (numbers >= k)][0]
            raise UserError(f"expected symbols from 0 to {k - 1}, got {wrong}; the code has no other")
        return numbers


class Unpacker:
    """Bytes to symbols.

    The automaton's states are the inner nodes of the code's tree: a unit of bits leads from each to the next, past the
    leaves on the way. A state and a unit make one number, `at`. Bits that no codeword begins with count as an extra
    symbol, k, after which reading goes on. Lanes start at equal distances, each as if a codeword began there; where one
    turns out to have been wrong, it is read again until it falls in with what it had read, as prefix codes soon do.
    """

    def __init__(self, codewords: Sequence[str | None]):
        self._lengths = np.array([0 if word is None else len(word) for word in codewords])
        self._certain = codewords.index("") if "" in codewords else None
        self._nothing = len(codewords)
        children = _tree(codewords)
        nodes = len(children)
        self._bits = next((bits for bits in (8, 4, 2) if nodes << bits <= _MOST_ENTRIES), 1)
        state = np.repeat(np.arange(nodes), 1 << self._bits)
        unit = np.tile(np.arange(1 << self._bits), nodes)
        met = np.full((len(state), self._bits), -1)
        for bit in range(self._bits):
            state = children[state, unit >> (self._bits - 1 - bit) & 1]
            leaf = state >= nodes
            met[leaf, bit] = state[leaf] - nodes
            state[leaf] = 0
        self._next = (state << self._bits).astype(np.int32)  # of at: the state after, ready to add a unit to
        self._count = (met >= 0).sum(axis=1)  # of at: how many symbols are met
        self._first = np.cumsum(self._count) - self._count  # of at: where in `_met` they stand
        self._met = met[met >= 0]

    def unpack(self, data: bytes, count: int) -> Int[Tensor, "symbols"]:
        if count < 0:
            raise UserError(f"expected a count of at least 0, got {count}; ask for as many symbols as were coded")
        symbols = self._read(data)[:count] if self._certain is None else np.full(count, self._certain)
        if len(symbols) < count:
            raise UserError(
                f"expected {count} symbols, got bits that end inside codeword {len(symbols) + 1}; were they cut?"
            )
        if self._nothing in symbols:
            index = int((symbols == self._nothing).argmax()) + 1
            raise UserError(
                f"expected codewords, got bits that begin none of them at symbol {index}; decode with the code "
                "that encoded"
            )
        used = -(-int(self._lengths[symbols].sum()) // 8)
        if used < len(data):
            raise UserError(
                f"expected {used} bytes for {count} symbols, got {len(data)}; ask for as many symbols as were coded"
            )
        return torch.from_numpy(symbols.astype(np.int64))

    def _read(self, data: bytes) -> np.ndarray:
        units = np.frombuffer(data, dtype=np.uint8)
        if self._bits < 8:
            shifts = np.arange(8 - self._bits, -1, -self._bits)
            units = (units[:, None] >> shifts & (1 << self._bits) - 1).reshape(-1)
        met = self._path(units)
        counts = self._count[met]
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        return self._met[np.repeat(self._first[met] - ends + counts, counts) + np.arange(total)]

    def _path(self, units: np.ndarray) -> np.ndarray:  # (u,) -> (u,)
        """`at` for each unit, in streams."""
        segments = max(1, min(_SEGMENTS, len(units) // _SHORTEST_SEGMENT))
        steps = -(-len(units) // segments)
        grid = np.zeros(segments * steps, dtype=np.int32)
        grid[: len(units)] = units
        grid = np.ascontiguousarray(grid.reshape(segments, steps).T)
        path, state = np.empty_like(grid), np.zeros(segments, dtype=np.int32)
        for step in range(steps):
            at = state + grid[step]
            path[step] = at
            state = self._next[at]
        # Single entries are quicker to reach through memoryviews, and come as Python's integers.
        after, cells, seen = self._next.data, grid.data, path.data
        true = int(state[0])
        for segment in range(1, segments):
            for step in range(steps):
                at = true + cells[step, segment]
                if seen[step, segment] == at:
                    true = int(state[segment])
                    break
                seen[step, segment] = at
                true = after[at]
        return path.T.reshape(-1)[: len(units)]


def _tree(codewords: Sequence[str | None]) -> np.ndarray:  # (nodes, 2)
    """Where a 0 and a 1 lead from each inner node: to another, or out of the tree to nodes + symbol, nodes + k where
    no codeword goes.
    """
    nowhere = -1
    children = [[nowhere, nowhere]]
    leaves = []
    for symbol, word in enumerate(codewords):
        if not word:
            continue
        node = 0
        for bit in map(int, word[:-1]):
            if children[node][bit] == nowhere:
                children[node][bit] = len(children)
                children.append([nowhere, nowhere])
            node = children[node][bit]
        leaves.append((node, int(word[-1]), symbol))
    table = np.array(children)
    nodes, k = len(table), len(codewords)
    table[table == nowhere] = nodes + k
    for node, bit, symbol in leaves:
        table[node, bit] = nodes + symbol
    return table
