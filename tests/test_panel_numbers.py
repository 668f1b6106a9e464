"""Metrics and panels of the studies and the fits in closed form, computed again from the data and the model by numpy,
scipy and scikit-learn: what a report says and draws is what happened."""

import math
from typing import Any

import numpy
import pytest
import torch
from numpy.polynomial import polynomial
from scipy.special import logsumexp, xlogy
from scipy.stats import multivariate_normal
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import KernelCenterer

from panel_calls import shown, trained
from test_wiring import build

pytestmark = pytest.mark.usefixtures("one_thread")


def close(found: Any, expected: Any, rel: float = 1e-9) -> None:
    numpy.testing.assert_allclose(numpy.asarray(found, float), numpy.asarray(expected, float), rtol=rel, atol=1e-12)


def rmse(one: Any, other: Any) -> float:
    return float(numpy.sqrt(numpy.mean((numpy.asarray(one, float) - numpy.asarray(other, float)) ** 2)))


def unit_of(task: Any) -> float:
    return float(task.data.target_scaler.std)


def test_polynomials_of_every_degree():
    task, _ = build("polynomial-fit", max_degree=4)
    rows = {split: getattr(task.data, split) for split in ("train", "validation", "test")}
    points = {
        split: (each.features[:, 0].double().numpy(), each.targets.double().numpy()) for split, each in rows.items()
    }
    steps = iter([])
    for degree in range(5):
        (step,) = [task.step(each) for each in task.batches]
        x, y = points["train"]
        fit = polynomial.Polynomial.fit(x, y, degree)
        errors = {split: rmse(fit(a), b) * unit_of(task) for split, (a, b) in points.items()}
        assert float(step["loss"]) == pytest.approx(len(x) * errors["train"] ** 2 / 2, rel=1e-4)
        for split, error in errors.items():
            told = task.evaluate(split)
            assert told["rmse"] == pytest.approx(error, rel=1e-4)
            assert told["loss"] == pytest.approx(error**2 / 2, rel=1e-4)
        assert task.evaluate("train")["degree"] == degree == task.degree
    assert next(steps, None) is None
    told, x = task.evaluate("test"), points["train"][0]
    fits = {k: polynomial.Polynomial.fit(x, points["train"][1], k) for k in range(5)}
    assert {name for name in told if name.startswith("degree")} == {"degree_1_rmse", "degree_4_rmse"}
    for k in (1, 4):
        error = rmse(fits[k](points["test"][0]), points["test"][1]) * unit_of(task)
        assert told[f"degree_{k}_rmse"] == pytest.approx(error, rel=1e-6)
    found = shown(task.panels())["Error by degree"]
    assert found.kind == "curves"
    assert list(found.lines) == ["train", "validation", "test"]
    for split, (degrees, errors) in found.lines.items():
        close(degrees, range(5))
        close(errors, [rmse(fits[k](points[split][0]), points[split][1]) * unit_of(task) for k in range(5)], 1e-6)
    assert f"fits to {len(x)} examples; validation chose degree 4." in found.caption
    check_drawn_fits(task, points, fits)


def check_drawn_fits(task: Any, points: dict[str, Any], fits: dict[int, Any]) -> None:
    """In the units of the data: the light dots of the test, the dark ones of training, and each curve of its degree."""
    panel = next(each for each in task.panels() if each.title == "Fits by degree")
    axes = panel.plot.figure.axes[0]
    scale, target = task.data.feature_scaler, task.data.target_scaler
    dots = numpy.asarray(axes.collections[0].get_offsets())
    x, y = (numpy.concatenate([points[split][which] for split in ("test", "train")]) for which in (0, 1))
    close(dots[:, 0], x * float(scale.std[0]) + float(scale.mean[0]), 1e-5)
    close(dots[:, 1], y * float(target.std) + float(target.mean), 1e-5)
    colors = [tuple(each) for each in axes.collections[0].get_facecolors()]
    tests = len(points["test"][0])
    assert len(set(colors[:tests])) == len(set(colors[tests:])) == 1
    assert sum(colors[0][:3]) > sum(colors[-1][:3])  # the test's are lighter
    assert [line.get_label() for line in axes.get_lines()] == ["degree 1", "degree 4"]
    for line, k in zip(axes.get_lines(), (1, 4)):
        at = (numpy.asarray(line.get_xdata(), float) - float(scale.mean[0])) / float(scale.std[0])
        close((at[0], at[-1], len(at)), (x.min(), x.max(), 400), 1e-5)
        close(line.get_ydata(), fits[k](at) * float(target.std) + float(target.mean), 1e-4)
    values, margin = dots[:, 1], 0.3 * numpy.ptp(dots[:, 1])
    close(axes.get_ylim(), (values.min() - margin, values.max() + margin), 1e-6)


