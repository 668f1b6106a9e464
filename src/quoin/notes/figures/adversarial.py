"""The adversarial game plotted: the best discriminator, what a penalty does to the players' steps, a ring that is
learnt."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributions import Categorical, MixtureSameFamily, Normal

from quoin.data import keyed_generator, make_blobs
from quoin.losses import (
    input_gradients,
    minimax_value,
    non_saturating_loss,
    optimal_discriminator,
    r1_penalty,
)
from quoin.metrics import mode_coverage, nearest_modes
from quoin.models import GAN, MLP, mlp_gan
from quoin.notes.figures.figure import figure
from quoin.optim import cosine
from quoin.plot import Plot
from quoin.plot.plots import COLORS, FAINT, INK, house_style, new_figure
from quoin.tensor.single_thread import single_thread
from quoin.train import DeviceContext, GradientUpdater

MODES, NOISE = 8, 0.05  # modes on the ring, and their standard deviation
BATCH = 128


@figure(
    "D5.2-7",
    "Top: two distributions on the line, the best discriminator p/(p + p_G) between them, and one trained on "
    "samples, where there are any. "
    "Bottom left: data at 0, fakes at θ, a discriminator of slope ψ; steps of both circle outwards, and come to "
    "rest under a penalty on "
    "the slope. Bottom right: eight modes on a ring and samples of a generator that learnt them; being continuous, "
    "it cannot but leave some "
    "in between.",
    {"penalty": (0, 2), "num_steps": (1, 10000)},
)
def adversarial_game(penalty: float = 0.3, num_steps: int = 700) -> Plot:
    with house_style(), single_thread():  # small nets learn faster on one thread, and the same on any machine's
        sheet = new_figure(height=6.2)
        grid = sheet.add_gridspec(2, 2, height_ratios=(2, 3))
        _best_discriminator(sheet.add_subplot(grid[0, :]))
        _steps(sheet.add_subplot(grid[1, 0]), penalty)
        _ring(sheet.add_subplot(grid[1, 1]), num_steps)
        return Plot(sheet, "the adversarial game")


def _best_discriminator(axes) -> None:
    real = MixtureSameFamily(
        Categorical(torch.tensor([0.4, 0.6])), Normal(torch.tensor([-1.5, 1.2]), torch.tensor([0.5, 0.7]))
    )
    fake = Normal(torch.tensor(0.0), torch.tensor(1.2))
    net = MLP([1, 32, 32, 1], activation=nn.Tanh, generator=(generator := keyed_generator("best discriminator", 0)))
    updater = GradientUpdater(
        net, torch.optim.Adam(net.parameters(), 0.03), total_steps=400, device_context=DeviceContext(), schedule=cosine
    )
    for _ in range(400):
        bump = (torch.rand(500, 1, generator=generator) < 0.6).long()
        x = torch.tensor([-1.5, 1.2])[bump] + torch.tensor([0.5, 0.7])[bump] * torch.randn(500, 1, generator=generator)
        fakes = 1.2 * torch.randn(500, 1, generator=generator)
        updater.update([(x, fakes)], lambda x, fakes: -minimax_value(net(x)[:, 0], net(fakes)[:, 0]), weight=1.0)
    line = torch.linspace(-3, 3, 400)
    p, p_fake = real.log_prob(line).exp(), fake.log_prob(line).exp()
    axes.fill_between(line, p, color=FAINT, alpha=0.6, linewidth=0, label="p")
    axes.plot(line, p_fake, color=INK, linewidth=1.2, label="p_G")
    axes.plot(line, optimal_discriminator(p, p_fake), color=COLORS[0], label="D*")
    learnt = net(line.unsqueeze(-1)).sigmoid().detach()
    axes.plot(line, learnt, color=COLORS[1], linestyle="--", linewidth=1.4, label="D, learnt")
    axes.set_xlabel("x")
    axes.set_ylim(0, 1.1)
    axes.set_title("the best discriminator", fontsize=10)
    axes.legend(fontsize=8, loc="upper center", ncols=4)


def _steps(axes, penalty: float) -> None:
    for strength, color, name in ((0.0, COLORS[1], "free"), (penalty, COLORS[0], "with a penalty")):
        theta, psi = torch.tensor(0.6), torch.tensor(0.0)
        path = [(0.6, 0.0)]
        for _ in range(150):
            theta, psi = _both(theta, psi, strength)
            path.append((theta.item(), psi.item()))
        axes.plot(*zip(*path), color=color, linewidth=1.2, marker=".", markersize=3, label=name)
    axes.plot(0, 0, marker="+", color=INK, markersize=9)
    axes.set_xlabel("θ, where the fakes are")
    axes.set_ylabel("ψ, slope of D")
    axes.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), aspect="equal")
    axes.set_title("steps of both players", fontsize=10)
    axes.legend(fontsize=8, loc="upper center", ncols=2)


def _both(theta: Tensor, psi: Tensor, strength: float) -> tuple[Tensor, Tensor]:
    """A step of each by the gradients of the one game: up for the discriminator, less the penalty, and down for the
    generator."""
    theta, psi = theta.requires_grad_(), psi.requires_grad_()
    real = input_gradients(lambda x: x[:, 0] * psi, torch.zeros(1, 1))
    value = minimax_value(real.output, (psi * theta).unsqueeze(0))
    down, up = torch.autograd.grad(value, [theta, psi], retain_graph=True)
    held = torch.autograd.grad(r1_penalty(real.gradients, strength), psi)[0]
    return (theta - 0.2 * down).detach(), (psi + 0.2 * (up - held)).detach()


def ring_gan(steps: int, *, generator: torch.Generator, penalty: float = 0.1) -> tuple[GAN, Float[Tensor, "modes 2"]]:
    """A GAN of MLPs that learnt a ring of modes, and the modes' centers."""
    angles = 2 * math.pi * torch.arange(MODES) / MODES
    centers = torch.stack([angles.cos(), angles.sin()], dim=1)
    points = make_blobs(8000, centers.tolist(), noise=NOISE, generator=generator).features
    model = mlp_gan(2, latent_dim=4, generator=generator)
    forger, critic = (
        GradientUpdater(
            net,
            torch.optim.Adam(net.parameters(), 0.008, (0.5, 0.99)),
            total_steps=steps,
            device_context=DeviceContext(),
            schedule=cosine,
        )
        for net in (model.generator, model.discriminator)
    )
    for _ in range(steps):
        critic.zero_grad()
        real = input_gradients(model.discriminator, points[torch.randint(len(points), (BATCH,), generator=generator)])
        value = minimax_value(real.output, model.discriminator(model.sample(BATCH, generator=generator)))
        critic.backward(r1_penalty(real.gradients, penalty) - value, 1.0)
        critic.step()
        forger.zero_grad()
        forger.backward(
            non_saturating_loss(model.discriminator(model(model.sample_latent(BATCH, generator=generator)))), 1 / BATCH
        )
        forger.step()
    return model, centers


def _ring(axes, num_steps: int) -> None:
    model, centers = ring_gan(num_steps, generator=keyed_generator("ring", 0))
    samples = model.sample(1500, generator=keyed_generator("ring draws", 0))
    found = mode_coverage(nearest_modes(samples, centers, 4 * NOISE), torch.full((MODES,), 1 / MODES))
    axes.scatter(*samples.T, s=3, color=COLORS[0], alpha=0.4, linewidths=0)
    axes.plot(
        *centers.T,
        linestyle="",
        marker="o",
        markersize=13,
        markerfacecolor="none",
        markeredgecolor=INK,
        markeredgewidth=0.8,
    )
    axes.set_aspect("equal")
    axes.set_xlabel(f"{1 - found.unassigned_fraction:.0%} of the samples are near a mode")
    axes.set_title(f"samples of G: {found.covered} of {MODES} modes", fontsize=10)
