"""The lowest point of a convex function along a line, found from derivatives: near a minimum, values agree to all their
digits.
"""

from collections.abc import Callable

__all__ = ["line_search"]


def line_search(
    derivative: Callable[[float], float], start: float, *, derivative_ratio: float = 0.1, max_evaluations: int = 60
) -> float:
    """A t > 0 with |f'(t)| <= derivative_ratio |f'(0)| for a convex f with derivative `start` at 0, trying t = 1 first;
    0 if f does not fall there.

    Where no such t is found (f falls for ever, or rounding hides it) it gives the best that was evaluated.

    >>> line_search(lambda t: 2 * (t - 3), -6, derivative_ratio=1e-6)
    3.0
    """
    if not start < 0:
        return 0.0
    low, low_derivative, high, high_derivative = 0.0, start, None, 0.0
    t = 1.0
    for evaluation in range(max_evaluations):
        here = derivative(t)
        if abs(here) <= derivative_ratio * -start:
            return t
        if here < 0:
            low, low_derivative = t, here
        else:  # NaN from an overflow counts as too far
            high, high_derivative = t, here
        if high is None:
            # Where the derivative will vanish if it goes on changing as it did, and no more than ten times as far.
            t = min(10 * t, low * start / (start - low_derivative)) if low_derivative > start else 10 * t
            t = max(t, 2 * low if evaluation else 1.1 * low)
        elif evaluation % 2 and high_derivative < float("inf"):
            t = low + (high - low) * min(max(low_derivative / (low_derivative - high_derivative), 0.05), 0.95)
        else:
            t = (low + high) / 2
    return low
