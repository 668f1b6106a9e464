"""Curves that the lab draws, read back from the picture through the scale of their axes, against their formulas."""

import math

import numpy as np
import pytest
from scipy import special, stats

from lab_picture import Read
from lab_states import exhibit_named

SQRT2 = math.sqrt(2)


def picture(page, slug, **state):
    return Read(exhibit_named(page, slug).view(state).picture.svg())


def default(page, slug, name):
    """The initial value of a control, as an array."""
    return np.array(next(each for each in exhibit_named(page, slug).controls if each.name == name).initial)


def follows(frame, points, f, spans=True):
    """The points are those of f, as exactly as a picture says it, over the whole axis or a part of it."""
    inside = points[(points[:, 1] >= min(frame.y) - 1e-9) & (points[:, 1] <= max(frame.y) + 1e-9)]
    assert len(inside) >= 2
    x, y = inside.T
    expected = np.broadcast_to(f(x), x.shape)
    # places are rounded to a tenth of a unit, in x as in y
    by = frame.unit(0)
    aside = (x * 10**by, x * 10**-by) if frame.logs[0] else (x + by, x - by)
    sides = [np.broadcast_to(np.nan_to_num(f(each), nan=np.inf), x.shape) for each in aside]
    if frame.logs[1]:
        y, expected, sides = np.log10(y), np.log10(expected), [np.log10(np.maximum(each, 1e-300)) for each in sides]
    slack = np.maximum(abs(sides[0] - expected), abs(sides[1] - expected)) + frame.unit(1)
    assert np.all(abs(y - expected) <= slack * 1.001 + 1e-12)
    if spans:
        tolerance = 0.004
        across = frame_part(frame, points[:, 0])
        assert across.min() == pytest.approx(0, abs=tolerance)
        assert across.max() == pytest.approx(1, abs=tolerance)


def frame_part(frame, x):
    low, high = frame.x
    return np.log(x / low) / np.log(high / low) if frame.logs[0] else (x - low) / (high - low)


def polynomial(x, y, degree):
    return np.polynomial.Polynomial.fit(x, y, degree)


def coin_kl(p, q):
    with np.errstate(divide="ignore"):
        return p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))


def taylor_of_exp(at, degree):
    return lambda x: sum(math.exp(at) * (x - at) ** k / math.factorial(k) for k in range(degree + 1))


def remainder_of_exp(at, degree):
    f = taylor_of_exp(at, degree)
    return lambda x: np.maximum(abs(np.exp(at + x) - f(at + x)), abs(np.exp(at - x) - f(at - x)))


def hills(apart, sigma):
    return lambda x: (stats.norm.pdf(x, -apart / 2, sigma) + stats.norm.pdf(x, apart / 2, sigma)) / 2


def tents(k):
    """The tent of the tent of ..., as distance to the nearest even number."""
    return lambda x: abs((2**k * x + 1) % 2 - 1)


def die(heights, n):
    p, face = np.array(heights) / sum(heights), np.arange(1, 7)
    mean, variance = p @ face, p @ face**2 - (p @ face) ** 2
    return lambda x: stats.norm.pdf(x, n * mean, math.sqrt(n * variance))


def window(points, bandwidth):
    """Kernel regression with a Gaussian window."""
    x, y = np.array(points).T[:2]

    def mean(at):
        weights = np.exp(-((np.atleast_1d(at)[:, None] - x) ** 2) / (2 * bandwidth**2))
        return weights @ y / weights.sum(1)

    return mean


TROUPE, SEEN = default("linear", "pull-a-point", "points"), default("regularisation", "wiggle", "points")
SPOTS = default("attention", "a-window-on-a-line", "points")
LOGITS = np.array([0.0, 1.0, 2.0])
POSTERIOR = 1 / (1 + 1 / 0.49)  # of z when x = z + 0.7 noise
SHAPE = {"shape": [1.2, 2.4], "y": [-3.2, 1.5]}
DIE = {"faces": [[1, 0.2], [2, 0.4], [3, 0.6], [4, 0.8], [5, 0.5], [6, 0.1]], "n": 12}
ROWS = np.array([[1.5, 0.6], [-1.1, -1.3], [0.4, 1.2], [-0.9, 0.1], [0.1, -0.6]])
AIM = ROWS @ [1.6, 1.1]


def squares(w):
    return ((AIM - ROWS @ [w, 1.1]) ** 2).sum()


def with_ridge(w, p=0.3):
    return squares(w) + p / (1 - p) * (ROWS**2).sum(0) @ np.array([w, 1.1]) ** 2


