"""Diffusion of points: predictions of clean points stay among the data, so every schedule goes with every
parametrisation."""

import itertools

import pytest
import torch
from torch import nn

from quoin.errors import UserError
from quoin.generate import DiffusionSampler
from quoin.prob import EpsilonPrediction, cosine_beta_schedule
from quoin.recipes.diffusion_2d import Options
from quoin.runs import find_recipe
from quoin.tasks.diffusion_process import PREDICTION_TYPES, SCHEDULES
from quoin.train import DeviceContext, RunFolder
from tasks import run_loop

pytestmark = pytest.mark.usefixtures("one_thread")
OF_A_NORMAL = 0.023  # squared MMD of a normal distribution with the mean and covariance of two moons


def task_of(**options):
    return find_recipe("diffusion-2d").build(Options(**options), DeviceContext())


def test_a_small_error_of_the_noise_does_not_throw_all_points_to_one_side():
    """All data are ±1, either as likely: ε̂ = (x - α tanh(α x/σ²))/σ is exact. With a hundredth added, x̂_0 is 200 off
    at the end of the cosine schedule."""
    schedule = cosine_beta_schedule(1000)
    signal, noise = schedule.tables(torch.zeros(1, dtype=torch.float64))

    class Network(nn.Module):
        def forward(self, x, t):
            a, s = signal[t, None], noise[t, None]
            return (x - a * torch.tanh(a * x / s**2)) / s + 0.01

    def mean(bounds):
        zero, one = torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
        model = DiffusionSampler(Network(), schedule, EpsilonPrediction(), (1,), loc=zero, scale=one, bounds=bounds)
        samples = model.sample(200, generator=torch.Generator().manual_seed(0))
        assert float((samples.abs() - 1).abs().max()) < 0.01
        return float(samples.mean())

    assert abs(mean((-1.0, 1.0))) < 0.25
    assert abs(mean(None)) > 0.99


def test_the_bounds_are_those_of_the_training_points_and_travel_with_the_weights():
    task, other = task_of(seed=1, num_examples=200), task_of(seed=2, num_examples=300)
    farthest = float(task.model.normalize(task.points["train"]).abs().max())
    assert task.model.clip_range == pytest.approx((-farthest, farthest))
    assert other.model.clip_range != task.model.clip_range
    other.model.load_state_dict(task.model.state_dict())
    assert other.model.clip_range == task.model.clip_range
    assert task.eval_model.clip_range == task.model.clip_range
    assert float(task.sample(500, "samples").sub(task.model.loc).div(task.model.scale).abs().max()) < farthest + 1e-5


def test_a_point_beyond_those_of_training_pays_for_the_network_not_for_the_bounds():
    """Clipped, x̂_0 stays three away from it however little noise there is: 1/(2 β_1) = 5,000 nats each."""
    task = task_of(num_examples=40, hidden_dim=8)
    task.measured = task.model.denormalize(torch.full((1, 2), 3.0 + task.model.clip_range[1]))
    found = task.compute_final_metrics()["nll_bound"]
    with torch.no_grad():
        for model in (task.model, task.eval_model):
            model.bounds.copy_(torch.tensor([-1e6, 1e6]))
    assert found == pytest.approx(task.compute_final_metrics()["nll_bound"], rel=1e-6)


@pytest.mark.parametrize("recipe", ["diffusion-2d", "diffusion-digits"])
def test_of_few_timesteps_all_are_taken_unless_more_were_asked_for(recipe):
    found = find_recipe(recipe)
    default = found.options()
    for timesteps, steps in ((2, 2), (5, 5), (default.num_steps + 1, default.num_steps)):
        options = found.options(num_timesteps=timesteps)
        assert found.build(options, DeviceContext()).model.num_steps == steps
    with pytest.raises(UserError, match="expected 1 to 5 steps"):
        found.build(found.options(num_timesteps=5, num_steps=6), DeviceContext())


@pytest.mark.deep
@pytest.mark.parametrize(("beta_schedule", "prediction_type"), list(itertools.product(SCHEDULES, PREDICTION_TYPES)))
def test_every_schedule_goes_with_every_prediction(beta_schedule, prediction_type, tmp_path):
    task = task_of(beta_schedule=beta_schedule, prediction_type=prediction_type, epochs=60)
    config = {"kind": "point-generation", "options": {}, "settings": {}, "data": None}
    run_loop(task, RunFolder.create(tmp_path, "points", config, {}), epochs=60, checkpoint_every=10**6)
    assert task.evaluate("test")["mmd"] < OF_A_NORMAL
