"""Why sampling z from the prior says little about one x, and what a proposal that knows x changes."""

import torch

from quoin.data import keyed_generator
from quoin.models import PPCA
from quoin.notes.figures.figure import figure
from quoin.plot import Plot
from quoin.plot.plots import COLORS, FAINT, INK, house_style, new_figure
from quoin.prob import FiniteLatentModel, MultivariateNormal, TriangularNormal, importance_log_evidence, mc_log_evidence


@figure(
    "D6-13F",
    "Samples of z against the likelihood of one x. Top: of ten separated components a sample from the prior hits the "
    "right one in ten. Bottom: "
    "a continuous z, from the prior and from a proposal near the posterior; dots are samples, as large as they count.",
    {"num_samples": (2, 10000)},
)
def samples_against_likelihood(num_samples: int = 200) -> Plot:
    generator = keyed_generator("draws against likelihood", 0)
    with house_style():
        sheet = new_figure(height=6.4)
        panels = sheet.subplots(3, 1)
        _mixture(panels[0], generator, num_samples)
        _line(panels[1], generator, num_samples, proposal=False)
        _line(panels[2], generator, num_samples, proposal=True)
        return Plot(sheet, "samples of z against the likelihood of one x")


def _mixture(axes, generator: torch.Generator, num_samples: int) -> None:
    n = 10
    means = 4.0 * torch.arange(n, dtype=torch.float64).unsqueeze(-1)
    prior = torch.full((n,), 1 / n, dtype=torch.float64)
    model = FiniteLatentModel(prior, MultivariateNormal(means, torch.eye(1, dtype=torch.float64).expand(n, 1, 1)))
    x = torch.tensor([16.6], dtype=torch.float64)
    frequencies = torch.bincount(model.sample_prior((num_samples,), generator=generator), minlength=n) / num_samples
    likelihood = model.log_likelihoods(x).exp()
    at = torch.arange(n)
    axes.bar(
        (at - 0.2).numpy(),
        frequencies.numpy(),
        width=0.38,
        color=FAINT,
        label=f"fraction of {num_samples} samples from the prior",
    )
    axes.bar((at + 0.2).numpy(), likelihood.numpy(), width=0.38, color=COLORS[0], label="likelihood p(x | z)")
    axes.set_xticks(at)
    axes.set_xlabel("component z")
    axes.set_title("ten components four standard deviations apart; x is from number 4", fontsize=10)
    axes.legend(fontsize=8)


def _line(axes, generator: torch.Generator, num_samples: int, *, proposal: bool) -> None:
    model = PPCA(torch.ones(1, 1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64), 0.15).requires_grad_(False)
    x = torch.tensor([1.8], dtype=torch.float64)
    truth = model.posterior(x)
    q = (
        TriangularNormal(truth.mean, 1.5 * truth.scale_tril)
        if proposal
        else TriangularNormal(torch.zeros_like(x), torch.eye(1).double())
    )
    seed = "proposal draws" if proposal else "prior draws"  # once to see the samples, once for what they count
    if proposal:
        z = q.sample((num_samples,), generator=keyed_generator(seed, 0))
        found = importance_log_evidence(model, q, x, num_samples=num_samples, generator=keyed_generator(seed, 0))
    else:
        z = model.sample_prior((num_samples,), generator=keyed_generator(seed, 0))
        found = mc_log_evidence(model, x, num_samples=num_samples, generator=keyed_generator(seed, 0))
    grid = torch.linspace(-3.5, 3.5, 800, dtype=torch.float64).unsqueeze(-1)
    likelihood, density = model.log_likelihood(x, grid).exp(), q.log_prob(grid).exp()
    axes.plot(grid.squeeze(-1), likelihood / likelihood.max(), color=COLORS[0], label="likelihood p(x | z)")
    axes.plot(
        grid.squeeze(-1),
        density / density.max(),
        color=INK,
        linewidth=1,
        label="proposal q(z)" if proposal else "prior p(z)",
    )
    weights = found.log_weights.softmax(dim=0)
    heights = -0.12 - 0.16 * torch.rand(num_samples, generator=generator)
    axes.scatter(
        z.squeeze(-1), heights, s=(4 + 60 * weights / weights.max()).numpy(), color=COLORS[1], alpha=0.5, linewidths=0
    )
    axes.set_xlabel("z")
    axes.set_yticks([])
    estimate, exact = float(found.output), float(model.log_evidence(x))
    counted = f"{float(found.effective_sample_size):.0f} of {num_samples} samples count"
    axes.set_title(
        f"from the {'proposal' if proposal else 'prior'}: {counted}; ln p(x) = {exact:.2f}, estimate "
        f"{estimate:.2f}".replace("-", "−"),
        fontsize=10,
    )
    axes.legend(fontsize=8, loc="upper left")
