"""Code trees: which binary decisions make a byte. A Huffman tree for each byte that may stand before it, so that a byte
of text takes four decisions instead of eight.

The trees are built from a table that goes with the code: for every byte the power of two below its count, and for the
pairs of bytes that are met often the power of two below theirs. A model may learn at every node of every tree, so a
table that is far from the truth costs decisions, and hardly any bits.   m bytes occur
"""

import heapq
import lzma
from functools import cached_property

import numpy as np

from quoin.display import shown

__all__ = ["CodeTrees"]

ROOT, LEAF = 1, 256  # nodes are 1, ..., 255; a child from LEAF on is the byte child - LEAF
PAIR_BITS = 6  # a pair of bytes is in the table if it is met 2^PAIR_BITS times or more
LEVELS = 3  # of a tree whose nodes a model may keep side by side
MOST_CLASS = 32
END_OF_ROW = 255
MOST_TABLE = 256 + 256 * 257
FILTERS = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 17, "lc": 0, "pb": 0, "nice_len": 273, "depth": 1000}]


@shown
class CodeTrees:
    """A binary tree over bytes for each byte before: `children[tree_of[before]][node][bit]` is a node, or LEAF plus
    a byte.

    Args:
        table: What `CodeTrees.table_of` gave; without one a byte's decisions are its eight bits, the highest first.
            What is no table raises ValueError.
    """

    def __init__(self, table: bytes = b"") -> None:
        self.is_plain = not table
        if not table:
            self.tree_of, self.children = [0] * 256, [[[2 * node, 2 * node + 1] for node in range(256)]]
            return
        classes, rows = _parsed(table)
        alphabet = _by_frequency(classes)
        single = {byte: 1 << classes[byte] for byte in alphabet}
        total = sum(single.values())
        self.tree_of, self.children = [0] * 256, [huffman_tree(single)]
        for before, row in zip(alphabet, rows):
            if row:
                # A pair in the table was met 1.5 times the power of two, about; all others share 20 occurrences.
                weights = {byte: 40 * single[byte] for byte in alphabet}
                for byte, level in zip(alphabet, row):
                    weights[byte] += 3 * total << level + PAIR_BITS - 1 if level else 0
                self.tree_of[before] = len(self.children)
                self.children.append(huffman_tree(weights))

    @staticmethod
    def table_of(content: np.ndarray) -> bytes:  # (n,) uint8
        """The table of a text."""
        classes = [int(count).bit_length() for count in np.bincount(content, minlength=256)]
        alphabet = _by_frequency(classes)
        pairs = np.bincount(content[:-1].astype(np.int64) * 256 + content[1:], minlength=1 << 16).reshape(256, 256)
        levels = np.frexp(pairs[np.ix_(alphabet, alphabet)] >> PAIR_BITS)[1].astype(np.uint8)  # bit_length
        rows = b"".join(row.tobytes().rstrip(b"\0") + bytes([END_OF_ROW]) for row in levels)
        return lzma.compress(bytes(classes) + rows, format=lzma.FORMAT_RAW, filters=FILTERS)

    @cached_property
    def child_array(self) -> np.ndarray:  # (trees, 256, 2)
        return np.array([tree + [[0, 0]] * (256 - len(tree)) for tree in self.children], np.int64)

    @cached_property
    def families(self) -> np.ndarray:  # (trees, 256)
        """Of every node its ancestor (or itself) at a depth that `LEVELS` divides, times 2^LEVELS, and its place among
        the nodes below that.
        """
        found = np.zeros((len(self.children), 2 * LEAF), np.int64)
        trees = np.arange(len(self.children))
        found[:, ROOT] = ROOT << LEVELS
        for node in range(ROOT, 256):  # a child's number is above its parent's
            own = found[:, node]
            for bit in (0, 1):
                child, place = self.child_array[:, node, bit], 2 * (own % (1 << LEVELS)) + 1 + bit
                below = (own >> LEVELS << LEVELS) + place
                found[trees, child] = np.where(place < (1 << LEVELS) - 1, below, child << LEVELS)
        return found[:, :256]

    @cached_property
    def paths(self) -> tuple[np.ndarray, np.ndarray]:
        """Of every tree and byte how many decisions (trees, 256), and each as 2 node + bit (trees, 256, longest)."""
        num_trees, number = len(self.children), np.arange(2 * 256)
        parents = np.zeros((num_trees, 2 * LEAF), np.int64)  # 2 node + bit that leads here
        trees = np.arange(num_trees)[:, None]
        parents[trees, self.child_array.reshape(num_trees, -1)] = number
        parents[:, : ROOT + 1] = 0
        upwards, decision = [], parents[:, LEAF:]
        while decision.any():
            upwards.append(decision)
            decision = np.where(decision > 0, parents[trees, decision >> 1], 0)
        lengths = np.count_nonzero(upwards, axis=0)
        places = lengths[..., None] - 1 - np.arange(len(upwards))  # from the leaf up, and wanted from the root down
        downwards = np.take_along_axis(np.stack(upwards, axis=-1), np.maximum(places, 0), axis=-1)
        return lengths, downwards.astype(np.uint16)


def huffman_tree(weights: dict[int, int]) -> list[list[int]]:
    """Children of each node of the Huffman tree, node 0 unused; of equal weights the earlier is joined first."""
    waiting = [(weight, number, LEAF + byte) for number, (byte, weight) in enumerate(weights.items())]
    if len(waiting) == 1:  # a byte takes a decision even where there is no other
        waiting.append((0, 1, LEAF + (waiting[0][2] - LEAF ^ 1)))
    heapq.heapify(waiting)
    size = len(waiting)
    children = [[0, 0] for _ in range(size)]
    for node in range(size - 1, 0, -1):
        weight, _, zero = heapq.heappop(waiting)
        other, _, one = waiting[0]
        children[node] = [zero, one]
        heapq.heapreplace(waiting, (weight + other, 512 - node, node))
    return children


def _by_frequency(classes: list[int]) -> list[int]:
    return sorted((byte for byte in range(256) if classes[byte]), key=lambda byte: (-classes[byte], byte))


def _parsed(table: bytes) -> tuple[list[int], list[bytes]]:
    """The class of each byte and the rows of pairs, or ValueError."""
    opened = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=FILTERS)
    try:
        raw = opened.decompress(table, MOST_TABLE)
    except lzma.LZMAError as error:
        raise ValueError("no table of code trees") from error
    classes, rows = list(raw[:256]), raw[256:].split(bytes([END_OF_ROW]))[:-1]
    num_bytes = sum(each > 0 for each in classes)
    longest, largest = max(map(len, rows), default=0), max(max(row, default=0) for row in [raw[:256], *rows])
    if not opened.eof or opened.unused_data or not num_bytes == len(rows) >= max(longest, 1) or largest > MOST_CLASS:
        raise ValueError("no table of code trees")
    return classes, rows
