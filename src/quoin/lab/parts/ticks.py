"""Numbers as a reader sees them: three significant digits, and where an axis has its marks."""

import math

__all__ = ["digits", "ticks"]

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def digits(value: float, count: int = 3) -> str:
    """The number with `count` significant digits, a true minus sign, and powers of ten written as such.

    >>> digits(0.123456), digits(-12345.6), digits(1e-9), digits(float("inf")), digits(7)
    ('0.123', '−12,346', '1·10⁻⁹', '∞', '7')
    """
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(float(f"{value:.{count}g}"))))
    if -4 <= size < 7:
        text = f"{value:,.0f}" if size >= count - 1 else f"{value:.{count - 1 - size}f}"
        if isinstance(value, int) and "." in text:
            text = f"{value:,}"
    else:
        lead, _, power = f"{value:.{count - 1}e}".partition("e")
        text = f"{lead.rstrip('0').rstrip('.')}·10{str(int(power)).translate(_SUPERSCRIPTS)}"
    return text.replace("-", "−")


def ticks(low: float, high: float, log: bool = False, about: int = 6) -> list[tuple[float, str]]:
    """Places of marks between `low` and `high`, at 1, 2 or 5 times a power of ten (log: at powers), with their labels.

    About `about` of them, but two at least: one alone says nothing about the scale.

    >>> ticks(0, 1, about=3)
    [(0.0, '0'), (0.5, '0.5'), (1.0, '1')]
    >>> ticks(-3, 3, about=2)
    [(-2.0, '−2'), (0.0, '0'), (2.0, '2')]
    >>> ticks(1, 1000, log=True)
    [(1.0, '1'), (10.0, '10'), (100.0, '100'), (1000.0, '1000')]
    >>> ticks(1, 6, log=True)
    [(1.0, '1'), (2.0, '2'), (5.0, '5')]
    """
    low, high = min(low, high), max(low, high)  # an axis may run downwards
    if log:
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        if last > first:
            every = min(max(1, math.ceil((last - first + 1) / about)), last - first)
            return [(10.0**power, _power(power)) for power in range(first, last + 1, every)]
        between = [f * 10.0**power for power in (first - 1, last) for f in (1, 2, 5) if low <= f * 10.0**power <= high]
        if len(set(between)) > 1:
            return [(place, f"{place:.6g}") for place in sorted(set(between))]
    rough = (high - low) / max(about - 1, 1)
    scale = 10.0 ** math.floor(math.log10(rough))
    steps = [factor * scale for factor in (10, 5, 2, 1, 0.5, 0.2, 0.1)]
    roomy = [step for step in steps if step >= 0.8 * rough]
    # as fine as there is room for; finer where that leaves less than two
    step = next((step for step in steps[len(roomy) - 1 :] if len(_multiples(step, low, high)) > 1), steps[-1])
    places = [number * step for number in _multiples(step, low, high)]
    return [(0.0 if abs(place) < step * 1e-9 else place, f"{place:.6g}".replace("-", "−")) for place in places]


def _multiples(step: float, low: float, high: float) -> range:
    return range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)


def _power(power: int) -> str:
    return str(10**power) if 0 <= power <= 4 else f"10{str(power).translate(_SUPERSCRIPTS)}"
