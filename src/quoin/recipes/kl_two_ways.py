"""One Gaussian fitted to two modes, both ways round: KL(P, Q) covers them, KL(Q, P) settles in one."""

from dataclasses import dataclass

from quoin.options import option
from quoin.recipes.running.options import RunOptions
from quoin.recipes.running.target import Target

NOTES = ("M24", "Z13.22")
# How far the worse of the two fits is from where mathematics puts it, in the width of the law there: KL(P, Q) is least for the mean and
# the deviation of P, and KL(Q, P) at one of the minima that quadrature finds, here within 0.001 of either mode. What is left is the
# noise of the last draws.
TARGET = Target("validation_off", at_most=0.05)
GOAL = None  # the rate falls to nothing, so the last fits are the best

COVERING, SEEKING = 0, 1


@dataclass(frozen=True)
class Options(RunOptions):
    """Options of the recipe `kl-two-ways`."""

    distance: float = option(4.0, "how far each mode is from zero, in widths of a mode", at_least=0.0, at_most=30.0)
    share: float = option(0.5, "how much of P the left mode has", at_least=0.0, at_most=1.0)
    epochs: int = option(20, "looks at the two divergences, taken by quadrature", at_least=1, at_most=10**6)
    steps: int = option(25, "updates between two looks", at_least=1, at_most=10**6)
    batch_size: int = option(256, "draws for each update", at_least=1, at_most=10**6)
    lr: float = option(0.2, "the rate of Adam's first step; it falls along a cosine", above=0.0, at_most=100.0)


def model(options, facts):
    """Two Gaussians, both started at one draw from P and as wide as a mode; a start between the modes may keep KL(Q, P) there too."""
    import torch
    from torch import nn

    from quoin.data import keyed_generator

    generator = keyed_generator("start", options.seed)
    mode = -options.distance if float(torch.rand((), generator=generator)) < options.share else options.distance
    start = mode + torch.randn((), generator=generator, dtype=torch.float64)
    return nn.ParameterDict({"mean": nn.Parameter(start.repeat(2)), "log_std": nn.Parameter(torch.zeros(2, dtype=torch.float64))})


def build(options, place):
    import torch
    from torch.distributions import Categorical, MixtureSameFamily, Normal

    from quoin import draw
    from quoin.data import Batches, keyed_generator
    from quoin.draw import Panel
    from quoin.info import kl_of_densities
    from quoin.optim import cosine
    from quoin.train import load_strictly

    a, share = options.distance, options.share
    modes = torch.tensor([-a, a], dtype=torch.float64)
    shares = torch.tensor([share, 1 - share], dtype=torch.float64)
    P = MixtureSameFamily(Categorical(shares), Normal(modes, torch.ones_like(modes)))
    fits = model(options, None)  # two pairs of numbers: a GPU would only be slower
    optimiser = torch.optim.Adam(fits.parameters(), options.lr)

    def gaussian(which):
        return Normal(fits["mean"][which], fits["log_std"][which].exp())

    def least(mean):
        """Mean and deviation where KL(Q, P), taken by quadrature, is least near this mean."""
        at = torch.tensor([mean, 0.0], dtype=torch.float64, requires_grad=True)
        search = torch.optim.LBFGS([at], max_iter=60, line_search_fn="strong_wolfe")

        def closure():
            search.zero_grad()
            found = kl_of_densities(Normal(at[0], at[1].exp()), P)
            found.backward()
            return found.detach()

        search.step(closure)
        return torch.stack([at.detach()[0], at.detach()[1].exp()])

    minima = torch.stack([least(mean) for mean in (-a, 0.0, a)])  # modes that are near each other have one minimum, between them

    class BothWays:
        """Each step draws from P for the one fit and from the fit itself for the other."""

        def __init__(self):
            self.facts = None
            self.batches = Batches(options.steps * options.batch_size, options.batch_size, seed=options.seed, shuffle=False)

        def step(self, rows):
            at = self.batches
            generator = keyed_generator("draws", options.seed, at.epoch, at.position)
            noise, coin = (f(len(rows), generator=generator, dtype=torch.float64) for f in (torch.randn, torch.rand))
            from_p = torch.where(coin < share, -a, a) + noise
            covering = -gaussian(COVERING).log_prob(from_p).mean()  # KL(P, Q) but for the entropy of P: maximum likelihood
            seeking = gaussian(SEEKING)
            from_q = seeking.mean + seeking.stddev * noise  # a function of the fit, so that the gradient sees the draws move
            seen = seeking.log_prob(from_q) - P.log_prob(from_q)
            done = (at.epoch * options.steps + at.position - 1) / (options.epochs * options.steps)
            optimiser.param_groups[0]["lr"] = options.lr * cosine(done)
            optimiser.zero_grad()
            (covering + seen.mean()).backward()
            optimiser.step()
            return {"loss": (covering + seen.mean()).detach() * len(rows)}

        @torch.no_grad()
        def evaluate(self, part):
            if part != "validation":
                return {}  # there are no data, and so no parts of them
            covering, seeking = gaussian(COVERING), gaussian(SEEKING)
            covered = (covering.mean - P.mean).abs().maximum((covering.stddev - P.stddev).abs()) / P.stddev
            settled = ((torch.stack([seeking.mean, seeking.stddev]) - minima).abs().amax(dim=1) / minima[:, 1]).min()
            return {
                "kl_p_q": float(kl_of_densities(P, covering)),
                "kl_q_p": float(kl_of_densities(seeking, P)),
                "off": float(covered.maximum(settled)),
            }

        def state(self):
            return {"model": {"weights": fits.state_dict()}, "optimiser": optimiser.state_dict(), "batches": self.batches.state()}

        def load(self, state):
            load_strictly(fits, state["model"]["weights"])
            optimiser.load_state_dict(state["optimiser"])
            self.batches.load(state["batches"])

        @torch.no_grad()
        def panels(self):
            x = torch.linspace(-a - 4, a + 4, 400, dtype=torch.float64)
            laws = {"P": P, "Q of least KL(P, Q)": gaussian(COVERING), "Q of least KL(Q, P)": gaussian(SEEKING)}
            told = "KL(P, Q) pays where P is and Q is not, and covers both modes; KL(Q, P) pays where Q is and P is not, and keeps to "
            told += "one if they are far apart."
            both = {}
            for name, law in (("wide fit", gaussian(COVERING)), ("narrow fit", gaussian(SEEKING))):
                both |= {f"KL(P, Q), {name}": float(kl_of_densities(P, law)), f"KL(Q, P), {name}": float(kl_of_densities(law, P))}
            return [
                Panel(
                    "The two fits",
                    lambda: draw.curves({name: (x, law.log_prob(x).exp()) for name, law in laws.items()}, x_label="x", y_label="density"),
                    told,
                ),
                Panel(
                    "Each fit by both measures", lambda: draw.bars(both, x_label="nats"), "Either fit is the better one by its own measure."
                ),
            ]

    return BothWays()
