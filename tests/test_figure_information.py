"""Figures of information, of normal distributions and of latent variables, read as numbers: integrals, scipy, Bayes'
rule on what is shown, and codes counted by hand."""

import heapq
import math

import numpy as np
import pytest
from matplotlib.colors import to_hex
from scipy import optimize, stats
from scipy.special import logsumexp

from figure_marks import collection, curve, drawn, lengths, line, near, panel, panels, points, xy
from quoin.notes.figures import coding
from quoin.plot.plots import COLORS, FAINT, INK

pytestmark = pytest.mark.usefixtures("one_thread")


def value(text: str) -> float:
    return float(text.replace("−", "-"))


# ---- information --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [2.0, 3.0])
def test_the_entropy_of_a_coin(base):
    axes = panel("entropy_of_a_coin", **({} if base == 2 else {"base": base}))
    for label, unit in (("H(p) in bits" if base == 2 else "H(p), base 3", base), ("H(p) in nats", math.e)):
        p, found = curve(axes, label)
        near(found, stats.entropy([p, 1 - p], base=unit))
        near(p, np.linspace(0, 1, len(p)))
        assert len(p) % 2  # a fair coin is among them
    near(curve(axes, "ln 2")[1], math.log(2))


@pytest.mark.parametrize("arguments", [{}, {"weight": 0.2, "left": -0.5, "right": 1.5}])
def test_the_chord_lies_above_the_curve(arguments):
    axes = panel("jensen", **arguments)
    weight, left, right = ({"weight": 0.45, "left": -1.0, "right": 2.0} | arguments).values()

    def f(x):
        return np.exp(0.8 * x) - 0.6 * x

    near(curve(axes, "f(x)")[1], f(curve(axes, "f(x)")[0]))
    near(curve(axes, "chord"), [[left, right], [f(left), f(right)]])
    mean, mean_of_f = weight * left + (1 - weight) * right, weight * f(left) + (1 - weight) * f(right)
    near(curve(axes, "E f(x)"), [[mean, mean], [f(mean), mean_of_f]])
    near([xy(each) for each in axes.lines if each.get_marker() == "o" and len(xy(each)[0]) == 2][-1],
         curve(axes, "E f(x)"))  # fmt: skip
    near([xy(each) for each in axes.lines if each.get_color() == FAINT], [[[mean, mean], [0, f(mean)]]])
    near([text.xy for text in axes.texts], [[mean, mean_of_f], [mean, f(mean)]])
    assert [text.get_text() for text in axes.texts] == ["E f(x)", "f(E x)"]
    near(axes.get_xticks(), [left, right, mean])
    near(curve(axes, "f(x)")[0][[0, -1]], [-1.4, 2.2])
    low, high = axes.get_ylim()
    assert low == 0
    assert 1 < high / f(2.2) < 1.2
    assert not len(axes.get_yticks())


def test_one_gaussian_for_two_modes():
    grid = np.array(panels("kl_both_ways")).reshape(2, 3)
    line = np.linspace(-25, 25, 8001)

    def kl(p, q) -> float:
        inside = p > 1e-300
        ratio = np.log(p[inside]) - np.log(np.maximum(q[inside], 1e-300))
        return float(np.trapezoid(p[inside] * ratio, line[inside]))

    for column, distance in enumerate((1.5, 2.5, 4.0)):
        p = sum(stats.norm.pdf(line, mode, 0.9) / 2 for mode in (-distance, distance))
        covering, seeking = grid[:, column]
        for axes in (covering, seeking):
            (band,) = collection(axes, "PolyCollection")
            assert band.get_paths()[0].vertices[:, 1].max() == pytest.approx(p.max(), rel=0.01)
            assert not len(axes.get_yticks())
        near(curve(covering, "Q")[1], stats.norm.pdf(curve(covering, "Q")[0], 0, math.hypot(0.9, distance)))
        found = kl(p, stats.norm.pdf(line, 0, math.hypot(0.9, distance)))
        assert covering.get_title("left") == f"KL(P, Q) = {found:.2f}"
        starts = ((0.0, math.log(distance)), (distance, math.log(0.9)))
        best = min(
            (optimize.minimize(lambda at, p=p: kl(stats.norm.pdf(line, at[0], math.exp(at[1])), p), start,
                               method="Nelder-Mead") for start in starts),
            key=lambda result: result.fun,
        )  # fmt: skip
        x, density = curve(seeking, "Q")
        near(density, stats.norm.pdf(x, best.x[0], math.exp(best.x[1])), 0.005)
        assert abs(value(seeking.get_title("left").split("=")[1]) - best.fun) < 0.006
        near(x[[0, -1]], [-7, 7])
    assert {each.lines[0].get_color() for each in grid[0]} == {COLORS[0]}
    assert {each.lines[0].get_color() for each in grid[1]} == {COLORS[1]}
    (legend,) = drawn("kl_both_ways").figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["P", "Q of least KL(P, Q)", "Q of least KL(Q, P)"]
    assert [each.get_color() for each in legend.legend_handles[1:]] == [COLORS[0], COLORS[1]]


