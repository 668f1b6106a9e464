"""Samplers of diffusion and flow: when they ask, what they draw, whose they equal, and what they refuse."""

import functools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.generate import (
    DiffusionSampler,
    FlowSampler,
    GuidedDiffusionSampler,
    PathModel,
    annealed_langevin,
    clip_denoiser,
    flow_log_prob,
    integrate_euler,
    integrate_midpoint,
    langevin,
    sample_ddim,
    sample_ddpm,
    sample_dpm_solver_2,
    sample_euler,
    sample_heun,
    sample_initial_noise,
)
from quoin.models import DensityModel, GenerativeModel
from quoin.prob import (
    Denoised,
    EpsilonPrediction,
    GaussianDenoiser,
    GaussianFlow,
    MultivariateNormal,
    NoiseSchedule,
    VPrediction,
    cosine_beta_schedule,
    linear_beta_schedule,
    make_denoiser,
    sigmoid_beta_schedule,
)
from seeds import seeded

pytestmark = pytest.mark.usefixtures("one_thread")

half_new = functools.partial(sample_ddim, eta=0.5)
one_step = functools.partial(annealed_langevin, num_corrector_steps=1)
SAMPLERS = {
    "ddpm": sample_ddpm,
    "ddim": sample_ddim,
    "ddim, eta 1/2": half_new,
    "euler": sample_euler,
    "heun": sample_heun,
    "dpm-solver-2": sample_dpm_solver_2,
    "langevin": one_step,
}
every = pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)


def network(x: Tensor, t: Tensor) -> Tensor:
    """Some answer that depends on all it is given."""
    return torch.tanh(x + t.reshape(-1, *[1] * (x.ndim - 1)) / 50)


@every
@settings(deadline=None, max_examples=25)
@given(st.data())
def test_the_denoiser_is_asked_at_the_times_of_the_schedule_and_no_others(sampler, data):
    num_steps = data.draw(st.integers(1, 40))
    steps = data.draw(st.integers(1, num_steps))
    schedule = linear_beta_schedule(num_steps)
    inner = make_denoiser(network, schedule, EpsilonPrediction())
    asked: list[int] = []
    watched: list[int] = []

    def denoiser(x: Tensor, t: Tensor) -> Denoised:
        assert t.unique().numel() == 1
        asked.append(int(t[0]))
        return inner(x, t)

    start = sample_initial_noise((2, 1), generator=seeded())
    found = sampler(
        denoiser, schedule, start, num_steps=steps, generator=seeded(), callback=lambda t, x: watched.append(t)
    )
    times = schedule.timesteps(steps)
    assert list(dict.fromkeys(asked)) == list(times[:-1])  # in order, each of them, whatever the number of times
    assert set(watched) <= set(times)
    assert (watched[0], watched[-1]) == (num_steps, 0)
    assert watched == sorted(watched, reverse=True)
    assert bool(found.isfinite().all())
    if sampler in (sample_ddpm, sample_ddim, sample_euler, sample_dpm_solver_2):
        assert len(asked) == steps
    if sampler is sample_heun:
        assert asked == [
            times[0],
            *(t for t in times[1:-1] for _ in range(2)),
        ]  # at the end of a step and at the start of the next


@every
def test_a_sample_is_a_function_of_its_seed_and_the_last_state(sampler):
    schedule = cosine_beta_schedule(30)
    denoiser = make_denoiser(network, schedule, VPrediction())
    start = sample_initial_noise((3, 1, 4, 4), generator=seeded(1))
    kept = start.clone()
    seen: list[Tensor] = []
    found = sampler(denoiser, schedule, start, num_steps=7, generator=seeded(2), callback=lambda t, x: seen.append(x))
    again = sampler(denoiser, schedule, start, num_steps=7, generator=seeded(2))
    assert torch.equal(found, again)
    assert torch.equal(start, kept)
    assert torch.equal(seen[0], start)
    assert torch.equal(seen[-1], found)
    assert found.dtype == torch.float32
    assert not found.requires_grad


