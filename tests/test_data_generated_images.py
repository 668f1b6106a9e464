"""Glyphs and shapes: balanced classes that can be told apart, attributes that are true of the pixels, a function of the
seed."""

import itertools
import math

import numpy as np
import pytest
import torch
from matplotlib.path import Path as Outline
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from torch.nn import functional

from commands import tried
from quoin import plot
from quoin.data import glyphs, load, make_glyphs, make_shapes, shapes
from quoin.errors import UserError


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def letters():
    return make_glyphs(1200, generator=rng())


@pytest.fixture(scope="module")
def figures():
    return make_shapes(800, generator=rng())


@pytest.mark.parametrize(("make", "levels"), [(make_glyphs, 17), (make_shapes, 256)])
def test_classes_are_equally_many_and_values_have_levels(make, levels):
    dataset = make(301, generator=rng(5)).dataset
    counts = torch.bincount(dataset.targets, minlength=dataset.num_classes)
    assert counts.max() - counts.min() <= 1
    assert counts.sum() == 301
    counted = dataset.features * (levels - 1)
    torch.testing.assert_close(counted, counted.round(), rtol=0, atol=1e-4)
    assert dataset.features.min() >= 0
    assert dataset.features.max() <= 1
    assert not torch.equal(dataset.targets, dataset.targets.sort().values)


@pytest.mark.parametrize("name", ["glyphs", "shapes"])
def test_the_seed_and_the_number_decide(name):
    first = load(f"{name}:120", seed=1)
    assert first.name == f"{name}:120"
    assert first.num_rows == 120
    assert load(f"{name}:120", seed=1).fingerprint == first.fingerprint
    assert load(f"{name}:1_20", seed=2).fingerprint != first.fingerprint
    for wrong in ("", "0", "99", "-5", "1e3", "10000001", "²", "9" * 40):
        with pytest.raises(UserError, match=f"from 100 to 10,000,000.*write e.g. {name}:20000"):
            load(f"{name}:{wrong}")


@pytest.mark.parametrize("make", [make_glyphs, make_shapes])
def test_no_image_is_none(make):
    with pytest.raises(UserError, match="expected at least one image, got 0"):
        make(0, generator=rng())


# ---- glyphs -----------------------------------------------------------------------------------------------------


def test_glyphs_are_white_on_black_and_inside(letters):
    images = letters.dataset.features[:, 0]
    assert letters.dataset.image_shape == (1, 28, 28)
    assert images.amax((1, 2)).min() > 0.9  # even a hairline reaches white somewhere
    ink = images.mean((1, 2))
    assert 0.02 < ink.min() < ink.max() < 0.5
    border = torch.cat([images[:, [0, -1]].flatten(1), images[:, :, [0, -1]].flatten(1)], dim=1)
    assert border.max() < 0.2


def test_glyphs_are_centred_but_for_their_shift(letters):
    images, pixels = letters.dataset.features[:, 0], torch.arange(28) - 13.5
    covered = images > 0.25
    # the middle of the box around the ink
    across = torch.where(covered.any(1), pixels, math.nan)
    down = torch.where(covered.any(2), pixels, math.nan)
    middle = torch.stack(
        [(each.nan_to_num(-99).amax(1) + each.nan_to_num(99).amin(1)) / 2 for each in (across, down)], 1
    )
    apart = (middle - letters.shift).abs().amax(1)
    assert apart.median() < 0.6
    assert apart.max() < 4.5  # the box around a slanted L is another than the slanted box around an L
    assert (middle - letters.shift).mean(0).abs().max() < 0.35
    assert letters.shift.abs().max() <= 2
    assert letters.shift.std() > 0.8


def test_slant_and_rotation_go_where_they_say(letters):
    """The top of an upright H lies to the right of its bottom by slant - rotation of the height, to first order."""
    upright = [not any(word in font for word in ("Obl", "Ita", "ti10")) for font in letters.fonts]
    chosen = torch.tensor([ok and char in "HNIXOSZ80xoz" for ok, char in zip(upright, letters.characters)])
    images, pixels = letters.dataset.features[chosen, 0], torch.arange(28.0)
    mass = images.sum((1, 2))
    x, y = ((images * pixels).sum((1, 2)) / mass, (images * pixels[:, None]).sum((1, 2)) / mass)
    dx, dy = pixels[None, None] - x[:, None, None], pixels[None, :, None] - y[:, None, None]
    lean = -(images * dx * dy).sum((1, 2)) / (images * dy**2).sum((1, 2))  # slope of x on height
    assert len(lean) > 100
    # for N and Z, strokes lean by themselves: compare each character with its own mean
    characters = np.array(letters.characters)[chosen.numpy()]
    stated = (letters.slant - letters.rotation)[chosen]
    for character in set(characters):
        mine = torch.from_numpy(characters == character)
        lean[mine] -= lean[mine].mean()
        stated[mine] -= stated[mine].mean()
    assert np.corrcoef(lean, stated)[0, 1] > 0.8
    slope = (lean * stated).sum() / (stated**2).sum()
    assert 0.7 < slope < 1.3


