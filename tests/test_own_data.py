"""Recipes whose default data are a demonstration, on data of a user's own: tables with a target, and points."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from commands import refused, stopping, tried
from quoin.data import load_points, split_points
from quoin.models import PolynomialRegression, fit_monomials, scaled_monomial_features
from quoin.runs import Run, RunConfig, find_recipe, fit_recipe

pytestmark = pytest.mark.usefixtures("one_thread")
ONE_THREAD = RunConfig(device="cpu", num_threads=1)
POINTS: dict[str, dict[str, Any]] = {
    "gmm": {"num_components": 2, "max_iter": 5, "num_init": 2},
    "ppca": {"latent_dim": 1, "epochs": 2},
    "diffusion-2d": {"epochs": 2, "hidden_dim": 8, "num_timesteps": 20, "num_steps": 5, "prediction_type": "sample"},
    "flow-matching-2d": {"epochs": 2, "hidden_dim": 8, "num_steps": 3},
}
TABLES: dict[str, dict[str, Any]] = {
    "nadaraya-watson": {"num_bandwidths": 6},
    "polynomial-fit": {"max_degree": 3},
    "ridge": {"epochs": 2},
    "random-features": {"num_doublings": 2, "num_repeats": 1},
}
# Columns in units of their own: far from zero, tiny and large.
CENTER, SCALE = numpy.array([0.0, 1000.0, 0.005]), numpy.array([1.0, 100.0, 0.001])


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A table whose last column but one is a target, and points in two clusters."""
    folder, draw = tmp_path_factory.mktemp("made"), numpy.random.default_rng(0)
    side = numpy.where(numpy.arange(120) % 3 > 0, 3.0, -3.0)
    points = CENTER + SCALE * (draw.normal(size=(120, 3)) + side[:, None])
    u, v, w = ((points - CENTER) / SCALE).T
    target = 50 + u * v + 0.1 * w + 0.01 * draw.normal(size=120)
    names = numpy.where(side > 0, "right", "left")
    rows = [f"{a!r},{b!r},{c!r},{y!r},{name}" for (a, b, c), y, name in zip(points.tolist(), target.tolist(), names)]
    (folder / "table.csv").write_text("\n".join(["u,v,w,y,side", *rows]))
    numpy.savez(folder / "line.npz", points=points[:, :1])
    numpy.savez(folder / "points.npz", points=points)
    return folder


def run_of(name: str, runs: Path, **changes: Any) -> Any:
    recipe = find_recipe(name)
    options: Any = recipe.options(**changes)
    ended = fit_recipe(recipe, options, ONE_THREAD, runs, show_progress=False)
    assert ended.result is not None
    assert ended.result["target"] is None  # it is judged on the demonstration's data alone
    assert all(map(numpy.isfinite, ended.result["metrics"].values()))
    return Run.open(ended.folder.path)


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n == "gmm" else [pytest.mark.deep]) for n in POINTS])
def test_points_of_any_dimension(name, made, tmp_path):
    run = run_of(name, tmp_path, data=f"csv:{made / 'table.csv'}", ignore=("y", "side"), **POINTS[name])
    assert run.data_info.feature_names == ("u", "v", "w")
    samples = run.generate(400).numpy()
    assert samples.shape == (400, 3)
    values = load_points(f"csv:{made / 'table.csv'}", ignore=("y", "side")).values.numpy()
    # In the points' own units: a model that learnt next to nothing still has their location and scale.
    assert (abs(numpy.median(samples, 0) - values.mean(0)) < 10 * values.std(0)).all()
    again = run.evaluate()
    assert again == pytest.approx(run.metrics)
    assert "test_log_likelihood_gap" not in again
    code, _, err = tried("generate", run.path, "--out", tmp_path / "cloud.svg", "-n", 50)
    assert code == 0, err
    if name != "ppca":  # which leaves a dimension to noise
        assert run_of(name, tmp_path, data=f"npz:{made / 'line.npz'}", **POINTS[name]).generate(5).shape == (5, 1)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n == "polynomial-fit" else [pytest.mark.deep]) for n in TABLES]
)
def test_tables_with_a_target(name, made, tmp_path):
    source = {"data": f"csv:{made / 'table.csv'}", "target": ("y",), "ignore": ("side",)}
    run = run_of(name, tmp_path, **source, **TABLES[name])
    assert run.data_info.feature_names == ("u", "v", "w")
    assert run.evaluate() == pytest.approx(run.metrics)
    code, out, err = tried("predict", run.path, made / "table.csv")
    assert code == 0, err
    assert len(out.splitlines()) == 121
    if name == "polynomial-fit":  # y has the monomial uv and little else: degree two finds it, a line does not
        assert run.metrics["train_degree"] >= 2
        assert run.metrics["test_rmse"] < 0.05 < run.metrics["test_degree_1_rmse"]


