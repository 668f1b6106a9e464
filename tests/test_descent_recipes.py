"""The recipes about descent measure what they say: bounds beside runs, rates beside eigenvalues, rules on equal
terms."""

import dataclasses
import itertools
from typing import Any, cast

import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

from quoin.cli import main
from quoin.errors import UserError
from quoin.losses import cross_entropy
from quoin.optim import Adam, AdamW, GradientDescent, Momentum, Nesterov, RMSProp
from quoin.recipes import gd_bound, momentum_phase, optimizer_race
from quoin.runs import find_recipe
from quoin.tasks.gradient_descent_bounds import logistic_minimizer
from quoin.tasks.momentum_phase import random_quadratic
from quoin.tasks.optimizer_race import Trial, smoothed
from quoin.tasks.supervised_data import load_classification_data
from quoin.train import NonFiniteLossError, setup_device
from tasks import copy_state


@pytest.fixture(scope="module")
def device_context():
    return setup_device("cpu", threads=1)[0]


def run(task: Any, updates: int) -> Any:
    for rows in itertools.islice(itertools.chain.from_iterable(itertools.repeat(task.batches)), updates):
        task.step(rows)
    return task


# ---- gd-bound ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bounded(device_context):
    return run(gd_bound.build(gd_bound.Options(), device_context), 40)


@pytest.fixture(scope="module")
def problem(device_context):
    """The design with its column of ones, the signs, and L by numpy's way: the largest eigenvalue of the Hessian at
    zero."""
    train = load_classification_data(gd_bound.Options(), device_context).train
    X = torch.cat([train.features, torch.ones(train.num_rows, 1)], dim=1).double()
    hessian = X.mT @ X / (4 * len(X)) + 0.05 * torch.eye(X.shape[1], dtype=torch.float64)
    return X, 2.0 * train.targets.double() - 1, float(torch.linalg.eigvalsh(hessian)[-1])


def test_the_minimiser_is_scikit_learns(problem):
    X, signs, _ = problem
    peer = LogisticRegression(C=1 / (0.05 * len(X)), fit_intercept=False, tol=1e-10, max_iter=1000).fit(
        X.numpy(), signs.numpy()
    )
    torch.testing.assert_close(
        logistic_minimizer(X, signs, 0.05), torch.from_numpy(peer.coef_[0]), atol=1e-6, rtol=1e-5
    )


def test_its_runs_are_gradient_descent_written_out(bounded, problem):
    X, signs, L = problem
    for share, found in zip((0.1, 0.3, 1.0), bounded.points, strict=True):
        theta = torch.zeros(X.shape[1], dtype=torch.float64)
        for _ in range(40):
            theta = theta - share / L * (X.mT @ (-signs * torch.sigmoid(-signs * (X @ theta))) / len(X) + 0.05 * theta)
        torch.testing.assert_close(found, theta, atol=1e-9, rtol=1e-9)


def test_both_bounds_are_the_theorems_and_the_ratio_is_to_the_smaller(bounded, problem):
    X, signs, L = problem
    squared = float(logistic_minimizer(X, signs, 0.05).square().sum())  # from a start at zero
    for share, k in ((0.1, 0), (1.0, 2)):
        convex, strong = bounded.bounds(k)
        assert float(convex[40]) == pytest.approx(squared / (2 * share / L * 40))
        assert float(strong[40]) == pytest.approx(L / 2 * (1 - share / L * 0.05) ** 80 * squared)
        assert float(bounded.ratios()[k][40]) == pytest.approx(
            bounded.suboptimality[k][40] / min(float(convex[40]), float(strong[40]))
        )