@every
def test_the_law_of_normal_data_is_drawn(sampler):
    """Whatever the sampler: many draws have the mean and covariance of the data, up to a step's error and chance."""
    root = torch.tensor([[0.9, 0.0], [0.5, 0.4]])
    law = MultivariateNormal(torch.tensor([0.5, -1.0]), root @ root.mT)
    schedule = cosine_beta_schedule(200)
    start = sample_initial_noise((4000, 2), generator=seeded())
    if sampler is one_step:
        sampler = functools.partial(annealed_langevin, num_corrector_steps=2, step_size=0.2)
    found = sampler(GaussianDenoiser(law, schedule), schedule, start, num_steps=200, generator=seeded(1))
    assert float((found.mean(dim=0) - law.mean).abs().max()) < 0.08
    assert float((found.mT.cov() - law.covariance).abs().max()) < 0.08


def test_eta_tells_how_much_noise_is_new():
    schedule, generator = linear_beta_schedule(20), seeded()
    denoiser = make_denoiser(network, schedule, EpsilonPrediction())
    start = sample_initial_noise((5, 2), generator=generator)
    before = generator.get_state()
    sample_ddim(denoiser, schedule, start, num_steps=5, generator=generator)
    assert torch.equal(generator.get_state(), before)  # none is drawn
    all_new = sample_ddim(denoiser, schedule, start, num_steps=5, eta=1.0, generator=seeded(3))
    torch.testing.assert_close(
        all_new, sample_ddpm(denoiser, schedule, start, num_steps=5, generator=seeded(3)), atol=1e-5, rtol=1e-4
    )
    for eta in (-0.1, 1.1, math.nan):
        with pytest.raises(UserError, match="eta from 0"):
            sample_ddim(denoiser, schedule, start, num_steps=5, eta=eta, generator=generator)


@pytest.mark.parametrize("steps", [5, 20, 100])
def test_ddim_is_that_of_diffusers(steps):
    diffusers = pytest.importorskip("diffusers")
    for ours, theirs in ((linear_beta_schedule, "linear"), (cosine_beta_schedule, "squaredcos_cap_v2")):
        schedule = ours(100, first=0.01, last=2.0) if ours is linear_beta_schedule else ours(100)
        peer = diffusers.DDIMScheduler(
            num_train_timesteps=100,
            beta_schedule=theirs,
            clip_sample=False,
            timestep_spacing="trailing",
            beta_start=1e-4,
            beta_end=0.02,
        )
        peer.set_timesteps(steps)
        start = sample_initial_noise((4, 3), generator=seeded(), dtype=torch.float64)
        x = start
        for t in peer.timesteps:  # its time t - 1 is our time t
            x = peer.step(network(x, torch.full((4,), int(t) + 1)), t, x).prev_sample
        found = sample_ddim(
            make_denoiser(network, schedule, EpsilonPrediction()), schedule, start, num_steps=steps, generator=seeded()
        )
        torch.testing.assert_close(found, x, atol=1e-4, rtol=1e-4)  # its table is in float32


def test_a_solver_of_the_second_order_beats_one_of_the_first_at_the_same_cost():
    law = MultivariateNormal(torch.tensor([0.5, -1.0]).double(), torch.tensor([[1.0, 0.6], [0.6, 0.5]]).double())
    schedule = linear_beta_schedule(1000)
    oracle = GaussianDenoiser(law, schedule)
    start = oracle.marginal(1000)
    corners = torch.cat([torch.zeros(1, 2), torch.eye(2)]).double()

    def off(sampler, steps):
        found = sampler(oracle, schedule, corners, num_steps=steps, generator=seeded())
        matrix = (found[1:] - found[0]).mT
        return float((matrix @ start.covariance @ matrix.mT - law.covariance).abs().max())

    assert off(sample_dpm_solver_2, 40) < off(sample_ddim, 40) / 3
    assert off(sample_heun, 20) < off(sample_ddim, 40) / 2  # it asks twice a step
    # Out of nearly pure noise a first step of the second order would blow up.
    sharp = sigmoid_beta_schedule(1000)
    assert (
        float(
            sample_dpm_solver_2(GaussianDenoiser(law, sharp), sharp, corners, num_steps=5, generator=seeded())
            .abs()
            .max()
        )
        < 5
    )


