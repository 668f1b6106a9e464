"""Metrics and panels of studies whose task is the model itself: momentum, ELBO gradients, copying, linear regions,
approximation and generative models, computed again from the model."""

import dataclasses
import math
from typing import Any

import numpy
import pytest
import torch

from panel_calls import shown, trained
from test_wiring import build

pytestmark = pytest.mark.usefixtures("one_thread")


def close(found: Any, expected: Any, rel: float = 1e-6) -> None:
    numpy.testing.assert_allclose(numpy.asarray(found, float), numpy.asarray(expected, float), rtol=rel, atol=1e-9)


def spectral_radius(lr: float, momentum: float, curvatures: Any) -> float:
    """Of the update of (x, v) along every axis: v' = m v - lr c x, x' = x + v'."""
    steps = [[[1 - lr * c, momentum], [-lr * c, momentum]] for c in curvatures]
    return max(abs(numpy.linalg.eigvals(step)).max() for step in steps)


def test_momentum_beside_the_eigenvalues():
    task, options = build("momentum-phase", grid_size=6, dim=3, epochs=1, steps_per_epoch=40)
    trained(task)
    curvatures, cells = task.curvatures.numpy(), options.grid_size
    close((curvatures.max(), curvatures.min()), (1.0, 1 / options.condition_number))
    lrs = (numpy.arange(cells) + 0.5) * 4 / cells
    momenta = numpy.concatenate([[0.0], (numpy.arange(1, cells) + 0.5) / cells])
    predicted = numpy.array([[spectral_radius(lr, m, curvatures) for lr in lrs] for m in momenta])
    close((task.lrs, *task.predicted), (lrs, *predicted), 1e-5)
    found, told = task.measured().numpy(), task.evaluate("validation")
    close(told["convergence_rate_error"], abs(found - predicted).max(), 1e-4)
    assert told["best_convergence_rate"] == found.min()
    assert told["best_convergence_rate_no_momentum"] == found[0].min()
    assert told["stable_fraction"] == pytest.approx((found < 1).mean())
    assert task.evaluate("test") == {}
    rates, measured = task.panels()
    axes, bar = rates.plot.figure.axes
    mesh, (edge, dot) = axes.collections[0], axes.get_lines()
    close(numpy.ravel(mesh.get_array()), found.ravel())
    close(mesh.get_coordinates()[0, :, 0], numpy.linspace(0, 4, cells + 1))
    close(mesh.get_coordinates()[:, 0, 1], numpy.linspace(0, 1, cells + 1))
    close(mesh.get_clim(), (min(found.min(), 0.99), 1.0))
    close((edge.get_xdata(), edge.get_ydata()), ((2, 4), (0, 1)))  # stable below lr L = 2 (1 + m)
    low, high = math.sqrt(curvatures.min()), math.sqrt(curvatures.max())  # Polyak's best pair
    best = (2 / (low + high)) ** 2, ((high - low) / (high + low)) ** 2
    close((dot.get_xdata()[0], dot.get_ydata()[0]), best)
    assert bar.get_ylabel() == "convergence rate"
    assert f"over {task.count} steps" in rates.caption
    assert f"η = {best[0]:.3g}/L with m = {best[1]:.3g} and comes to {math.sqrt(best[1]):.3g}" in rates.caption
    assert f"the best of the grid is {found.min():.3g}, without momentum {found[0].min():.3g}." in rates.caption
    (axes,) = measured.plot.figure.axes
    close((axes.get_xlim(), axes.get_ylim()), ((0, 4), (0, 1.5)))
    level, *lines = axes.get_lines()
    close(level.get_ydata(), (1, 1))
    for k, line, dots in zip((0, 2, 4, 5), lines[::2], lines[1::2]):
        some = numpy.arange(0, 800, 97)
        x = numpy.asarray(line.get_xdata(), float)
        close((x[0], x[-1], len(x)), (0.005, 4, 800))
        close(
            numpy.asarray(line.get_ydata())[some], [spectral_radius(lr, momenta[k], curvatures) for lr in x[some]], 1e-4
        )
        close((dots.get_xdata(), dots.get_ydata()), (lrs, found[k]))
        assert dots.get_label() == f"m = {momenta[k]:.3g}"