def test_random_features_beside_the_kernel():
    task, options = build("random-features", num_rows=40, num_doublings=2, num_repeats=3, gamma=0.05, l2=0.5)
    trained(task, 3)
    x, y = task.X.numpy(), task.y.numpy()
    assert len(x) == 40
    centerer = KernelCenterer()
    kernel = KernelRidge(alpha=40 * options.l2, kernel="precomputed")
    kernel.fit(centerer.fit_transform(rbf_kernel(x, gamma=options.gamma)), y - y.mean())

    def predict(inputs: Any) -> Any:
        return y.mean() + kernel.predict(centerer.transform(rbf_kernel(inputs, x, gamma=options.gamma)))

    for split in ("train", "validation", "test"):
        rows = getattr(task.data, split)
        inputs, targets = rows.features.flatten(1).double().numpy(), rows.targets.double().numpy()
        exact = predict(inputs)
        close(task.kernel_outputs[split], exact, 1e-6)
        told = task.evaluate(split)
        assert told["kernel_rmse"] == pytest.approx(rmse(exact, targets) * unit_of(task), rel=1e-6)
        with torch.no_grad():
            outputs = task.model(torch.from_numpy(inputs).float()).numpy()
        assert told["rmse"] == pytest.approx(rmse(outputs, targets) * unit_of(task), rel=1e-5)
        assert told["loss"] == pytest.approx(told["rmse"] ** 2 / 2, rel=1e-6)
        repeats = numpy.reshape(task.squared_errors[split], (3, 3))  # one row for each number of features
        counts, gaps = [16, 32, 64], numpy.sqrt(repeats.mean(1))
        std = predict(task.inputs["train"].numpy()).std(ddof=1)
        assert repeats[-1, -1] == pytest.approx(rmse(outputs, exact) ** 2 / std**2, rel=1e-4)
        assert told["kernel_prediction_rmse"] == pytest.approx(gaps[-1])
        slope = numpy.polyfit(numpy.log(counts), numpy.log(gaps), 1)[0]
        assert told["convergence_exponent"] == pytest.approx(slope, abs=1e-5)
        line = shown(task.panels())["RMSE to kernel ridge regression"].lines[split]
        close(line, (counts, gaps))
    panels = shown(task.panels())
    first = panels["RMSE to kernel ridge regression"].lines["train"][1][0]
    close(panels["RMSE to kernel ridge regression"].lines["1/√D"][1], [first / math.sqrt(2**k) for k in range(3)])
    assert panels["RMSE to kernel ridge regression"].caption.startswith("3 repeats for each number, 40 training")
    pair = panels["Predictions with random features vs. the kernel"]
    close(pair.values[0], predict(task.inputs["test"].numpy()), 1e-6)
    with torch.no_grad():
        close(pair.values[1], task.model(task.inputs["test"].float()))
    assert pair.how == {"x_label": "kernel ridge", "y_label": "64 random features"}


KERNELS = {
    "gaussian": lambda u: numpy.exp(-(u**2) / 2),
    "boxcar": lambda u: (u < 1).astype(float),
    "triangular": lambda u: numpy.maximum(0, 1 - u),
    "epanechnikov": lambda u: numpy.maximum(0, 1 - u**2),
}


def smoothed(kernel: Any, at: Any, x: Any, y: Any, width: float, *, leave_out: bool = False) -> Any:
    weights = kernel(numpy.abs(at[:, None] - x[None]) / width)
    if leave_out:
        numpy.fill_diagonal(weights, 0.0)
    return weights @ y / weights.sum(1)