def test_dpm_solver_weighs_its_middle_by_where_it_lies():
    """x_s from x_t by the two formulas of its authors, on a schedule whose middle time is far from half the way in
    λ."""
    schedule = NoiseSchedule(torch.tensor([0.01, 0.02, 0.6, 0.3]))
    seen: dict[int, Tensor] = {}
    start = sample_initial_noise((3, 2), generator=seeded(), dtype=torch.float64)
    sample_dpm_solver_2(
        make_denoiser(network, schedule, EpsilonPrediction()), schedule, start, num_steps=4, callback=seen.__setitem__
    )
    assert list(seen) == [4, 3, 1, 0]
    a, n, lambdas = schedule.signal, schedule.noise, schedule.half_log_snr
    h, part = lambdas[1] - lambdas[3], lambdas[2] - lambdas[3]
    x = seen[3]
    here = network(x, torch.full((3,), 3))
    there = network(a[2] / a[3] * x - n[2] * torch.expm1(part) * here, torch.full((3,), 2))
    slope = here + (there - here) / (2 * part / h)
    torch.testing.assert_close(seen[1], a[1] / a[3] * x - n[1] * torch.expm1(h) * slope)


def test_clipping_holds_the_guess_and_leaves_x_as_it_is():
    schedule = cosine_beta_schedule(50)
    inner = make_denoiser(lambda x, t: 3 * x, schedule, EpsilonPrediction())
    x, t = torch.randn(6, 2, generator=seeded()), torch.full((6,), 40)
    found = clip_denoiser(inner, schedule, low=-1.0, high=1.0)(x, t)
    assert float(inner(x, t).clean.abs().max()) > 1
    assert float(found.clean.abs().max()) <= 1
    torch.testing.assert_close(schedule.signal[40] * found.clean + schedule.noise[40] * found.noise, x)
    with pytest.raises(UserError, match="low below high"):
        clip_denoiser(inner, schedule, low=1.0, high=1.0)


@every
def test_none_to_draw_and_steps_outside_the_schedule_are_refused(sampler):
    schedule = linear_beta_schedule(10)
    denoiser = make_denoiser(network, schedule, EpsilonPrediction())
    with pytest.raises(UserError, match="at least one sample"):
        sampler(denoiser, schedule, torch.zeros(0, 2), num_steps=3, generator=seeded())
    for steps in (0, 11):
        with pytest.raises(UserError, match="expected 1 to 10 steps"):
            sampler(denoiser, schedule, torch.zeros(1, 2), num_steps=steps, generator=seeded())


def test_langevin_wants_steps():
    for step_size, num_steps in ((0.0, 1), (0.1, 0), (math.nan, 1)):
        with pytest.raises(UserError, match="a step size above 0"):
            langevin(lambda x: -x, torch.zeros(1), step_size=step_size, num_steps=num_steps, generator=seeded())
    with pytest.raises(UserError, match="at least one sample, got the shape"):
        sample_initial_noise((0, 2), generator=seeded())


# ---- flows ------------------------------------------------------------------------------------------------------


def test_a_straight_flow_is_exact_in_one_step():
    def velocity(x, t):
        return torch.full_like(x, 2.0)

    start = torch.randn(3, 2, generator=seeded())
    for follow in (integrate_euler, integrate_midpoint):
        torch.testing.assert_close(follow(velocity, start, num_steps=1), start + 2)
    seen: list[float] = []
    integrate_euler(velocity, start, num_steps=4, callback=lambda t, x: seen.append(t))
    assert seen == [0.0, 0.25, 0.5, 0.75, 1.0]
    for steps in (0, 1.5):
        with pytest.raises(UserError, match="at least one step"):
            integrate_euler(velocity, start, num_steps=steps)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="at least one example"):
        integrate_midpoint(velocity, start[:0], num_steps=3)


