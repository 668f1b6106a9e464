"""The recipe `diffusion-digits`: what its task asks of the network, what it measures and shows, what it refuses."""

import copy
import json

import pytest
import torch

from quoin import generate
from quoin.cli import main
from quoin.data import RowNoise
from quoin.runs import find_recipe
from quoin.train import setup_device

TINY = {"channels": (8, 8), "num_groups": 4, "num_timesteps": 4, "num_steps": 2, "num_samples": 20, "batch_size": 8}


@pytest.fixture(scope="module")
def task():
    recipe = find_recipe("diffusion-digits")
    return recipe.module.build(recipe.options(**TINY), setup_device("cpu", threads=1)[0])


def heard(task, monkeypatch, drop_class, labels):
    """The labels that reach the network in a training step."""
    network, seen = task.model.network, []
    monkeypatch.setattr(task, "options", find_recipe("diffusion-digits").options(**TINY, class_dropout=drop_class))
    hook = network.register_forward_pre_hook(lambda module, given: seen.append(given[2]))
    task.losses(task.data.train.features[: len(labels)], labels, noise=RowNoise(0, num_rows=len(labels)))
    hook.remove()
    return seen[0]


def test_the_class_is_left_out_of_as_many_examples_as_asked(task, monkeypatch):
    labels = torch.arange(1000) % 10
    assert torch.equal(heard(task, monkeypatch, 0.0, labels), labels)
    assert (heard(task, monkeypatch, 1.0, labels) == 10).all()
    some = heard(task, monkeypatch, 0.2, labels)
    told = some != 10
    assert torch.equal(some[told], labels[told])
    assert abs(told.float().mean() - 0.8) < 0.065  # five deviations of a fraction of a thousand


def test_the_loss_of_silence_is_the_mean_square_of_the_velocity(task):
    """At its start the network says 0, and v = signal ε - noise x_0 has the mean square signal² + noise² x_0² over the
    noise."""
    images = task.data.train.features[:1].expand(4000, -1, -1, -1)
    losses = task.losses(images, torch.zeros(4000, dtype=torch.long), noise=RowNoise(0, num_rows=4000)).detach()
    signal, noise = task.model.schedule.signal[1:], task.model.schedule.noise[1:]
    expected = float((signal**2).mean() + (noise**2).mean() * (2 * images[0] - 1).square().mean())
    assert abs(float(losses.mean()) - expected) < 5.5 * float(losses.std()) / 4000**0.5


def test_it_is_judged_by_what_was_asked_for(task):
    class Oracle:
        def accuracy(self, images, labels):
            assert images.shape == (20, 1, 8, 8)
            assert images.min() >= 0
            assert images.max() <= 1
            return float((labels == torch.arange(20) % 10).float().mean())

    class Court:
        classifier = Oracle()

        def quality(self, samples):
            return {"mmd": 0.0}

    task.evaluator, kept = Court(), task.evaluator
    try:
        assert task.quality() == {"mmd": 0.0, "class_conditional_accuracy": 1.0}
    finally:
        task.evaluator = kept


def test_it_draws_by_a_sampler_of_its_own_unless_told_another(task):
    model = copy.deepcopy(task.model)
    for parameter in model.network.parameters():
        torch.nn.init.normal_(parameter, std=0.2, generator=torch.Generator().manual_seed(parameter.numel()))
    own, same, other = (
        model.sample(3, generator=torch.Generator().manual_seed(0), num_steps=4, **given)
        for given in ({}, {"sampler": generate.sample_dpm_solver_2}, {"sampler": generate.sample_ddim})
    )
    assert torch.equal(own, same)
    assert not torch.allclose(own, other)


def test_the_panels_show_classes_the_way_from_noise_and_guidance(task):
    panels = task.own_panels()
    assert [panel.title for panel in panels] == ["Samples by class", "Denoising", "Samples by guidance scale"]
    assert all("<svg" in panel.plot.svg() for panel in panels)


def test_a_run_tells_bits_and_agreement(tmp_path, capsys):
    words = [
        "--max-steps",
        "2",
        "--num-threads",
        "1",
        "--num-samples",
        "20",
        "--num-steps",
        "2",
        "--num-timesteps",
        "4",
        "--channels",
        "8",
        "8",
        "--num-groups",
        "4",
    ]
    assert main(["train", "diffusion-digits", *words, "--json", "--runs", str(tmp_path)]) == 0
    metrics = json.loads((tmp_path / "diffusion-digits-1" / "result.json").read_text())["metrics"]
    assert {"test_bits_per_dimension", "test_mmd", "test_coverage", "test_class_conditional_accuracy"} <= metrics.keys()
    assert 0 <= metrics["test_class_conditional_accuracy"] <= 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--num-steps", "200"], "expected 1 to 100 steps"),
        (["--channels", "8", "8", "8", "8", "8", "--num-groups", "4"], "multiples of 16, got 8 x 8"),
        (["--num-groups", "7"], "num_groups 7 divides"),
        (["--class-dropout", "1.5"], "--class-dropout"),
        (["--guidance-scale", "-1"], "--guidance-scale"),
        (["--data", "iris"], "expected images"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(words, said, tmp_path, capsys):
    assert main(["train", "diffusion-digits", *words, "--runs", str(tmp_path)]) == 2
    error = capsys.readouterr().err.strip()
    assert said in error
    assert len(error.splitlines()) == 1