def test_kernel_regression_keeps_the_bandwidth_of_least_leave_one_out_error():
    task, options = build("nadaraya-watson", num_points=60, num_bandwidths=5, noise=0.4)
    x, y = task.x[:, 0].numpy(), task.y[:, 0].numpy()
    assert x.min() >= 0
    assert x.max() <= 5
    widths = numpy.geomspace(task.bandwidths[0], task.bandwidths[-1], 5)
    close(task.bandwidths, widths)
    assert widths[0] / widths[-1] == pytest.approx(250)
    losses = [float(step["loss"]) for _ in range(3) for step in [task.step(each) for each in task.batches]]
    errors = {
        name: [numpy.mean((smoothed(k, x, x, y, width, leave_out=True) - y) ** 2) for width in widths[:3]]
        for name, k in KERNELS.items()
    }
    panel, told = shown(task.panels())["Error by bandwidth"], task.evaluate("test")
    line = numpy.linspace(0, 5, 501)
    truth = 2 * numpy.sin(line) + line
    best = {}
    for name, kernel in KERNELS.items():
        close(panel.lines[name], (widths[:3], numpy.sqrt(errors[name])), 1e-6)
        best[name] = widths[int(numpy.argmin(errors[name]))]
        assert float(task.model[name].bandwidth) == pytest.approx(best[name])
        assert told[f"{name}_rmse"] == pytest.approx(rmse(smoothed(kernel, line, x, y, best[name]), truth), rel=1e-6)
        assert f"{name} {best[name]:.3g}" in panel.caption
    so_far = [min(errors[name][which] for name in errors) for which in range(3)]
    close(losses, 60 * numpy.minimum.accumulate(so_far), 1e-6)
    winner = min(errors, key=lambda name: min(errors[name]))
    assert told["rmse"] == told[f"{winner}_rmse"]
    assert told["mean_baseline_rmse"] == pytest.approx(rmse(y.mean(), truth))
    assert panel.how["reference_lines"] == {"noise": options.noise}
    fits = next(each for each in task.panels() if each.title == "Fits").plot.figure.axes[0]
    close(numpy.asarray(fits.collections[0].get_offsets()), numpy.stack([x, y], 1))
    close(fits.get_lines()[0].get_ydata(), truth)
    for drawn, (name, kernel) in zip(fits.get_lines()[1:], KERNELS.items()):
        assert drawn.get_label() == f"{name}, bandwidth {best[name]:.2g}"
        close(numpy.ravel(drawn.get_ydata()), smoothed(kernel, line, x, y, best[name]), 1e-6)
    weights = next(each for each in task.panels() if each.title == "Weights").plot.figure.axes
    for axes, (name, kernel) in zip(weights, KERNELS.items(), strict=True):
        of_queries = kernel(numpy.abs(line[::5, None] - x[None]) / best[name])
        close(axes.images[0].get_array(), of_queries / of_queries.sum(1, keepdims=True), 1e-6)
        assert (axes.get_title("left"), tuple(axes.images[0].get_extent())) == (name, (0, 60, 5, 0))


def log_density(x: Any, weights: Any, means: Any, covariances: Any) -> Any:
    arrays = (numpy.asarray(each) for each in (weights, means, covariances))
    parts = [numpy.log(w) + multivariate_normal(m, c).logpdf(x) for w, m, c in zip(*arrays)]
    return logsumexp(parts, axis=0)


