"""Probabilistic PCA trained as a variational autoencoder: a linear encoder brings the lower bound up to the exact evidence."""

from dataclasses import dataclass

from quoin.options import option
from quoin.recipes.running.options import RunOptions
from quoin.recipes.running.target import Target

NOTES = ("D6-11", "D6-17", "D6-19", "D6-26")
# In nats an example, on new examples: how far the learnt bound is below the exact evidence of the closed-form fit. It is what the
# encoder misses of the posterior, plus what the decoder misses of the likeliest one. Over seeds 100 to 109 it is 0.005 ± 0.005.
TARGET = Target("test_short", at_most=0.02)
GOAL = None  # the rate falls to nothing, so the last weights are the best


@dataclass(frozen=True)
class Options(RunOptions):
    """Options of the recipe `ppca`."""

    features: int = option(10, "numbers an example", at_least=2, at_most=10_000)
    latent: int = option(3, "latent coordinates, of the law that draws the examples and of the model", at_least=1, at_most=1000)
    noise: float = option(0.5, "deviation of what the latent coordinates do not explain", above=0.0, at_most=1000.0)
    examples: int = option(1000, "examples to learn from, and as many again to judge by", at_least=10, at_most=10**7)
    epochs: int = option(80, "passes over the examples", at_least=1, at_most=10**6)
    batch_size: int = option(100, "examples per update", at_least=1, at_most=10**6)
    draws: int = option(1, "draws of z for each example of an update", at_least=1, at_most=10_000)
    lr: float = option(0.05, "the rate of Adam's first step; it falls along a cosine", above=0.0, at_most=100.0)


def model(options, facts):
    """A decoder with random weights, and an encoder that knows nothing yet: one law around zero for every example."""
    import torch
    from torch import nn

    from quoin.data import keyed_generator
    from quoin.models import PPCA

    d, k = options.features, options.latent
    generator = keyed_generator("start", options.seed)
    weight = torch.randn(d, k, generator=generator, dtype=torch.float64) / k**0.5
    encoder = nn.Linear(d, k, dtype=torch.float64)
    nn.init.zeros_(encoder.weight)
    nn.init.zeros_(encoder.bias)
    parts = {"decoder": PPCA(weight, torch.zeros(d, dtype=torch.float64), 1.0), "encoder": encoder}
    scale = nn.ParameterDict({"entries": nn.Parameter(torch.zeros(k * (k + 1) // 2, dtype=torch.float64))})
    return nn.ModuleDict({**parts, "scale": scale})


def build(options, place):
    from typing import Any

    import torch

    from quoin import draw
    from quoin.data import Batches, keyed_generator
    from quoin.draw import Panel
    from quoin.errors import Mistake
    from quoin.models import PPCA, triangular_factor
    from quoin.objectives import elbo_by_analytic_kl
    from quoin.optim import cosine
    from quoin.prob import TriangularNormal, kl_normal
    from quoin.train import load_strictly

    d, k = options.features, options.latent
    if k >= d:
        raise Mistake(f"--latent must be below --features to leave some to noise, got {k} and {d}")
    if options.examples <= k + 1:
        raise Mistake(f"--examples must be above --latent + 1 to be fitted, got {options.examples} and {k}")
    generator = keyed_generator("ppca", options.seed)
    true = PPCA(torch.randn(d, k, generator=generator, dtype=torch.float64), torch.randn(d, generator=generator).double(), options.noise)
    drawn = true.sample(2 * options.examples, generator=generator)
    parts = {"train": drawn[: options.examples], "test": drawn[options.examples :]}
    best = PPCA.fit(parts["train"], k).requires_grad_(False)  # the oracle
    nets: Any = model(options, None)  # a few numbers: a GPU would only be slower
    decoder, encoder, scale = nets["decoder"], nets["encoder"], nets["scale"]
    optimiser = torch.optim.Adam(nets.parameters(), options.lr)

    def posterior(x):
        """q(z | x), its mean linear in x and its covariance the same for all: what the exact posterior is."""
        return TriangularNormal(encoder(x), triangular_factor(scale["entries"], k))

    class Bound:
        """Adam on minus the bound, its divergence in closed form."""

        def __init__(self):
            self.facts = None
            self.batches = Batches(options.examples, options.batch_size, seed=options.seed)

        def step(self, rows):
            at = self.batches
            x = parts["train"][rows]
            q = posterior(x)
            noise = q.noise((options.draws,), generator=keyed_generator("draws", options.seed, at.epoch, at.position))
            apart = kl_normal(q.mean, q.covariance, torch.zeros_like(q.mean), torch.eye(k, dtype=torch.float64))
            loss = -elbo_by_analytic_kl(decoder, q, x, noise, kl=apart).mean()
            updates = -(-options.examples // options.batch_size)
            optimiser.param_groups[0]["lr"] = options.lr * cosine((at.epoch + at.position / updates) / options.epochs)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            return {"loss": loss.detach() * len(rows)}

        @torch.no_grad()
        def evaluate(self, part):
            if part not in parts:
                return {}
            x = parts[part]
            q = posterior(x)
            bound, evidence = decoder.elbo(x, q.mean, q.covariance).mean(), decoder.log_evidence(x).mean()
            limit = best.log_evidence(x).mean()
            return {"bound": float(bound), "evidence": float(evidence), "gap": float(evidence - bound), "short": float(limit - bound)}

        def state(self):
            return {"model": {"weights": nets.state_dict()}, "optimiser": optimiser.state_dict(), "batches": self.batches.state()}

        def load(self, state):
            load_strictly(nets, state["model"]["weights"])
            optimiser.load_state_dict(state["optimiser"])
            self.batches.load(state["batches"])

        @torch.no_grad()
        def panels(self):
            found = self.evaluate("test")
            levels = {
                "learnt bound": found["bound"],
                "learnt evidence": found["evidence"],
                "evidence of the closed-form fit": found["bound"] + found["short"],
                "evidence of the law that drew them": float(true.log_evidence(parts["test"]).mean()),
            }
            told = f"Nats for each new example. The bound lacks {found['gap']:.4f} of its own decoder's evidence: D(q‖p(z | x)), exactly."
            x = parts["test"]
            exact = decoder.posterior(x)
            spread = torch.stack([exact.covariance, posterior(x).covariance]).flatten(0, 1)
            names = [f"{kind}, z{place + 1}" for kind in ("exact", "encoder") for place in range(k)]
            same = "One covariance for every example, by the formula and as it was learnt."
            return [
                Panel("Bound and evidence", lambda: draw.bars(levels, x_label="nats an example"), told),
                Panel(
                    "Posterior means",
                    lambda: draw.scatter(
                        exact.mean.flatten(), encoder(x).flatten(), x_label="exact posterior mean", y_label="encoder's mean"
                    ),
                    "One dot a latent coordinate of a new example.",
                ),
                Panel(
                    "Posterior covariance",
                    lambda: draw.heat_map(
                        spread.round(decimals=3), row_labels=names, column_labels=[f"z{j + 1}" for j in range(k)], show_values=k < 9
                    ),
                    same,
                ),
            ]

    return Bound()
