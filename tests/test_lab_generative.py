"""The page on generative models: what it shows, against numpy and closed forms; the trained ones on tiny runs."""

import base64
import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from quoin.errors import UserError
from quoin.lab.parts import cloud_learner, exhibits_of, noise_pictures

EXHIBITS = {each.slug: each for each in exhibits_of("generative")}
RING = EXHIBITS["dissolve"].initial()["points"]


def numbers(slug, models=None, **state):
    return [number.value for number in EXHIBITS[slug].view(state, models).numbers]


def posterior_means(points, noisy, signal, noise):
    """E[x_0 | x_t] by Bayes' rule over finitely many points."""
    square = ((noisy[:, None] - signal * points[None]) ** 2).sum(axis=-1)
    weights = np.exp(-(square - square.min(axis=1, keepdims=True)) / (2 * noise**2))
    return weights / weights.sum(axis=1, keepdims=True) @ points


CLOUDS = [RING, [[0.0, 0.0], [1.0, 1.0]], *np.random.default_rng(0).uniform(-2, 2, (3, 9, 2)).tolist()]


@pytest.mark.parametrize("points", CLOUDS)
@pytest.mark.parametrize("t", [1, 25, 60, 100])
def test_the_best_guess_is_the_posterior_mean(points, t):
    data = np.array(points)
    noise = torch.randn(60, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64).numpy()
    shown, signal, level = numbers("dissolve", points=points, t=t)
    assert signal**2 + level**2 == pytest.approx(1, abs=1e-6)
    noisy = signal * data[np.arange(60) % len(data)] + level * noise
    guess = posterior_means(data, noisy, signal, level)
    spread = np.sqrt(((data - data.mean(axis=0)) ** 2).sum(axis=1).mean())
    away = np.sqrt(((guess - data.mean(axis=0)) ** 2).sum(axis=1).mean())
    assert shown == pytest.approx(away / spread, rel=1e-5, abs=1e-7)


def test_at_the_end_every_guess_is_the_mean():
    assert numbers("dissolve", t=100)[0] < 0.01
    assert numbers("dissolve", t=1)[0] == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("place", [0.0, 1.5, 5.0, 6.0, 0.8, 2.3, 3.7])
def test_the_judge(place):
    apart, saturating, other = numbers("best-discriminator", place=place)
    p, q = stats.norm(0, 1), stats.norm(place, 1)

    def inside(x):
        middle = (p.pdf(x) + q.pdf(x)) / 2
        return (p.pdf(x) * np.log(p.pdf(x) / middle) + q.pdf(x) * np.log(q.pdf(x) / middle)) / 2

    assert apart == pytest.approx(integrate.quad(inside, -10, 16, limit=200)[0], abs=2e-3)
    # the logit of D is place^2 / 2 - place x: ln(1 - D) has the slope place E[D], -ln D the slope place E[1 - D]
    judged = integrate.quad(lambda x: q.pdf(x) / (1 + math.exp(place * x - place**2 / 2)), -10, 16, limit=200)[0]
    assert saturating == pytest.approx(place * judged, abs=5e-3)
    assert other == pytest.approx(place * (1 - judged), abs=5e-3)


def test_far_apart_one_loss_has_no_slope():
    _, saturating, other = numbers("best-discriminator", place=5.0)
    assert abs(saturating) < 0.05
    assert abs(other) > 4.9


def fields(layers, row, column):
    """What a plain stack of 3 x 3 masked convolutions sees: each layer one row up or one column left, then spreads."""
    seen = {(row, column)}
    for layer in range(layers + 1):
        moves = [(-1, -1), (-1, 0), (-1, 1), (0, -1)] + ([(0, 0)] if layer else [])
        seen = {(i + a, j + b) for i, j in seen for a, b in moves}
    return {(i, j) for i, j in seen if 0 <= i < 9 and 0 <= j < 9} - {(row, column)}


@pytest.mark.parametrize("layers", [1, 3, 4])
@pytest.mark.parametrize(("row", "column"), [(5, 4), (0, 0), (8, 8), (4, 2)])
def test_blind_spots(layers, row, column):
    pixel = [column + 0.5, 8.5 - row]
    blind, seen = numbers("pixel-sees", pixel=pixel, stack="plain masks", layers=layers)
    expected = fields(layers, row, column)
    assert seen <= len(expected)
    before = [
        (i, j)
        for i in range(9)
        for j in range(9)
        if (i, j) < (row, column) and max(row - i, abs(column - j)) <= layers + 1
    ]
    assert int(blind) == len([each for each in before if each not in expected])
    assert numbers("pixel-sees", pixel=pixel, layers=layers)[0] == "0"  # two stacks: none


def csv_of(rows):
    text = "a,b\n" + "\n".join(f"{x},{y}" for x, y in rows.round(4))
    return base64.b64encode(text.encode()).decode()


def test_walks_of_the_exact_denoiser_end_on_the_points():
    rows = np.random.default_rng(1).uniform(0, 9, (40, 2))
    _, learnt, held_out = numbers("your-cloud", file=csv_of(rows), denoiser="exact, of these rows")
    assert learnt < 1e-3  # in deviations of the columns
    assert held_out > 0.05
    states = noise_pictures.walk_back(torch.tensor(RING, dtype=torch.float64), torch.zeros(3, 2).double(), 5)
    assert states.shape == (6, 3, 2)