def test_a_mixture_by_its_densities():
    task, options = build("gmm", num_points=120, num_components=3, num_init=4)
    before = [
        log_density(task.points["train"].numpy(), each.weights, each.distribution.components.means,
                    each.distribution.components.covariance_matrices).mean()
        for each in task._candidates
    ]  # fmt: skip
    step = task.step(next(iter(task.batches)))
    close(task.history[0], before, 1e-7)
    assert float(step["loss"]) == pytest.approx(-max(before) * 120, rel=1e-7)
    trained(task, 2)
    best = task.best
    parts = best.weights.numpy(), task.model.means().numpy(), task.model.covariance_matrices().numpy()
    true = task.true
    truth = true.weights, true.components.means, true.components.covariance_matrices
    free = 3 - 1 + 3 * 2 + 3 * 3  # weights, means, covariances
    for split in ("train", "test"):
        x = task.points[split].numpy()
        assert len(x) == options.num_points
        found, told = log_density(x, *parts).mean(), task.evaluate(split)
        assert told["log_likelihood"] == pytest.approx(found, rel=1e-7)
        assert told["log_likelihood_gap"] == pytest.approx(log_density(x, *truth).mean() - found, abs=1e-7)
        assert told["bic"] == pytest.approx(free * math.log(120) - 2 * 120 * found)
        assert told["aic"] == pytest.approx(2 * free - 2 * 120 * found)
    assert task.evaluate("validation") == {}
    likelihoods = [float(each.distribution.log_prob(task.splits["train"]).mean()) for each in task._candidates]
    assert task._candidates[int(numpy.argmax(likelihoods))].weights.tolist() == best.weights.tolist()
    panel = shown(task.panels())["Log-likelihood by iteration"]
    assert list(panel.lines) == [f"initialisation {number}" for number in range(4)]
    for number, (steps, values) in enumerate(panel.lines.values()):
        close(steps, range(len(task.history)))
        close(values, task.history[:, number])
    level = log_density(task.points["train"].numpy(), *truth).mean()
    close(panel.how["reference_lines"]["true mixture"], level, 1e-7)
    mixture = shown(task.panels())["The fitted mixture"]
    assert mixture.caption.startswith("3 components; ellipses of one and two standard deviations.")
    close(mixture.values[0], task.points["train"])
    close(mixture.values[2], parts[1])
    close(mixture.values[3], parts[2])
    close(mixture.how["reference"][0], truth[1])
    close(mixture.how["reference"][1], truth[2])
    each = [numpy.log(w) + multivariate_normal(m, c).logpdf(task.points["train"].numpy()) for w, m, c in zip(*parts)]
    assert (numpy.argmax(each, axis=0) == mixture.values[1].numpy()).all()


def test_probabilistic_pca_by_its_gaussians():
    task, options = build("ppca", num_features=5, latent_dim=2, num_examples=64, batch_size=16, epochs=3)
    trained(task, 3)
    x = task.splits["test"].numpy()
    decoder = task.model.decoder
    mean, covariance = decoder.bias.detach().numpy(), decoder.weight.detach().numpy()
    noise = float(decoder.log_noise.detach().exp())
    evidence = multivariate_normal(mean, covariance @ covariance.T + noise**2 * numpy.eye(5)).logpdf(x).mean()
    centred = task.splits["train"].numpy() - task.splits["train"].numpy().mean(0)
    values, vectors = numpy.linalg.eigh(centred.T @ centred / len(centred))
    rest = values[:-2].mean()  # of the closed form: the directions of largest variance, and noise for the rest
    spread = (vectors[:, -2:] * (values[-2:] - rest)) @ vectors[:, -2:].T + rest * numpy.eye(5)
    limit = multivariate_normal(task.splits["train"].numpy().mean(0), spread).logpdf(x).mean()
    told = task.evaluate("test")
    assert told["log_evidence"] == pytest.approx(evidence, rel=1e-6)
    assert told["elbo_gap"] == pytest.approx(evidence - told["elbo"], rel=1e-6)
    assert told["elbo_gap_to_mle"] == pytest.approx(limit - told["elbo"], rel=1e-5)
    precision = numpy.eye(2) + covariance.T @ covariance / noise**2
    exact = numpy.linalg.inv(precision)
    means = (x - mean) @ covariance @ exact.T / noise**2
    q = task.model.posterior(task.splits["test"])
    spread_q = q.covariance.detach().numpy()
    difference = q.mean.detach().numpy() - means
    kl = 0.5 * (numpy.trace(precision @ spread_q) - 2 + numpy.einsum("ni,ij,nj->n", difference, precision, difference)
                + numpy.log(numpy.linalg.det(exact) / numpy.linalg.det(spread_q)))  # fmt: skip
    assert told["elbo_gap"] == pytest.approx(kl.mean(), rel=1e-6)
    panels = shown(task.panels())
    bars = panels["ELBO and log evidence"].values[0]
    true = task.true.weight.detach().numpy()
    real = multivariate_normal(task.true.bias.detach().numpy(), true @ true.T + options.noise**2 * numpy.eye(5))
    close(list(bars.values()), [told["elbo"], evidence, limit, real.logpdf(x).mean()], 1e-5)
    close(panels["Posterior means"].values[0].detach(), means.ravel(), 1e-6)
    close(panels["Posterior means"].values[1].detach(), q.mean.detach().flatten())
    table = panels["Posterior covariance"]
    close(table.values[0], numpy.concatenate([exact, spread_q]).round(3), 1e-2)
    assert table.how["row_labels"] == ["exact, z1", "exact, z2", "encoder, z1", "encoder, z2"]
    assert table.how["column_labels"] == ["z1", "z2"]


