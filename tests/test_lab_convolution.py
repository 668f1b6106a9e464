"""The page on convolution: what each exhibit shows, held against scipy, plain loops and a run trained in the test."""

import io
import random

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import signal

from lab_states import drawn
from quoin.errors import UserError
from quoin.lab import convolution
from quoin.lab.parts import exhibit_of
from quoin.lab.parts.image_pictures import own_image, painted, ring
from quoin.runs import Run
from quoin.runs.catalog import find_recipe
from quoin.runs.fit import fit_recipe
from quoin.runs.run_config import RunConfig
from quoin.runs.run_label import RunLabel

SLIDE = exhibit_of(convolution.slide_it)
SHIFT = exhibit_of(convolution.shift_it)
COUNT = exhibit_of(convolution.count_it)
INSIDE = exhibit_of(convolution.inside_a_cnn)


def states():
    chance = random.Random(1)
    yield list(convolution.IMAGE), list(convolution.KERNEL), (3, 1)
    yield [0] * 144, list(convolution.KERNEL), (0, 0)
    yield [1] * 144, [2] * 9, (9, 9)
    for _ in range(3):
        yield (
            [chance.randrange(2) for _ in range(144)],
            [chance.randrange(3) for _ in range(9)],
            (
                chance.randrange(10),
                chance.randrange(10),
            ),
        )


@pytest.mark.parametrize(("image", "kernel", "at"), list(states()))
def test_a_window_against_scipy(image, kernel, at):
    x, weight = (
        np.array(image, float).reshape(12, 12),
        np.array([(0, 1, -1)[each] for each in kernel], float).reshape(3, 3),
    )
    column, row = at
    state = {"image": image, "kernel": kernel, "window": [column + 1.5, 12 - row - 1.5]}
    layer, flipped = signal.correlate2d(x, weight, "valid"), signal.convolve2d(x, weight, "valid")
    right, printed = SLIDE.view(state), SLIDE.view({**state, "printed": True})
    assert right.numbers[0].value == pytest.approx(layer[row, column], abs=1e-5)
    assert printed.numbers[0].value == pytest.approx(flipped[row, column], abs=1e-5)
    assert right.numbers[1].value == pytest.approx(0, abs=1e-5)
    assert printed.numbers[1].value == pytest.approx(np.abs(layer - flipped).max(), abs=1e-5)
    assert len(right.picture.svg()) < 150_000