def test_estimators_of_the_gradient_of_the_elbo():
    task, options = build("elbo-gradients", epochs=1, steps_per_epoch=4, num_repeats=400)
    trained(task)
    mean, covariance = (each.numpy() for each in (task.posterior.mean, task.posterior.covariance))

    def gap(q: Any) -> float:
        m, c = q.mean.detach().numpy(), q.covariance.detach().numpy()
        precision, k = numpy.linalg.inv(covariance), len(m)
        away = mean - m
        logs = math.log(numpy.linalg.det(covariance) / numpy.linalg.det(c))
        return 0.5 * (numpy.trace(precision @ c) + away @ precision @ away - k + logs)

    gaps = [gap(q) for q in task.approximations()]
    told, panels = task.evaluate("validation"), shown(task.panels())
    slugs = ["score", "score_baseline", "paths", "analytic_kl", "bonnet_price"]
    close([told[f"elbo_gap_{slug}"] for slug in slugs], gaps)
    assert told["elbo_gap"] == pytest.approx(max(gaps[1:]))
    assert {f"gradient_variance_{slug}" for slug in slugs} <= set(told)
    # The score function's variance is above that with a baseline, and both above the pathwise ones.
    variances = [told[f"gradient_variance_{slug}"] for slug in slugs]
    assert variances[0] > variances[1] > variances[2] > 0
    close(list(panels["Gradient variance at the prior"].values[0].values()), variances)
    at_the_end = list(panels["Gradient variance at the posterior"].values[0].values())
    assert at_the_end[1] < 1e-9 * at_the_end[0]  # zero, for ln p(x, z) - ln q(z) is constant there
    ratio = variances[2] / variances[0]
    caption = panels["Gradient variance at the prior"].caption
    assert f"from {options.num_latent_samples} samples; the pathwise one's is {ratio:.2g} times" in caption
    # No estimator is biased: the largest of all standardised means is that of so many normal numbers.
    entries = sum(each[0].numel() for each in task.model.values())
    assert 1.0 < told["gradient_bias"] < math.sqrt(2 * math.log(10_000 * 5 * entries))
    lines = panels["ELBO gap"].lines
    assert [len(steps) for steps, _ in lines.values()] == [5] * 5  # the start, and four steps
    close([values[-1] for _, values in lines.values()], gaps)
    assert len({values[0] for _, values in lines.values()}) == 1  # all start at one q
    assert task.evaluate("test") == {}


def test_copies_symbol_by_symbol():
    task, _ = build(
        "performer-copy", num_rows=64, batch_size=32, epochs=2, sequence_length=6, num_symbols=5, embed_dim=8,
        performer_features=(16, 4, 16), num_features=8,
    )  # fmt: skip
    step = task.step(next(iter(task.batches)))
    assert float(step["loss"]) == float(step["loss_performer"])
    assert float(step["loss"]) / 32 == pytest.approx(math.log(5), abs=0.7)  # of a model that knows nothing
    trained(task, 2)
    right = {}
    for split in ("validation", "test"):
        sequences, told = task.splits[split], task.evaluate(split)
        for name, model in task.models.items():
            with torch.no_grad():
                guess = model.eval()(sequences.symbols)[:, -6:].argmax(-1)
            right[name] = (guess == sequences.answers).double().numpy()
            assert told[f"accuracy_{name}"] == pytest.approx(right[name].mean())
            assert told[f"whole_{name}"] == pytest.approx((right[name].min(1) == 1).mean())
        assert told["accuracy"] == told["accuracy_performer"]
        assert ("swapped_16" in told) == (split == "test")
    assert task.evaluate("train") == {}
    assert [len(each) for each in task.accuracies.values()] == [2, 2, 2]
    close(task.accuracies["exact"][-1], task.evaluate("validation")["accuracy_exact"])
    panels, names = shown(task.panels()), {"exact": "exact", "linear": "linear, elu + 1", "performer": "Performer"}
    by_position = panels["Accuracy by position"]
    for name, spoken in names.items():
        close(by_position.lines[spoken], (range(1, 7), right[name].mean(0)))
        assert f"{1000 * task.seconds[name] / task.step_count:.1f} ms per step" in by_position.caption
        close(panels["Accuracy by epoch"].lines[spoken], ([1, 2], task.accuracies[name]))
    assert by_position.how["reference_lines"] == panels["Accuracy by epoch"].how["reference_lines"] == {"chance": 0.2}
    swaps = panels["Transferred weights"]
    close(next(iter(swaps.lines.values())), ([4, 16], [told["swapped_4"], told["swapped_16"]]))
    assert swaps.how["reference_lines"] == {"trained with 8 features": right["performer"].mean(), "chance": 0.2}
    assert swaps.how["log_x"]
    maps = panels["Attention weights"].values[0]
    assert {name: tuple(each.shape) for name, each in maps.items()} == dict.fromkeys(names.values(), (2, 6, 12))
    for each in maps.values():  # rows of weights, none of a symbol that comes later
        close(each.sum(-1), numpy.ones((2, 6)), 1e-4)
        assert all(float(each[:, row, 7 + row :].abs().sum()) < 1e-6 for row in range(6))


