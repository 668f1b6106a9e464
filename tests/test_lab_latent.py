"""The page on latent variables: what it shows, against scipy, numpy and closed forms."""

import itertools
import math
import re

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from quoin.lab.parts import exhibits_of, latent_pictures
from quoin.lab.parts.elbo_forms import decoder_losses, gradient_cloud, gradient_forms
from quoin.lab.parts.em_states import COVARIANCE, MEANS, em_states
from quoin.lab.parts.latent_pictures import mixed_role

EXHIBITS = {each.slug: each for each in exhibits_of("latent")}
POINTS = [tuple(point) for point in EXHIBITS["whose-point"].initial()["points"]]


def numbers(slug, **state):
    return [number.value for number in EXHIBITS[slug].view(state).numbers]


def shares_of_em(points, num_steps):
    """Of every point among the components, and ln p of a point, after EM with scipy's densities, without a floor."""
    x, k = np.array(points), len(MEANS)
    weights, means, covariances = np.full(k, 1 / k), np.array(MEANS), [COVARIANCE * np.eye(2)] * k
    for _ in range(num_steps):
        dense = [w * stats.multivariate_normal(m, c).pdf(x) for w, m, c in zip(weights, means, covariances)]
        shares = np.stack(dense) / np.sum(dense, axis=0)
        totals = shares.sum(axis=1)
        weights, means = totals / len(x), shares @ x / totals[:, None]
        covariances = [(share[:, None] * (x - m)).T @ (x - m) / share.sum() for share, m in zip(shares, means)]
    dense = [w * stats.multivariate_normal(m, c).pdf(x) for w, m, c in zip(weights, means, covariances)]
    return np.stack(dense) / np.sum(dense, axis=0), float(np.log(np.sum(dense, axis=0)).mean())


CLOUDS = [[tuple(row) for row in np.random.default_rng(seed).uniform(-2, 2, (24, 2)).tolist()] for seed in range(3)]


