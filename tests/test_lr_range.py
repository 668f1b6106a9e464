"""The learning-rate range test: its rule where the mathematics gives the answer, and by command."""

import json
import math
from dataclasses import replace

import pytest
import torch

from commands import refused, tried
from quoin.optim import LRRangeTest, lr_range_test
from quoin.runs import RunConfig, find_lr, find_recipe, fit_recipe

ONE_THREAD = RunConfig(device="cpu", num_threads=1)


def test_the_suggestion_is_a_tenth_of_the_edge_of_stability():
    """SGD on Σ λᵢ xᵢ²/2 with a noisy gradient diverges above 2/λ_max, and the default smoothing finds that within a
    factor of three: the suggestion is stable."""
    curvatures, generator = torch.tensor([0.1, 1.0, 4.0], dtype=torch.float64), torch.Generator().manual_seed(0)
    x = torch.ones(3, dtype=torch.float64)

    def step(lr: float) -> float:
        loss = float((curvatures * x.square()).sum() / 2)
        x.sub_(lr * (curvatures * x + 0.1 * torch.randn(3, generator=generator, dtype=torch.float64)))
        return loss

    found = lr_range_test(step)
    assert found.diverged
    assert 2 / 4 / 3 < found.max_stable_lr < 2 / 4 * 3
    assert found.suggestion == found.max_stable_lr / 10


def test_chance_in_the_first_losses_decides_nothing():
    """A first batch that is easy: later losses are above it, and neither end the test nor leave it the least."""
    losses = iter([0.1, *[1.0] * 40, *[0.5] * 20, *[9.0] * 40])
    found = lr_range_test(lambda lr: next(losses), num_steps=101, smoothing=0.9)
    assert found.burn_in == 9
    assert found.diverged
    assert found.lrs[57] < found.max_stable_lr < found.lrs[62]
    assert found.lrs[39] < found.steepest < found.lrs[45]
    assert LRRangeTest((1.0, 2.0), (1.0, 1.0), (1.0, 1.0), False, burn_in=9).max_stable_lr == 1.0


def test_the_same_seed_finds_the_same():
    recipe = find_recipe("softmax-regression")
    options = replace(recipe.options(), data="iris", epochs=2)
    first, second = (find_lr(recipe, options, ONE_THREAD, show_progress=False) for _ in range(2))
    assert first == second
    assert first != find_lr(recipe, replace(options, seed=1), ONE_THREAD, show_progress=False)
    # The learning rate that the options have is of no matter: the test puts its own in its place.
    other = find_lr(recipe, replace(options, lr=0.7), ONE_THREAD, show_progress=False)
    assert other.losses == pytest.approx(first.losses, rel=1e-5)
    assert other.lrs == first.lrs


def test_lr_by_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ("softmax-regression", "--data", "iris", "--num-threads", 1)
    code, out, err = tried("lr", *words, "--out", "lr.svg", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["suggestion"] == found["max_stable_lr"] / 10
    assert (tmp_path / "lr.svg").read_text().startswith("<svg")
    assert [path.name for path in tmp_path.iterdir()] == ["lr.svg"]
    code, out, _ = tried("lr", *words, "--min-lr", 1e-4, "--max-lr", 1, "--lr-steps", 12, "--json")
    assert json.loads(out)["lrs"] == pytest.approx([1e-4 * 10 ** (4 * k / 11) for k in range(12)])
    code, out, _ = tried("lr", *words)
    assert f"{found['suggestion']:.3g}" in out

    # --lr auto is the number, here and in the folder; a resumed run reads it there.
    code, out, err = tried("train", *words, "--lr", "auto", "--epochs", 2, "--json")
    assert code == 0, err
    auto = json.loads(out)
    lr = json.loads((tmp_path / auto["run"] / "config.json").read_text())["options"]["lr"]
    assert lr == pytest.approx(found["suggestion"], rel=0.01)
    code, out, _ = tried("train", *words, "--lr", lr, "--epochs", 2, "--json")
    assert json.loads(out)["metrics"] == auto["metrics"]
    monkeypatch.setattr("quoin.runs.lr_range.find_lr", None)
    (tmp_path / auto["run"] / "result.json").unlink()
    assert tried("resume", auto["run"])[0] == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("lr", "gmm"), "gmm follows no gradient"),
        (("lr", "mlp", "--out", "lr.txt"), "ending in .svg, .png or .html, got 'lr.txt'"),
        (("lr", "mlp", "--out", "nowhere/lr.svg"), "no such folder"),
        (("lr", "mlp", "--data", "digit"), "did you mean 'digits'"),
        (("lr", "mlp", "--lr-steps", 1), "2 steps or more"),
        (("train", "mlp", "--lr", "aut"), "expects a number or auto, got 'aut'"),
        (("train", "cross-entropy-descent", "--lr", "auto"), "expects a number, got 'auto'"),
    ],
)
def test_mistakes(words, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert told in refused(*words)


@pytest.mark.deep
def test_two_losses_against_each_other_have_no_range_test():
    assert "plays two against each other" in refused("lr", "gan")


@pytest.mark.deep
@pytest.mark.parametrize("name", ["mlp", "softmax-regression", "lenet", "mlp-dropout", "diffusion-2d", "vae"])
def test_the_suggestion_is_within_a_factor_of_five_of_what_was_found_by_hand(name):
    recipe = find_recipe(name)
    options = recipe.options()
    found = find_lr(recipe, options, ONE_THREAD, show_progress=False).suggestion
    assert abs(math.log(found / options.lr)) < math.log(5)


@pytest.mark.deep
def test_it_trains_the_mlp_to_nearly_its_defaults_accuracy(tmp_path):
    recipe = find_recipe("mlp")
    accuracies = []
    for seed in range(3):
        options = replace(recipe.options(), seed=seed)
        found = find_lr(recipe, options, ONE_THREAD, show_progress=False).suggestion
        for each in (options, replace(options, lr=found)):
            result = fit_recipe(recipe, each, ONE_THREAD, tmp_path, show_progress=False).result
            assert result is not None
            accuracies.append(result["metrics"]["test_accuracy"])
    assert sum(accuracies[1::2]) > sum(accuracies[::2]) - 3 * 0.01