def test_linear_regions_by_epoch():
    task, _ = build("regions-during-training", hidden_dims=(4, 4), epochs=2, batch_size=200)
    assert len(task.counts) == 1
    trained(task, 2)
    grid = torch.cartesian_prod(*2 * [torch.linspace(-2.5, 2.5, 250)])
    patterns, signs = grid, []
    for layer in task.task.model.modules():
        if isinstance(layer, torch.nn.Linear):
            patterns = layer(patterns).detach()
            signs.append(patterns > 0)
            patterns = patterns.relu()
    seen = len(torch.cat(signs[:-1], 1).unique(dim=0))  # regions that some point of a grid lies in
    assert len(task.counts) == 3
    assert seen <= task.counts[-1] <= 1.3 * seen + 3
    told, panel = task.evaluate("test"), shown(task.panels())["Linear regions by epoch"]
    assert (told["regions"], told["region_growth"]) == (task.counts[-1], task.counts[-1] / task.counts[0])
    assert "regions" not in task.evaluate("validation")
    assert "region_growth" not in task.evaluate("train")
    close(panel.lines["linear regions"], (range(3), task.counts))


def test_an_approximation_on_its_grid():
    task, options = build("approximate-function", epochs=1, steps_per_epoch=3, batch_size=32, function="wave")
    trained(task)
    x = numpy.linspace(-1, 1, 4001)
    g = numpy.sin(2 * numpy.pi * x)
    with torch.no_grad():
        trained_one = task.model(torch.from_numpy(x).float()[:, None])[:, 0].double().numpy()
    told, panels, built = task.evaluate("validation"), shown(task.panels()), task.construction
    assert told["sup_error"] == pytest.approx(abs(trained_one - g).max())
    assert told["error_bound_ratio"] == pytest.approx(told["sup_error"] / built.error)
    assert built.error <= options.eps
    made = built.function(torch.from_numpy(x)).numpy()
    assert told["constructed_sup_error"] == pytest.approx(abs(made - g).max(), rel=2e-2)
    assert told["constructed_sup_error"] <= built.error
    for name, values in (("g", g), ("constructed", made), ("trained", trained_one)):
        close(panels["The function and its two networks"].lines[name], (x[::10], values[::10]), 1e-5)
    for name, values in (("constructed", made), ("trained", trained_one)):
        close(panels["Errors"].lines[name][1], values - g, 1e-3 if name == "trained" else 1e-5)
    close(list(panels["Maximum errors"].values[0].values()), [built.error, built.measured, told["sup_error"]])
    assert task.evaluate("test") == {}


