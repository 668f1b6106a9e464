"""Where the nodes of a directed acyclic graph go: in layers from top to bottom, with few crossings and short edges.

The steps are Sugiyama's: a layer for each node by its longest path, a stand-in in every layer that an edge passes, an
order in each layer by barycentres, and last the positions along the layer, by least squares with a distance kept.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from quoin.errors import UserError

__all__ = ["Layout", "layered"]

_SWEEPS = 12
_ASIDE = 0.02  # how much less a node that nothing leads to pulls at others
_THIN = 0.12  # the width of an edge that passes a layer


@dataclass(frozen=True)
class Layout:
    """The centre of each node, as (position along the layer, number of the layer), and the points that each edge
    passes.
    """

    positions: list[tuple[float, int]]
    routes: dict[tuple[int, int], list[tuple[float, int]]]


def layered(widths: Sequence[float], edges: Sequence[tuple[int, int]], gap: float) -> Layout:
    """Lay out nodes of these widths, numbered from 0, with at least `gap` between neighbours in a layer."""
    level = _levels(len(widths), edges)
    width = list(widths)
    chains: dict[tuple[int, int], list[int]] = {}
    for source, target in edges:
        passed = list(range(level[source] + 1, level[target]))
        chains[source, target] = [source, *range(len(width), len(width) + len(passed)), target]
        width += [_THIN] * len(passed)
        level += passed
    above, below = defaultdict(list), defaultdict(list)
    for chain in chains.values():
        for upper, lower in pairwise(chain):
            above[lower].append(upper)
            below[upper].append(lower)
    rows: list[list[int]] = [[] for _ in range(max(level, default=-1) + 1)]
    for node, row in enumerate(level):
        rows[row].append(node)
    rows = _ordered(rows, above, below)
    x = _placed(rows, above, below, width, gap)
    positions = [(x[node], level[node]) for node in range(len(widths))]
    return Layout(positions, {edge: [(x[node], level[node]) for node in chain] for edge, chain in chains.items()})


def _levels(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The longest path to each node; a node that nothing leads to stands just above the first that it leads to."""
    after, before = defaultdict(list), [0] * count
    for source, target in edges:
        if not (0 <= source < count and 0 <= target < count):
            raise UserError(
                f"expected edges between nodes 0 to {count - 1}, got {source} to {target}; number nodes from 0"
            )
        after[source].append(target)
        before[target] += 1
    sources = [node for node in range(count) if not before[node]]
    level, ready, done = [0] * count, list(sources), 0
    while ready:
        node = ready.pop()
        done += 1
        for target in after[node]:
            level[target] = max(level[target], level[node] + 1)
            before[target] -= 1
            if not before[target]:
                ready.append(target)
    if done < count:
        raise UserError(
            "expected a graph without cycles, got one with a cycle; an edge leads from what is used to what uses it"
        )
    for node in sources:
        if after[node]:
            level[node] = min(level[target] for target in after[node]) - 1
    return level


def _ordered(rows: list[list[int]], above: dict[int, list[int]], below: dict[int, list[int]]) -> list[list[int]]:
    """Rows in an order with few crossings: each node at the mean position of its neighbours, down and up again, the
    best kept.
    """
    best, fewest = rows, _crossings(rows, below)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        downwards = sweep % 2 == 0
        near = above if downwards else below
        rows = [list(row) for row in rows]
        for number in range(len(rows)) if downwards else reversed(range(len(rows))):
            beside = number - 1 if downwards else number + 1
            if not 0 <= beside < len(rows):
                continue
            index = {node: i for i, node in enumerate(rows[beside])}
            own = {
                node: i * len(index) / len(rows[number]) for i, node in enumerate(rows[number])
            }  # kept where nothing pulls
            target = {
                node: sum(index[n] for n in near[node]) / len(near[node]) if near[node] else own[node]
                for node in rows[number]
            }
            rows[number].sort(key=target.__getitem__)
        crossings = _crossings(rows, below)
        if crossings < fewest:
            best, fewest = rows, crossings
    return best


def _crossings(rows: list[list[int]], below: dict[int, list[int]]) -> int:
    total = 0
    for upper, lower in pairwise(rows):
        index = {node: i for i, node in enumerate(lower)}
        ends = [end for node in upper for end in sorted(index[target] for target in below[node])]
        seen: list[int] = []  # as in counting inversions: each end crosses those before it that lie further right
        for end in ends:
            total += sum(earlier > end for earlier in seen)
            seen.append(end)
    return total


def _placed(
    rows: list[list[int]], above: dict[int, list[int]], below: dict[int, list[int]], width: list[float], gap: float
) -> dict[int, float]:
    """Positions along the layers: each row in turn as near to the mean of its neighbours as its order and the gaps
    allow.
    """
    x: dict[int, float] = {}
    offsets: dict[int, list[float]] = {}
    for number, row in enumerate(rows):
        at, offsets[number] = 0.0, []
        for i, node in enumerate(row):
            at += (width[row[i - 1]] + width[node]) / 2 + gap if i else 0.0
            offsets[number].append(at)
        x.update({node: offset - at / 2 for node, offset in zip(row, offsets[number])})
    # A sweep down uses the layer above and a sweep up the one below, so that a long chain is straight after one; the
    # last use both.
    for sweep in range(_SWEEPS):
        both, downwards = sweep >= _SWEEPS - 2, sweep % 2 == 0
        for number in range(len(rows)) if downwards else reversed(range(len(rows))):
            wanted = []
            for node in rows[number]:
                near = (
                    above[node] + below[node]
                    if both
                    else (above if downwards else below)[node] or above[node] + below[node]
                )
                # What only feeds in, as a weight does, stands aside, and leaves the line of the computation straight.
                weights = [1.0 if above[other] else _ASIDE for other in near]
                mean = sum(w * x[other] for w, other in zip(weights, near)) / sum(weights) if near else x[node]
                wanted.append(mean)
            # x_i - offset_i must not fall from left to right: then the nearest such numbers are an isotonic regression.
            firm = [1.0 if above[node] else _ASIDE for node in rows[number]]
            free = _isotonic([w - offset for w, offset in zip(wanted, offsets[number])], firm)
            x.update({node: value + offset for node, value, offset in zip(rows[number], free, offsets[number])})
    return x


def _isotonic(values: list[float], weights: list[float]) -> list[float]:
    """The rising numbers nearest to `values` in weighted least squares: neighbours that fall are pooled at their mean.

    >>> _isotonic([1.0, 3.0, 2.0, 5.0], [1.0] * 4)
    [1.0, 2.5, 2.5, 5.0]
    """
    pools: list[tuple[float, float, int]] = []  # (mean, weight, count)
    for value, weight in zip(values, weights):
        count = 1
        while pools and pools[-1][0] > value:
            mean, more, members = pools.pop()
            value = (weight * value + more * mean) / (weight + more)
            weight, count = weight + more, count + members
        pools.append((value, weight, count))
    return [mean for mean, _, count in pools for _ in range(count)]
