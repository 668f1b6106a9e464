"""What trained is never lost at the end: whatever images a recipe takes, its run ends with metrics, a result and a
whole report.

And what a user brings to learn from is what is learnt from: no recipe spoils or drops rows of it unless asked to.
"""

import functools
import gc
import itertools
import json

import numpy as np
import pytest
import torch

from commands import tried
from quoin import plot
from quoin.data import ImageSplits, PreparedData, load, split
from quoin.errors import UserError
from quoin.options import flag_name
from quoin.plot import Panel
from quoin.runs import find_recipe, recipe_names
from quoin.tasks.generative_options import GenerativeOptions
from quoin.tasks.options import DataOptions, DemonstrationOptions
from quoin.tasks.supervised import SupervisedTask
from quoin.train import DeviceContext, report

SCALES = {  # of an array of standard normal numbers
    "standardised": lambda x: x,
    "bytes as floats": lambda x: (64 * x + 128).clip(0, 255).round(),
    "from 0 to 1": lambda x: (x / 4 + 0.5).clip(0, 1),
}
SHAPES = {"oblong": (8, 12), "low": (6, 10), "small": (5, 5)}
EVERY = list(itertools.product(SCALES, (1, 3), SHAPES))
SOME = [("standardised", 3, "oblong"), ("bytes as floats", 1, "small")]
WITHIN = [("from 0 to 1", 1, "oblong")]  # all that models which draw images take
SMALLER = {  # what only costs time, where a recipe has it
    "num_samples": "8",
    "num_importance_samples": "2",
    "batch_sizes": "2 8",
    "batch_size": "8",
    "num_rows": "8 16",
    "num_timesteps": "4",
    "lrs": "0.1",
    "adaptive_lrs": "0.01",
}


@functools.cache
def takes(name):
    """What a recipe that takes data takes by default: images, or rows."""
    kind = find_recipe(name).options
    if not issubclass(kind, DataOptions):
        return None
    if issubclass(kind, DemonstrationOptions):  # its own data, which `load` cannot give, are rows of numbers
        return "rows"
    return "images" if load(kind().data).image_shape is not None else "rows"


OF_DATA = [name for name in recipe_names() if takes(name)]
OF_IMAGES = [name for name in OF_DATA if takes(name) == "images"]
QUICK = [
    (name, case)
    for name in OF_IMAGES
    for case in SOME + (WITHIN if issubclass(find_recipe(name).options, GenerativeOptions) else [])
]


def write_images(folder, scale, channels, shape):
    labels = np.arange(40) % 2
    noise = np.random.default_rng(0).standard_normal((40, channels, *SHAPES[shape]))
    np.savez(folder / "images.npz", x=SCALES[scale](noise + labels[:, None, None, None]).astype(np.float32), y=labels)
    return f"npz:{folder}/images.npz"


def train_a_little(name, data, folder):
    kind = find_recipe(name).options()
    smaller = [
        word
        for option, value in SMALLER.items()
        if hasattr(kind, option)
        for word in (flag_name(option), *value.split())
    ]
    quick = ("--max-steps", "2", "--num-threads", "1", "--device", "cpu", "--runs", folder / "runs", "--json")
    return tried("train", name, "--data", data, *smaller, *quick)


def check_images(name, case, folder):
    """Either it trains, and then all that a run leaves is there; or it is refused in one line, and then nothing was
    begun."""
    code, out, err = train_a_little(name, write_images(folder, *case), folder)
    run = folder / "runs" / f"{name}-1"
    if code == 2:
        assert (out, len(err.splitlines())) == ("", 1), err
        assert len(err) <= 300, err
        assert not run.exists(), err
        return
    assert (code, err) == (0, ""), err
    assert json.loads(out)["metrics"] == json.loads((run / "result.json").read_text())["metrics"]
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "<figure>" in page
    assert case[0] == "from 0 to 1" or page.count("Rescaled for the eye: black is") == page.count(
        "<h2>Misclassified examples"
    ) + sum(page.count(f"<h2>{title}") for title in ("Saliency", "Top-activating patches", "Images<"))