# ---- normal distributions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("correlation", [0.9, -0.5])
def test_ellipses_hold_what_they_say(correlation):
    covariances = (
        [[1, 0], [0, 1]],
        [[2, 0], [0, 0.25]],
        [[1, correlation], [correlation, 1]],
        [[1.2, 0.6], [0.6, 0.3]],
    )
    grid = panels("ellipses_of_equal_density", **({} if correlation == 0.9 else {"correlation": correlation}))
    for axes, covariance in zip(grid, covariances, strict=True):
        inverse, rank = np.linalg.pinv(covariance, hermitian=True), np.linalg.matrix_rank(covariance)
        for label, mass, dash in (("50 of 100", 0.5, "-"), ("95 of 100", 0.95, "--")):
            ring = curve(axes, label)
            near(np.einsum("in,ij,jn->n", ring, inverse, ring), stats.chi2.ppf(mass, rank))
            near(ring @ np.ones(len(ring.T)) / len(ring.T), ring[:, 0] / len(ring.T) if rank == 2 else 0)  # all round
            assert line(axes, label).get_linestyle() == dash
        samples = points(axes)
        assert samples.shape == (2, 300)
        near(np.cov(samples), covariance, 0.35)
        inside = np.einsum("in,ij,jn->n", samples, inverse, samples) < stats.chi2.ppf(0.5, rank)
        assert 0.4 < inside.mean() < 0.6
        near([axes.get_xlim(), axes.get_ylim()], [[-4, 4]] * 2)
        assert axes.get_aspect() == 1
    near(grid[3].lines[0].get_linewidth() > grid[3].lines[1].get_linewidth(), 1)  # or the longer line would hide it


@pytest.mark.parametrize("correlation", [0.8, -0.4])
def test_conditioning_cuts_a_slice(correlation):
    joint, cuts = panels("conditioning_is_a_slice", **({} if correlation == 0.8 else {"correlation": correlation}))
    given, y = curve(joint, "mean of X given y")
    near(given, correlation * y)
    x, alone = curve(cuts, "X alone")
    near(alone, stats.norm.pdf(x))
    near([x[0], x[-1]], [-3.5, 3.5])
    spread = math.sqrt(1 - correlation**2)
    for known in (-1.5, 0.0, 1.5):
        label = f"y = {known:g}".replace("-", "−")
        near(curve(cuts, label)[1], stats.norm.pdf(x, correlation * known, spread))
        color = line(cuts, label).get_color()
        (level, mean) = (xy(each) for each in joint.lines if each.get_color() == color)
        near(level[1], known)
        near(mean[:, 0], [correlation * known, known])
        (below,) = (xy(each) for each in cuts.lines if each.get_color() == color and each.get_label() != label)
        near(below[0], correlation * known)
    (rings,) = joint.collections
    assert list(rings.levels) == [0.01, 0.03, 0.07, 0.13, 0.2]
    density = stats.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]]).pdf
    for path, level in zip(rings.get_paths(), rings.levels):
        near(density(path.vertices), level, 0.003)
    assert joint.get_ylim() == (-3, 3)
    assert cuts.get_ylim() == (0, 0.75)


# ---- mixtures and latent variables --------------------------------------------------------------------------------


def test_two_bells_are_one_hill_up_to_two_standard_deviations():
    for axes, apart in zip(panels("one_hill_or_two"), (1.5, 2.0, 3.0), strict=True):
        first, second, both, peaks = map(xy, axes.lines)
        bells = [stats.norm.pdf(both[0], at) / 2 for at in (-apart / 2, apart / 2)]
        near([first[1], second[1]], bells)
        near(both[1], sum(bells))
        near(both[0][[0, -1]], [-5, 5])
        expected = [0.0]
        if apart > 2:  # x = a tanh(a x) with a half as far as they are apart
            root = optimize.brentq(lambda x, half=apart / 2: x - half * math.tanh(half * x), 0.1, 5)
            expected = [-root, root]
        near(peaks[0], expected, 2e-3)
        near(peaks[1], sum(stats.norm.pdf(peaks[0], at) / 2 for at in (-apart / 2, apart / 2)))
        assert axes.get_title("left") == f"{apart:g}σ apart"