@pytest.mark.parametrize("by", [(2, 0), (-3, -7), (8, 3), (1, 1), (5, -2), (0, 0)])
def test_what_moves_along(by):
    for layer in convolution.LAYERS:
        state = {"by": list(map(float, by)), "layer": layer}
        x = painted(convolution.IMAGE, 12)
        moved = torch.roll(x, (-by[1], by[0]), (0, 1))
        before, after = (convolution.layer_of(layer, each)[0, 0].numpy() for each in (x, moved))
        step = 12 // len(before)
        expected = np.roll(before, (-(by[1] // step), by[0] // step), (0, 1))
        size = max(1.0, np.abs(after).max(), np.abs(before).max())  # a shift does not change it
        assert SHIFT.view(state).numbers[0].value == pytest.approx(np.abs(after - expected).max() / size, abs=1e-5)
        stays = SHIFT.view({**state, "printed": True}).numbers[0].value
        assert stays == pytest.approx(np.abs(after - before).max() / size, abs=1e-5)


def test_where_equivariance_ends():
    def off(layer, by):
        return SHIFT.view({"by": list(map(float, by)), "layer": layer}).numbers[0].value

    assert off("circular padding", (3, -5)) < 1e-5
    assert off("zero padding", (1, 0)) < 1e-5  # the letter stays away from the border
    assert off("zero padding", (6, 0)) > 0.1
    for layer in ("stride 2", "max pooling", "average pooling"):
        assert off(layer, (4, -2)) < 1e-5
        assert off(layer, (3, 0)) > 0.1
    assert SHIFT.view({"printed": True}).reached
    assert not SHIFT.view({"printed": True, "by": [0.0, 0.0]}).reached


def test_the_layers_are_torchs():
    x = painted(convolution.IMAGE, 12)
    kernel = np.array([[1.0, 0.5, -1.0], [1.5, 0.0, -1.5], [1.0, -0.5, -1.0]])
    around = signal.correlate2d(x.numpy(), kernel, "same", boundary="wrap")
    blocks = around.reshape(6, 2, 6, 2)
    found = {name: convolution.layer_of(name, x)[0, 0].numpy() for name in convolution.LAYERS}
    assert np.allclose(found["circular padding"], around, atol=1e-5)
    assert np.allclose(found["zero padding"], signal.correlate2d(x.numpy(), kernel, "same"), atol=1e-5)
    assert np.allclose(found["stride 2"], around[::2, ::2], atol=1e-5)
    assert np.allclose(found["max pooling"], blocks.max(axis=(1, 3)), atol=1e-5)
    assert np.allclose(found["average pooling"], blocks.mean(axis=(1, 3)), atol=1e-5)


@pytest.mark.parametrize("n", [3, 8, 12, 5])
@pytest.mark.parametrize("padding", range(4))
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_sizes_counted_one_by_one(n, padding, stride):
    positions = sum(start + 3 <= n + 2 * padding for start in range(0, n + 2 * padding, stride))
    state = {"end": [float(n), 0.0], "padding": padding, "stride": stride}
    right, printed = COUNT.view(state), COUNT.view({**state, "printed": True})
    assert [number.text for number in right.numbers[:2]] == [str(positions)] * 2
    assert right.numbers[2].text == f"{positions * n} instead of 3"
    assert printed.numbers[0].text == str((n - 3 + padding + stride) // stride)
    assert printed.reached == (printed.numbers[0].text != str(positions))
    assert not right.reached


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder, recipe = tmp_path_factory.mktemp("lab"), find_recipe("inductive-bias")
    options = recipe.options(num_rows=(100,), epochs=1)
    fit_recipe(recipe, options, RunConfig(), folder, label=RunLabel(name="run"), show_progress=False)
    return Run.open(folder / "run")


def test_inside_a_network(run):
    digit = list(ring(32))
    view = INSIDE.view({"digit": digit}, models={"run": run})
    counts = np.array(digit).reshape(8, 4, 8, 4).sum(axis=(1, 3)).astype(np.float32)
    assert counts.max() <= 16
    probabilities = run.predict(torch.from_numpy(counts).reshape(1, 64)).probabilities[0]
    assert view.numbers[0].value == pytest.approx(float(probabilities.max()))
    assert view.numbers[0].label == f"P(a {int(probabilities.argmax())})"
    scaled = run.trained.feature_scaler.transform(torch.from_numpy(counts).reshape(1, 1, 8, 8))
    for layer, stop in (("first", 2), ("second", 5)):
        maps = run.model.features[:stop](scaled)[0].detach()
        for channel, unit in ((1, (0.0, 0.0)), (7, (0.999, 0.999)), (32, (0.6, 0.3))):
            state = {"digit": digit, "layer": layer, "channel": channel, "unit": list(unit)}
            row, column = int((1 - unit[1]) * maps.shape[-1]), int(unit[0] * maps.shape[-1])
            row = min(row, maps.shape[-1] - 1)
            found = INSIDE.view(state, models={"run": run})
            assert found.numbers[1].value == pytest.approx(float(maps[channel - 1, row, column]), abs=1e-5)
            assert len(found.picture.svg()) < 250_000


def test_shuffled_pixels(run):
    view = INSIDE.view({"shuffled": True}, models={"run": run})
    metrics = run.metrics
    lost = metrics["test_scrambled_cnn_error"] - metrics["test_cnn_error"]
    assert view.numbers[1].value == pytest.approx(lost)
    assert view.reached == (lost > 0.05)
    assert not INSIDE.view({}, models={"run": run}).reached


def test_an_image_of_ones_own():
    file = io.BytesIO()
    pixels = np.zeros((32, 48), np.uint8)
    pixels[:, 24:] = 255
    Image.fromarray(pixels).save(file, "png")
    view = convolution.yours(file.getvalue(), "upright edges", 1)
    assert view.numbers[0].text == "62"
    assert view.numbers[1].value == pytest.approx(4.0, abs=1.0)  # 1 + 2 + 1 across a jump from 1 to 0
    assert convolution.yours(file.getvalue(), "level edges", 2).numbers[1].value == pytest.approx(0, abs=1e-4)
    assert own_image(file.getvalue(), 64).shape == (64, 64)
    for bad in (b"", b"no image", file.getvalue()[:60], b"GIF89a" + bytes(40)):
        with pytest.raises(UserError, match="expected an image"):
            own_image(bad, 64)


@pytest.mark.parametrize(("padding", "stride"), [(0, 1), (2, 1), (1, 2)])
def test_windows_stand_where_they_read(padding, stride):
    view = COUNT.view({"padding": padding, "stride": stride})
    for position in range(int(view.numbers[1].text)):
        (left, _), (right, _) = drawn(view, f"position {position + 1}")
        assert left == pytest.approx(position * stride - padding, abs=0.1)
        assert right == pytest.approx(left + 3, abs=0.2)  # a kernel of three