@pytest.mark.parametrize(("name", "case"), QUICK, ids=str)
def test_whatever_images_are_taken_are_drawn(name, case, tmp_path):
    check_images(name, case, tmp_path)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "case"), [each for each in itertools.product(OF_IMAGES, EVERY) if each not in QUICK], ids=str
)
def test_whatever_images_are_taken_are_drawn_at_length(name, case, tmp_path):
    check_images(name, case, tmp_path)


def test_images_of_each_kind_of_recipe_are_taken_by_some():
    """Lest all of the above be refusals."""
    assert {"mlp", "lenet", "vit", "vae", "gan", "pixelcnn", "diffusion-digits", "inductive-bias"} <= set(OF_IMAGES)


@pytest.mark.parametrize(
    ("images", "expected"),
    [
        (torch.tensor([0.0, 0.25, 1.0]), [0.0, 0.25, 1.0]),
        (torch.tensor([-2.0, 0.0, 2.0]), [0.0, 0.5, 1.0]),
        (torch.tensor([0.0, 51.0, 255.0]), [0.0, 0.2, 1.0]),
        (torch.tensor([3.0, 3.0, 3.0]), [0.0, 0.0, 0.0]),
    ],
)
def test_images_are_rescaled_for_the_eye_where_they_must_be(images, expected):
    found = plot.viewable(images.reshape(1, 1, 1, 3))
    torch.testing.assert_close(found.images.flatten(), torch.tensor(expected).double())
    assert ("Rescaled" in found.caption) == bool((images < 0).any() or (images > 1).any())


def test_a_mean_stands_for_channels_that_are_no_colours():
    found = plot.viewable(torch.tensor([0.0, 1.0]).reshape(1, 2, 1, 1))
    assert (found.images.tolist(), found.caption) == ([[[[0.5]]]], "Shown is the mean of 2 channels.")


def broken(*given, **named):
    raise RuntimeError("no ink\nleft")


@pytest.mark.parametrize("where", ["quoin.plot.heatmap", "quoin.tasks.supervised_panels.classifier_panels"])
def test_a_picture_that_fails_costs_itself_and_a_line(where, tmp_path, monkeypatch, panels_may_fail):
    """A drawing, or all that a task would draw: the run's result, its metrics and its exit code are as if it had gone
    well."""
    monkeypatch.setattr(where, broken)
    code, out, err = tried(
        "train", "mlp", "--data", "iris", "--max-steps", "2", "--num-threads", "1", "--runs", tmp_path
    )
    what = "panel 'Confusion matrix'" if where.endswith("heatmap") else "a panel"
    assert (code, err) == (0, f"quoin: {what} could not be plotted: no ink left\n")
    assert "test_accuracy" in out
    page = (tmp_path / "mlp-1" / "report.html").read_text(encoding="utf-8")
    assert "could not be plotted: no ink left" in page
    assert ("Misclassified examples" in page) == where.endswith("heatmap")
    assert "Loss by epoch" in page
    assert (tmp_path / "mlp-1" / "result.json").exists()
    assert "finished" in tried("resume", tmp_path / "mlp-1", "--json")[1]


def test_a_study_is_not_lost_either(tmp_path, monkeypatch, panels_may_fail):
    monkeypatch.setattr("quoin.plot.curves", broken)
    words = (
        "train",
        "mlp",
        "--data",
        "iris",
        "--max-steps",
        "2",
        "--seeds",
        "2",
        "--num-threads",
        "1",
        "--runs",
        tmp_path,
        "--json",
    )
    code, out, err = tried(*words)
    assert code == 0, err
    assert json.loads(out)["finished"]
    lines = err.splitlines()
    assert len(lines) >= 5  # two of either run, and those of the study
    assert all(
        line.startswith("quoin: panel '") and line.endswith("by epoch' could not be plotted: no ink left")
        for line in lines
    )


def test_ctrl_c_while_drawing_is_no_failed_picture(panels_may_fail):
    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        report.figures(lambda: [Panel("a", stop)])