def test_a_run_that_broke_the_bound_would_miss_the_target(bounded, device_context):
    found = bounded.evaluate("train")
    target = find_recipe("gd-bound").target
    assert target.met(found["suboptimality_bound_ratio"])
    assert found["suboptimality_bound_ratio"] > 0.05  # not by a wide mile: what is a hundred times off would be seen
    other = gd_bound.build(gd_bound.Options(), device_context)
    other.load_state_dict(copy_state(bounded.state_dict()))
    other.suboptimality[1][30] = 1.01 * float(other.bounds(1)[0][30])
    assert other.evaluate("train")["suboptimality_bound_ratio"] == pytest.approx(1.01)
    assert not target.met(1.01)
    assert found["step_away"] < 0  # no step led away from the minimiser


def test_the_slowest_cost_comes_to_half_of_the_bound(bounded):
    assert bounded.evaluate("train")["slowest_over_bound"] == pytest.approx(40 / 81)  # T / (2T + 1)


def test_the_kept_model_has_the_weights_of_the_largest_rate(bounded, problem, device_context):
    X, signs, _ = problem
    net = gd_bound.model(gd_bound.Options(), bounded.data_info)
    net.load_state_dict(bounded.state_dict()["model"]["weights"])
    logits = net(X[:, :-1].float())
    torch.testing.assert_close((logits[:, 1] - logits[:, 0]).double(), X @ bounded.points[-1], atol=1e-4, rtol=1e-4)
    agreed = (signs * (X @ bounded.points[-1]) > 0).double().mean()
    assert bounded.evaluate("train")["accuracy"] == pytest.approx(float(agreed))


# ---- momentum-phase ---------------------------------------------------------------------------------------------

SMALL = momentum_phase.Options(grid_size=6, dim=3)


@pytest.fixture(scope="module")
def phase(device_context):
    return run(momentum_phase.build(SMALL, device_context), 300)


def grid(cells: int = 6) -> tuple[list[float], list[float]]:
    rates, momenta = [4 * (k + 0.5) / cells for k in range(cells)], [(k + 0.5) / cells for k in range(cells)]
    return rates, [0.0, *momenta[1:]]


def test_the_quadratic_has_the_curvatures_asked_for():
    curvatures, axes = random_quadratic(7, 50.0, 3)
    torch.testing.assert_close(axes.mT @ axes, torch.eye(7, dtype=torch.float64), atol=1e-12, rtol=0)
    assert float(curvatures.max() / curvatures.min()) == pytest.approx(50)
    assert float(curvatures.max()) == 1


def test_points_go_where_torch_goes(device_context):
    task: Any = run(momentum_phase.build(SMALL, device_context), 7)
    curvatures, axes = random_quadratic(SMALL.dim, SMALL.condition_number, SMALL.seed)
    Q = axes * curvatures @ axes.mT
    rates, momenta = grid()
    for k, j in ((0, 1), (2, 0), (5, 4)):
        x = nn.Parameter(axes.mean(dim=1) * 3**0.5)
        begun, sgd = x.detach().clone(), torch.optim.SGD([x], rates[j], momentum=momenta[k])
        for _ in range(7):
            before = x.detach().clone()
            sgd.zero_grad()
            (x @ Q @ x / 2).backward()
            sgd.step()
        both = torch.cat([x.detach(), x.detach() - before])  # the last step is the velocity
        weights = task.state_dict()["model"]["weights"]
        torch.testing.assert_close(
            torch.cat([weights["points"][k, j], weights["velocities"][k, j]]), both / both.norm()
        )
        assert float(task.length[k, j]) == pytest.approx(float(both.norm().log()) - float(begun.norm().log()))


def test_measured_rates_are_near_the_largest_eigenvalue_of_the_whole_update(phase):
    curvatures, axes = random_quadratic(SMALL.dim, SMALL.condition_number, SMALL.seed)
    Q, eye = axes * curvatures @ axes.mT, torch.eye(3, dtype=torch.float64)
    rates, momenta = grid()
    for (k, m), (j, rate) in itertools.product(enumerate(momenta), enumerate(rates)):
        update = torch.cat([torch.cat([eye - rate * Q, m * eye], 1), torch.cat([-rate * Q, m * eye], 1)])  # of (x, v)
        radius = float(torch.linalg.eigvals(update).abs().max())
        assert float(phase.measured()[k, j]) == pytest.approx(radius, abs=0.01)
        assert float(phase.convergence_rate_error()[k, j]) == pytest.approx(
            abs(float(phase.measured()[k, j]) - radius), abs=1e-6
        )