def test_held_out_points_move_nothing(made):
    points = load_points(f"npz:{made / 'points.npz'}")
    splits = split_points(points, 3, validation=0.1)
    assert [len(each) for each in (splits.train, splits.validation, splits.test)] == [84, 12, 24]
    rows = torch.cat([splits.train, splits.validation, splits.test])
    assert torch.equal(rows.sort(dim=0).values, points.values.sort(dim=0).values)
    recipe, models = find_recipe("gmm"), []
    from quoin.tasks.gaussian_mixture import GaussianMixtureTask

    options = recipe.options(data=f"npz:{made / 'points.npz'}", **POINTS["gmm"])
    for test in (splits.test, splits.test * 100):
        task = GaussianMixtureTask(recipe.model(options, splits.info), replace(splits, test=test), options)
        task.step(torch.arange(len(splits.train)))
        models.append(task.model.state_dict())
    assert all(torch.equal(models[0][name], models[1][name]) for name in models[0])


@pytest.mark.deep
def test_a_mixture_finds_the_clusters_whatever_the_units(made, tmp_path):
    """Two clusters six standard deviations apart; sklearn on standardised points has the same likelihood."""
    from sklearn.mixture import GaussianMixture

    run = run_of("gmm", tmp_path, data=f"npz:{made / 'points.npz'}", num_components=2, max_iter=50, min_variance=1e-6)
    points = load_points(f"npz:{made / 'points.npz'}")
    splits = split_points(points, 0, validation=0.0)
    peer = GaussianMixture(2, random_state=0, tol=1e-8, max_iter=1000).fit((splits.train.numpy() - CENTER) / SCALE)
    expected = peer.score((splits.test.numpy() - CENTER) / SCALE) - numpy.log(SCALE).sum()
    assert run.metrics["test_log_likelihood"] == pytest.approx(expected, abs=1e-3)
    inside = (splits.train.numpy() - CENTER) / SCALE
    shift = 2 * len(inside) * numpy.log(SCALE).sum()
    assert run.metrics["train_bic"] == pytest.approx(peer.bic(inside) + shift, abs=1e-1)
    assert run.metrics["train_aic"] == pytest.approx(peer.aic(inside) + shift, abs=1e-1)
    components = run.predict(points.values).values.numpy()
    sides = (((points.values.numpy() - CENTER) / SCALE).sum(1) > 0).astype(int)
    assert (components == sides).all() or (components == 1 - sides).all()
    other = run.evaluate(f"npz:{made / 'points.npz'}")["log_likelihood"]
    weights = numpy.array([len(splits.train), len(splits.test)]) / 120
    parts = [run.metrics["train_log_likelihood"], run.metrics["test_log_likelihood"]]
    assert other == pytest.approx(weights @ parts)


def test_monomials_of_several_features_are_sklearns():
    from sklearn.preprocessing import PolynomialFeatures

    draw = torch.Generator().manual_seed(0)
    x, y = torch.randn(40, 3, generator=draw).double(), torch.randn(40, generator=draw).double()
    peer = PolynomialFeatures(3).fit(x.numpy())
    factorials = numpy.array(
        [numpy.prod([float(torch.lgamma(torch.tensor(e + 1.0)).exp()) for e in row]) for row in peer.powers_]
    )
    mine = scaled_monomial_features(x, 3).numpy()
    numpy.testing.assert_allclose(mine * factorials, peer.transform(x.numpy()), rtol=1e-12)
    model = PolynomialRegression(3, 3).double()
    with torch.no_grad():
        model.weight.copy_(fit_monomials(x, y, 3))
        design = peer.transform(x.numpy())
        expected = design @ numpy.linalg.lstsq(design, y.numpy(), rcond=None)[0]
        numpy.testing.assert_allclose(model(x).numpy(), expected, atol=1e-9)


