"""The lowest point of a convex function along a line, found from slopes: near a minimum, values agree to all their digits."""

from collections.abc import Callable

__all__ = ["lowest_along"]


def lowest_along(slope: Callable[[float], float], start: float, *, share: float = 0.1, max_looks: int = 60) -> float:
    """A t > 0 with |f'(t)| <= share |f'(0)| for a convex f with slope `start` at 0, trying t = 1 first; 0 if f does not fall there.

    Where no such t is found (f falls for ever, or rounding hides it) it gives the best looked at.

    >>> lowest_along(lambda t: 2 * (t - 3), -6, share=1e-6)
    3.0
    """
    if not start < 0:
        return 0.0
    low, low_slope, high, high_slope = 0.0, start, None, 0.0
    t = 1.0
    for look in range(max_looks):
        here = slope(t)
        if abs(here) <= share * -start:
            return t
        if here < 0:
            low, low_slope = t, here
        else:  # NaN from an overflow counts as too far
            high, high_slope = t, here
        if high is None:
            # Where the slope will vanish if it goes on changing as it did, and no more than ten times as far.
            t = min(10 * t, low * start / (start - low_slope)) if low_slope > start else 10 * t
            t = max(t, 2 * low if look else 1.1 * low)
        elif look % 2 and high_slope < float("inf"):
            t = low + (high - low) * min(max(low_slope / (low_slope - high_slope), 0.05), 0.95)
        else:
            t = (low + high) / 2
    return low