def test_a_network_learns_the_readers_cloud():
    angles = np.random.default_rng(2).uniform(0, 2 * np.pi, 300)
    ring = np.stack([5 + 2 * np.cos(angles), 30 * np.sin(angles) - 7], axis=1)  # a circle, once scaled
    view = EXHIBITS["your-cloud"].view({"file": csv_of(ring), "steps": 12})
    before = numbers("your-cloud", file=csv_of(ring), steps=0)
    assert view.numbers[0].value < 0.5 * before[0]
    cloud = cloud_learner.split_cloud(torch.tensor(ring))
    assert cloud.train.mean(dim=0).tolist() == pytest.approx([0, 0], abs=1e-5)
    assert cloud.train.std(dim=0).tolist() == pytest.approx([1, 1], abs=1e-5)
    assert (len(cloud.train), len(cloud.held_out)) == (225, 75)
    assert len({tuple(row) for row in torch.cat(cloud).round(decimals=4).tolist()}) == 300  # each row once
    states, found = cloud_learner.paths_to(cloud.train, 12)
    # the circle's radius over its deviation is the root of 2
    assert float(states[-1].norm(dim=1).median()) == pytest.approx(2**0.5, abs=0.12)
    assert float(states[0].norm(dim=1).median()) == pytest.approx((2 * np.log(2)) ** 0.5, abs=0.12)  # of noise
    assert found[-1] < found[0]
    assert len(found) == 12


def test_learning_a_step_at_a_time_is_learning_at_once():
    rows = tuple(map(tuple, cloud_learner.split_cloud(cloud_learner.two_moons()).train.tolist()))
    cloud_learner.learned_cloud.cache_clear()
    at_once = cloud_learner.learned_cloud(rows, 2).losses
    cloud_learner.learned_cloud.cache_clear()
    cloud_learner.learned_cloud(rows, 1)
    assert cloud_learner.learned_cloud(rows, 2).losses == at_once


@pytest.mark.parametrize(("rows", "message"), [(np.ones((40, 2)), "that change"), (np.eye(2), "at least 12 rows")])
def test_a_cloud_that_cannot_be_learned(rows, message):
    with pytest.raises(UserError, match=message):
        EXHIBITS["your-cloud"].view({"file": csv_of(rows)})


TINY = {
    "diffusion-2d": {"epochs": 1, "num_examples": 400, "hidden_dim": 16, "num_timesteps": 60},
    "diffusion-digits": {"epochs": 1, "num_samples": 20, "channels": [8, 16]},
    "pixelcnn": {"epochs": 1, "num_samples": 4, "channels": 8, "num_layers": 2},
}


def tiny(recipe, folder):
    from quoin.lab.parts.train_model import main
    from quoin.runs import Run

    draft = folder / "draft"
    draft.mkdir()
    main(draft, recipe, TINY[recipe], folder / "out")
    return Run.open(folder / "out" / "run")


@pytest.mark.deep
def test_walk_back(tmp_path):
    models = {"run": tiny("diffusion-2d", tmp_path)}
    assert numbers("walk-back", models)[0] == pytest.approx(0, abs=1e-5)
    assert numbers("walk-back", models, solver="Heun", steps=5)[::2] == [pytest.approx(0, abs=1e-5), 10]
    view = EXHIBITS["walk-back"].view({"solver": "DDPM"}, models)
    assert view.reached
    assert view.numbers[2].value == 20


@pytest.mark.deep
def test_ask_for_a_digit(tmp_path):
    models = {"run": tiny("diffusion-digits", tmp_path)}
    first = EXHIBITS["ask-for-a-digit"].view({}, models)
    right, coverage, spread = (number.value for number in first.numbers)
    assert spread > 0
    assert f"At guidance 1: {right:.2f}, {coverage:.2f} and {spread:.3f}." in first.note
    for digit in (8, 3):
        for guidance in (1.0, 3.0):
            right, coverage, spread = numbers("ask-for-a-digit", models, digit=digit, guidance=guidance)
            labels, generator = torch.full((16,), digit), torch.Generator().manual_seed(0)
            with torch.no_grad():
                images = models["run"].model.sample(
                    16, labels=labels, guidance_scale=guidance, num_steps=10, generator=generator
                )
            test = models["run"].load_task().data.test
            samples, real = images.flatten(1).double().numpy(), test.features.flatten(1).double().numpy()
            targets = test.targets.numpy()
            apart = np.linalg.norm(samples[:, None] - real, axis=2)
            assert right == np.mean(targets[apart.argmin(axis=1)] == digit)
            own = real[targets == digit]
            radii = np.sort(np.linalg.norm(own[:, None] - own, axis=2), axis=1)[:, 5]
            assert coverage == pytest.approx(np.mean(apart[:, targets == digit].min(axis=0) <= radii))
            assert spread == pytest.approx(samples.std(axis=0, ddof=1).mean(), rel=1e-5)


@pytest.mark.deep
def test_pixel_by_pixel(tmp_path):
    models = {"run": tiny("pixelcnn", tmp_path)}
    view = EXHIBITS["pixel-by-pixel"].view({}, models)
    assert view.numbers[1].value > 0
    assert view.numbers[2].value == models["run"].metrics["test_bits_per_dimension"]
    cold = numbers("pixel-by-pixel", models, temperature=0.1)[0]
    assert cold < view.numbers[0].value