@pytest.mark.deep
def test_leave_one_out_is_that_of_the_definition(made, tmp_path):
    run = run_of("nadaraya-watson", tmp_path, data=f"csv:{made / 'table.csv'}", target=("y",), ignore=("side",))
    model = run.trained.model
    n, h = int(model.num_rows), float(model.pools["gaussian"].bandwidth)
    x, y = model.keys[:n].numpy(), model.values[:n].numpy()
    errors = []
    for i in range(n):
        weights = numpy.exp(-((x - x[i]) ** 2).sum(1) / 2 / h**2)
        weights[i] = 0
        errors.append((weights @ y / weights.sum() - y[i]) ** 2)
    unit = float(run.trained.target_scaler.std)
    assert run.trained.model.best == "gaussian"
    assert run.metrics["train_leave_one_out_rmse"] == pytest.approx(unit * numpy.sqrt(numpy.mean(errors)), rel=1e-6)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("gmm", "--data", "csv:{}/table.csv"), "leave it out with --ignore side"),
        (("gmm", "--data", "npz:{}/points.npz", "--separation", 2), "--separation is of the data that --data mixture"),
        (("gmm", "--data", "npz:{}/points.npz", "--ignore", "u"), "--ignore is for tables"),
        (("gmm", "--data", "npz:{}/points.npz", "--num-components", 99), "at least --num-components"),
        (("gmm", "--data", "mixtur"), "did you mean 'mixture'?"),
        (("gmm", "--data", "factors"), "is points, generated by ppca for itself"),
        (("mlp", "--data", "wide"), "is generated by ridge for itself"),
        (("ppca", "--data", "npz:{}/line.npz"), "--latent-dim must be below the number of columns"),
        (("ridge", "--data", "diabetes", "--num-rows", 5), "--num-rows is of"),
        (("ridge", "--fold", "0/5"), "--fold is of data by name or from a file"),
        (("polynomial-fit", "--data", "diabetes"), "give --max-degree 5"),
        (("diffusion-2d", "--data", "topics"), "is a text"),
    ],
)  # fmt: skip
def test_mistakes(words, told, made, tmp_path):
    assert told in refused("train", *(str(word).format(made) for word in words), "--runs", tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_column_beyond_float32_is_refused(tmp_path):
    numpy.savez(tmp_path / "far.npz", points=1.7e9 + numpy.random.default_rng(0).normal(size=(200, 2)))
    told = refused("train", "diffusion-2d", "--data", f"npz:{tmp_path / 'far.npz'}", "--runs", tmp_path)
    assert "subtract what all rows have in common" in told


@pytest.mark.deep
@pytest.mark.parametrize("name", [*POINTS, *TABLES])
def test_killed_and_resumed_to_the_same_bits(name, made, tmp_path):
    changes = (POINTS | TABLES)[name] | ({"epochs": 6} if "epochs" in (POINTS | TABLES)[name] else {})
    flags = [word for key, value in changes.items() for word in (f"--{key.replace('_', '-')}", value)]
    flags += ["--data", f"csv:{made / 'table.csv'}", "--num-threads", 1, "--checkpoint-every", 1]
    flags += ["--ignore", "y", "side"] if name in POINTS else ["--target", "y", "--ignore", "side"]
    whole = json.loads(tried("train", name, *flags, "--runs", tmp_path / "whole", "--json")[1])
    killed = subprocess.run(stopping(9, "train", name, *flags, "--runs", tmp_path / "killed"), capture_output=True)
    assert killed.returncode == -9
    code, out, err = tried("resume", tmp_path / "killed" / f"{name}-1", "--json")
    assert code == 0, err
    assert json.loads(out)["metrics"] == whole["metrics"]