def test_a_flow_is_asked_where_a_step_begins_and_in_its_middle():
    asked: list[float] = []

    def velocity(x: Tensor, t: Tensor) -> Tensor:
        asked.append(float(t[0]))
        return x

    found = integrate_midpoint(velocity, torch.ones(1, 1), num_steps=2)
    torch.testing.assert_close(found, torch.full((1, 1), (1 + 0.5 + 0.5**2 / 2) ** 2))
    flow_log_prob(velocity, torch.ones(1, 1), num_steps=2)
    assert asked == [0.0, 0.25, 0.5, 0.75, 1.0, 0.75, 0.5, 0.25]


def test_the_density_of_a_linear_flow_is_known():
    """dx/dt = A x takes N(0, I) to N(0, e^A e^A^T), with volumes multiplied by e^tr A."""
    matrix = torch.tensor([[0.3, 0.5], [-0.2, 0.1]], dtype=torch.float64)
    reach = torch.linalg.matrix_exp(matrix)
    law = MultivariateNormal(torch.zeros(2).double(), reach @ reach.mT)
    x = torch.randn(6, 2, generator=seeded(), dtype=torch.float64)
    found = flow_log_prob(lambda x, t: x @ matrix.mT, x, num_steps=100)
    torch.testing.assert_close(found.output, law.log_prob(x), atol=1e-5, rtol=0)
    torch.testing.assert_close(found.noise, x @ torch.linalg.inv(reach).mT, atol=1e-5, rtol=0)


# ---- models that are drawn from ---------------------------------------------------------------------------------


class Field(nn.Module):
    """A trained flow of one normal distribution."""

    def __init__(self, law: MultivariateNormal):
        super().__init__()
        self.flow = GaussianFlow(law)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        return self.flow(x, t).to(x.dtype)


def test_a_flow_model_draws_and_knows_its_density_on_the_scale_of_the_data():
    inner = MultivariateNormal(torch.tensor([0.2, -0.1]), torch.tensor([[1.0, 0.3], [0.3, 0.6]]))
    offset, unit = torch.tensor([3.0, -5.0]), torch.tensor([2.0, 0.1])
    model = FlowSampler(Field(inner), (2,), loc=offset, scale=unit, num_steps=10)
    law = MultivariateNormal(offset + unit * inner.mean, unit.unsqueeze(-1) * inner.covariance * unit)
    assert isinstance(model, DensityModel)
    assert isinstance(model, PathModel)
    x = law.sample((50,), generator=seeded())
    torch.testing.assert_close(model.log_prob(x), law.log_prob(x), atol=1e-3, rtol=1e-3)
    drawn = model.sample(4000, generator=seeded())
    white = (drawn - law.mean) @ torch.linalg.inv(torch.linalg.cholesky(law.covariance)).mT
    assert float(white.mean(dim=0).abs().max()) < 6 / math.sqrt(4000)
    path = model.sample_path(4000, generator=seeded())
    assert len(path.times) == 11
    assert torch.equal(path.states[-1], drawn)
    assert model.sample_path(2, generator=seeded(), num_steps=3).states.shape == (4, 2, 2)


class Answer(nn.Module):
    def forward(self, x: Tensor, t: Tensor, labels: Tensor | None = None) -> Tensor:
        return torch.tanh(x) if labels is None else torch.tanh(x) + labels.reshape(-1, 1, 1, 1)