def test_the_slope_is_that_of_the_best_line(phase, device_context):
    task: Any = momentum_phase.build(SMALL, device_context)
    lengths = torch.randn(9, 6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    t = torch.arange(1.0, 10.0, dtype=torch.float64)
    task.count, task.sums = 9, torch.stack([lengths.sum(0), (t[:, None, None] * lengths).sum(0)])
    line = torch.linalg.lstsq(torch.stack([t, torch.ones_like(t)], 1), lengths.flatten(1)).solution[0]
    torch.testing.assert_close(task.measured(), line.exp().reshape(6, 6))


def test_a_delayed_velocity_would_miss_the_target(device_context, monkeypatch):
    """The printed form moves by the old velocity: its rates are others."""

    class Stale(Momentum):
        def step(self, x, gradient, state):
            return x + state, self.momentum * state - self.lr * gradient

    monkeypatch.setattr("quoin.tasks.momentum_phase.Momentum", Stale)
    assert run(momentum_phase.build(SMALL, device_context), 300).evaluate("validation")["convergence_rate_error"] > 0.1


def test_a_state_brings_the_phase_back(phase, device_context):
    other: Any = momentum_phase.build(SMALL, device_context)
    other.load_state_dict(copy_state(phase.state_dict()))
    assert run(other, 3).evaluate("validation") == run(phase, 3).evaluate("validation")


# ---- optimizer-race ---------------------------------------------------------------------------------------------

RULES = {
    "sgd": GradientDescent(0.1),
    "momentum": Momentum(0.1, 0.9),
    "nesterov": Nesterov(0.1, 0.9),
    "rmsprop": RMSProp(0.01),
    "adam": Adam(0.01),
    "adamw": AdamW(0.01, weight_decay=0.1),
}
FEW = optimizer_race.Options(hidden_dims=(8,), lrs=(0.1,), adaptive_lrs=(0.01,), batch_size=200)


@pytest.fixture(scope="module")
def race(device_context):
    return run(optimizer_race.build(FEW, device_context), 8)  # seven updates are an epoch


def test_every_rule_takes_the_steps_of_its_definition(race, device_context):
    data = load_classification_data(FEW, device_context).train
    for each in race.trials:
        net, rule = optimizer_race.model(FEW, race.data_info), RULES[each.optimizer]
        states: list[Any] = [rule.init(parameter) for parameter in net.parameters()]
        batches = optimizer_race.build(FEW, device_context).batches
        for rows in itertools.islice(itertools.chain.from_iterable(itertools.repeat(batches)), 8):
            loss = cross_entropy(net(data.features[rows]), data.targets[rows]).mean()
            slopes = torch.autograd.grad(loss, list(net.parameters()))
            for k, (parameter, slope) in enumerate(zip(net.parameters(), slopes)):
                new, states[k] = rule.step(parameter.detach(), slope, states[k])
                with torch.no_grad():
                    parameter.copy_(new)
        for ours, theirs in zip(each.task.model.parameters(), net.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-3)
        assert each.losses[-1] == pytest.approx(float(loss.detach()), rel=1e-3)


def test_the_rate_is_chosen_on_validation_and_the_target_is_the_worst_rule(device_context):
    task: Any = run(optimizer_race.build(dataclasses.replace(FEW, lrs=(0.001, 0.3)), device_context), 7)
    chosen = task.chosen()
    assert {rule: each.lr for rule, each in chosen.items()} == {
        "sgd": 0.3, "momentum": 0.3, "nesterov": 0.3, "rmsprop": 0.01, "adam": 0.01, "adamw": 0.01
    }  # fmt: skip
    losses = {each.lr: each.task.evaluate("validation")["loss"] for each in task.trials if each.optimizer == "sgd"}
    assert chosen["sgd"].eval_losses == [losses[0.3]]
    assert losses[0.3] < losses[0.001]
    found = task.evaluate("test")
    accuracies = [each.task.evaluate("test")["accuracy"] for each in chosen.values()]
    assert found["min_accuracy"] == min(accuracies)
    best = min(chosen.values(), key=lambda each: each.eval_losses[-1])
    weights = task.state_dict()["model"]["weights"]
    assert all(torch.equal(weights[name], value) for name, value in best.task.model.state_dict().items())
    assert task.evaluate("train")["steps_to_threshold_sgd"] == 7  # the level was not reached: all that were made


def test_updates_are_counted_to_the_first_window_below_the_level():
    trial = Trial("sgd", 0.1, cast(Any, None))
    trial.losses = [5.0, 1.0, 2.0, 0.0, 0.5, 9.0]
    assert [trial.steps_to(level, 2) for level in (3.0, 1.5, 1.0, 0.25, 0.1)] == [2, 3, 4, 5, 6]
    assert smoothed([1.0, 2.0, 3.0, 4.0, 5.0], 4) == ([4, 5], [2.5, 3.5])


def test_who_diverges_is_out_and_stays_out(device_context):
    options = dataclasses.replace(FEW, lrs=(0.1, 1e37))
    task: Any = run(optimizer_race.build(options, device_context), 3)
    assert {each.optimizer for each in task.trials if each.diverged} == {"sgd", "momentum", "nesterov"}
    assert all(each.lr == 1e37 for each in task.trials if each.diverged)
    other: Any = optimizer_race.build(options, device_context)
    other.load_state_dict(copy_state(task.state_dict()))
    assert [each.diverged for each in other.trials] == [each.diverged for each in task.trials]
    assert run(other, 2).evaluate("test") == run(task, 2).evaluate("test")
    with pytest.raises(NonFiniteLossError, match=r"SGD is not finite at any of its learning rates; try smaller --lrs"):
        run(optimizer_race.build(dataclasses.replace(FEW, lrs=(1e37,)), device_context), 3)


def test_reports_show_each_rule_and_each_bound(race, bounded, phase):
    by_updates, by_seconds, by_rate, *_ = (panel.plot.figure.axes[0] for panel in race.panels())
    assert [len(axes.lines) for axes in (by_updates, by_seconds, by_rate)] == [7, 7, 6]  # six rules, and the level
    assert by_seconds.lines[0].get_xdata()[-1] == pytest.approx(race.chosen()["sgd"].seconds)
    gaps, ratios, _ = (panel.plot.figure.axes for panel in bounded.panels())
    assert [axes.get_title(loc="left") for axes in gaps] == ["η = 0.1/L", "η = 0.3/L", "η = 1/L"]
    assert list(gaps[2].lines[2].get_ydata()) == pytest.approx(bounded.suboptimality[2][1:])
    assert len(ratios[0].lines) == 4
    assert len(phase.panels()[1].plot.figure.axes[0].lines) == 9  # four momenta, line and dots, and the level of one


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["gd-bound", "--data", "iris"], "expected two classes, got 3"),
        (["gd-bound", "--lr-factors", "1.5"], "--lr-factors must be at most 1"),
        (["momentum-phase", "--condition-number", "0.5"], "--condition-number must be at least 1"),
        (["optimizer-race", "--lrs", "0"], "--lrs must be above 0"),
    ],
)
def test_what_cannot_be_run_is_told(words, told, tmp_path, capsys):
    assert main(["train", *words, "--runs", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1


def test_lists_that_are_empty_are_told(device_context):
    with pytest.raises(UserError, match="--lr-factors expects at least one"):
        gd_bound.build(gd_bound.Options(lr_factors=()), device_context)
    with pytest.raises(UserError, match="--adaptive-lrs expects at least one"):
        optimizer_race.build(optimizer_race.Options(adaptive_lrs=()), device_context)