def test_descent_of_the_cross_entropy_by_hand():
    task, options = build("cross-entropy-descent", num_outcomes=7, lr=0.7, steps_per_epoch=4)
    p = task.population.numpy()
    t = numpy.linspace(-1, 1, 7)
    basis = numpy.linalg.qr(numpy.stack([t, t**2], 1))[0]
    logits, curve = (task.model[name].detach().clone().numpy() for name in ("logits", "curve"))

    def softmax(z: Any) -> Any:
        return numpy.exp(z - logsumexp(z))

    for _ in range(4):
        told = task.step(torch.tensor([0]))
        assert float(told["loss"]) == pytest.approx(-(p * numpy.log(softmax(logits))).sum())
        logits = logits - options.lr * (softmax(logits) - p)
        curve = curve - options.lr * basis.T @ (softmax(basis @ curve) - p)
    metrics = task.evaluate("validation")
    wide, narrow = ((xlogy(p, p) - p * numpy.log(softmax(z))).sum() for z in (logits, basis @ curve))
    close((metrics["kl"], metrics["quadratic_logits_kl"]), (wide, narrow))
    entropy = -xlogy(p, p).sum()
    close(
        list(shown(task.panels())["Cross-entropies reached"].values[0].values()),
        [entropy, entropy + wide, entropy + narrow],
    )
    axes = task.panels()[0].plot.figure.axes[0]
    close([bar.get_height() for bar in axes.patches], p)
    for line, expected in zip(axes.get_lines(), (logits, basis @ curve)):
        close(line.get_xdata(), range(1, 8))
        close(line.get_ydata(), softmax(expected))


def test_ridge_beside_its_closed_forms():
    task, _ = build("ridge", num_features=6, num_rows=12, epochs=2)
    trained(task)
    data = {split: getattr(task.data, split) for split in ("train", "test")}
    (x, y), (a, b) = ((each.features.double().numpy(), each.targets.double().numpy()) for each in data.values())
    panel, told, unit = shown(task.panels())["Error by weight decay"], task.evaluate("test"), unit_of(task)
    plain = task.others["baseline"]
    with torch.no_grad():
        assert told["no_decay_rmse"] == pytest.approx(rmse(plain.model(data["test"].features), b) * unit, rel=1e-5)
        own = rmse(task.model(data["test"].features), b) * unit
    assert told["rmse"] == pytest.approx(own, rel=1e-5)
    assert told["rmse_ratio"] == pytest.approx(own / told["no_decay_rmse"], rel=1e-5)
    decays = numpy.logspace(-3, 3, 25)
    for split, inputs, targets in (("train", x, y), ("test", a, b)):
        fits = [Ridge(alpha=decay * len(x)).fit(x, y) for decay in decays]
        close(panel.lines[split][0], decays)
        close(panel.lines[split][1], [rmse(fit.predict(inputs), targets) * unit for fit in fits], 1e-6)
    levels = panel.how["reference_lines"]
    assert levels["test, SGD without weight decay"] == told["no_decay_rmse"]
    shortest = rmse(LinearRegression().fit(x, y).predict(a), b) * unit
    assert levels["test, minimum-norm least squares"] == pytest.approx(shortest, rel=1e-6)


def test_an_mlp_beside_least_squares():
    task, _ = build("mlp-regression", epochs=1)
    trained(task)
    train, test = task.data.train, task.data.test
    line = LinearRegression().fit(train.features.double().numpy(), train.targets.double().numpy())
    bars = shown(task.panels())["MLP and linear regression"].values[0]
    for split, rows in (("train", train), ("test", test)):
        told = task.evaluate(split)
        error = rmse(line.predict(rows.features.double().numpy()), rows.targets) * unit_of(task)
        with torch.no_grad():
            own = rmse(task.model(rows.features), rows.targets) * unit_of(task)
        assert told["linear_rmse"] == pytest.approx(error, rel=1e-5)
        assert told["rmse"] == pytest.approx(own, rel=1e-5)
        assert told["linear_rmse_ratio"] == pytest.approx(own / error, rel=1e-5)
        close((bars[f"MLP, {split}"], bars[f"linear regression, {split}"]), (own, error), 1e-5)
    assert "linear_rmse" not in task.evaluate("validation")
