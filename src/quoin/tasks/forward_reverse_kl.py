"""Fit one Gaussian to two modes by KL(P, Q) and another by KL(Q, P): the first covers both modes, the second seeks
one."""

from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.distributions import Categorical, MixtureSameFamily, Normal

from quoin import plot
from quoin.data import BatchSampler, keyed_generator
from quoin.info import kl_divergence
from quoin.optim import cosine, minimize_lbfgs
from quoin.plot import Panel
from quoin.tasks.optimizer import OptimizerChoice, make_optimizer
from quoin.tasks.study import StepOptions
from quoin.train import DeviceContext, GradientTask, Metrics

__all__ = ["ForwardReverseKL", "ForwardReverseOptions", "reverse_kl_minimum"]


def reverse_kl_minimum(P: MixtureSameFamily, mean: float) -> Float[Tensor, "2"]:
    """Mean and std of the Gaussian Q for which KL(Q, P), by quadrature, is least near this mean."""
    at = torch.tensor([mean, 0.0], dtype=torch.float64, requires_grad=True)
    minimize_lbfgs([at], lambda: kl_divergence(Normal(at[0], at[1].exp()), P), tol=1e-7)
    return torch.stack([at.detach()[0], at.detach()[1].exp()])


class ForwardReverseOptions(StepOptions, OptimizerChoice, Protocol):
    """What the study reads of its recipe's options."""

    @property
    def epochs(self) -> int: ...

    @property
    def batch_size(self) -> int: ...

    @property
    def mode_distance(self) -> float: ...

    @property
    def mixture_weight(self) -> float: ...


class ForwardReverseKL(GradientTask):
    """Each step samples from P for the one fit and from the fit itself for the other.

    The model has a `mean` and a `log_std` of each fit.
    """

    kind = "study"
    is_data_parallel = False

    def __init__(self, model: nn.Module, options: ForwardReverseOptions) -> None:
        optimizer = make_optimizer(model.parameters(), options)
        batches = BatchSampler(
            options.steps_per_epoch * options.batch_size, options.batch_size, seed=options.seed, shuffle=False
        )
        # Two pairs of numbers: a GPU would only be slower.
        super().__init__(model, optimizer, batches, DeviceContext(), epochs=options.epochs, schedule=cosine)
        self.options, a = options, options.mode_distance
        modes = torch.tensor([-a, a], dtype=torch.float64)
        weights = torch.tensor([options.mixture_weight, 1 - options.mixture_weight], dtype=torch.float64)
        self.P = MixtureSameFamily(Categorical(weights), Normal(modes, torch.ones_like(modes)))
        # Modes that are near each other have one minimum, between them.
        self.minima = torch.stack([reverse_kl_minimum(self.P, mean) for mean in (-a, 0.0, a)])

    def fits(self) -> list[Normal]:
        """The Gaussian that follows KL(P, Q), and the one that follows KL(Q, P)."""
        return [Normal(self.model["mean"][which], self.model["log_std"][which].exp()) for which in range(2)]

    def pieces(self, rows: Int[Tensor, "batch"]) -> list[tuple]:
        generator = keyed_generator("draws", self.options.seed, self.batches.epoch, self.batches.position)
        return [
            tuple(sample(len(rows), generator=generator, dtype=torch.float64) for sample in (torch.randn, torch.rand))
        ]

    def losses_of(self, noise: Float[Tensor, "batch"], coin: Float[Tensor, "batch"]) -> Float[Tensor, ""]:
        """Their sum over the samples."""
        covering, seeking = self.fits()
        from_p = (
            torch.where(coin < self.options.mixture_weight, -self.options.mode_distance, self.options.mode_distance)
            + noise
        )
        forward = -covering.log_prob(from_p).sum()  # KL(P, Q) but for the entropy of P: maximum likelihood
        from_q = (
            seeking.mean + seeking.stddev * noise
        )  # a function of the fit, so that the gradient passes through the samples
        return forward + (seeking.log_prob(from_q) - self.P.log_prob(from_q)).sum()

    @torch.no_grad()
    def evaluate(self, split: str) -> Metrics:
        if split != "validation":
            return {}  # there are no data, and so no splits
        P, (covering, seeking) = self.P, self.fits()
        covered = (covering.mean - P.mean).abs().maximum((covering.stddev - P.stddev).abs()) / P.stddev
        settled = (
            (torch.stack([seeking.mean, seeking.stddev]) - self.minima).abs().amax(dim=1) / self.minima[:, 1]
        ).min()
        return {
            "forward_kl": float(kl_divergence(P, covering)),
            "reverse_kl": float(kl_divergence(seeking, P)),
            "max_relative_error": float(covered.maximum(settled)),
        }

    @torch.no_grad()
    def panels(self) -> list[Panel]:
        P, (covering, seeking), a = self.P, self.fits(), self.options.mode_distance
        x = torch.linspace(-a - 4, a + 4, 400, dtype=torch.float64)
        distributions = {"P": P, "Q minimizing KL(P, Q)": covering, "Q minimizing KL(Q, P)": seeking}
        lines = {name: (x, q.log_prob(x).exp()) for name, q in distributions.items()}
        caption = (
            "Forward KL(P, Q) penalises a small Q where P is large, and covers both modes; "
            "reverse KL(Q, P) penalises a large Q where P is small, and seeks one mode if they are far apart."
        )
        both = {}
        for name, q in (("wide fit", covering), ("narrow fit", seeking)):
            both |= {f"KL(P, Q), {name}": float(kl_divergence(P, q)), f"KL(Q, P), {name}": float(kl_divergence(q, P))}
        return [
            Panel("The two fits", lambda: plot.curves(lines, x_label="x", y_label="density"), caption),
            Panel(
                "Both KL divergences of each fit",
                lambda: plot.bars(both, x_label="nats"),
                "Each fit is the better one by its own divergence.",
            ),
        ]
