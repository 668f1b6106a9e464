"""What the page on probability shows, against the mathematics and plain Python."""

import math
import random
import re

import numpy as np
import pytest

from quoin.lab.parts import exhibit_of
from quoin.lab.parts.normal_pictures import ellipse
from quoin.lab.parts.sliced_normal import held_normal
from quoin.lab.probability import ill_or_not, pair_them, slice_it, the_typewriter, two_columns, your_die


def numbers(show, **state):
    return [number.value for number in exhibit_of(show).view(state).numbers]


@pytest.mark.parametrize("sigma_y", [1.2, 0.4, 1.6, 1.0])
@pytest.mark.parametrize(("rho", "y"), [(0.3, 0.8), (-0.95, 3.0), (0.95, -3.0), (0.5, 1.3), (-0.2, 2.2), (0.0, 1.0)])
def test_a_slice_of_a_normal(rho, y, sigma_y):
    tip = [2 * rho, 2 * sigma_y]
    # by the density itself, on a fine grid: no formula of the conditional normal
    x = np.linspace(-14, 14, 40_001)
    s_xy, s_yy = rho * sigma_y, sigma_y**2
    det = s_yy - s_xy**2

    def moments(square, of_y):
        joint = np.exp(-square / 2) / (2 * math.pi * math.sqrt(det))
        density = joint / (of_y * math.exp(-(y**2) / 2 / s_yy)) * (x[1] - x[0])
        mean = (x * density).sum() / density.sum()
        return ((x - mean) ** 2 * density).sum() / density.sum(), mean, density.sum()

    square, of_y = (s_yy * x**2 - 2 * s_xy * x * y + y**2) / det, 1 / math.sqrt(2 * math.pi * s_yy)
    right = moments(square, of_y)
    assert numbers(slice_it, shape=tip, y=[-3.2, y]) == pytest.approx(right[:2], abs=2e-5, rel=1e-4)
    assert right[2] == pytest.approx(1)
    lost = moments(x**2 - 2 * s_xy / s_yy * x * y + y**2 / s_yy, of_y)
    squared = moments((s_yy * x**2 - 2 * s_xy**2 * x * y + y**2) / det, of_y)
    rootless = moments(square, 1 / (math.sqrt(2 * math.pi) * s_yy))
    for id, expected in (("DE44", lost[0]), ("DE45", squared[1]), ("DE46", rootless[2])):
        wrong = numbers(slice_it, shape=tip, y=[-3.2, y], printed=id)[2]
        assert wrong == pytest.approx(expected, abs=2e-5, rel=1e-4)


@pytest.mark.parametrize("tip", [(0.6, 2.4), (-1.9, 0.8), (1.9, 3.2), (0.3, 1.1)])
def test_the_ellipse_is_held_where_it_reaches_farthest_up(tip):
    ring = ellipse(held_normal(tip), 2.0).double()
    farthest = ring[ring[:, 1].argmax()]  # of 72 points, so within a step of it
    assert float(ring[:, 1].max()) == pytest.approx(tip[1], rel=2e-3)
    assert abs(float(farthest[0]) - tip[0]) < 2 * 2 * math.pi / 72
    assert float(ring[:, 0].max()) == pytest.approx(2, rel=2e-3)  # the deviation of X is 1
    svg = exhibit_of(slice_it).view({"shape": list(tip)}).picture.svg()
    drawn = re.search(r'data-name="shape"[^>]*data-x="([^"]*)" data-y="([^"]*)"', svg).groups()
    assert [float(each) for each in drawn] == pytest.approx(tip, rel=1e-5)


@pytest.mark.parametrize(
    ("ill", "found", "false"), [(0.3, 0.99, 0.05), (0.01, 0.99, 0.05), (0.5, 0.5, 0.5), (0.2, 0.8, 0.1)]
)
def test_bayes(ill, found, false):
    posterior, _ = numbers(ill_or_not, prevalence=ill, found=found, false=false)
    assert posterior == pytest.approx(ill * found / (ill * found + (1 - ill) * false), rel=1e-5)


@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_the_sum_of_throws_by_convolution_in_plain_python(n):
    heights = [random.Random(n).uniform(0.1, 1) for _ in range(6)]
    distance, mean, std = numbers(your_die, faces=[[i + 1, h] for i, h in enumerate(heights)], n=n)
    probs = [h / sum(heights) for h in heights]
    total = {0: 1.0}
    for _ in range(n):
        nxt: dict[int, float] = {}
        for value, p in total.items():
            for face, q in enumerate(probs, start=1):
                nxt[value + face] = nxt.get(value + face, 0.0) + p * q
        total = nxt
    assert mean == pytest.approx(sum(v * p for v, p in total.items()))
    assert std == pytest.approx(math.sqrt(sum((v - mean) ** 2 * p for v, p in total.items())))
    below, worst = 0.0, 0.0
    for value in sorted(total):
        normal = 0.5 * (1 + math.erf((value - mean) / std / math.sqrt(2)))
        worst = max(worst, abs(normal - below), abs(normal - below - total[value]))
        below += total[value]
    assert distance == pytest.approx(worst, rel=1e-6)


