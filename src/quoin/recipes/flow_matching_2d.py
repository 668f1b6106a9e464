"""Flow matching on two moons: a velocity field that carries noise along straight lines to points, and knows their density."""

from dataclasses import dataclass

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
    """Options of the recipe `flow-matching-2d`."""

    steps: int = option(20, "midpoint steps from noise to data", at_least=1, at_most=10**5)


def model(options, facts):
    """An untrained field, with a scale that is learnt from the data."""
    import torch

    from quoin.data import keyed_generator
    from quoin.generate import FlowSampler
    from quoin.models import TimeMLP

    generator = keyed_generator("weights", options.seed)
    network = TimeMLP(2, hidden=options.hidden, depth=options.depth, time_unit=1 / 1000, generator=generator)
    return FlowSampler(network, (2,), offset=torch.zeros(2), unit=torch.ones(2), steps=options.steps)


def build(options, place):
    import torch

    from quoin import draw
    from quoin.draw import Panel
    from quoin.objectives import flow_matching_loss
    from quoin.recipes.running.points import PointsTask, draw_points

    points = draw_points(options)
    net = model(options, None)
    net.offset.copy_(points["train"].mean(dim=0))
    net.unit.copy_(points["train"].std(dim=0))

    class Flow(PointsTask):
        def losses(self, model, points, *, generator):
            data = model.inward(points)
            noise = torch.randn(data.shape, generator=generator).to(data)
            t = torch.rand(len(data), generator=generator).to(data)
            return flow_matching_loss(model.network, data, noise, t)

        def measure_finally(self):
            return {"nll": -float(self.shown.log_prob(self.points["test"]).mean())}  # nats a point

        def own_panels(self):
            path = self.shown.sample_path(1000, generator=self.generator("sheet"))
            places = torch.linspace(0, len(path.times) - 1, 8).round().long().tolist()
            strip = {f"t = {path.times[place]:.2f}": path.states[place].cpu() for place in dict.fromkeys(places)}
            return [
                Panel("Flow", lambda: draw.point_clouds(strip), "The same thousand points on their way from noise to data."),
                Panel("Density", self.density, "p(x) of the flow: how crowded it leaves each place."),
            ]

        def density(self):
            low, high = self.points["test"].amin(dim=0) - 0.3, self.points["test"].amax(dim=0) + 0.3
            cell = float((high - low).max()) / 80
            x, y = (torch.arange(float(low[axis]), float(high[axis]), cell) for axis in (0, 1))
            grid = torch.stack(torch.meshgrid(x, y.flip(0), indexing="xy"), dim=-1)
            found = self.shown.log_prob(grid.flatten(0, 1).to(place.device)).exp().reshape(grid.shape[:2]).cpu()
            return draw.heat_map(found, row_labels=[f"{each:.1f}" for each in y.flip(0)], column_labels=[f"{each:.1f}" for each in x])

    return Flow(net, points, options, place)
