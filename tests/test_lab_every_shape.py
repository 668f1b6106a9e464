"""Ellipses, arrows, bars and areas that the lab draws, read back from the picture, against numpy and what they mean."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from lab_picture import Read
from lab_states import exhibit_named
from quoin.lab.expressivity import CORNERS as CORNERS_OF_A_CURVE
from quoin.lab.probability import MEASURED

ROWS = np.array([[1.5, 0.6], [-1.1, -1.3], [0.4, 1.2], [-0.9, 0.1], [0.1, -0.6]])
AIM = ROWS @ [1.6, 1.1]


def view(page, slug, **state):
    return exhibit_named(page, slug).view(state)


def picture(page, slug, **state):
    return Read(view(page, slug, **state).picture.svg())


def numbers(page, slug, **state):
    return [number.value for number in view(page, slug, **state).numbers]


def coarse(frame):
    """How far off a place may be."""
    return 1.01 * max(frame.unit(0), frame.unit(1))


def distances(points, mean, covariance):
    """In standard deviations."""
    away = points - mean
    return np.sqrt(np.einsum("ni,ij,nj->n", away, np.linalg.inv(covariance), away))


# ---- ellipses ----------------------------------------------------------------------------------------------------


def test_the_ellipses_of_a_normal_are_one_and_two_deviations_out():
    read = picture("probability", "slice-it", shape=[1.2, 2.4])  # ρ is 0.6, σ is 1.2
    covariance = np.array([[1, 0.72], [0.72, 1.44]])
    for role, radius in (("ink", 1), ("hand", 2)):
        found = distances(read.values(0, role)[0], 0, covariance)
        assert found == pytest.approx(radius, abs=3 * coarse(read.frames[0]))


def test_the_ellipses_of_two_columns_and_the_mean_given_the_second():
    read, rows = picture("probability", "two-columns", known=1.5), np.array(MEASURED)
    mean, covariance = rows.mean(0), np.cov(rows.T)
    for radius, points in zip((1, 2, 3), read.values(0, "model"), strict=True):
        assert distances(points, mean, covariance) == pytest.approx(radius, abs=0.02)
    value = mean[1] + 1.5 * math.sqrt(covariance[1, 1])
    (((x, y),),) = read.values(0, "model", "circle")
    assert (x, y) == pytest.approx((np.polyval(np.polyfit(*rows.T[::-1], 1), value), value), abs=0.01)
    assert np.allclose(read.values(0, "faint")[0][:, 1], value, atol=0.01)
    assert np.allclose([each[0] for each in read.values(0, "hand", "circle")], rows, atol=0.01)


def test_contours_of_the_loss_and_the_circle_of_the_penalised_minimum():
    read = picture("regularisation", "pull", l2=0.7)
    frame = read.frames[0]
    for height, points in zip((0.03, 0.15, 0.5, 1.2, 2.5), read.values(0, "faint"), strict=True):
        losses = ((points @ ROWS.T - AIM) ** 2).mean(1) / 2
        assert losses == pytest.approx(height, rel=0.03, abs=0.004)
    best = np.linalg.solve(ROWS.T @ ROWS / 5 + 0.7 * np.eye(2), ROWS.T @ AIM / 5)
    ellipse = next(read.root.iter("ellipse"))
    per_unit = frame.box[2] / (frame.x[1] - frame.x[0])
    assert float(ellipse.attrib["rx"]) == pytest.approx(float(ellipse.attrib["ry"]), abs=0.11)
    assert float(ellipse.attrib["rx"]) / per_unit == pytest.approx(np.linalg.norm(best), abs=0.01)
    assert read.values(0, "model", "ellipse")[0] == pytest.approx(np.zeros((1, 2)), abs=coarse(frame))


def test_descent_with_decay_step_by_step():
    read, weights = picture("regularisation", "pull", l2=0.7, start=[-1.0, 2.0]), [np.array([-1.0, 2.0])]
    for _ in range(80):
        weights.append(weights[-1] - 0.3 * (ROWS.T @ (ROWS @ weights[-1] - AIM) / 5 + 0.7 * weights[-1]))
    path = read.values(0, "model", "path")[0]
    assert path == pytest.approx(np.array(weights), abs=coarse(read.frames[0]))
    dots = np.concatenate(read.values(0, "model", "circle"))
    assert dots == pytest.approx(np.array(weights), abs=coarse(read.frames[0]))


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0, 1000.0])
def test_the_ball_of_a_norm_and_the_two_ways(p):
    x, y = np.array([0.7, -0.4]), np.array([0.3, 1.1])
    read = picture("tensors", "balls", x=x.tolist(), y=y.tolist(), p=p)
    ball = next(each for each in read.marks(0, "model", "polygon") if each.title)
    on_it = read.frames[0].value(ball.points)
    sizes = abs(on_it).max(1) if p == 1000 else (abs(on_it) ** p).sum(1) ** (1 / p)
    assert sizes == pytest.approx(1, abs=0.05 if p < 1 else 0.02)
    tips = [(start, tip) for start, tip in read.arrows(0)]
    expected = [(0 * x, x + y), (0 * x, x), (x, x + y)]
    for (start, tip), (begin, end) in zip(tips, expected, strict=True):
        assert np.allclose([start, tip], [begin, end], atol=coarse(read.frames[0]))


@pytest.mark.parametrize("p", [0.7, 1.0, 2.0, 6.0])
def test_two_vectors_of_one_direction_have_no_detour(p):
    # where rounding would say that it is shorter
    for size in np.linspace(0.1, 1.6, 16):
        state = {"x": [size, size], "y": [1.4988189700551222] * 2, "p": p}
        assert numbers("tensors", "balls", **state)[0] == 0


def test_a_line_without_noise_leaves_no_risk():
    # where rounding would leave 1e-31
    assert numbers("linear", "the-best-guess", middle=[-2.0, 0.0], bend=0.0, noise=0.0)[:2] == [0, 0]


def test_a_matrix_moves_the_circle_and_a_vector_again_and_again():
    A = np.array([[1.2, -0.5], [0.6, 1.4]])
    read = picture("tensors", "again-and-again", first=A[:, 0].tolist(), second=A[:, 1].tolist(), steps=5)
    small = 2 * coarse(read.frames[0])
    assert np.linalg.norm(read.values(0, "faint")[0], axis=1) == pytest.approx(1, abs=small)
    image = np.linalg.solve(A, read.values(0, "model")[0].T)
    assert np.linalg.norm(image, axis=0) == pytest.approx(1, abs=2 * small)
    vectors = [np.array([-0.6, 0.8])]
    for _ in range(5):
        vectors.append(A @ vectors[-1] / np.linalg.norm(A @ vectors[-1]))
    arrows = [*read.arrows(0, "hidden"), *read.arrows(0, "ink")]
    for (start, tip), vector in zip(arrows, vectors, strict=True):
        assert np.allclose([start, tip], [[0, 0], vector], atol=small)


def test_gershgorin_discs_are_around_the_diagonal_as_wide_as_the_rest_of_their_row():
    read = picture("tensors", "again-and-again", first=[1.2, 0.6], second=[-0.5, 1.4])
    per_unit = read.frames[1].box[2] / 10
    discs = list(read.root.iter("ellipse"))
    assert [float(each.attrib["rx"]) / per_unit for each in discs] == pytest.approx([0.5, 0.6], abs=0.01)
    centers = [read.frames[1].value([[float(each.attrib["cx"]), float(each.attrib["cy"])]])[0] for each in discs]
    assert np.allclose(centers, [[1.2, 0], [1.4, 0]], atol=coarse(read.frames[1]))


@pytest.mark.parametrize(("d", "position"), [(8, 3), (16, 11)])
def test_the_hands_of_the_clocks(d, position):
    read = picture("positions", "clocks", d=d, position=position)
    for clock in range(d // 2):
        angle = position / 10000 ** (2 * clock / d)
        ((start, tip),) = read.arrows(clock)
        assert np.allclose([start, tip], [[0, 0], [math.sin(angle), math.cos(angle)]], atol=0.01)


# ---- bars and areas ----------------------------------------------------------------------------------------------


def bars(read, number, role):
    """Middle, width, foot and top of each bar."""
    found = []
    for points in read.values(number, role, "rect"):
        (left, top), (right, foot) = points
        found.append(((left + right) / 2, right - left, foot, top))
    return np.array(found).T


def test_bars_of_a_die_and_of_the_sum():
    heights, n = [0.2, 0.4, 0.6, 0.8, 0.5, 0.1], 5
    read = picture("probability", "your-die", faces=[[i + 1, h] for i, h in enumerate(heights)], n=n)
    middle, _, foot, top = bars(read, 0, "hand")
    assert middle == pytest.approx(range(1, 7), abs=0.02)
    assert top == pytest.approx(heights, abs=0.004)
    assert foot == pytest.approx(0, abs=0.004)
    p, total = np.array(heights) / sum(heights), np.ones(1)
    for _ in range(n):
        total = np.convolve(total, p)
    sums = np.arange(n, 6 * n + 1)
    middle, width, _, top = bars(read, 1, "ink")
    shown = np.isin(sums, middle.round())
    assert middle == pytest.approx(sums[shown], abs=0.05)
    assert width == pytest.approx(0.7, abs=0.05)
    # a bar of next to no height is still half a unit of the sheet high
    assert top == pytest.approx(total[shown], abs=6 * read.frames[1].unit(1))
    center, spread = p @ range(1, 7) * n, math.sqrt(n * (p @ np.arange(1, 7) ** 2 - (p @ range(1, 7)) ** 2))
    assert np.array_equal(sums[shown], sums[abs(sums - center) <= 4 * spread + 1])


@pytest.mark.parametrize("std", [1e-3, 1.0])
def test_the_eight_outputs_of_batch_norm(std):
    read = picture("normalisation", "epsilon", std=std)
    middle, _, foot, top = bars(read, 1, "model")
    output = np.where(abs(top) > abs(foot), top, foot)
    assert middle == pytest.approx(range(8), abs=0.05)
    assert output.mean() == pytest.approx(0, abs=0.02)
    assert output.var() == pytest.approx(std**2 / (std**2 + 1e-5), abs=0.02)
    assert output.std() * 2 < 2.5


def entropy(p):
    p = np.asarray(p, dtype=float).ravel()
    return -(p[p > 0] * np.log2(p[p > 0])).sum()


def test_two_entropies_overlap_by_what_is_shared():
    table = np.array([[4, 1, 0], [1, 3, 2], [0, 1, 2]])
    read, p = picture("information", "what-do-they-share", table=table.ravel().tolist()), table / table.sum()
    areas = [read.frames[1].value(each.points)[:, 0] for each in read.marks(1, tag="polygon")]
    h_x, h_y, both = entropy(p.sum(1)), entropy(p.sum(0)), entropy(p)
    shared, small = h_x + h_y - both, 2 * coarse(read.frames[1])
    expected = [(0, h_x), (h_x - shared, both), (h_x - shared, h_x)]
    assert [(each.min(), each.max()) for each in areas] == [pytest.approx(each, abs=small) for each in expected]


def test_letters_are_as_wide_as_their_bits():
    text = "abracadabra"
    read = picture("information", "four-ways", text=text)
    counts = np.array([text.count(letter) for letter in text])
    rows = [[np.ptp(each.points[:, 0]) for each in read.marks(number, tag="polygon")] for number in range(4)]
    unit = rows[0][0] / 8  # a byte has eight bits
    assert np.array(rows[0]) / unit == pytest.approx(8, abs=0.05)
    arithmetic = next(
        row for row in rows if np.array(row) / unit == pytest.approx(-np.log2(counts / len(text)), abs=0.05)
    )
    huffman = np.array(rows[1]) / unit
    assert huffman.round() == pytest.approx(huffman, abs=0.05)
    assert sum(arithmetic) < sum(rows[1]) < sum(rows[0])
    for number in range(4):  # next to each other
        edges = [(each.points[:, 0].min(), each.points[:, 0].max()) for each in read.marks(number, tag="polygon")]
        assert all(a[1] == pytest.approx(b[0], abs=0.11) for a, b in itertools.pairwise(edges))


def test_the_tree_of_a_code_is_as_deep_as_its_words_are_long():
    weights = [1, 1, 2, 3, 5, 8, 13, 21]
    found = view("information", "halve-it", weights=[[place, weight] for place, weight in enumerate(weights)])
    read = Read(found.picture.svg())
    leaves = [points[0] for points in read.values(1, tag="circle")]
    assert sorted(-y for _, y in leaves) == pytest.approx([1, 2, 3, 4, 5, 6, 7, 7], abs=0.05)
    p = np.array(weights) / sum(weights)
    assert found.numbers[0].value == pytest.approx(p @ [7, 7, 6, 5, 4, 3, 2, 1])
    middle, _, _, top = bars(read, 0, "hand")
    assert middle == pytest.approx(range(8), abs=0.05)
    assert top == pytest.approx(weights, abs=0.1)


def test_the_bound_and_the_gap_meet_at_the_evidence():
    bound, evidence, _ = numbers("latent", "the-bound", q=[0.4, 0.9])
    read = picture("latent", "the-bound", q=[0.4, 0.9])
    known, missing = (read.frames[2].value(each.points)[:, 0] for each in read.marks(2, tag="polygon"))
    small = 2 * coarse(read.frames[2])
    assert (known.min(), known.max()) == pytest.approx((-7, bound), abs=small)
    assert (missing.min(), missing.max()) == pytest.approx((bound, evidence), abs=small)
    # x is z plus noise of deviation 0.7, so N(0, 1.49); the gap is the divergence from the posterior
    assert evidence == pytest.approx(stats.norm.logpdf(1.5, 0, math.sqrt(1.49)))
    mean, std = 1.5 / 1.49, 0.7 / math.sqrt(1.49)
    gap = math.log(std / 0.9) + (0.81 + (0.4 - mean) ** 2) / (2 * std**2) - 0.5
    assert evidence - bound == pytest.approx(gap)


def test_the_judge_sends_the_generator_as_far_as_its_slope_says():
    for place in (1.0, 2.5):
        _, flat, steep = numbers("generative", "best-discriminator", place=place)
        arrows = picture("generative", "best-discriminator", place=place).arrows(0, "change")
        for slope, ((x, y), (tip, level)) in zip((flat, steep), arrows, strict=True):
            assert (x, level) == pytest.approx((place, y), abs=0.02)
            assert tip - x == pytest.approx(-math.copysign(min(abs(slope), 5), slope), abs=0.03)


# ---- lines by what they mean -------------------------------------------------------------------------------------


def test_every_square_has_its_residual_for_a_side():
    read = picture("linear", "pull-a-point")
    squares = read.marks(0, "change", "polygon")
    residuals = [np.ptp(points[:, 1]) for points in read.values(0, "change")]
    for square, residual in zip(squares, residuals, strict=True):
        across, up = np.ptp(square.points, axis=0)
        assert across == pytest.approx(up, abs=0.21)
        assert np.ptp(read.frames[0].value(square.points)[:, 1]) == pytest.approx(residual, abs=0.01)


def test_no_line_through_two_points_has_less_absolute_error_than_the_dashed_one():
    points = np.array(exhibit_named("linear", "pull-a-point").initial()["points"])
    slope = numbers("linear", "pull-a-point")[2]
    ((x0, y0), (x1, y1)) = picture("linear", "pull-a-point").values(0, "ink")[0]
    assert (y1 - y0) / (x1 - x0) == pytest.approx(slope, abs=0.01)
    errors = {
        (b[1] - a[1]) / (b[0] - a[0]): abs(points[:, 1] - a[1] - (b[1] - a[1]) / (b[0] - a[0]) * (points[:, 0] - a[0]))
        .sum()
        for a, b in itertools.combinations(points, 2)
    }  # fmt: skip
    best = min(errors, key=errors.__getitem__)
    assert slope == pytest.approx(best, abs=1e-6)


def test_the_network_is_the_curve_and_the_sum_of_its_hinges():
    read, corners = picture("expressivity", "hinges"), np.array(CORNERS_OF_A_CURVE)
    curve = read.values(0, "model")[0]
    within = (curve[:, 0] >= corners[0, 0]) & (curve[:, 0] <= corners[-1, 0])
    assert curve[within, 1] == pytest.approx(np.interp(curve[within, 0], *corners.T), abs=0.06)
    hinges = np.array([points[:, 1] for points in read.values(1, "model")])
    offset = curve[:, 1] - hinges.sum(0)
    assert offset == pytest.approx(offset.mean(), abs=0.06 * len(hinges))
    below = [each.title for each in read.marks(1, "model", "path")]
    assert below == [f"unit {number + 1}" for number in range(len(hinges))]


@pytest.mark.parametrize("known", ["its slope", "its curvature"])
def test_a_certified_network_stays_in_its_band(known):
    read = picture("expressivity", "draw-a-curve", eps=0.1, known=known)
    curve, network = read.values(0, "ink")[0], read.values(0, "model")[0]
    (band,) = (read.frames[0].value(each.points) for each in read.marks(0, "model", "polygon"))
    small = 2 * read.frames[0].unit(1)
    assert abs(curve - network)[:, 1].max() <= 0.1 + small
    half = len(band) // 2
    assert band[:half, 1] == pytest.approx(curve[:, 1] + 0.1, abs=small)
    assert band[half:, 1][::-1] == pytest.approx(curve[:, 1] - 0.1, abs=small)
    assert read.values(1, "change")[0][:, 1] == pytest.approx(abs(curve - network)[:, 1], abs=small)
    heights = exhibit_named("expressivity", "draw-a-curve").initial()["curve"]
    assert np.interp([x for x, _ in heights], *curve.T) == pytest.approx([y for _, y in heights], abs=0.02)


def test_bars_of_the_typewriter_and_visits():
    n, omega = 40, 0.31
    read = picture("probability", "the-typewriter", n=n, omega=omega)
    strokes = [(j / m, (j + 1) / m) for m in range(2, 12) for j in range(m)][:n]
    areas = [read.frames[0].value(each.points) for each in read.marks(0, tag="polygon")]
    spans = [(each[:, 0].min(), each[:, 0].max(), each[:, 1].mean()) for each in areas]
    expected = [(a, b, number) for number, (a, b) in enumerate(strokes, start=1)]
    assert np.allclose(spans, expected, atol=[0.001, 0.001, 0.05])
    seen = np.cumsum([a <= omega < b for a, b in strokes])
    assert read.values(1, "model")[0] == pytest.approx(np.stack([np.arange(1, n + 1), seen], 1), abs=0.05)
    lit = ["--model" in each.style for each in read.marks(0, tag="polygon")]
    assert lit == [a <= omega < b for a, b in strokes]


def test_the_stable_edge_and_the_iterates_of_momentum():
    product, m = 1.4, 0.6
    read = picture("optimisation", "the-map-of-momentum", dot=[product, m])
    edge = read.values(0, "model")[0]
    inside = edge[edge[:, 0] < 3.9]
    assert inside[:, 0] == pytest.approx(2 * (1 + inside[:, 1]), abs=4 / 160 + 0.01)
    x, velocity, xs = 1.0, 0.0, [1.0]
    for _ in range(40):
        velocity = m * velocity + x
        x -= product * velocity
        xs.append(x)
    found = read.values(1, "model")[0]
    assert found == pytest.approx(np.stack([np.arange(41), xs], 1), abs=2 * coarse(read.frames[1]))


def test_posterior_and_best_path_of_two_hidden_states_by_all_paths():
    exhibit = exhibit_named("chains", "what-was-hidden")
    seen = np.array(exhibit.initial()["seen"])[:, 1]
    stay = exhibit.initial()["stay"]
    read = picture("chains", "what-was-hidden")
    paths = np.array(list(itertools.product((0, 1), repeat=10)))

    # twenty days are two halves of ten: all paths of both, joined by what the halves begin and end with
    def log_weights(values, first):
        emitted = stats.norm.logpdf(values, 2 * paths - 1).sum(1)
        kept = (paths[:, 1:] == paths[:, :-1]).sum(1)
        return emitted + kept * math.log(stay) + (9 - kept) * math.log(1 - stay) + first

    early, late = log_weights(seen[:10], math.log(0.5)), log_weights(seen[10:], 0)
    join = np.where(paths[:, -1][:, None] == paths[:, 0], math.log(stay), math.log(1 - stay))
    joint = early[:, None] + late + join
    weights = np.exp(joint - joint.max())
    weights /= weights.sum()
    windy = np.concatenate([weights.sum(1) @ paths, weights.sum(0) @ paths])
    _, _, _, top = bars(read, 1, "hidden")
    assert top == pytest.approx(windy, abs=0.006)
    a, b = np.unravel_index(joint.argmax(), joint.shape)
    best = np.concatenate([paths[a], paths[b]])
    assert read.values(1, "model")[0][:, 1].round().astype(int).tolist() == best.tolist()
    states = np.concatenate(read.values(1, "ink", "circle"))[:, 1].round().astype(int)
    assert states.tolist() == (windy > 0.5).astype(int).tolist()