def test_a_diffusion_model_draws_on_the_scale_of_the_data():
    scale = {"loc": torch.tensor(0.5), "scale": torch.tensor(0.5)}
    model = DiffusionSampler(
        Answer(), cosine_beta_schedule(20), VPrediction(), (1, 2, 2), bounds=(-1.0, 1.0), num_steps=5, **scale
    )
    assert isinstance(model, GenerativeModel)
    assert isinstance(model, PathModel)
    drawn = model.sample(6, generator=seeded())
    assert drawn.shape == (6, 1, 2, 2)
    assert bool(((drawn >= 0) & (drawn <= 1)).all())  # what ends with a guess within bounds is within them
    torch.testing.assert_close(model.denormalize(model.normalize(drawn)), drawn)
    path = model.sample_path(6, generator=seeded())
    assert path.times == (20, 16, 12, 8, 4, 0)
    assert torch.equal(path.states[-1], drawn)
    other = model.sample(6, generator=seeded(), num_steps=20, sampler=sample_ddpm)
    assert not torch.equal(other, drawn)
    with pytest.raises(UserError, match="at least one sample"):
        model.sample(0, generator=seeded())
    with pytest.raises(UserError, match="1 to 20 steps"):
        DiffusionSampler(Answer(), cosine_beta_schedule(20), VPrediction(), (2,), num_steps=21, **scale)


def test_a_guided_model_draws_the_classes_it_is_asked_for():
    scale = {"loc": torch.tensor(0.0), "scale": torch.tensor(1.0)}
    model = GuidedDiffusionSampler(
        Answer(),
        cosine_beta_schedule(20),
        EpsilonPrediction(),
        (1, 2, 2),
        num_classes=3,
        num_steps=5,
        guidance_scale=2.0,
        **scale,
    )
    given_labels = torch.tensor([0, 1, 2, 0, 1, 2])
    in_turn, asked = model.sample(6, generator=seeded()), model.sample(6, generator=seeded(), labels=given_labels)
    assert torch.equal(in_turn, asked)
    assert not torch.equal(asked, model.sample(6, generator=seeded(), labels=given_labels.flip(0)))
    assert not torch.equal(asked, model.sample(6, generator=seeded(), labels=given_labels, guidance_scale=1.0))
    assert torch.equal(model.sample_path(6, generator=seeded()).states[-1], in_turn)
    for wrong in (torch.tensor([0, 3]), torch.tensor([-1, 0])):
        with pytest.raises(UserError, match="classes from 0 to 2"):
            model.sample(2, generator=seeded(), labels=wrong)
    with pytest.raises(UserError, match="a label for each sample"):
        model.sample(2, generator=seeded(), labels=given_labels)


def test_guidance_asks_with_the_classes_and_with_the_label_of_none():
    heard: list[list[int]] = []

    class Ear(nn.Module):
        def forward(self, x: Tensor, t: Tensor, labels: Tensor) -> Tensor:
            heard.append(labels.tolist())
            return x

    scale = {"loc": torch.tensor(0.0), "scale": torch.tensor(1.0)}
    model = GuidedDiffusionSampler(
        Ear(), cosine_beta_schedule(5), EpsilonPrediction(), (2,), num_classes=3, num_steps=1, **scale
    )
    for guidance in (2.0, 1.0, 0.0):
        model.sample(2, generator=seeded(), labels=torch.tensor([0, 2]), guidance_scale=guidance)
    assert heard == [[0, 2, 3, 3], [0, 2], [3, 3]]


def test_annealed_langevin_steps_by_the_noise_there_and_ends_with_the_guess_of_the_data():
    schedule = NoiseSchedule(torch.tensor([0.36, 0.36]))

    def denoiser(x: Tensor, t: Tensor) -> Denoised:
        return Denoised(torch.full_like(x, 7.0), torch.ones_like(x))

    seen: dict[int, Tensor] = {}
    found = annealed_langevin(
        denoiser,
        schedule,
        torch.zeros(3, 2),
        num_steps=2,
        num_corrector_steps=1,
        step_size=0.2,
        generator=seeded(),
        callback=seen.__setitem__,
    )
    assert torch.equal(found, torch.full((3, 2), 7.0))
    # δ = 0.2 n² and the score -1/n: both what is pushed and what is drawn are in proportion to n.
    drawn = torch.randn(3, 2, generator=seeded())
    torch.testing.assert_close(seen[1], float(schedule.noise[2]) * (-0.2 + math.sqrt(0.4) * drawn))
