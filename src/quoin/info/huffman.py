"""Huffman's code: of all prefix codes for a distribution, one with the least mean length."""

import heapq

from jaxtyping import Float
from torch import Tensor

from quoin.info.prefix import PrefixCode, canonical_code, exact_weights
from quoin.tensor.array_like import ArrayLike, float_tensor

__all__ = ["huffman_code", "huffman_lengths"]


def huffman_lengths(probs: Float[Tensor, "k"] | ArrayLike) -> list[int | None]:
    """Join the two lightest trees until one is left; l_s is the depth at which s then lies. None where q_s = 0.

    Of equally light trees the lower goes first, then the one with the smaller symbol: the longest codeword is then as
    short as it can be among the best codes, and the same distribution gives the same code everywhere. A symbol that is
    certain needs no bits at all.

    >>> import torch
    >>> huffman_lengths(torch.tensor([0.5, 0.3, 0.2, 0.0]))
    [1, 2, 2, None]

    Notes: M21h.
    """
    probs = float_tensor(probs, "probs")
    weights, _ = exact_weights(probs)
    # A tree is (weight, height, smallest symbol, root); roots are numbered as they come, those of single symbols first.
    trees = [(weight, 0, symbol, symbol) for symbol, weight in enumerate(weights) if weight]
    heapq.heapify(trees)
    parent: list[int | None] = [None] * len(weights)
    while len(trees) > 1:
        first, second = heapq.heappop(trees), trees[0]
        root = len(parent)
        parent.append(None)
        parent[first[3]] = parent[second[3]] = root
        heapq.heapreplace(trees, (first[0] + second[0], max(first[1], second[1]) + 1, min(first[2], second[2]), root))
    depth = [0] * len(parent)
    for node, above in reversed(list(enumerate(parent))):  # a parent comes after its children
        depth[node] = 0 if above is None else depth[above] + 1
    return [depth[symbol] if weight else None for symbol, weight in enumerate(weights)]


def huffman_code(probs: Float[Tensor, "k"] | ArrayLike) -> PrefixCode:
    """The canonical code of `huffman_lengths`: no prefix code has a smaller sum_s q_s l_s.

    A single codeword may be longer than -log2 q_s + 1, which Shannon's never is.

    >>> import torch
    >>> huffman_code(torch.tensor([0.5, 0.3, 0.2])).codewords
    ('0', '10', '11')

    Notes: M21h.
    """
    probs = float_tensor(probs, "probs")
    return canonical_code(huffman_lengths(probs))