def test_em_climbs_and_the_points_keep_their_places():
    begin, middle, end, climb = panels("fitted_mixture")
    for axes in (middle, end):
        near(points(axes), points(begin))
        assert axes.get_aspect() == 1
    assert points(begin).shape == (2, 600)
    steps, mean = xy(climb.lines[0])
    near(steps, np.arange(len(steps)))
    assert (np.diff(mean) > -1e-9).all()
    assert mean[-1] - mean[0] > 0.05
    # the distribution that the points are of, and the largest likelihood is above its
    means, covariances = (
        [[0, 0], [3, 1], [0.5, 3.2]],
        ([[1.2, 0.7], [0.7, 0.8]], [[0.4, -0.3], [-0.3, 0.9]], [[1.5, 0], [0, 0.15]]),
    )
    true = [stats.multivariate_normal(*each) for each in zip(means, covariances)]
    densities = np.array([share * each.pdf(points(begin).T) for share, each in zip((0.5, 0.3, 0.2), true)])
    level = np.log(densities.sum(axis=0)).mean()
    near(xy(climb.lines[1])[1], level)
    assert level < mean[-1] < level + 0.05
    centers = np.concatenate([xy(each) for each in end.lines if each.get_marker() == "+"], axis=1)
    away = np.hypot(*(centers[:, :, None] - np.array(means).T[:, None]))
    assert away.min(axis=0).max() < 0.25
    # near the middle of a component a point has its colour
    palette = {to_hex(each) for each in collection(end, "PathCollection")[0].get_facecolors()}
    assert len(palette) > 50
    colors = collection(end, "PathCollection")[0].get_facecolors()[:, :3]
    for center in centers.T:
        nearest = np.hypot(*(points(end) - center[:, None])).argmin()
        assert (
            min(np.abs(colors[nearest] - [int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)]).max() for c in COLORS[:3])
            < 0.1
        )


def test_samples_from_the_prior_and_from_a_proposal():
    bars, prior, proposal = panels("samples_against_likelihood")
    fractions, likelihood = np.split(lengths(bars), 2)
    near(likelihood, stats.norm.pdf(16.6, 4 * np.arange(10)))
    near(fractions * 200, np.round(fractions * 200), 1e-4)
    near(fractions.sum(), 1)
    near(fractions, 0.1, 0.085)
    left, right = np.split(np.array([each.get_x() + each.get_width() / 2 for each in bars.patches]), 2)
    near(left + right, 2 * np.arange(10))
    near(bars.get_xticks(), np.arange(10))
    assert (right - left >= bars.patches[0].get_width()).all()
    noise = 0.15**2
    exact = stats.norm.logpdf(1.8, 0, math.sqrt(1 + noise))
    posterior = stats.norm(1.8 / (1 + noise), 1.5 * math.sqrt(noise / (1 + noise)))
    for axes, q, name in ((prior, stats.norm(), "prior"), (proposal, posterior, "proposal")):
        z, shape = curve(axes, "likelihood")
        near(shape, np.exp(-((1.8 - z) ** 2) / (2 * noise)), 2e-3)
        near(curve(axes, name)[1], q.pdf(z) / q.pdf(q.mean()), 2e-3)
        near(z[[0, -1]], [-3.5, 3.5])
        samples, heights = points(axes)
        assert len(samples) == 200
        assert abs(samples.mean() - q.mean()) < 4 * q.std() / math.sqrt(200)
        assert -0.28 <= heights.min() < -0.25 < -0.15 < heights.max() <= -0.12
        weights = stats.norm.logpdf(1.8, samples, 0.15) + stats.norm.logpdf(samples) - q.logpdf(samples)
        relative = np.exp(weights - logsumexp(weights))
        near(collection(axes, "PathCollection")[0].get_sizes(), 4 + 60 * relative / relative.max(), 1e-4)
        title = axes.get_title("left")
        assert f"{1 / (relative**2).sum():.0f} of 200 samples count" in title
        assert f"ln p(x) = {exact:.2f}".replace("-", "−") in title
        assert title.endswith(f"estimate {logsumexp(weights) - math.log(200):.2f}".replace("-", "−"))
        assert title.startswith(f"from the {name}:")
        assert not len(axes.get_yticks())