def test_weight_and_scale_make_more_ink(letters):
    ink = letters.dataset.features.sum((1, 2, 3)).log()
    design = torch.stack([letters.weight, letters.scale.log(), torch.ones(len(ink))], dim=1)
    for bold in (False, True):
        rows = torch.tensor([("Bol" in font or font == "cmb10") == bold for font in letters.fonts])
        weight, scale, _ = torch.linalg.lstsq(design[rows], ink[rows][:, None]).solution[:, 0].tolist()
        # 0.1 pixels on each side of strokes of 2 to 4 pixels, and of their ends
        assert 0.3 < weight < 1.2
        assert 1 < scale < 3  # the area, for a given weight


def test_glyphs_of_a_class_are_its_characters(letters):
    names = letters.dataset.class_names
    drawn = [names[label] for label in letters.dataset.targets.tolist()]
    assert all(char in (name, name.lower()) for char, name in zip(letters.characters, drawn))
    assert "l" not in letters.characters
    both = {char for char, name in zip(letters.characters, drawn) if char != name}
    assert both == set("cijkmopsuvwxyz")
    assert set(letters.fonts) == set(glyphs._FONTS)


def test_glyphs_can_be_told_apart_by_a_line_and_by_a_neighbour(letters):
    images, labels = letters.dataset.features.flatten(1).numpy(), letters.dataset.targets.numpy()
    train, test = slice(900), slice(900, None)
    near = KNeighborsClassifier(1).fit(images[train], labels[train])
    assert near.score(images[test], labels[test]) > 0.35  # chance is 1 of 47


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_linear_classifier_learns_glyphs():
    data = load("glyphs")
    images, labels = data.features.flatten(1).numpy(), data.targets.numpy()
    linear = LogisticRegression(max_iter=50).fit(images[:4500], labels[:4500])
    assert linear.score(images[4500:], labels[4500:]) > 0.7