@pytest.mark.parametrize(
    ("points", "step"),
    [*((POINTS, step) for step in (0, 1, 3)), *((cloud, step) for cloud in CLOUDS for step in (2, 5))],
)
def test_likelihood_is_that_of_plain_em(points, step):
    found = numbers("whose-point", points=[list(point) for point in points], step=step, floor=False)[0]
    assert found == pytest.approx(shares_of_em(points, step // 2)[1], rel=1e-5)


@pytest.mark.parametrize("step", [1, 2, 3, 4, 7])
def test_points_are_mixed_as_the_last_e_step_shared_them_out(step, monkeypatch):
    """The first half of each step shares out by the ellipses that stand, the second moves these alone."""
    seen = []
    monkeypatch.setattr(latent_pictures, "mixed_role", lambda shares: seen.append(shares) or mixed_role(shares))
    EXHIBITS["whose-point"].view({"points": [list(point) for point in CLOUDS[0]], "step": step, "floor": False})
    np.testing.assert_allclose(np.array(seen).T, shares_of_em(CLOUDS[0], (step - 1) // 2)[0], atol=1e-5)


def test_the_likelihood_never_falls_and_without_a_floor_has_no_end():
    held = em_states(tuple(POINTS), 20, 0.02)
    assert not held.collapsed
    assert all(b >= a - 1e-9 for a, b in itertools.pairwise(held.log_likelihoods))
    state = dict(EXHIBITS["whose-point"].surprise_at)
    view = EXHIBITS["whose-point"].view(state)
    assert view.reached
    assert view.numbers[1].value < 1e-3  # a component without width
    assert not EXHIBITS["whose-point"].view({**state, "floor": True}).reached


def test_a_point_has_the_colour_of_its_component():
    assert mixed_role([0.1, 0.7, 0.2]) == "series-2 70%"


QS = [(0.0, 0.4), (-2.5, 0.1), (3.0, 2.0), (0.7, 0.9), (1.3, 0.5), (-0.4, 1.6)]


@pytest.mark.parametrize("q", QS)
def test_bound_and_gap(q):
    mean, std = q
    belief, prior = stats.norm(mean, std), stats.norm(0, 1)
    low, high = mean - 12 * std, mean + 12 * std
    bound = integrate.quad(
        lambda z: belief.pdf(z) * (prior.logpdf(z) + stats.norm(z, 0.7).logpdf(1.5) - belief.logpdf(z)), low, high
    )[0]
    shown, evidence, six = numbers("the-bound", q=list(q))
    assert shown == pytest.approx(bound, rel=1e-6)
    assert evidence == pytest.approx(stats.norm(0, math.sqrt(1 + 0.49)).logpdf(1.5))
    assert shown <= evidence
    assert abs(six) < 1e-9
    fit = integrate.quad(lambda z: belief.pdf(z) * stats.norm(z, 0.7).logpdf(1.5), low, high)[0]
    kl = math.log(std) + (1 + mean**2) / (2 * std**2) - 0.5  # D(N(0, 1) ‖ q)
    assert numbers("the-bound", q=list(q), printed=True)[0] == pytest.approx(fit + kl, rel=1e-6)


def test_at_the_posterior_nothing_is_lost_and_the_printed_bound_is_none():
    mean, std = 1.5 / 1.49, math.sqrt(0.49 / 1.49)
    shown, evidence, _ = numbers("the-bound", q=[mean, std])
    assert shown == pytest.approx(evidence)
    shown, evidence, _ = numbers("the-bound", printed=True)
    assert shown > evidence


@pytest.mark.parametrize(("m", "sigma"), [(4, 1.6), (2, 0.1), (64, 2.0), (8, 0.5), (16, 0.9), (4, 0.2)])
def test_spreads_of_gradients(m, sigma):
    score, path, exact = numbers("four-gradients", m=m, sigma=sigma)
    assert exact == pytest.approx(1.5 / 0.49)  # at mean 0: (x - mean) / s^2 - mean
    # one reparametrised gradient is exact - eps sigma (1 + 1/s^2): a deviation of sigma (1 + 1/s^2) / sqrt(m)
    assert path == pytest.approx(sigma * (1 + 1 / 0.49) / math.sqrt(m), rel=0.25)  # of 200: five standard errors
    noise = np.random.default_rng(0).standard_normal((20_000, m))
    z = sigma * noise
    seen = stats.norm.logpdf(z) + stats.norm.logpdf(1.5, z, 0.7) - stats.norm.logpdf(z, 0, sigma)
    assert score == pytest.approx(float((seen * noise / sigma).mean(axis=1).std()), rel=0.35)
    printed = numbers("four-gradients", m=m, sigma=sigma, printed="DE60")[1]
    assert printed == pytest.approx(path * sigma, rel=1e-6)  # sigma^2 in place of sigma
    # divided by one point in place of m samples, every estimate is m times as large, and so is its mean
    assert numbers("four-gradients", m=m, sigma=sigma, printed="DE55")[:2] == pytest.approx([m * score, m * path])
    noise = torch.randn(m, 200, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for name, form in gradient_forms("DE55").items():
        assert len(gradient_cloud(form, sigma, noise)) == 200, name
    mean = float(gradient_cloud(gradient_forms("DE55")["Bonnet and Price"], sigma, noise).mean())
    assert mean == pytest.approx(m * exact, abs=5 * m * path / math.sqrt(200))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    from quoin.lab.parts.train_model import main
    from quoin.runs import Run

    draft = tmp_path_factory.mktemp("vae") / "draft"
    draft.mkdir()
    options = {"latent_dim": 2, "epochs": 1, "num_samples": 20, "num_importance_samples": 2, "hidden_dims": [16]}
    main(draft, "vae", options, draft.with_name("out"))
    return Run.open(draft.with_name("out") / "run")


@pytest.mark.deep
def test_the_plane_and_the_readers_digit(run):
    from quoin.lab.parts.em_states import encoded_digits

    encoded = encoded_digits(run)
    for z in ([0.0, 2.6], [4.0, -4.0], [0.3, 0.1]):
        kl, bits, nearest = [n.value for n in EXHIBITS["latent-plane"].view({"z": z}, {"run": run}).numbers]
        means, stds = encoded.means.double().numpy(), encoded.stds.double().numpy()
        assert kl == pytest.approx((stds**2 + means**2 - 1 - 2 * np.log(stds)).sum(axis=1).mean() / 2, rel=1e-4)
        assert nearest == pytest.approx(np.linalg.norm(means - np.array(z), axis=1).min(), rel=1e-4)
        assert bits == run.metrics["test_bits_per_dimension"]
    assert EXHIBITS["latent-plane"].view({"z": [4.0, 4.0]}, {"run": run}).reached
    view = EXHIBITS["latent-plane"].view({"printed": "DE59"}, {"run": run})
    trained, constant = view.numbers[0].value, view.numbers[1].value
    right = decoder_losses(run, False)
    # between two decoders the divergence falls out, and the errors have the wrong sign: what is better is worse
    assert trained - constant == pytest.approx(right.mean_image - right.trained, rel=1e-6)
    x, s = encoded.images.flatten(1).double(), float(run.model.decoder.log_std_like(encoded.images).exp())
    variance = float((x - x.mean(dim=0)).square().sum(dim=1).mean())
    assert right.mean_image == pytest.approx(
        float((stds**2 + means**2 - 1 - 2 * np.log(stds)).sum(axis=1).mean() / 2) + variance / (2 * s * s), rel=1e-4
    )
    more = []
    for m in (1, 256):
        iwae, bound, _ = [n.value for n in EXHIBITS["your-digit"].view({"m": m}, {"run": run}).numbers]
        assert iwae <= bound + 1e-6
        more.append(iwae)
    assert more[1] <= more[0] + 0.05
    assert torch.isfinite(encoded.means).all()


@pytest.mark.parametrize("sigma", [1.0, 0.3, 2.0, 0.65])
@pytest.mark.parametrize("apart", [0.1, 1.9, 1.98, 2.02, 2.4, 3.7])
def test_two_components_have_two_peaks_beyond_two_deviations(apart, sigma):
    half = apart * sigma / 2
    if not 0.1 <= half <= 4:
        return
    found, distance = numbers("one-peak-or-two", apart=[half, 0.0], sigma=sigma)
    assert distance == pytest.approx(apart)
    x = np.linspace(-half - sigma, half + sigma, 400_001)
    density = sum(stats.norm(mean, sigma).pdf(x) for mean in (-half, half))
    inner = density[1:-1]
    peaks = x[1:-1][(inner > density[:-2]) & (inner >= density[2:])]
    assert found == str(len(peaks)) == ("2" if apart > 2 else "1")
    view = EXHIBITS["one-peak-or-two"].view({"apart": [half, 0.0], "sigma": sigma})
    assert len(re.findall("<title>a peak</title>", view.picture.svg())) == len(peaks)