def test_a_hidden_chain_by_forward_and_backward():
    observed, belief, path = panels("hidden_states")
    seen, hidden = points(observed)[1], xy(observed.lines[0])[1]
    near(points(observed)[0], np.arange(120))
    levels, start = np.array([-2.0, 0.0, 2.0]), np.array([0.0, 1.0, 0.0])
    stay = np.array([[0.93, 0.07, 0], [0.04, 0.92, 0.04], [0, 0.07, 0.93]])
    emission = stats.norm.pdf(seen[:, None], levels, 1.2)
    forward, backward = [start * emission[0]], [np.ones(3)]
    best, came = [np.log(np.maximum(start * emission[0], 1e-300))], []
    for each in emission[1:]:
        forward.append((forward[-1] / forward[-1].sum()) @ stay * each)
        ways = best[-1][:, None] + np.log(np.maximum(stay, 1e-300))
        came.append(ways.argmax(axis=0))
        best.append(ways.max(axis=0) + np.log(each))
    for each in emission[:0:-1]:
        backward.append(stay @ (each * backward[-1] / backward[-1].sum()))
    both = np.array(forward) * np.array(backward[::-1])
    posterior = both / both.sum(axis=1, keepdims=True)
    heights = posterior.cumsum(axis=1)
    for fill, top, color in zip(collection(belief, "PolyCollection"), heights.T, COLORS, strict=False):
        corners = fill.get_paths()[0].vertices
        for step in (0, 17, 60, 119):
            assert np.abs(corners[corners[:, 0] == step][:, 1] - top[step]).min() < 1e-6
        assert to_hex(fill.get_facecolor()[0]) == color
    probable = [int(best[-1].argmax())]
    for each in came[::-1]:
        probable.append(int(each[probable[-1]]))
    truth = np.searchsorted(levels, hidden)
    near(levels[truth], hidden)
    near(curve(path, "true")[1], truth)
    near(curve(path, "most probable")[1], probable[::-1])
    right = (truth == probable[::-1]).sum()
    assert line(path, "most probable").get_label() == f"most probable path, right at {right} of 120 steps"
    assert right > 90
    assert truth[0] == 1
    assert (np.abs(np.diff(truth)) <= 1).all()
    assert 0.7 < np.std(seen - hidden) < 1.7
    assert belief.get_ylim() == (0, 1)
    near(path.get_yticks(), [0, 1, 2])
    assert {each.get_drawstyle() for each in (*observed.lines, *path.lines)} == {"steps-mid"}


# ---- losses and codes ---------------------------------------------------------------------------------------------


def test_losses_of_a_margin():
    axes = panel("log_loss_and_hinge_loss")
    m, log_loss = curve(axes, "log loss")
    near(log_loss, np.log1p(np.exp(-m)))
    near(curve(axes, "hinge")[1], np.maximum(0, 1 - m))
    decision = curve(axes, "0-1")[1]
    assert np.isnan(decision[m == 0]).all()
    near(decision[m != 0], (m < 0)[m != 0])
    near([m[0], m[200], m[-1], len(m)], [-4, 0, 4, 401])


def test_decisions_by_the_sign_of_a_score():
    axes = panel("decision_by_sign")
    shown = collection(axes, "PathCollection")
    for row, color, right, wrong in ((0, COLORS[1], *shown[:2]), (1, COLORS[0], *shown[2:])):
        sign = 2 * row - 1
        met, missed = (np.asarray(each.get_offsets()).T for each in (right, wrong))
        assert (met[0] * sign > 0).all()
        assert (missed[0] * sign < 0).all()
        assert missed.shape[1] > 0
        assert met.shape[1] + missed.shape[1] == 20
        near(np.concatenate([met[1], missed[1]]), row)
        assert {to_hex(each.get_facecolor()[0]) for each in (right, wrong)} == {color}
        assert abs(np.concatenate([met[0], missed[0]]).mean() - 1.2 * sign) < 1
        assert right.get_paths()[0].vertices.shape != wrong.get_paths()[0].vertices.shape
    spans = [(each.get_x(), each.get_x() + each.get_width(), to_hex(each.get_facecolor())) for each in axes.patches]
    assert spans == [(-4, 0, COLORS[1]), (0, 4, COLORS[0])]
    near([axes.get_xlim(), axes.get_yticks()], [[-4, 4], [0, 1]])
    for text, sign in zip(axes.texts, (-1, 1), strict=True):
        assert text.get_position()[0] * sign > 0
        assert text.get_text().endswith("−1" if sign < 0 else " 1")
        assert 1 < text.get_position()[1] < axes.get_ylim()[1]
    near(xy(axes.lines[0])[0], 0)
    near([xy(each)[1][0] for each in axes.lines[1:]], [0, 1])
    assert axes.lines[0].get_color() == INK


