"""The Lévy-Prokhorov distance of distributions on finitely many points, in which convergence in distribution is
convergence to zero.

Two sides of one number: no event gains more than ε when it is blown up by ε, and some coupling (X, Y) of the
distributions keeps them within ε of each other but for a probability of ε. The second side is a flow problem.   n
and m points
"""

from collections import deque
from typing import NamedTuple

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob.checks import check_probs
from quoin.tensor import check_shapes
from quoin.tensor.array_like import ArrayLike, float_tensor, number_tensor

__all__ = ["Prokhorov", "prokhorov_distance", "prokhorov_distance_definition"]

_MOST_POINTS = 14  # of the first distribution: each of its events is tried


@shown
class Prokhorov(NamedTuple):
    """The distance, and a coupling that reaches it."""

    output: Float[Tensor, ""]
    coupling: Float[Tensor, "n m"]  # with rows summing to p and columns to q


def prokhorov_distance_definition(
    p: Float[Tensor, "n"] | ArrayLike, q: Float[Tensor, "m"] | ArrayLike, distances: Real[Tensor, "n m"] | ArrayLike
) -> Float[Tensor, ""]:
    """inf {ε > 0: p(A) <= q(A^ε) + ε for every event A}, A^ε being all points within ε of A; all 2^n events are tried.

    Args:
        distances: d(x_i, y_j) between the points of p and those of q.

    Notes: D5-26c.
    """
    p = float_tensor(p, "p", q, distances)
    q = float_tensor(q, "q", p, distances)
    distances = number_tensor(distances, "distances", p, q)
    _check(p, q, distances)
    n = len(p)
    if n > _MOST_POINTS:
        raise UserError(
            f"expected at most {_MOST_POINTS} points to try every event of, got {n}; use prokhorov_distance"
        )
    events = (torch.arange(2**n).unsqueeze(-1) >> torch.arange(n) & 1).to(p.dtype)
    found = []
    for radius in _radii(distances):  # A^ε changes at these ε alone; between two of them the excess is constant
        blown_up = (events @ (distances <= radius).to(p.dtype)) > 0
        excess = (events @ p - blown_up.to(q.dtype) @ q).max()
        found.append(torch.maximum(excess, radius.to(p.dtype)))
    return torch.stack(found).min()


def prokhorov_distance(
    p: Float[Tensor, "n"] | ArrayLike, q: Float[Tensor, "m"] | ArrayLike, distances: Real[Tensor, "n m"] | ArrayLike
) -> Prokhorov:
    """inf {ε: P[d(X, Y) > ε] <= ε for some coupling of X ~ p and Y ~ q}, equal to `prokhorov_distance_definition` by
    a minimal cut.

    Args:
        distances: d(x_i, y_j) between the points of p and those of q.

    >>> points = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    >>> prokhorov_distance(torch.tensor([0.5, 0.5]), torch.tensor([0.3, 0.7]), points).output
    tensor(0.2000)

    Notes: D5-26, D5-26c.
    """
    p = float_tensor(p, "p", q, distances)
    q = float_tensor(q, "q", p, distances)
    distances = number_tensor(distances, "distances", p, q)
    _check(p, q, distances)
    radii = _radii(distances)
    low, high = 0, len(radii) - 1  # the excess falls and the radius rises: look for where they cross
    while low < high:
        middle = (low + high) // 2
        if _matched(p, q, distances <= radii[middle])[0] <= radii[middle]:
            high = middle
        else:
            low = middle + 1
    candidates = []
    for radius in radii[
        max(low - 1, 0) : low + 1
    ]:  # just before the crossing the excess is the larger, after it the radius
        excess, flow = _matched(p, q, distances <= radius)
        candidates.append((torch.maximum(excess, radius.to(p.dtype)), flow))
    value, flow = min(candidates, key=lambda each: float(each[0].detach()))
    return Prokhorov(value, _completed(p.detach(), q.detach(), flow))


def _matched(p: Tensor, q: Tensor, near: Tensor) -> tuple[Tensor, Tensor]:
    """The least probability P[not near] over all couplings, and the near part of a best one: a largest flow from
    p to q.

    The value is written as p(A) - q(near A) for the event A of the minimal cut, so that it has gradients.
    """
    n, m = near.shape
    supply, demand = p.detach().double().tolist(), q.detach().double().tolist()
    ways = [[j for j in range(m) if near[i, j]] for i in range(n)]
    flow = [[0.0] * m for _ in range(n)]
    while True:
        # Breadth first from all points with supply left: forward along near pairs, back along pairs that carry flow.
        got: dict[tuple[str, int], tuple[str, int] | None] = {("p", i): None for i in range(n) if supply[i] > 0}
        queue, end = deque(got), None
        while queue and end is None:
            side, here = node = queue.popleft()
            ahead = [("q", j) for j in ways[here]] if side == "p" else [("p", i) for i in range(n) if flow[i][here] > 0]
            for after in ahead:
                if after not in got:
                    got[after] = node
                    queue.append(after)
                    if after[0] == "q" and demand[after[1]] > 0:
                        end = after
                        break
        if end is None:
            break
        way = [end]
        while (before := got[way[-1]]) is not None:
            way.append(before)
        pairs = [(way[t + 1], way[t]) for t in range(len(way) - 1)]
        backward = [flow[b[1]][a[1]] for a, b in pairs if a[0] == "q"]
        amount = min(supply[way[-1][1]], demand[end[1]], *backward)
        supply[way[-1][1]] -= amount
        demand[end[1]] -= amount
        for a, b in pairs:
            if a[0] == "p":
                flow[a[1]][b[1]] += amount
            else:
                flow[b[1]][a[1]] -= amount
    cut_p = torch.tensor([("p", i) in got for i in range(n)])
    cut_q = torch.tensor([("q", j) in got for j in range(m)])
    return p[cut_p].sum() - q[cut_q].sum(), torch.tensor(flow, dtype=p.dtype).reshape(n, m)


def _completed(p: Tensor, q: Tensor, flow: Tensor) -> Tensor:
    """What the flow left over, coupled independently."""
    left, wanted = (p - flow.sum(dim=1)).clamp(min=0), (q - flow.sum(dim=0)).clamp(min=0)
    total = left.sum()
    return flow + torch.outer(left, wanted) / total if float(total) > 0 else flow


def _radii(distances: Tensor) -> Tensor:
    return torch.cat([distances.new_zeros(1), distances.detach().reshape(-1)]).unique()


def _check(p: Tensor, q: Tensor, distances: Tensor) -> None:
    check_shapes("n, m, n m", p=p, q=q, distances=distances)
    check_probs(p, "p")
    check_probs(q, "q")
    if not bool((distances >= 0).all()):
        raise UserError(
            f"expected distances from 0 up, got {float(distances.detach().min()):.3g}; take norms of differences"
        )
