"""The contract of variational autoencoders: losses beside their definitions and the general bound, decoders beside
torch.distributions."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.losses import gaussian_vae_loss, gaussian_vae_loss_definition, kl_warmup, vae_losses
from quoin.models import (
    VAE,
    BinomialDecoder,
    DecoderModel,
    GaussianDecoder,
    GenerativeModel,
    LearnedGaussianDecoder,
    VAEEncoder,
    conv_vae,
    mlp_vae,
    num_parameters,
)
from quoin.prob import DiagonalNormal, importance_log_evidence, iwae_bound
from seeds import seeded

pytestmark = pytest.mark.usefixtures("one_thread")
few = settings(deadline=None, max_examples=15)
seeds = st.integers(0, 2**32)
dtypes = st.sampled_from([torch.float32, torch.float64])
shapes = st.tuples(st.integers(1, 2), st.integers(1, 5), st.integers(1, 5))


def draw(*shape: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=seeded(seed), dtype=torch.float64).to(dtype)


def close(mine: Tensor, its: Tensor, dtype: torch.dtype) -> None:
    allowed = 1e-4 if dtype is torch.float32 else 1e-9
    torch.testing.assert_close(mine, its, rtol=allowed, atol=allowed)


@few
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), shapes, st.floats(0.3, 2.0), dtypes, seeds)
def test_gaussian_loss_keeps_to_its_definition_and_to_the_bound(n, m, k, shape, s, dtype, seed):
    """Three ways to one number and one gradient: the definition, its fast form, and minus the bound less its
    constant."""
    d = math.prod(shape)
    net = nn.Sequential(nn.Linear(k, 4), nn.Tanh(), nn.Linear(4, d)).to(dtype)
    model = VAE(VAEEncoder(nn.Identity()), GaussianDecoder(net, shape, s), k).to(dtype)
    x, noise = draw(n, *shape, seed=seed, dtype=dtype), draw(m, n, k, seed=seed + 1, dtype=dtype)
    mean, log_std = (
        draw(n, k, seed=seed + 2, dtype=dtype).requires_grad_(),
        (0.3 * draw(n, k, seed=seed + 3, dtype=dtype)).requires_grad_(),
    )
    leaves = [mean, log_std, *net.parameters()]
    told = gaussian_vae_loss_definition(x, mean, log_std.exp(), noise, model.decoder, s)
    fast = gaussian_vae_loss(x, mean, log_std, noise, model.decoder, s)
    bound = vae_losses(model, DiagonalNormal(mean, log_std), x, noise).mean() - d / 2 * math.log(2 * math.pi * s**2)
    slopes = [torch.autograd.grad(each, leaves) for each in (told.output, fast, bound)]
    for value, gradient in zip((fast, bound), slopes[1:]):
        close(value, told.output, dtype)
        for mine, its in zip(gradient, slopes[0]):
            close(mine, its, dtype)
    assert told.kl.shape == told.reconstruction.shape == (n,)


@few
@given(shapes, st.integers(1, 3), st.sampled_from([2, 3, 17, 256]), dtypes, seeds)
def test_coins_are_torchs_binomial(shape, n, levels, dtype, seed):
    net = nn.Linear(2, math.prod(shape)).to(dtype)
    decoder = BinomialDecoder(net, shape, num_levels=levels)
    x = torch.randint(levels, (n, *shape), generator=seeded(seed)).to(dtype) / (levels - 1)
    z = draw(3, n, 2, seed=seed, dtype=dtype).requires_grad_()
    law = torch.distributions.Binomial(levels - 1, logits=net(z).reshape(3, n, *shape))
    found = decoder.log_likelihood(x, z)
    peer = law.log_prob((x * (levels - 1)).round()).flatten(2).sum(dim=-1)
    allowed = 1e-3 if dtype is torch.float32 else 1e-9  # lgamma of 256 in float32, a pixel each
    torch.testing.assert_close(found, peer, rtol=allowed, atol=allowed)
    torch.testing.assert_close(
        *(torch.autograd.grad(each.sum(), z)[0] for each in (found, peer)), rtol=allowed, atol=allowed
    )
    torch.testing.assert_close(decoder(z), law.mean / (levels - 1))
    decoder.check_images(x)
    decoder.check_images(decoder.sample(z.detach(), generator=seeded(seed)))


@few
@given(shapes, st.integers(1, 3), st.floats(0.05, 3.0), dtypes, seeds)
def test_gaussian_decoders_are_torchs_normal(shape, n, s, dtype, seed):
    net = nn.Linear(2, math.prod(shape)).to(dtype)
    x, z = draw(n, *shape, seed=seed, dtype=dtype), draw(3, n, 2, seed=seed, dtype=dtype).requires_grad_()
    peer = torch.distributions.Normal(net(z).reshape(3, n, *shape), s).log_prob(x).flatten(2).sum(dim=-1)
    for kind in (GaussianDecoder, LearnedGaussianDecoder):
        decoder = kind(net, shape, s).to(dtype)
        found = decoder.log_likelihood(x, z)
        scale = min(1.0, s**2)  # of an error that is small beside 1/s²
        mine, its = (torch.autograd.grad(each.sum(), z, retain_graph=True)[0] for each in (found, peer))
        if kind is LearnedGaussianDecoder:  # its float32 ln s became a float64
            close(scale * found.float(), scale * peer.float(), torch.float32)
            close(scale * mine.float(), scale * its.float(), torch.float32)
        else:
            close(scale * found, scale * peer, dtype)
            close(scale * mine, scale * its, dtype)


def test_a_learnt_deviation_is_best_at_the_root_mean_square_error():
    decoder = LearnedGaussianDecoder(nn.Linear(2, 12), (1, 3, 4), 1.0).double()
    x, z = draw(20, 1, 3, 4, seed=0), draw(20, 2, seed=1)
    with torch.no_grad():
        decoder.log_std.copy_((x - decoder(z)).square().mean().sqrt().log())
    (slope,) = torch.autograd.grad(decoder.log_likelihood(x, z).sum(), decoder.log_std)
    assert abs(float(slope)) < 1e-9
    assert list(dict(GaussianDecoder(nn.Linear(2, 12), (1, 3, 4), 1.0).named_parameters())) == [
        "net.weight",
        "net.bias",
    ]


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 7, 5), (1, 1, 1), (1, 28, 28)])
@pytest.mark.parametrize("build", [mlp_vae, conv_vae])
def test_models_of_every_size_draw_and_reconstruct(build, shape):
    model = build(shape, 3, lambda net: BinomialDecoder(net, shape), generator=seeded(0))
    assert all(isinstance(model, kind) for kind in (GenerativeModel, DecoderModel))
    x = torch.rand(4, *shape, generator=seeded(1)).round()
    q = model.encoder(x)
    assert q.mean.shape == q.log_std.shape == (4, 3)
    assert model(x).shape == x.shape
    losses = vae_losses(model, q, x, q.sample_noise((2,), generator=seeded(2)))
    losses.sum().backward()
    assert losses.shape == (4,)
    assert all(each.grad is not None and each.grad.isfinite().all() for each in model.parameters())
    for noisy in (False, True):
        drawn = model.sample(5, generator=seeded(3), pixel_noise=noisy)
        assert drawn.shape == (5, *shape)
        assert 0 <= float(drawn.min()) <= float(drawn.max()) <= 1
        assert torch.equal(drawn, model.sample(5, generator=seeded(3), pixel_noise=noisy))
    again = build(shape, 3, lambda net: BinomialDecoder(net, shape), generator=seeded(0))
    assert all(torch.equal(one, other) for one, other in zip(model.parameters(), again.parameters()))
    assert num_parameters(again) == num_parameters(model)


def test_an_encoder_gives_each_image_its_own_law():
    model = mlp_vae((1, 4, 4), 2, lambda net: BinomialDecoder(net, (1, 4, 4)), generator=seeded(0))
    x = torch.rand(3, 1, 4, 4, generator=seeded(1))
    every, one = model.encoder(x), model.encoder(x[1:2])
    torch.testing.assert_close(one.mean[0], every.mean[1])
    torch.testing.assert_close(one.log_std[0], every.log_std[1])
    assert not torch.allclose(every.mean[0], every.mean[1])


def test_draws_of_means_have_the_mean_of_draws():
    """E[X] = E[E[X | Z]]: the same codes, with coins and without; coins leave at most ½ / √(16 n) of a deviation, 6 of
    which never come."""
    shape, count = (1, 2, 2), 20_000
    model = mlp_vae(
        shape, 2, lambda net: BinomialDecoder(net, shape, num_levels=17), hidden_dims=(8,), generator=seeded(0)
    )
    with torch.no_grad():
        for parameter in model.decoder.parameters():
            parameter *= 5  # away from π = ½ everywhere
        z = model.sample_prior((count,), generator=seeded(1))
        away = (model.decoder.sample(z, generator=seeded(2)) - model.decode_mean(z)).mean(dim=0).abs().max()
    assert float(away) < 6 * 0.5 / math.sqrt(16 * count)


def test_evidence_is_above_the_bound_and_below_nothing_it_should_not_pass():
    """A VAE is a latent model: with more draws the importance-weighted bound rises, on a tiny grid up to the exact
    evidence."""
    model = mlp_vae(
        (1, 1, 2), 1, lambda net: BinomialDecoder(net, (1, 1, 2)), hidden_dims=(8,), generator=seeded(0)
    ).double()
    every = torch.cartesian_prod(*[torch.tensor([0.0, 1.0]).double()] * 2).reshape(4, 1, 1, 2)
    with torch.no_grad():
        q = model.encoder(every)
        found = importance_log_evidence(model, q, every, num_samples=20_000, generator=seeded(1))
        grid = torch.linspace(-10, 10, 4001, dtype=torch.float64)
        joint = model.log_joint(every, grid[:, None, None].expand(-1, 4, 1))
        exact = torch.logsumexp(joint, dim=0) + math.log(20 / 4000)
        torch.testing.assert_close(exact.exp().sum(), torch.tensor(1.0).double(), rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(found.output, exact, rtol=0, atol=0.05)
        single = -vae_losses(model, q, every, q.sample_noise((20_000,), generator=seeded(2)))
        assert (single < exact).all()
        assert float((iwae_bound(found.log_weights[:5000]) - exact).abs().max()) < 0.1


def test_the_weight_of_the_divergence_scales_it_alone():
    model = mlp_vae((1, 2, 2), 2, lambda net: BinomialDecoder(net, (1, 2, 2)), generator=seeded(0)).double()
    x = torch.rand(3, 1, 2, 2, generator=seeded(1)).round().double()
    q = model.encoder(x)
    noise = q.sample_noise((1,), generator=seeded(2))
    none, half, full = (vae_losses(model, q, x, noise, kl_weight=weight) for weight in (0.0, 0.5, 1.0))
    torch.testing.assert_close(half, (none + full) / 2)
    exact = torch.distributions.kl_divergence(
        torch.distributions.Normal(q.mean, q.std),
        torch.distributions.Normal(torch.zeros(2).double(), torch.ones(2).double()),
    )
    torch.testing.assert_close(full - none, exact.sum(dim=-1))


def test_warm_up_rises_to_one():
    assert [kl_warmup(each, 0.5) for each in (0.0, 0.25, 0.5, 0.9)] == [0.0, 0.5, 1.0, 1.0]
    assert kl_warmup(0.0, 0.0) == 1.0
    for share in (-0.1, 1.5, math.nan):
        with pytest.raises(UserError, match="from 0 to 1"):
            kl_warmup(0.3, share)


def test_mistakes_say_what_to_do():
    net, shape = nn.Linear(2, 4), (1, 2, 2)
    coins, z = BinomialDecoder(net, shape), torch.zeros(1, 2)
    for wrong in (torch.full((1, 1, 2, 2), 1.5), torch.full((1, 1, 2, 2), -0.1), torch.full((1, 1, 2, 2), math.nan)):
        with pytest.raises(UserError, match=r"expected images in \[0, 1\] for a Bernoulli decoder"):
            coins.log_likelihood(wrong, z)
    with pytest.raises(UserError, match="only the values 0 and 1"):
        coins.check_images(torch.full((1, 1, 2, 2), 0.5))
    with pytest.raises(UserError, match="multiples of 1/16"):
        BinomialDecoder(net, shape, num_levels=17).check_images(torch.full((1, 1, 2, 2), 0.49))
    with pytest.raises(UserError, match=r"expected images \(\.\.\., 1, 2, 2\), got \(1, 1, 3, 2\)"):
        coins.log_likelihood(torch.zeros(1, 1, 3, 2), z)
    with pytest.raises(UserError, match="two levels"):
        BinomialDecoder(net, shape, num_levels=1)
    with pytest.raises(UserError, match="image_shape"):
        BinomialDecoder(net, (2, 2))
    for kind in (GaussianDecoder, LearnedGaussianDecoder):
        with pytest.raises(UserError, match="above 0"):
            kind(net, shape, 0.0)
    for build in (mlp_vae, conv_vae):
        with pytest.raises(UserError, match="at least one latent coordinate, got 0"):
            build(shape, 0, lambda net: BinomialDecoder(net, shape))
        with pytest.raises(UserError, match="at least one example to sample"):
            build(shape, 1, lambda net: BinomialDecoder(net, shape)).sample(0, generator=seeded(0))
    x, mean = torch.zeros(2, 3), torch.zeros(2, 1)
    with pytest.raises(UserError, match=r"expected noise \(m, n, k\)"):
        gaussian_vae_loss(x, mean, mean, torch.zeros(2, 1), nn.Linear(1, 3), 1.0)
    with pytest.raises(UserError, match="above 0 for the decoder"):
        gaussian_vae_loss(x, mean, mean, torch.zeros(1, 2, 1), nn.Linear(1, 3), 0.0)
