"""Polynomials of every degree fitted to a noisy cubic: too low a degree underfits, too high a one overfits."""

from dataclasses import dataclass

from quoin.errors import Mistake
from quoin.options import option
from quoin.recipes.running.options import DataOptions, RunOptions
from quoin.recipes.running.target import Goal, Target

NOTES = ("Z3.7", "Z3.25", "Z3.26", "Z3.27")
ROWS = 100  # few enough that high degrees overfit
TARGET = Target("test_rmse", at_most=0.125)  # the noise in the targets has standard deviation 0.1: no model can do better than that
GOAL = Goal("validation_rmse")


@dataclass(frozen=True)
class Options(DataOptions, RunOptions):
    """Options of the recipe `polynomial-fit`."""

    data: str = option("polynomial", "where the data come from: polynomial, or csv:PATH, npz:PATH with one feature")
    epochs: int = option(20, "polynomials to try, one an epoch: of degree 0, 1, 2, ...", at_least=1, at_most=40)
    rows: int | None = option(
        None, "most rows to fit to, all others but the test's choose the degree; 100 of the built-in data", at_least=1, at_most=10**9
    )


def model(options, facts):
    from quoin.models import PolynomialRegression

    return PolynomialRegression(options.epochs - 1)


def build(options, place):
    import torch

    from quoin import draw
    from quoin.data import Batches
    from quoin.draw import Panel
    from quoin.models import fit_polynomial, polynomial_features
    from quoin.objectives import root_mean_squared_error, squared_loss
    from quoin.recipes.running.parts import numbers
    from quoin.train import in_squared_unit, load_strictly

    rows = options.rows or (ROWS if options.data == Options().data else None)  # data of somebody's own are all taken
    data = one_feature(numbers(options, place), rows)
    net = model(options, data.facts).to(place.device)
    targets = data.target_scale
    assert targets is not None  # they are numbers
    unit = float(targets.std)

    class Degrees:
        """Epoch k fits the polynomial of degree k to all its rows at once, in closed form; no gradient is followed."""

        def __init__(self):
            num_rows = data.train.num_rows
            self.facts, self.batches = data.facts, Batches(num_rows, num_rows, seed=options.seed, shuffle=False)

        def step(self, rows):
            weights = fitted(self.batches.epoch)
            with torch.no_grad():
                net.weight.zero_()[: len(weights)] = weights.to(net.weight)
                return {"loss": in_squared_unit(squared_loss(net(data.train.features), data.train.targets).sum(), unit)}

        @torch.no_grad()
        def evaluate(self, part):
            rows = getattr(data, part)
            outputs = net(rows.features)
            rmse = root_mean_squared_error(outputs, rows.targets) * unit
            found = {"loss": float(in_squared_unit(squared_loss(outputs, rows.targets).mean(), unit)), "rmse": rmse}
            if part == "train":
                found["degree"] = float(degree())
            if part == "test":
                found |= {f"rmse_of_degree_{k}": error(k, "test") for k in sorted({1, net.degree} - {0})}
            return found

        def state(self):
            return {"model": {"weights": net.state_dict(), "scales": data.scale_state()}, "batches": self.batches.state()}

        def load(self, state):
            load_strictly(net, state["model"]["weights"])
            self.batches.load(state["batches"])

        def panels(self):
            degrees = list(range(net.degree + 1))
            errors = {part: (degrees, [error(k, part) for k in degrees]) for part in ("train", "validation", "test")}
            told = f"Closed-form fits to {data.train.num_rows} rows; validation chose degree {degree()}."
            dots = "Dark dots were fitted, light ones are the test's; what overfits leaves the picture between or beyond them."
            return [
                Panel("Error by degree", lambda: draw.curves(errors, x_label="degree", y_label="rmse", log_y=True), told),
                Panel("Fits by degree", lambda: fits(), dots),
            ]

    def fitted(degree):  # in float64: high powers are close to dependent
        return fit_polynomial(data.train.features[:, 0].cpu().double(), data.train.targets.cpu().double(), degree)

    def curve(x, degree):
        return polynomial_features(x.cpu().double(), degree) @ fitted(degree)

    def error(degree, part):
        rows = getattr(data, part)
        return root_mean_squared_error(curve(rows.features[:, 0], degree), rows.targets.cpu().double()) * unit

    def degree():
        used = net.weight.detach().nonzero()
        return int(used.max()) if len(used) else 0

    def fits():
        from quoin.draw.drawing import COLOURS, FAINT, INK, house_style, new_figure

        x, y = (torch.cat([getattr(getattr(data, part), of) for part in ("test", "train")]).cpu() for of in ("features", "targets"))
        dots = [INK if row >= data.test.num_rows else FAINT for row in range(len(x))]
        line = torch.linspace(float(x.min()), float(x.max()), 400, dtype=torch.float64)
        y = targets.invert(y)
        with house_style():
            figure = new_figure(height=3.8)
            axes = figure.add_subplot(xlabel=data.facts.feature_names[0], ylabel=data.facts.target_name)
            axes.grid(True)
            axes.scatter(data.feature_scale.invert(x), y, s=12, color=dots)
            shown = data.feature_scale.invert(line[:, None])
            for colour, (k, dash) in zip(COLOURS, {1: "--", degree(): "-", net.degree: ":"}.items()):
                if k <= net.degree:
                    axes.plot(shown, targets.invert(curve(line, k)), dash, color=colour, label=f"degree {k}")
            margin = 0.3 * float(y.max() - y.min()) or 1.0
            axes.set_ylim(float(y.min()) - margin, float(y.max()) + margin)
            axes.legend()
            return draw.Drawing(figure, "fits by degree")

    return Degrees()


def one_feature(data, num_rows):
    """The data with the one feature x, at most `num_rows` rows to fit to (None: all) and what is left beside the validation rows."""
    import dataclasses

    import torch

    from quoin.data import Dataset, Standardiser

    generated = data.facts.source == "polynomial"  # its columns are powers of one x
    if data.facts.num_features != 1 and not generated:
        raise Mistake(f"expected data with one feature to bend a curve over, came {data.facts.num_features}; leave one column")
    column, name = (1, "x") if generated else (0, data.facts.feature_names[0])

    def part(*pieces: Dataset) -> Dataset:
        features = torch.cat([piece.features.flatten(1)[:, column : column + 1] for piece in pieces])
        return dataclasses.replace(pieces[0], features=features, targets=torch.cat([p.targets for p in pieces]), feature_names=(name,))

    rows = torch.arange(data.train.num_rows, device=data.train.features.device)
    fitted, left = data.train.take(rows[:num_rows]), data.train.take(rows[len(rows[:num_rows]) :])
    return dataclasses.replace(
        data,
        facts=dataclasses.replace(data.facts, feature_names=(name,), feature_shape=(1,)),
        train=part(fitted),
        validation=part(data.validation, left),
        test=part(data.test),
        feature_scale=Standardiser(*(each.flatten()[column : column + 1] for each in data.feature_scale)),
    )