def test_inspect_shows_what_can_be_drawn(tmp_path, monkeypatch, panels_may_fail):
    assert tried("train", "mlp", "--data", "iris", "--max-steps", "2", "--num-threads", "1", "--runs", tmp_path)[0] == 0
    monkeypatch.setattr("quoin.plot.bars", broken)
    code, out, err = tried("inspect", tmp_path / "mlp-1")
    assert (code, err) == (0, "")
    assert "panel 'Dead units' could not be plotted: no ink left" in out
    assert "Activations and gradients by layer" in (tmp_path / "mlp-1" / "inspect.html").read_text(encoding="utf-8")


def write_rows(folder, shape, classes):
    """200 rows, all numbers of row i being i / 255: whatever a recipe does to the places of a row, one can tell which
    it is."""
    i = np.arange(200)
    targets = (i * i // 7) % 2 if classes else np.sin(i)
    np.savez(
        folder / "rows.npz",
        x=np.broadcast_to((i / 255).reshape(-1, *(1 for _ in shape)), (200, *shape)).astype(np.float32),
        y=targets,
    )
    return f"npz:{folder}/rows.npz", torch.tensor(targets)


def built_on_own_data(name, folder):
    recipe = find_recipe(name)
    for shape, classes in itertools.product([(3,), (1,), (2,), (1, 8, 8)], (True, False)):
        data, targets = write_rows(folder, shape, classes)
        try:
            rows = (
                {"num_rows": (8, len(split(load(data), 0, validation=0.1).train))} if name == "inductive-bias" else {}
            )
            return recipe.build(recipe.options(data=data, **rows), DeviceContext()), data, targets
        except UserError:
            continue
    raise AssertionError(f"{name} took none of the files")


@pytest.mark.parametrize("name", OF_DATA)
def test_what_a_user_brings_is_what_is_learnt_from(name, tmp_path):
    """In whatever a recipe made ready every row has its own target, and the rows to train on are those of the usual
    split."""
    task, data, targets = built_on_own_data(name, tmp_path)
    gc.collect()
    ready = [
        each for each in gc.get_objects() if type(each) in (PreparedData, ImageSplits) and each.data_info.source == data
    ]
    assert ready
    largest = 0
    for each in ready:
        scale = getattr(each, "feature_scaler", None)
        goal = getattr(each, "target_scaler", None)
        for part in (each.train, each.validation, each.test):
            raw = part.features if scale is None else scale.inverse_transform(part.features)
            rows = (255 * raw.flatten(1).double().amax(dim=1)).round().long()
            theirs = part.targets if goal is None else goal.inverse_transform(part.targets)
            torch.testing.assert_close(theirs.double(), targets[rows].double(), atol=1e-5, rtol=0)
        largest = max(largest, each.train.num_rows)
    assert largest == len(split(load(data), 0, validation=0.1).train)
    assert task is not None


def test_noise_that_is_asked_for_spares_what_judges(tmp_path):
    """Of the digits, where it is the default, as of other data: all training labels may be drawn anew, no other is."""
    recipe = find_recipe("mlp-dropout")
    data, _ = write_rows(tmp_path, (3,), True)
    for chosen, share in ((recipe.options(), 0.3), (recipe.options(data=data, label_noise=1.0), 1.0)):
        task, calm = (
            recipe.build(each, DeviceContext()) for each in (chosen, type(chosen)(data=chosen.data, label_noise=0.0))
        )
        assert isinstance(task, SupervisedTask)
        assert isinstance(calm, SupervisedTask)
        for part in ("validation", "test"):
            assert torch.equal(getattr(task.data, part).targets, getattr(calm.data, part).targets)
        count, classes = task.data.train.num_rows, task.data.data_info.num_classes
        changed = float((task.data.train.targets != calm.data.train.targets).double().mean())
        expected = share * (1 - 1 / classes)  # a label that is drawn may be the right one
        assert abs(changed - expected) < 5 * (expected * (1 - expected) / count) ** 0.5
