"""A diffusion model of two moons: noise is walked back to points by a network that was taught to tell it from them."""

from dataclasses import dataclass
from typing import Literal

from quoin.options import option
from quoin.recipes.running.options import PointsOptions
from quoin.recipes.running.target import Target

NOTES = ("D0-T",)
# Squared and unbiased, of 4,000 samples beside as many test points. Points of the law itself come out at 0 ± 0.0002, a normal law with
# their mean and covariance at 0.023.
TARGET = Target("test_mmd", at_most=0.001)
GOAL = None  # the rate falls to nothing, so the last average is the best


@dataclass(frozen=True)
class Options(PointsOptions):
    """Options of the recipe `diffusion-2d`."""

    times: int = option(1000, "steps T from data to noise", at_least=2, at_most=10**5)
    noise: Literal["linear", "cosine", "sigmoid"] = option("linear", "how the noise comes in")
    predict: Literal["noise", "clean", "velocity"] = option("noise", "what the network is asked for")
    steps: int = option(50, "steps of the sampler, at most --times", at_least=1, at_most=10**5)


def model(options, facts):
    """An untrained network, with a schedule and a scale that is learnt from the data."""
    import torch

    from quoin.data import keyed_generator
    from quoin.generate import DiffusionSampler
    from quoin.models import TimeMLP
    from quoin.recipes.running.noising import chosen_process

    schedule, asked = chosen_process(options)
    generator = keyed_generator("weights", options.seed)
    network = TimeMLP(2, hidden=options.hidden, depth=options.depth, time_unit=options.times / 1000, generator=generator)
    return DiffusionSampler(network, schedule, asked, (2,), offset=torch.zeros(2), unit=torch.ones(2), steps=options.steps)


def build(options, place):
    import torch

    from quoin import draw, generate
    from quoin.draw import Panel
    from quoin.objectives import denoising_loss, sampled_diffusion_bound
    from quoin.recipes.running.points import PointsTask, draw_points

    points = draw_points(options)
    net = model(options, None)
    net.offset.copy_(points["train"].mean(dim=0))
    net.unit.copy_(points["train"].std(dim=0))
    samplers = {
        "DDPM": generate.ddpm,
        "DDIM": generate.ddim,
        "Heun": generate.flow_heun,
        "DPM-Solver-2": generate.dpm_solver_2,
    }

    class Diffusion(PointsTask):
        def losses(self, model, points, *, generator):
            clean = model.inward(points)
            t = model.schedule.draw_times(len(clean), generator=generator).to(clean.device)
            noise = torch.randn(clean.shape, generator=generator).to(clean)
            return denoising_loss(model.network, model.schedule, model.parametrisation, clean, t, noise)

        def measure_finally(self):
            shown, clean = self.shown, self.shown.inward(self.points["test"])
            bound = sampled_diffusion_bound(
                shown.denoiser(), shown.schedule, clean, num_times=min(32, options.times - 1), generator=self.generator("bound")
            )
            return {"bound": float(bound.output.mean() + shown.unit.log().sum())}  # nats a point, in the unit of the data

        def by_steps(self):
            """The discrepancy of each sampler for several numbers of questions to the network."""
            budgets = [budget for budget in (5, 10, 20, 50, 100) if budget <= options.times] or [1]
            lines = {}
            for name, sampler in samplers.items():
                found = []
                for budget in budgets:
                    steps = (budget + 1) // 2 if name == "Heun" else budget  # it asks twice a step, once in the last
                    drawn = self.shown.sample(2000, generator=self.generator("budgets"), steps=steps, sampler=sampler)
                    found.append(max(self.squared_mmd(drawn), 1e-5))
                lines[name] = (torch.tensor(budgets), torch.tensor(found))
            return lines

        def own_panels(self):
            path = self.shown.sample_path(1000, generator=self.generator("sheet"))
            angles = self.shown.schedule.angle[torch.tensor(path.times)]  # by which the way is even: by time most of it is all noise
            places = [int((angles - share * angles[0]).abs().argmin()) for share in torch.linspace(1, 0, 8)]
            strip = {f"t = {path.times[place]}": path.states[place].cpu() for place in places}
            return [
                Panel("Denoising", lambda: draw.point_clouds(strip), "The same thousand points on their way from noise to data."),
                Panel(
                    "Samplers",
                    lambda: draw.curves(self.by_steps(), x_label="questions to the network", y_label="squared MMD", log_x=True, log_y=True),
                    "How far 2,000 samples are from the test points; what is below 1e-5 is drawn there.",
                ),
            ]

    return Diffusion(net, points, options, place)