@pytest.mark.parametrize("p", [0.3, 0.6])
def test_distances_of_two_outcomes(p):
    axes = panel("distances_of_two_outcomes", **({} if p == 0.3 else {"p": p}))
    q = curve(axes, "total variation")[0]
    cross = -p * np.log(q) - (1 - p) * np.log(1 - q)
    entropy = stats.entropy([p, 1 - p])
    expected = {"L¹": 2 * abs(p - q), "L²": math.sqrt(2) * abs(p - q), "total": abs(p - q), "KL": cross - entropy,
                "cross": cross, "H(P)": entropy}  # fmt: skip
    for label, values in expected.items():
        near(curve(axes, label)[1], values)
    near(q, np.linspace(0.005, 0.995, 199))


def test_code_trees_have_the_lengths_that_the_two_rules_give():
    probs = coding.PROBS
    near(sum(probs), 1)
    heap = [(p, (index,)) for index, p in enumerate(probs)]
    huffman = [0] * len(probs)
    heapq.heapify(heap)
    while len(heap) > 1:
        (p, one), (q, other) = heapq.heappop(heap), heapq.heappop(heap)
        for index in one + other:
            huffman[index] += 1
        heapq.heappush(heap, (p + q, one + other))
    shannon = [math.ceil(-math.log2(p)) for p in probs]
    trees = panels("code_trees")
    deepest = max(*shannon, *huffman)
    for axes, name, expected in zip(trees, ("Shannon", "Huffman"), (shannon, huffman), strict=True):
        mean = sum(p * length for p, length in zip(probs, expected))
        assert axes.get_title() == f"{name}: {mean:.2f} bits on average"
        words = {}
        for letter, (leaf, told) in zip("abcdef", zip(axes.texts[-12::2], axes.texts[-11::2])):
            p, word = told.get_text().split("\n")
            across, down = leaf.get_position()
            assert leaf.get_text() == letter
            assert p == f"{probs['abcdef'.index(letter)]:.2f}"
            assert down == -len(word) == -expected["abcdef".index(letter)]
            near(told.get_position(), [across, down - 0.3])
            words[word] = across
        order = sorted(words)
        assert sorted(order, key=words.__getitem__) == order  # 0 is to the left
        assert not any(other.startswith(word) for word in order for other in order if other != word)
        ends = {tuple(np.round(xy(each)[:, 1], 6)) for each in axes.lines if each.get_linestyle() == ":"}
        unused = 1 - sum(2.0**-length for length in expected)
        near(sum(2.0**depth for _, depth in ends), unused)  # Kraft: what the dotted branches hold
        assert bool(ends) == (name == "Shannon")
        nodes = {tuple(np.round(xy(each)[:, 0], 6)) for each in axes.lines}
        assert len(axes.lines) == 2 * len(nodes)
        for x, y in nodes:  # a node in the middle of its branches, 0 to the left of 1
            left, right = sorted(
                xy(each)[0, 1] for each in axes.lines if np.allclose(xy(each)[:, 0], (x, y), atol=1e-5)
            )
            assert left + right == pytest.approx(2 * x, abs=1e-5)
            bits = [(text.get_position()[0], text.get_text()) for text in axes.texts
                    if text.get_text() in "01" and abs(text.get_position()[1] - (y - 0.5)) < 1e-6
                    and left < text.get_position()[0] < right]  # fmt: skip
            assert [bit for _, bit in sorted(bits)] == ["0", "1"]
        assert axes.get_ylim()[0] < -deepest - 0.3
        assert axes.get_ylim()[1] > 0
    entropy = stats.entropy(probs, base=2)
    assert f"{entropy:.2f} bits" in drawn("code_trees").figure._suptitle.get_text()