def test_a_plot_of_as_many_classes_has_room(letters):
    """It did not: the layout collapsed under a legend of 47 lines, with a warning."""
    names = letters.dataset.class_names
    points = plot.scatter_by_class({name: [[n % 7, n // 7]] for n, name in enumerate(names)})
    (axes,) = points.figure.axes
    assert axes.get_window_extent().height > 0.6 * points.figure.bbox.height
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(names)


def test_a_drawing_without_change_is_the_fonts_own():
    """With the identity and weight 0, the image is the font's drawing averaged down, but for the blur's roundness."""
    drawn = glyphs._drawings().images[0, 10:30, None]
    same = glyphs._transform(drawn, torch.eye(2).expand(20, 2, 2), torch.zeros(20, 2), torch.zeros(20))
    plain = functional.avg_pool2d(drawn, glyphs._FINE)
    assert (same - plain).abs().mean() < 0.02
    torch.testing.assert_close(same.sum((1, 2, 3)), plain.sum((1, 2, 3)), rtol=0.05, atol=0)
    # moved by whole pixels, it is the same image elsewhere
    moved = glyphs._transform(
        drawn, torch.eye(2).expand(20, 2, 2), torch.tensor([3.0, -2.0]).expand(20, 2), torch.zeros(20)
    )
    torch.testing.assert_close(moved[:, :, :-2, 3:], same[:, :, 2:, :-3], rtol=0, atol=1.01 / 16)


def test_missing_fonts_are_one_line(monkeypatch, tmp_path):
    monkeypatch.setattr(glyphs, "_font_folder", lambda: tmp_path)
    with pytest.raises(UserError, match="reinstall matplotlib"):
        glyphs._drawings.__wrapped__()


# ---- shapes -----------------------------------------------------------------------------------------------------


def crescent_area() -> float:
    """π - the lens that circles of radius 1 and 0.82 at distance 0.42 have in common."""
    R, r, d = 1.0, 0.82, 0.42
    a = r * r * math.acos((d * d + r * r - R * R) / (2 * d * r)) + R * R * math.acos(
        (d * d + R * R - r * r) / (2 * d * R)
    )
    b = 0.5 * math.sqrt((-d + r + R) * (d + r - R) * (d - r + R) * (d + r + R))
    return math.pi - (a - b)


AREAS = {  # of radius 1
    "circle": math.pi,
    "square": 2.0,
    "triangle": 3 * math.sqrt(3) / 4,
    "star": 5 * 0.45 * math.sin(math.pi / 5),
    "cross": 2 * 1.9 * 0.6 - 0.36,
    "ring": math.pi * (1 - 0.56**2),
    "heart": 180 * math.pi / 17.5**2,
    "crescent": crescent_area(),
}


def test_figures_have_the_area_that_geometry_gives_them():
    side = torch.linspace(-1.2, 1.2, 401)
    grid = torch.stack(torch.meshgrid(side, side, indexing="xy"), dim=-1)
    assert shapes._FIGURES.keys() == AREAS.keys()
    for name, distance_of in shapes._FIGURES.items():
        inside = distance_of(grid) < 0
        assert inside.double().mean() * 2.4**2 * (401 / 400) ** 2 == pytest.approx(AREAS[name], rel=0.02), name
        assert grid[inside].norm(dim=-1).max() < 1.05, name  # no figure reaches beyond its radius


def test_the_first_corner_is_at_the_top_and_the_next_to_its_right():
    (x, y), (right, below) = shapes._turning(4)[:2]  # in images, where y grows downwards
    assert (x, y) == pytest.approx((0.0, -1.0))
    assert (right, below) == pytest.approx((1.0, 0.0))


def test_the_distance_to_a_polygon_is_the_nearest_point_of_its_outline():
    corners = shapes._turning(10, (1.0, 0.45))
    points = 2.4 * torch.rand(300, 2, generator=rng()) - 1.2
    found = shapes._polygon(corners)(points)
    closed = np.array([*corners, corners[0]])
    steps = np.linspace(0, 1, 400)[:, None]
    outline = np.concatenate([a + steps * (b - a) for a, b in itertools.pairwise(closed)])
    nearest = np.linalg.norm(points.numpy()[:, None] - outline, axis=-1).min(1)
    assert np.allclose(found.abs().numpy(), nearest, atol=0.002)
    inside = Outline(closed).contains_points(points.numpy())
    assert np.array_equal(found.numpy() < 0, inside)


def test_attributes_are_true_of_the_pixels(figures):
    data = figures.dataset
    bright = data.features.amax(1)
    covered = bright > 0.45  # brighter than any ground, darker than any figure
    assert ((bright < 0.37) | covered).float().mean() > 0.95  # what is left is the outline
    area = covered.sum((1, 2)) / figures.radius**2
    pixels = torch.arange(32) + 0.5
    for label, name in enumerate(data.class_names or ()):
        mine = data.targets == label
        assert area[mine].mean() == pytest.approx(AREAS[name], rel=0.12), name
        if name in ("circle", "square", "star", "cross", "ring"):  # symmetric ones: their middle is their centroid
            ink = covered[mine].float()
            total = ink.sum((1, 2))
            middle = (
                torch.stack([(ink * pixels).sum((1, 2)), (ink * pixels[:, None]).sum((1, 2))], dim=1) / total[:, None]
            )
            assert (middle - figures.center[mine]).abs().max() < 0.5, name
    border = torch.cat([covered[:, [0, -1]].flatten(1), covered[:, :, [0, -1]].flatten(1)], dim=1)
    assert not border.any()


def test_figures_have_their_colour_and_stand_out(figures):
    data = figures.dataset
    inside = (data.features.amax(1, keepdim=True) > 0.6).float()
    mean = (data.features * inside).sum((2, 3)) / inside.sum((2, 3))
    colors = torch.tensor(list(shapes._COLORS.values()))
    assert torch.cdist(mean, colors).argmin(1).eq(figures.color).float().mean() > 0.97
    assert figures.color_names == tuple(shapes._COLORS)
    assert (mean - figures.background).norm(dim=1).min() > 0.35


def test_figures_can_be_told_apart_once_they_are_put_upright(figures):
    """Undoing position, size and rotation by the attributes leaves nothing but the shape."""
    data, reach = figures.dataset, figures.radius / 16 * 1.1
    cos, sin = figures.rotation.cos() * reach, figures.rotation.sin() * reach
    back = torch.stack([cos, -sin, figures.center[:, 0] / 16 - 1, sin, cos, figures.center[:, 1] / 16 - 1], dim=1)
    grid = functional.affine_grid(back.reshape(-1, 2, 3), [data.num_rows, 3, 16, 16], align_corners=False)
    upright = functional.grid_sample(data.features, grid, align_corners=False).amax(1)
    images, labels = (upright > 0.5).flatten(1).numpy(), data.targets.numpy()
    near = KNeighborsClassifier(1).fit(images[:400], labels[:400])
    assert near.score(images[400:], labels[400:]) > 0.97


@pytest.mark.deep
@pytest.mark.parametrize("data", ["glyphs:200", "shapes:200"])
@pytest.mark.parametrize(
    "words",
    [
        ("softmax-regression",),
        ("lenet",),
        ("resnet",),
        ("vit",),
        ("vae", "--num-samples", 8, "--num-importance-samples", 2),
        ("vae-conv", "--num-samples", 8, "--num-importance-samples", 2),
        ("gan", "--num-samples", 8),
        ("pixelcnn", "--num-samples", 2, "--num-layers", 1, "--channels", 8),
        ("diffusion-digits", "--num-samples", 2, "--num-steps", 4),
    ],
    ids=lambda words: words[0],
)
def test_every_image_recipe_takes_them(words, data, tmp_path):
    code, _, err = tried("train", *words, "--data", data, "--max-steps", 2, "--runs", tmp_path, "--json")
    if words[0] == "pixelcnn" and data.startswith("shapes"):  # its model is of grey levels, and it says so
        assert code == 2
        assert "expected grey images" in err
    else:
        assert code == 0, err
