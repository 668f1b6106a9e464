"""`quoin generate` for models of images and points: what it writes beside what the model says when asked directly, and
what it refuses.

The runs are of untrained models, written as the loop would write them: what is drawn here need not be good.
"""

import dataclasses
import io
import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from PIL import Image

from commands import refused, tried
from quoin import generate
from quoin.data import ImageInfo, PointInfo, keyed_generator
from quoin.models import GenerativeModel
from quoin.runs import Run, RunConfig, find_recipe
from quoin.tasks import point_generation as points
from quoin.train import MeanMetrics, RunFolder, describe_environment, setup_device
from quoin.train.state import generator_states
from quoin.train.trainer import TrainerState

pytestmark = pytest.mark.usefixtures("one_thread")

FACTS = ImageInfo("digits", "none", 1797, (1, 8, 8), 17, tuple("0123456789"))
PLANE = PointInfo("moons", "none", 9000, ("x0", "x1"))
IMAGES = {
    "vae": {"hidden_dims": (16,), "latent_dim": 3},
    "vae-conv": {},
    "gan": {},
    "pixelcnn": {"channels": 4, "num_layers": 1, "class_conditional": True},
    "diffusion-digits": {"channels": (8, 8), "num_timesteps": 10, "num_steps": 4},
}
POINTS = {
    "diffusion-2d": {"hidden_dim": 16, "num_timesteps": 20, "num_steps": 10},
    "flow-matching-2d": {"hidden_dim": 16},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """A folder with a run of each recipe."""
    root = tmp_path_factory.mktemp("runs")
    for name, changes in (IMAGES | POINTS).items():
        make_run(root, name, changes, FACTS if name in IMAGES else PLANE)
    make_run(root, "pixelcnn", IMAGES["pixelcnn"] | {"class_conditional": False}, FACTS)
    return root


def make_run(root: Path, name: str, changes: dict, data_info: ImageInfo | PointInfo) -> None:
    recipe = find_recipe(name)
    options = recipe.options(**changes)
    place, _ = setup_device("cpu")
    config = {
        "kind": "image-generation" if name in IMAGES else "point-generation",
        "options": dataclasses.asdict(options),
        "settings": dataclasses.asdict(RunConfig()),
        "data": data_info and data_info.as_json(),
    }
    folder = RunFolder.create(root, name, config, describe_environment(place, 0))
    model = recipe.model(options, data_info)
    with torch.no_grad():  # a network that begins at 0 would not hear what it is told
        for each in model.parameters():
            each += 0.3 * torch.randn(each.shape, generator=command_generator())
    trainer = dataclasses.asdict(TrainerState(step=1, finished=True))
    task = {"model": {"weights": model.state_dict()}}
    folder.save_checkpoint(
        {
            "task": task,
            "trainer": trainer,
            "means": [MeanMetrics().state_dict()],
            "best": None,
            "generators": generator_states(),
        },
        1,
    )


def written(*words: object) -> np.ndarray:
    """The numbers that a command writes."""
    code, out, err = tried("generate", *words, "--out", "drawn.npy", "--json")
    assert code == 0, err
    assert json.loads(out)["file"] == "drawn.npy"
    found = np.load("drawn.npy", allow_pickle=False)
    assert json.loads(out)["shape"] == list(found.shape)
    return found


def command_generator(seed: int = 0) -> torch.Generator:
    """The probability that the command draws from with this --seed."""
    return keyed_generator("generate", seed)


@pytest.mark.parametrize("name", IMAGES | POINTS)
def test_what_is_written_is_what_the_model_draws(runs, here, name):
    run = Run.open(runs / f"{name}-1").trained
    assert isinstance(run.model, GenerativeModel)
    drawn = written(runs / f"{name}-1", "-n", 3, "--seed", 5)
    assert drawn.shape == (3, *(FACTS.image_shape if name in IMAGES else (2,)))
    with torch.no_grad():
        assert np.array_equal(drawn, run.model.sample(3, generator=command_generator(5)).numpy())
    assert not np.array_equal(drawn, written(runs / f"{name}-1", "-n", 3, "--seed", 6))
    if name in IMAGES:
        assert 0 <= drawn.min() <= drawn.max() <= 1


@pytest.mark.parametrize("name", ["vae", "diffusion-2d"])
def test_the_picture_takes_the_form_of_its_name(runs, here, name):
    run = runs / f"{name}-1"
    for ending in ("png", "svg", "html"):
        code, out, err = tried("generate", run, "-n", 9, "--out", f"x.{ending}")
        assert code == 0, err
        assert out.startswith("9 samples in ")
        assert out.endswith(f"x.{ending}\n")
    assert Image.open(io.BytesIO(Path("x.png").read_bytes())).width > 200
    ElementTree.fromstring(Path("x.svg").read_text())
    assert "<svg" in Path("x.html").read_text()
    assert tried("generate", run)[0] == 0
    assert (run / "samples.png").is_file()  # where none is named


@pytest.mark.parametrize("count", [1000, 2001])
def test_a_thousand_at_a_time_are_as_many_as_asked_for(runs, here, count):
    assert written(runs / "vae-1", "-n", count).shape == (count, 1, 8, 8)


@pytest.mark.parametrize("name", ["diffusion-digits"])
def test_choices_reach_the_model(runs, here, name):
    path = runs / f"{name}-1"
    model = Run.open(path).model
    labels = torch.full((2,), 7)

    def direct(**choices) -> np.ndarray:
        with torch.no_grad():
            return model.sample(2, generator=command_generator(), **choices).numpy()

    assert np.array_equal(written(path, "-n", 2, "--class", 7, "--num-steps", 2), direct(labels=labels, num_steps=2))
    assert not np.array_equal(direct(labels=labels, num_steps=2), direct(labels=labels + 1, num_steps=2))
    guided = written(path, "-n", 2, "--class", 7, "--num-steps", 2, "--guidance-scale", 4)
    assert np.array_equal(guided, direct(labels=labels, num_steps=2, guidance_scale=4.0))
    for flag, sampler in {
        "ddpm": generate.sample_ddpm,
        "heun": generate.sample_heun,
        "dpm-solver-2": generate.sample_dpm_solver_2,
    }.items():
        assert np.array_equal(
            written(path, "-n", 2, "--num-steps", 3, "--sampler", flag), direct(num_steps=3, sampler=sampler)
        )


def test_a_class_and_a_temperature_reach_the_pixels(runs, here):
    model = Run.open(runs / "pixelcnn-1").model
    direct = model.sample(2, generator=command_generator(), labels=torch.full((2,), 4), temperature=0.5).numpy()
    assert np.array_equal(written(runs / "pixelcnn-1", "-n", 2, "--class", 4, "--temperature", 0.5), direct)
    assert not np.array_equal(written(runs / "pixelcnn-1", "-n", 2, "--class", 4), direct)


@pytest.mark.parametrize("name", ["diffusion-2d", "flow-matching-2d", "diffusion-digits"])
def test_a_strip_ends_in_the_samples(runs, here, name):
    path, words = (
        runs / f"{name}-1",
        ("-n", 2, "--num-steps", 4, *(("--sampler", "ddim") if "diffusion" in name else ())),
    )
    states = written(path, "--strip", *words)
    assert states.shape[:2] == (5, 2)
    assert np.allclose(states[-1], written(path, *words), atol=1e-6)
    code, out, err = tried("generate", path, "--strip", "--num-steps", 4, "--out", "strip.svg")
    assert code == 0, err
    count = 8 if name == "diffusion-digits" else 1000  # as many points as in the run's report
    assert f"{count:,} samples from noise on" in out
    assert points.SHOWN == 1000
    ElementTree.fromstring(Path("strip.svg").read_text())


@pytest.mark.parametrize("name", ["vae", "gan"])
def test_a_traversal_changes_one_coordinate_a_row(runs, here, name):
    path = runs / f"{name}-1"
    model = Run.open(path).model
    images = torch.from_numpy(written(path, "--traverse"))
    rows, columns = images.shape[:2]
    assert rows == min(model.latent_dim, 8)
    start, values = torch.randn(model.latent_dim, generator=command_generator()), torch.linspace(-2.5, 2.5, columns)
    for row, column in ((0, 0), (1, columns - 1), (rows - 1, 4)):
        latent = start.clone()
        latent[row] = values[column]
        with torch.no_grad():
            assert torch.allclose(images[row, column], model.decode_mean(latent[None])[0], atol=1e-6)
    assert tried("generate", path, "--traverse", "--out", "t.png")[0] == 0


@pytest.mark.parametrize(
    ("name", "words", "says"),
    [
        ("vae", ("-n", 0), "at least 1 sample"),
        ("vae", ("-n", -3), "at least 1 sample"),
        ("vae", ("-n", "many"), "expects a whole number"),
        ("vae", ("-n", 20_000), "more than a picture can show"),
        ("vae", ("--out", "x.jpg"), ".png, .svg, .html or .npy"),
        ("vae", ("--out", "nowhere/x.png"), "no such folder"),
        ("vae", ("--out", "folder.png"), "it is a folder"),
        ("vae", ("--out", "a" * 300 + ".png"), "a" * 50),
        ("vae", ("--out", "a" * 300 + ".npy"), "could not be written"),
        ("vae", ("--prompt", "x"), "takes no --prompt"),
        ("vae", ("--max-tokens", 3), "takes no --max-tokens"),
        ("vae", ("--class", 3), "takes no --class"),
        ("vae", ("--num-steps", 3), "takes no --num-steps"),
        ("vae", ("--strip",), "samples at once"),
        ("vae", ("--strip", "--traverse"), "leave one of them out"),
        ("vae", ("--traverse", "-n", 3), "leave one of them out"),
        ("vae", ("--step", 7), "no checkpoint of step 7"),
        ("pixelcnn", ("--class", 11), "knows no class '11'"),
        ("pixelcnn", ("--temperature", 0), "temperature above 0"),
        ("diffusion-2d", ("--traverse",), "no latents"),
        ("diffusion-2d", ("--num-steps", 0), "1 to 20 steps"),
        ("diffusion-2d", ("--num-steps", 21), "1 to 20 steps"),
        (
            "diffusion-2d",
            ("--guidance-scale", 2),
            "takes no --guidance-scale: leave it out; it takes --num-steps, --sampler",
        ),
        ("diffusion-2d", ("--sampler", "ddmp"), "did you mean"),
        ("flow-matching-2d", ("--sampler", "ddpm"), "takes no --sampler"),
        ("diffusion-digits", ("--class", 11), "knows no class '11'"),
        ("diffusion-digits", ("--class", "seven"), "knows no class 'seven'"),
        ("diffusion-digits", ("--guidance-scale", -1), "at least 0"),
        ("diffusion-digits", ("--guidance-scale", "nan"), "guidance"),
    ],
)
def test_mistakes_are_told_in_one_line(runs, here, name, words, says):
    (here / "folder.png").mkdir()
    assert says in refused("generate", runs / f"{name}-1", *words)
    assert sorted(path.name for path in here.iterdir()) == ["folder.png"]


def test_a_class_is_refused_by_a_model_that_learnt_none(runs, here):
    assert "class" in refused("generate", runs / "pixelcnn-2", "--class", 3)


def test_guidance_by_a_class_that_is_never_left_out_is_refused_before_training(here):
    assert "--class-dropout" in refused("train", "diffusion-digits", "--class-dropout", 0)
    assert not (here / "runs").exists()


def test_other_commands_say_what_such_a_run_is_good_for(runs, here):
    (here / "x.csv").write_text("a\n1\n")
    assert "quoin generate" in refused("predict", runs / "vae-1", "x.csv")
    assert "quoin generate" in refused("eval", runs / "vae-1", "--data", "digits")
    assert "give another" in refused("compress", "x.csv", "--model", runs / "vae-1")