def test_the_latents_of_a_vae():
    task, _ = build("vae", epochs=1, batch_size=256, latent_dim=4, hidden_dims=(16,), decoder="binomial")
    trained(task)
    images, labels = task.data.test.features, task.data.test.targets.numpy()
    with torch.no_grad():
        q = task.eval_model.eval().encoder(images)
    mean, std = q.mean.double().numpy(), q.log_std.double().exp().numpy()
    nats = (0.5 * (mean**2 + std**2 - 1) - numpy.log(std)).mean(0)
    told, panels = task._means("test", task.data.test), shown(task.panels())
    assert told["kl"] == pytest.approx(nats.sum(), rel=1e-4)
    assert told["loss"] == pytest.approx(told["kl"] + told["reconstruction_nll"], rel=1e-5)
    assert told["bits_per_dimension"] == pytest.approx(told["loss"] / (images[0].numel() * math.log(2)), rel=1e-5)
    assert told["iwae_bits_per_dimension"] == pytest.approx(-told["log_likelihood"] / (64 * math.log(2)), rel=1e-5)
    assert told["log_likelihood"] > -told["loss"]  # the tighter bound
    assert 1 <= told["effective_sample_size"] <= task.options.num_importance_samples
    bars = panels["KL per latent dimension"]
    close(list(bars.values[0].values()), nats, 1e-4)
    assert list(bars.values[0]) == [f"latent {number}" for number in range(1, 5)]
    assert f"; {nats.sum():.1f} nats in total." in bars.caption
    order = numpy.argsort(-nats)
    space = panels["Latent space"]
    assert space.how == {"x_label": f"latent {order[0] + 1}", "y_label": f"latent {order[1] + 1}"}
    for number, points in enumerate(space.values[0].values()):
        close(points, mean[labels == number][:, order[:2]], 1e-4)
    table = panels["Reconstructions"].values[0]
    firsts = [int(numpy.flatnonzero(labels == number)[0]) for number in range(10)]
    close(table[0], images[firsts])
    with torch.no_grad():
        close(table[1], task.eval_model(images[firsts]).clamp(0, 1), 1e-4)
    traversal = panels["Latent traversal"]
    assert traversal.how["row_labels"] == [f"latent {number + 1}" for number in order]
    for row, number in enumerate(order):
        for column, value in enumerate(map(float, traversal.how["column_labels"])):
            z = torch.from_numpy(mean[0].copy()).float()
            z[number] = value
            with torch.no_grad():
                found = task.eval_model.decode_mean(z[None])[0]
            close(traversal.values[0][row][column].detach(), found, 0.1)


def test_networks_by_the_number_of_rows():
    task, _ = build("inductive-bias", num_rows=(20, 40), epochs=1)
    trained(task)
    errors = {}
    for name, count in [*task.others, ("cnn", 40)]:
        each = task.others.get((name, count), task)
        rows = each.data.test
        with torch.no_grad():
            errors[name, count] = numpy.mean((each.model.eval()(rows.features).argmax(-1) != rows.targets).numpy())
    assert set(errors) == {(n, c) for n in ("cnn", "mlp", "scrambled_cnn", "scrambled_mlp") for c in (20, 40)}
    assert {each.updater.step_count for each in task.others.values()} == {task.step_count}
    told, panels = task.evaluate("test"), shown(task.panels())
    means = {}
    plain_and_scrambled = {"cnn": "CNN", "mlp": "MLP"}
    plain_and_scrambled |= {
        f"scrambled_{name}": f"{words}, pixels scrambled" for name, words in plain_and_scrambled.items()
    }
    for name, spoken in plain_and_scrambled.items():
        means[name] = (errors[name, 20] + errors[name, 40]) / 2
        assert told[f"{name}_error"] == pytest.approx(means[name])
        line = panels["Test accuracy by training set size"].lines[spoken]
        close(line, ([20, 40], [1 - errors[name, 20], 1 - errors[name, 40]]))
    assert told["cnn_error_reduction"] == pytest.approx(means["mlp"] - means["cnn"])
    assert told["scrambled_cnn_error_reduction"] == pytest.approx(means["scrambled_mlp"] - means["scrambled_cnn"])
    assert not any("error" in name for name in task.evaluate("train"))
    grid = panels["Images"]
    assert grid.how == {"columns": 6}
    plain, scrambled = grid.values[0][:6].flatten(1), grid.values[0][6:].flatten(1)
    close(plain.sort(1).values, scrambled.sort(1).values, 1e-5)  # the same pixels in another order
    assert not torch.equal(plain, scrambled)


def test_images_without_grey_levels_have_no_bound_in_bits():
    task, _ = build("diffusion-digits")
    task.data_info = dataclasses.replace(task.data_info, levels=0)
    images: Any = None  # none is looked at
    assert task.compute_final_metrics(images, images, noise=images) == {}
