"""The contract of diffusion: definitions and fast forms agree in value and slope, schedules keep their formulas, losses
their meaning."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.generate import classifier_free_guidance, classifier_free_guidance_definition
from quoin.layers import sinusoidal_encoding
from quoin.losses import (
    denoising_kl,
    denoising_kl_definition,
    denoising_loss,
    diffusion_vlb,
    flow_matching_loss,
    prior_kl,
    reconstruction_log_prob,
    sampled_diffusion_vlb,
)
from quoin.models import TimeMLP, timestep_embedding
from quoin.optim import EMAModel, ema_definition
from quoin.prob import (
    Denoised,
    EpsilonPrediction,
    GaussianDenoiser,
    MultivariateNormal,
    NoiseSchedule,
    SamplePrediction,
    VPrediction,
    add_noise,
    add_noise_definition,
    cosine_beta_schedule,
    linear_beta_schedule,
    linear_path,
    linear_path_velocity,
    posterior_step,
    posterior_step_definition,
    sigmoid_beta_schedule,
)
from seeds import seeded

TOLERANCE = {torch.float32: 2e-4, torch.float64: 1e-10}
dtypes = st.sampled_from([torch.float32, torch.float64])
seeds = st.integers(0, 2**32)
shapes = st.sampled_from([(1, 1), (3, 2), (2, 1, 4, 4), (5,)])
makers = st.sampled_from([linear_beta_schedule, cosine_beta_schedule, sigmoid_beta_schedule])
few = settings(deadline=None, max_examples=12)

pytestmark = pytest.mark.usefixtures("one_thread")


def near(ours: Tensor, theirs: Tensor, leaves: list[Tensor]) -> None:
    """The same value and the same slopes in all leaves, up to rounding."""
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    weights = torch.linspace(-1, 2, ours.numel(), dtype=ours.dtype).reshape(ours.shape)
    pairs = [(ours, theirs)]
    pairs += zip(
        *(torch.autograd.grad((each * weights).sum(), leaves, retain_graph=True) for each in (ours, theirs)),
        strict=True,
    )
    for mine, its in pairs:
        scale = max(1.0, float(its.detach().abs().max()))
        assert float((mine - its).detach().abs().max()) <= TOLERANCE[ours.dtype] * scale


def drawn(*shape: int, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=dtype).requires_grad_()


# ---- schedules --------------------------------------------------------------------------------------------------


def test_the_linear_schedule_of_a_thousand_steps_is_that_of_the_first_diffusion_models():
    betas = linear_beta_schedule(1000).betas
    assert betas[0] == 0
    torch.testing.assert_close(betas[1:], torch.linspace(1e-4, 0.02, 1000, dtype=torch.float64), atol=1e-15, rtol=1e-12)


def test_the_curves_of_cosine_and_sigmoid_are_their_formulas():
    cosine, sigmoid = cosine_beta_schedule(50).alpha_bar, sigmoid_beta_schedule(50).alpha_bar

    def wave(u):
        return math.cos((u + 0.008) / 1.008 * math.pi / 2) ** 2

    def curve(u):
        return 1 / (1 + math.exp(-3 + 6 * u)) - 1 / (1 + math.exp(3))

    for t in range(49):  # the last step is held back, not to lose all signal
        assert float(cosine[t]) == pytest.approx(wave(t / 50) / wave(0), rel=1e-9)
        assert float(sigmoid[t]) == pytest.approx(curve(t / 50) / curve(0), rel=1e-9)


@few
@given(makers, st.integers(1, 300))
def test_signal_and_noise_are_a_right_angle_and_noise_only_grows(make, num_steps):
    schedule = make(num_steps)
    assert schedule.num_steps == num_steps
    torch.testing.assert_close(
        schedule.signal**2 + schedule.noise**2, torch.ones(num_steps + 1).double(), atol=1e-15, rtol=0
    )
    torch.testing.assert_close(schedule.signal, torch.cos(schedule.angle), atol=1e-14, rtol=0)
    assert bool((schedule.noise.diff() >= 0).all())
    assert bool((schedule.alpha_bar.diff() < 0).all())
    torch.testing.assert_close(schedule.alpha_bar, torch.cumprod(1 - schedule.betas, dim=0), atol=1e-14, rtol=1e-10)
    torch.testing.assert_close(schedule.half_log_snr[1:].exp(), (schedule.signal / schedule.noise)[1:])


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_times_go_from_the_last_to_the_data_as_evenly_as_whole_numbers_can(data):
    num_steps = data.draw(st.integers(1, 1000))
    steps = data.draw(st.integers(1, num_steps))
    times = NoiseSchedule(torch.full((num_steps,), 0.1)).timesteps(steps)
    assert len(times) == steps + 1
    assert (times[0], times[-1]) == (num_steps, 0)
    strides = {before - after for before, after in itertools.pairwise(times)}
    assert strides <= {num_steps // steps, -(-num_steps // steps)}
    assert 0 not in strides


@pytest.mark.parametrize("steps", [0, -1, 11, 2.0])
def test_steps_outside_the_schedule_are_refused(steps):
    with pytest.raises(UserError, match=r"expected 1 to 10 steps.*got"):
        linear_beta_schedule(10).timesteps(steps)


def test_what_is_no_schedule_is_refused():
    for betas in (torch.tensor([0.1, 1.0]), torch.tensor([0.0]), torch.tensor([math.nan])):
        with pytest.raises(UserError, match="above 0 and below 1"):
            NoiseSchedule(betas)
    for betas in (torch.empty(0), torch.ones(2, 2) / 2):
        with pytest.raises(UserError, match=r"one noise variance for each step"):
            NoiseSchedule(betas)
    with pytest.raises(UserError, match="at least 1 step"):
        cosine_beta_schedule(0)
    with pytest.raises(UserError, match="start below end"):
        sigmoid_beta_schedule(10, start=1.0, end=1.0)


def test_times_of_other_schedules_are_refused():
    schedule, x = linear_beta_schedule(10), torch.zeros(3, 2)
    with pytest.raises(UserError, match="expected times 0 to 10, got 11"):
        schedule.level(11, x)
    with pytest.raises(UserError, match="expected times 0 to 10, got -1"):
        schedule.level(torch.tensor([1, 2, -1]), x)
    for t in (torch.tensor([1, 2]), torch.tensor([1.0, 2.0, 3.0])):
        with pytest.raises(UserError, match="a whole time for each example"):
            schedule.level(t, x)


def test_training_times_are_all_of_one_to_the_last_alike():
    drawn_times = linear_beta_schedule(10).sample_timesteps(20_000, generator=seeded(0))
    counts = torch.bincount(drawn_times, minlength=11)
    assert counts[0] == 0
    assert bool(((counts[1:] - 2000).abs() < 6 * math.sqrt(2000 * 0.9)).all())


# ---- the process ------------------------------------------------------------------------------------------------


@few
@given(shapes, makers, st.integers(1, 12), dtypes, seeds)
def test_the_jump_is_the_chain_with_its_noises_added_up(shape, make, t, dtype, seed):
    generator = seeded(seed)
    schedule = make(t + 2)
    clean, noises = drawn(*shape, dtype=dtype, generator=generator), drawn(t, *shape, dtype=dtype, generator=generator)
    betas = schedule.betas[1 : t + 1].to(dtype)
    slow = add_noise_definition(clean, betas, noises)
    # ε_s is scaled by √β_s and then by every later √(1 - β).
    shares = [torch.sqrt(betas[s]) * torch.sqrt(1 - betas[s + 1 :]).prod() for s in range(t)]
    together = torch.stack([share * noise for share, noise in zip(shares, noises)]).sum(dim=0) / schedule.noise[t].to(
        dtype
    )
    near(add_noise(schedule, clean, t, together), slow, [clean, noises])
    times = torch.full(shape[:1], t)
    near(add_noise(schedule, clean, times, together), slow, [clean, noises])


@few
@given(shapes, makers, st.integers(2, 30), dtypes, seeds)
def test_the_step_back_is_bayes(shape, make, t, dtype, seed):
    generator = seeded(seed)
    schedule = make(t + 2)
    clean, noisy = (drawn(*shape, dtype=dtype, generator=generator) for _ in range(2))
    slow = posterior_step_definition(schedule, clean, noisy, t)
    for time, earlier in ((t, t - 1), (torch.full(shape[:1], t), torch.full(shape[:1], t - 1))):
        fast = posterior_step(schedule, clean, noisy, time, earlier)
        near(fast.mean, slow.mean, [clean, noisy])
        torch.testing.assert_close(fast.std.double().flatten()[0], slow.std, rtol=1e-6, atol=0)


def test_the_step_back_keeps_its_digits_in_float32():
    schedule = linear_beta_schedule(1000)
    clean, noisy = torch.ones(1), torch.zeros(1)
    rough, exact = (
        posterior_step(schedule, clean.to(dtype), noisy.to(dtype), 3, 2).mean
        for dtype in (torch.float32, torch.float64)
    )
    torch.testing.assert_close(rough.double(), exact, rtol=2e-7, atol=0)


def test_the_step_to_the_data_is_the_data_and_a_step_ahead_is_refused():
    schedule, generator = cosine_beta_schedule(20), seeded(0)
    clean, noisy = (torch.randn(4, 3, generator=generator) for _ in range(2))
    found = posterior_step(schedule, clean, noisy, 7, 0)
    torch.testing.assert_close(found.mean, clean, rtol=1e-6, atol=1e-6)
    assert float(found.std) == 0
    for earlier in (7, 8):
        with pytest.raises(UserError, match="a step back"):
            posterior_step(schedule, clean, noisy, 7, earlier)


@few
@given(shapes, makers, dtypes, seeds)
def test_each_parametrisation_gives_back_data_and_noise(shape, make, dtype, seed):
    generator = seeded(seed)
    schedule = make(20)
    clean, noise = (drawn(*shape, dtype=dtype, generator=generator) for _ in range(2))
    t = torch.randint(2, 15, shape[:1], generator=generator)
    noisy, level = add_noise(schedule, clean, t, noise), schedule.level(t, clean)
    for asked in (EpsilonPrediction(), SamplePrediction(), VPrediction()):
        found = asked.denoised(asked.target(clean, noise, level), noisy, level)
        near(found.clean, clean * 1, [clean])
        near(found.noise, noise * 1, [noise])


def test_the_velocity_is_the_slope_of_the_path_in_its_angle():
    schedule = cosine_beta_schedule(20)
    clean, noise = torch.randn(2, 5, generator=seeded(0), dtype=torch.float64)
    angle = schedule.angle[9].clone().requires_grad_()
    slope = torch.stack(
        [torch.autograd.grad(torch.cos(angle) * x + torch.sin(angle) * e, angle)[0] for x, e in zip(clean, noise)]
    )
    torch.testing.assert_close(VPrediction().target(clean, noise, schedule.level(9, clean)), slope)


def test_the_exact_denoiser_is_conditioning():
    generator = seeded(1)
    root = torch.randn(3, 3, generator=generator, dtype=torch.float64)
    law = MultivariateNormal(torch.randn(3, generator=generator, dtype=torch.float64), root @ root.mT)
    schedule = linear_beta_schedule(10)
    x, t = torch.randn(2, 3, generator=generator, dtype=torch.float64), torch.tensor([4, 9])
    found = GaussianDenoiser(law, schedule)(x, t)
    for row in range(2):
        a, n = schedule.signal[t[row]], schedule.noise[t[row]]
        both = torch.block_diag(law.covariance, law.covariance)
        both[:3, 3:] = both[3:, :3] = a * law.covariance
        both[3:, 3:] = a**2 * law.covariance + n**2 * torch.eye(3)
        exact = MultivariateNormal(torch.cat([law.mean, a * law.mean]), both).condition([3, 4, 5], x[row])
        torch.testing.assert_close(found.clean[row], exact.mean)
        torch.testing.assert_close(GaussianDenoiser(law, schedule).uncertainty(int(t[row])), exact.covariance)
        torch.testing.assert_close(a * found.clean[row] + n * found.noise[row], x[row])
    with pytest.raises(UserError, match="one normal distribution"):
        GaussianDenoiser(MultivariateNormal(torch.zeros(2, 3), torch.eye(3)), schedule)


# ---- losses and the bound ---------------------------------------------------------------------------------------


@few
@given(st.sampled_from([(3, 2), (2, 1, 4, 4)]), makers, dtypes, seeds)
def test_a_divergence_of_the_bound_is_its_definition(shape, make, dtype, seed):
    generator = seeded(seed)
    schedule = make(12)
    clean, guess = (drawn(*shape, dtype=dtype, generator=generator) for _ in range(2))
    t = torch.randint(2, 12, shape[:1], generator=generator)
    slow = torch.cat(
        [denoising_kl_definition(schedule, clean[i : i + 1], guess[i : i + 1], int(t[i])) for i in range(len(t))]
    )
    fast = denoising_kl(schedule, clean, guess, t)
    scale = float(slow.detach().abs().max())
    near(fast / scale, slow.to(dtype) / scale, [clean, guess])


def test_the_first_step_has_no_divergence():
    with pytest.raises(UserError, match="times of 2 or more"):
        denoising_kl(linear_beta_schedule(5), torch.zeros(2, 1), torch.zeros(2, 1), torch.tensor([1, 2]))


def test_what_is_left_at_the_end_is_torchs_divergence():
    schedule, clean = linear_beta_schedule(7, last=5.0), torch.randn(3, 4, generator=seeded(0), dtype=torch.float64)
    there = torch.distributions.Normal(schedule.signal[-1] * clean, schedule.noise[-1])
    exact = torch.distributions.kl_divergence(there, torch.distributions.Normal(torch.zeros(4).double(), 1.0)).sum(
        dim=-1
    )
    torch.testing.assert_close(prior_kl(schedule, clean), exact)


def test_bins_share_out_all_chance_and_small_ones_are_the_density():
    schedule = NoiseSchedule(torch.tensor([0.04]))
    levels = torch.linspace(-1, 1, 17, dtype=torch.float64).unsqueeze(-1)
    for guess in (-3.0, -0.4, 0.999, 30.0):
        inside = reconstruction_log_prob(schedule, levels, torch.full_like(levels, guess), bin_width=2 / 16)
        assert bool(inside.isfinite().all())
        assert float(inside.exp().sum()) == pytest.approx(1, abs=1e-12)
    x, guess = torch.tensor([[0.3, -0.2]]).double(), torch.tensor([[0.1, 0.0]]).double()
    density = torch.distributions.Normal(guess, 0.2).log_prob(x).sum(dim=-1)
    torch.testing.assert_close(reconstruction_log_prob(schedule, x, guess), density)
    narrow = reconstruction_log_prob(schedule, x, guess, bin_width=1e-4)
    torch.testing.assert_close(narrow, density + 2 * math.log(1e-4), atol=1e-6, rtol=0)


def blind(noisy: Tensor, t: Tensor) -> Denoised:
    """Says 0 whatever it sees: each term of the bound is then a number, without chance."""
    return Denoised(torch.zeros_like(noisy), noisy)


def test_the_bound_is_the_sum_of_its_parts_and_times_are_sampled_without_bias():
    schedule, clean = cosine_beta_schedule(9), torch.tensor([[0.5, -1.0]]).double()
    whole = diffusion_vlb(blind, schedule, clean, generator=seeded(0))
    terms = [float(denoising_kl_definition(schedule, clean, torch.zeros_like(clean), t)) for t in range(2, 10)]
    assert float(whole.denoising) == pytest.approx(sum(terms))
    torch.testing.assert_close(whole.output, whole.prior + whole.denoising + whole.reconstruction)
    torch.testing.assert_close(whole.reconstruction, -reconstruction_log_prob(schedule, clean, torch.zeros_like(clean)))
    all_times = sampled_diffusion_vlb(blind, schedule, clean, num_times=8, generator=seeded(0))
    torch.testing.assert_close(all_times.output, whole.output)
    many = clean.expand(20_000, 2)
    some = sampled_diffusion_vlb(blind, schedule, many, num_times=3, generator=seeded(0)).denoising
    assert abs(float(some.mean()) - sum(terms)) < 6 * float(some.std()) / math.sqrt(20_000)
    for num_times in (0, 9):
        with pytest.raises(UserError, match="expected 1 to 8 times"):
            sampled_diffusion_vlb(blind, schedule, clean, num_times=num_times, generator=seeded(0))


def test_the_bound_shows_the_denoiser_each_time_with_its_own_noise():
    schedule, clean = (
        linear_beta_schedule(6),
        torch.full((3, 2), 1e9).double(),
    )  # so large that x_t tells the signal, and so its time
    asked: list[int] = []

    def denoiser(noisy: Tensor, t: Tensor) -> Denoised:
        torch.testing.assert_close(noisy / clean, schedule.level(t, noisy).signal.expand_as(noisy), rtol=0, atol=1e-7)
        asked.extend(t.tolist())
        return Denoised(clean, noisy)

    diffusion_vlb(denoiser, schedule, clean, generator=seeded(0))
    assert sorted(asked) == sorted([*range(1, 7)] * 3)
    sampled_diffusion_vlb(denoiser, schedule, clean, num_times=2, generator=seeded(0))


@few
@given(st.sampled_from([(3, 2), (2, 1, 4, 4)]), dtypes, seeds)
def test_losses_are_mean_squares_of_what_is_asked_for(shape, dtype, seed):
    generator = seeded(seed)
    clean, noise = (drawn(*shape, dtype=dtype, generator=generator) for _ in range(2))
    schedule = linear_beta_schedule(10)
    t = torch.randint(1, 11, shape[:1], generator=generator)
    weight = torch.tensor(0.3, dtype=dtype, requires_grad=True)
    for asked in (EpsilonPrediction(), SamplePrediction(), VPrediction()):
        rows = []
        for x, e, time in zip(clean, noise, t.tolist()):
            a, n = (table[time].to(dtype) for table in (schedule.signal, schedule.noise))
            target = {EpsilonPrediction: e, SamplePrediction: x, VPrediction: a * e - n * x}[type(asked)]
            rows.append((target - weight * (a * x + n * e)).square().mean())
        ours = denoising_loss(lambda x, t: weight * x, schedule, asked, clean, t, noise)
        near(ours, torch.stack(rows), [clean, noise, weight])
    times = torch.rand(shape[:1], generator=generator, dtype=dtype)
    rows = [(x - e - weight * ((1 - s) * e + s * x)).square().mean() for x, e, s in zip(clean, noise, times)]
    near(flow_matching_loss(lambda x, t: weight * x, clean, noise, times), torch.stack(rows), [clean, noise, weight])


def test_a_straight_path_begins_with_noise_and_ends_with_data():
    noise, data = torch.randn(2, 3, 2, generator=seeded(0))
    torch.testing.assert_close(linear_path(noise, data, torch.zeros(3)), noise)
    torch.testing.assert_close(linear_path(noise, data, torch.ones(3)), data)
    torch.testing.assert_close(noise + linear_path_velocity(noise, data), data)
    with pytest.raises(UserError, match="a time for each example"):
        linear_path(noise, data, torch.zeros(2))
    with pytest.raises(UserError, match="noise of the shape of the examples"):
        add_noise(linear_beta_schedule(3), data, 1, noise[:1])


# ---- guidance, codes, averages ----------------------------------------------------------------------------------


@few
@given(st.sampled_from([0.0, 0.5, 1.0, 3.0]), seeds)
def test_guidance_in_one_pass_is_two_answers(strength, seed):
    x, labels, t = (
        torch.randn(4, 2, generator=seeded(seed)).requires_grad_(),
        torch.tensor([0, 1, 2, 1]),
        torch.full((4,), 3),
    )
    table = torch.randn(4, 2, generator=seeded(seed + 1))
    asked: list[int] = []

    def network(x, t, labels):
        asked.append(len(x))
        return torch.tanh(x * t.unsqueeze(-1)) + table[labels]

    ours = classifier_free_guidance(network, labels, guidance_scale=strength, null_label=3)(x, t)
    assert sum(asked) == (4 if strength in (0, 1) else 8)
    assert len(asked) == 1
    near(
        ours,
        classifier_free_guidance_definition(network(x, t, labels), network(x, t, torch.full((4,), 3)), strength),
        [x],
    )


def test_guidance_wants_labels():
    def network(x, t, labels):
        return x

    with pytest.raises(UserError, match="expected labels to guide by, got none"):
        classifier_free_guidance(network, None, guidance_scale=2.0, null_label=3)
    with pytest.raises(UserError, match=r"integers \(b,\)"):
        classifier_free_guidance(network, torch.zeros(3), guidance_scale=2.0, null_label=3)
    for strength in (-1.0, math.inf, math.nan):
        with pytest.raises(UserError, match="at least 0, and finite"):
            classifier_free_guidance(network, torch.tensor([1]), guidance_scale=strength, null_label=3)
    with pytest.raises(UserError, match="got 1 for 2"):
        classifier_free_guidance(network, torch.tensor([1]), guidance_scale=2.0, null_label=3)(
            torch.zeros(2, 1), torch.tensor([1, 1])
        )


def test_codes_of_whole_times_are_those_of_positions():
    torch.testing.assert_close(timestep_embedding(torch.arange(9), 6), sinusoidal_encoding(9, 6))


def test_a_time_network_starts_silent_hears_the_time_and_learns():
    torch.manual_seed(0)
    network = TimeMLP(2, hidden_dim=16, num_layers=2, generator=seeded(0))
    x = torch.randn(5, 2, generator=seeded(1))
    assert float(network(x, torch.full((5,), 3)).detach().abs().max()) == 0
    nn.init.normal_(network.last.weight, generator=seeded(2))
    early, late = (network(x, torch.full((5,), t)) for t in (1, 700))
    assert float((early - late).detach().abs().max()) > 0.1
    again = TimeMLP(2, hidden_dim=16, num_layers=2, generator=seeded(0))
    assert all(
        torch.equal(mine, its)
        for (name, mine), its in zip(again.named_parameters(), network.parameters())
        if "last" not in name
    )
    with pytest.raises(UserError, match="positive sizes"):
        TimeMLP(2, hidden_dim=0)


@few
@given(st.integers(1, 12), st.sampled_from([0.0, 0.5, 0.99]), dtypes, seeds)
def test_an_average_of_weights_is_its_definition(count, decay, dtype, seed):
    values = torch.randn(count, 3, 2, generator=seeded(seed), dtype=dtype)
    module = nn.Linear(2, 3, bias=False, dtype=dtype)
    average = EMAModel(module, decay=decay)
    for value in values:
        with torch.no_grad():
            module.weight.copy_(value)
        average.update(module)
    torch.testing.assert_close(average.module.weight, ema_definition(values, decay), atol=TOLERANCE[dtype], rtol=0)
    torch.testing.assert_close(module.weight, values[-1])  # the module itself is left alone


def test_an_average_goes_on_from_its_state_and_takes_buffers_as_they_are():
    module = nn.BatchNorm1d(2)
    one, other = (EMAModel(module, decay=0.9) for _ in range(2))
    for step in range(4):
        with torch.no_grad():
            module.weight.fill_(float(step))
            module.running_mean.fill_(float(step))  # type: ignore[union-attr]
        one.update(module)
        if step == 1:
            other.load_state_dict(one.state_dict())
        if step > 1:
            other.update(module)
    assert torch.equal(one.module.weight, other.module.weight)
    assert one.updates == other.updates == 4
    assert module.training
    assert not one.module.training  # it is drawn from and judged, never trained
    assert not any(each.requires_grad for each in one.module.parameters())
    torch.testing.assert_close(one.module.running_mean, torch.full((2,), 3.0))
    with pytest.raises(UserError, match="other parameters"):
        one.update(nn.Linear(2, 2))
    with pytest.raises(UserError, match="below 1"):
        EMAModel(module, decay=1.0)