@pytest.mark.parametrize("n", [1, 10, 100])
def test_a_mean_of_cauchy_variables_is_as_wide_as_one_alone(n):
    far, exact, normal = numbers(your_die, source="Cauchy's variable, which has no mean", n=n)
    assert exact == pytest.approx(0.5)  # its quartiles are -1 and 1, and the mean of n has the same distribution
    assert abs(far - 0.5) < 5 * math.sqrt(0.25 / 2000)
    assert normal == pytest.approx(math.erfc(math.sqrt(n / 2)), rel=1e-4, abs=1e-7)


@pytest.mark.parametrize(("n", "omega"), [(4, 0.31), (1, 0.0), (500, 0.99), (77, 0.5)])
def test_the_typewriter_returns_in_every_block(n, omega):
    width, visits = numbers(the_typewriter, n=n, omega=omega)
    block, first = 2, 1
    blocks = []
    while first <= n:
        blocks += [(block, j) for j in range(block)]
        first, block = first + block, block + 1
    assert width == pytest.approx(1 / blocks[n - 1][0])
    assert visits == sum(j / m <= omega + 1e-7 and omega + 1e-7 < (j + 1) / m for m, j in blocks[:n])


MOMENTS = {0: 1, 1: 0, 2: 1, 3: 0, 4: 3, 5: 0, 6: 15}  # of a standard normal


@pytest.mark.parametrize("mean", [0.0, 1.0, 0.4])
@pytest.mark.parametrize("letters", ["XXXX", "XXYY", "XY", "", "XXXY", "YXYXYX", "XYY", "YYYYYY"])
def test_moments_of_a_normal_pair(letters, mean):
    factors = [" XY".index(letter) for letter in letters.ljust(6)]
    paired, exact, ways = numbers(pair_them, factors=factors, mean=mean)
    x, y = letters.count("X"), letters.count("Y")
    # X = U + m and Y = U + V + m for independent standard U, V have variances 1, 2 and covariance 1: by the binomial
    # theorem, without a pairing
    expected = sum(
        math.comb(x, i) * math.comb(y, j) * math.comb(y - j, k)
        * mean ** (x - i + k) * MOMENTS[i + y - j - k] * MOMENTS[j]
        for i in range(x + 1)
        for j in range(y + 1)
        for k in range(y - j + 1)
    )  # fmt: skip
    assert exact == pytest.approx(expected)
    assert ways == (math.prod(range(1, x + y, 2)) if (x + y) % 2 == 0 else 0)
    assert mean > 0 or paired == pytest.approx(exact)


def test_pairing_says_twelve_where_the_moment_is_ten():
    assert numbers(pair_them, mean=1.0) == [12, 10, 3]
    assert numbers(pair_them) == [3, 3, 3]
    # as printed a pair is two means: three pairings of products of (1, 1), and of (0, 0)
    assert numbers(pair_them, mean=1.0, printed=True)[2] == "(3, 3)"
    assert numbers(pair_them, printed=True)[2] == "(0, 0)"


def test_two_columns_are_conditioned_as_a_regression():
    import base64

    rows = [(random.Random(i).gauss(0, 1), random.Random(-i - 1).gauss(0, 2)) for i in range(50)]
    text = "a,b\n" + "\n".join(f"{x},{x + y}" for x, y in rows)
    given, std = numbers(two_columns, table=base64.b64encode(text.encode()).decode(), known=2.0)
    xs, ys = [x for x, _ in rows], [x + y for x, y in rows]
    mx, my = sum(xs) / 50, sum(ys) / 50
    sxy = sum((x - mx) * (y - my) for x, y in zip(xs, ys)) / 49
    sxx, syy = sum((x - mx) ** 2 for x in xs) / 49, sum((y - my) ** 2 for y in ys) / 49
    assert given == pytest.approx(mx + sxy / syy * 2 * math.sqrt(syy), rel=1e-3)
    assert std == pytest.approx(math.sqrt(sxx - sxy**2 / syy), rel=1e-3)


@pytest.mark.parametrize(("ill", "found", "false"), [(0.01, 0.99, 0.05), (0.2, 0.8, 0.1), (0.5, 0.5, 0.2)])
def test_positive_people_are_counted_among_the_ill_and_the_well(ill, found, false):
    _, positive = numbers(ill_or_not, prevalence=ill, found=found, false=false)
    assert positive == pytest.approx(1000 * ill * found + (1000 - 1000 * ill) * false, abs=1)


@pytest.mark.parametrize(("n", "omega"), [(5, 0.31), (20, 0.77), (40, 0.05)])
def test_a_bar_is_coloured_where_it_covers_omega(n, omega):
    svg = exhibit_of(the_typewriter).view({"n": n, "omega": omega}).picture.svg()
    bars = re.findall(r'<polygon points="([0-9.]+),[^ ]* ([0-9.]+),[^"]*" style="fill:([^"]*)"', svg)
    assert len(bars) == n
    at = 52 + 400 * omega  # the box of the sheet
    for left, right, fill in bars:
        assert (float(left) <= at < float(right)) == (fill == "var(--model)")