# Page and exhibit, its state, and curves: the frame, the colour, which of that colour, and the formula.
CURVES = [
    ("regularisation", "wiggle", {}, [(0, "faint", 0, lambda x: np.sin(1.5 * x))]),
    ("regularisation", "wiggle", {"degree": 3}, [(0, "model", 0, polynomial(*SEEN.T, 3))]),
    ("regularisation", "wiggle", {}, [(0, "model", 0, polynomial(*SEEN.T, 5))]),
    (
        "regularisation",
        "what-dropout-adds",
        {"p": 0.3},
        [(0, "faint", 0, np.vectorize(squares)), (0, "ink", 0, np.vectorize(with_ridge))],
    ),
    ("regularisation", "drop", {}, [(1, "ink", 0, lambda x: 3.0)]),
    (
        "normalisation",
        "epsilon",
        {"printed": True},
        [(0, "model", 0, lambda x: x**2 / (x**2 + 1e-5)), (0, "printed", 0, lambda x: 1.0)],
    ),
    (
        "normalisation",
        "a-batch-of-two",
        {},
        [
            (0, "faint", 0, lambda x: 0.5 + (x - 2) / 1.5),
            *((0, "faint", place, lambda x, y=y: y) for place, y in ((1, 0.5), (2, 1.5), (3, -0.5))),
        ],
    ),
    (
        "generative",
        "best-discriminator",
        {"place": 2.0},
        [
            (0, "faint", 0, stats.norm.pdf),
            (0, "model", 0, lambda x: stats.norm.pdf(x, 2)),
            (0, "ink", 0, lambda x: special.expit(2 - 2 * x)),
        ],
    ),
    (
        "latent",
        "the-bound",
        {"q": [0.3, 0.7]},
        [
            (0, "faint", 0, stats.norm.pdf),
            (0, "hidden", 0, lambda x: stats.norm.pdf(x, POSTERIOR * 1.5 / 0.49, math.sqrt(POSTERIOR))),
            (0, "model", 0, lambda x: stats.norm.pdf(x, 0.3, 0.7)),
        ],
    ),
    (
        "latent",
        "one-peak-or-two",
        {"apart": [1.6, 0.0], "sigma": 1.2},
        [
            (0, "hidden", 0, lambda x: stats.norm.pdf(x, -1.6, 1.2) / 2),
            (0, "hidden", 1, lambda x: stats.norm.pdf(x, 1.6, 1.2) / 2),
            (0, "model", 0, hills(3.2, 1.2)),
        ],
    ),
    ("probability", "your-die", DIE, [(1, "model", 0, die([height for _, height in DIE["faces"]], 12))]),
    (
        "probability",
        "slice-it",
        SHAPE,
        # the ellipse reaches farthest at (2 ρ, 2 σ): ρ is 0.6 and σ 1.2
        [
            (0, "hand", 1, lambda x: 1.5),
            (1, "faint", 0, stats.norm.pdf),
            (1, "model", 0, lambda x: stats.norm.pdf(x, 0.6 * 1.5 / 1.2, 0.8)),
        ],
    ),
    (
        "expressivity",
        "fold",
        {"k": 3, "pieces": 9},
        [(0, "model", 0, tents(3)), (1, "faint", 0, lambda x: 1 / 32)],
    ),
    ("expressivity", "polynomials-stick", {}, [(0, "faint", 0, lambda x: abs(x) + np.sin(3 * x))]),
    (
        "expressivity",
        "polynomials-stick",
        {},
        [(0, "model", 0, polynomial(x := np.linspace(-1, 1, 401), abs(x) + np.sin(3 * x), 2))],
    ),
    ("expressivity", "draw-a-curve", {"eps": 0.05}, [(1, "ink", 0, lambda x: 0.05)]),
    (
        "attention",
        "a-window-on-a-line",
        {"kernel": "Gaussian", "bandwidth": 0.7},
        [(0, "model", 0, window(SPOTS, 0.7))],
    ),
    (
        "autodiff",
        "a-curve-by-its-tangent",
        {"formula": "exp(x)", "at": [0.5, 0.0], "degree": 3},
        [(0, "ink", 0, np.exp), (0, "model", 0, taylor_of_exp(0.5, 3)), (1, "change", 0, remainder_of_exp(0.5, 3))],
    ),
    (
        "optimisation",
        "is-it-convex",
        {"a": [-1.0, 0.0], "b": [2.5, 0.0], "level": [-3.0, 1.5]},
        [
            (0, "ink", 0, lambda x: x**2 / 2),
            (0, "hidden", 1, lambda x: 1.5),
            (0, "hand", 0, lambda x: 0.5 + (3.125 - 0.5) / 3.5 * (x + 1)),
        ],
    ),
    (
        "classification",
        "how-far-apart",
        {"p": [0.3, 0.0]},
        [
            (0, "series-1", 0, lambda q: 2 * abs(0.3 - q)),
            (0, "series-2", 0, lambda q: SQRT2 * abs(0.3 - q)),
            (0, "series-3", 0, lambda q: abs(0.3 - q)),
            (0, "series-6", 0, lambda q: coin_kl(0.3, q)),
            (0, "series-5", 0, lambda q: coin_kl(0.3, q) - 0.3 * math.log(0.3) - 0.7 * math.log(0.7)),
        ],
    ),
    (
        "classification",
        "margins",
        {"m": [-1.5, 0.0]},
        [
            (0, "model", 0, lambda m: np.log1p(np.exp(-m))),
            (0, "ink", 0, lambda m: np.maximum(0, 1 - m)),
            (0, "change", 0, lambda m: math.log1p(math.exp(1.5)) - special.expit(1.5) * (m + 1.5)),
            (0, "change", 1, lambda m: 2.5 - (m + 1.5)),
        ],
    ),
    ("linear", "pull-a-point", {}, [(0, "model", 0, polynomial(*TROUPE.T, 1))]),
    (
        "linear",
        "the-best-guess",
        {"middle": [0.5, 0.0], "bend": 0.4},
        [(0, "ink", 0, lambda x: 0.6 * x + 0.4 * x**2)],
    ),
    (
        "linear",
        "the-best-guess",
        {"middle": [0.5, 0.0], "bend": 0.4},
        # for X near N(m, 1) the slope is E of the derivative: 0.6 + 0.8 m
        [(0, "model", 0, lambda x: 0.6 * 0.5 + 0.4 * (0.25 + LEFT) + (x - 0.5) * (0.6 + 0.8 * 0.5))],
    ),
    (
        "initialisation",
        "a-thousand-in-the-exponent",
        {"kind": "float64"},
        [
            (0, "model", 0, lambda x: np.log(np.exp(-LOGITS).sum()) + x),
            (1, "model", 0, np.tanh),
        ],
    ),
    (
        "tensors",
        "unreachable-rank",
        {},
        # (e + εf)⊗³/ε − e⊗³/ε is eef + efe + fee, of norm √3, and ε(eff + fef + ffe) + ε² fff
        [
            (4, "change", 0, lambda e: np.sqrt((3 * e**2 + e**4) / 3)),
            (4, "model", 0, lambda e: (1 + e**2) ** 1.5 / e / math.sqrt(3)),
        ],
    ),
    (
        "normalisation",
        "skip",
        {"body": "with skips, F(x) = −x", "norm": 0.6, "depth": [20.0, 1.0]},
        [(0, "change", 0, lambda block: math.sqrt(12) * 0.4 ** (20 - block))],
    ),
    ("initialisation", "the-gain", {"depth": 12}, [(0, "faint", 0, lambda x: 1.0)]),
    ("chains", "diffuse", {"drift": 2.0}, [(0, "change", 0, lambda t: 2 * t)]),
    (
        "chains",
        "what-was-hidden",
        {},
        [(0, "hidden", 0, lambda x: 1.0), (0, "hidden", 1, lambda x: -1.0)],
    ),
]
NODES = np.linspace(-3, 3, 25)
LEFT = np.average(NODES**2, weights=np.exp(-(NODES**2) / 2))  # the variance of X, which ends at three deviations
# These are shorter than their axis; a divergence is infinite at its ends.
PARTS = {
    ("linear", "the-best-guess", "ink"),
    ("linear", "the-best-guess", "model"),
    ("classification", "margins", "change"),
    ("classification", "how-far-apart", "series-5"),
    ("classification", "how-far-apart", "series-6"),
    ("optimisation", "is-it-convex", "hand"),
    ("normalisation", "skip", "change"),
}


@pytest.mark.parametrize(
    ("page", "slug", "state", "curves"),
    [pytest.param(*each, id=f"{each[1]}-{number}") for number, each in enumerate(CURVES)],
)
def test_a_curve_is_that_of_its_formula(page, slug, state, curves):
    read = picture(page, slug, **state)
    for number, role, which, f in curves:
        part = (page, slug, role) in PARTS
        follows(read.frames[number], read.values(number, role)[which], f, spans=not part)
