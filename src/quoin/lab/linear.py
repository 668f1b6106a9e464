# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""Linear models: least squares, likelihood and the conditional mean. Area 3 of the notes."""

import marimo

app = marimo.App(width="full", app_title="Linear models · Quoin lab")

with app.setup:
    import functools
    import math

    import torch
    from jaxtyping import Float, Int
    from torch import Tensor

    from quoin.data import make_linear
    from quoin.lab.parts import Number, Picture, View, digits, exhibit, head, play, read_table, rest
    from quoin.lab.parts.claim_forms import form_of
    from quoin.lab.parts.class_pictures import draw_classes, draw_regions_of_scores
    from quoin.lab.parts.controls import DragPoints, File, Handle, Slider, Step, Switch
    from quoin.lab.parts.lines import (
        RANGE,
        START,
        STEPS,
        examples,
        fit_with_errors,
        least_absolute_line,
        loss_over_the_plane,
        sgd_path,
    )
    from quoin.losses import squared_loss
    from quoin.metrics import accuracy, empirical_risk, r2_score
    from quoin.models import (
        best_affine_predictor,
        conditional_expectation,
        least_squares,
        linear_regression_definition,
        one_hot_regression,
    )
    from quoin.notes.claims.linear_models import Problem, one_example_is_one_row
    from quoin.notes.claims.linear_models_classes import least_squares_outputs_sum_to_one
    from quoin.notes.claims.linear_models_population import best_affine, mean_squared_error
    from quoin.optim import sgd_step_definition

    TROUPE = ((-3.2, -1.2), (-2.4, -1.5), (-1.5, -1.3), (-0.6, -0.4), (0.3, 0.5), (1.1, 1.3), (2.0, 0.9), (3.1, 1.1))
    PULLED = (*TROUPE[:-1], (3.1, -2.3))
    NODES = torch.linspace(-3, 3, 25, dtype=torch.float64)
    CORNERS = {"first": (-2.0, -0.8), "middle": (0.0, 1.2), "last": (2.0, -0.8)}


@app.cell
def _():
    head("linear")
    return


@app.function
@exhibit(
    "Pull a point",
    ids="Z3.1 Z3.2 Z3.3 Z3.4 Z3.5 Z3.6 Z3.7 ZE4",
    intro="Drag points, click for more. Least squares makes the shaded area least, the dashed line the lengths.",
    controls=(
        DragPoints("points", "points", TROUPE, (-4.0, -2.6), (4.0, 2.6), most=20, least=3),
        Switch("printed", "as printed: wᵀx + b is Xw + b"),
    ),
    surprise="One point pulled away turns the line of least squares; the line of least absolute error stays.",
    surprise_at={"points": [list(point) for point in PULLED]},
    definition=(least_squares, squared_loss),
)
def pull_a_point(points: list[tuple[float, float]], printed: bool) -> View:
    """Points, their least-squares line with the residuals squared, and the line of least absolute error."""
    x, y = torch.tensor(points, dtype=torch.float64).unbind(dim=1)
    fit, firm = least_squares(x.unsqueeze(1), y), least_absolute_line(x, y)
    predicted = fit.predict(x.unsqueeze(1))
    loss = float(empirical_risk(squared_loss, predicted, y))
    slope, firm_slope = float(fit.weight[0]), float(firm.weight[0])
    picture = Picture(f"{len(points)} points; slopes {slope:.2f} by squares and {firm_slope:.2f} by absolute errors.")
    axes = picture.axes((-4, 4), (-2.6, 2.6), equal=True)
    for a, b, c in zip(x.tolist(), y.tolist(), predicted.tolist()):
        side = abs(c - b) * (1 if (c - b) * slope < 0 else -1)
        axes.polygon([(a, b), (a, c), (a + side, c), (a + side, b)], "change 22%", label=f"r² = {digits((c - b) ** 2)}")
        axes.line([a, a], [b, c], "change", width=2)
    ends = torch.tensor([[axes.x[0]], [axes.x[1]]], dtype=torch.float64)
    axes.line(ends, firm.predict(ends), "ink", dashed=True, width=1.6, label="least absolute error")
    axes.line(ends, fit.predict(ends), "model", label="least squares")
    form = form_of(one_example_is_one_row, printed)
    given = Problem(x.unsqueeze(1), y, fit.weight, fit.bias, 0.0, 0.0)
    answers = form(given, len(points) - 1).reshape(-1)
    if printed:
        axes.points([float(x[-1])] * len(answers), answers, "printed", size=4.5, shape="ring")
        axes.text(float(x[-1]) - 0.2, float(answers.max()), f"{len(answers)} answers to one x", "printed", anchor="end")
    axes.points_to_drag("points", points)
    axes.text(-3.95, 2.45, "line: least squares", "model")
    axes.text(-3.95, 2.1, "dashed: least absolute error", "ink")
    return View(
        picture,
        [
            Number("mean loss, r²/2", loss),
            Number("slope, least squares", slope),
            Number("predictions for the last x", len(answers), printed=True)
            if printed
            else Number("slope, least absolute error", firm_slope),
        ],
        reached=float((firm.predict(x.unsqueeze(1)) - y).abs().max()) > 2 and abs(slope - firm_slope) > 0.15,
        code=(
            "import torch\n"
            "from quoin.losses import squared_loss\n"
            "from quoin.models import least_squares\n"
            f"x, y = torch.tensor({[list(point) for point in points]!r}, dtype=torch.float64).unbind(dim=1)\n"
            "fit = least_squares(x.unsqueeze(1), y)\n"
            "print(float(squared_loss(fit.predict(x.unsqueeze(1)), y).mean()))"
        ),
    )


@app.cell
def _():
    play(pull_a_point)
    return


@app.function
@exhibit(
    "A step by hand",
    ids="Z3.8 Z3.9 Z3.10 ZE7",
    intro="Sixteen examples of y = 2x − 1 + noise. Step; each step sees one batch. The paler, the less loss.",
    controls=(
        Handle("rate", "learning rate", (0.3, 0.0), (0.02, 0.0), (2.0, 0.0)),
        Slider("batch", "batch size", default=4, choices=(1, 2, 4, 8, 16)),
        Step("steps", "steps", most=STEPS, default=8),
        Switch("printed", "as printed: b starts from w"),
    ),
    surprise="As printed the new b starts from w: the path jumps off, and ends far above the least loss.",
    surprise_at={"printed": True},
    definition=sgd_step_definition,
)
def a_step_by_hand(rate: tuple[float, float], batch: int, steps: int, printed: bool) -> View:
    """The path of minibatch SGD over the loss in (w, b)."""
    X, y = examples()
    best = least_squares(X, y)
    path = sgd_path(batch, rate[0], printed)[: steps + 1]

    def loss_at(point: tuple[float, float]) -> float:
        w, b = torch.tensor(point, dtype=torch.float64)
        return float(empirical_risk(squared_loss, linear_regression_definition(X, w.reshape(1), b), y))

    least = loss_at((float(best.weight[0]), float(best.bias)))
    now, right = loss_at(path[-1]), loss_at(sgd_path(batch, rate[0], False)[steps])
    picture = Picture(f"After {steps} steps w = {path[-1][0]:.2f} and b = {path[-1][1]:.2f}, loss {digits(now)}.")
    axes = picture.axes(
        RANGE, (-RANGE[1], RANGE[1]), box=(46, 30, 330, 300), title="loss over (w, b)", x_label="w", y_label="b"
    )
    heights = loss_over_the_plane()
    axes.image(0.55 * (heights / heights.max()).sqrt(), smooth=True)
    ws, bs = zip(*path)
    role = "printed" if printed else "model"
    axes.line(ws, bs, role, width=1.8)
    axes.points(ws, bs, role, size=3.2, labels=[f"step {index}" for index in range(len(path))])
    axes.points([float(best.weight[0])], [float(best.bias)], "ink", size=6, shape="cross", labels=["least squares"])
    axes.text(float(best.weight[0]), float(best.bias), "least loss", anchor="middle", dy=22)
    axes.points(ws[-1:], bs[-1:], role, size=6)
    data = picture.axes((-3, 3), (-8, 6), box=(432, 30, 196, 200), title="the line now", x_label="x")
    rows = torch.arange(len(y)).split(batch)[(steps - 1) % (len(y) // batch)] if steps else torch.arange(0)
    data.points(X[:, 0], y, "ink", size=3)
    data.points(X[rows, 0], y[rows], "change", size=4.5, labels=["in the last batch"] * len(rows))
    ends = torch.tensor([-3.0, 3.0], dtype=torch.float64)
    data.line(ends, path[-1][0] * ends + path[-1][1], role)
    ruler = picture.axes((0, 2), (-1, 1), box=(432, 330, 196, 20), y_ticks=False, x_label="learning rate: drag")
    ruler.handle("rate", rate[0], 0.0, label="learning rate", along="x")
    return View(
        picture,
        [Number("loss", now, printed=printed), Number("least loss", least), Number("learning rate", rate[0])],
        reached=printed and now > 2 * right and now > 2 * least,
        note=f"The path starts at w = {digits(START[0], 2)}, b = {digits(START[1], 2)}. Vermilion: the last batch.",
        code=(
            "import torch\n"
            "from quoin.lab.parts.lines import examples, sgd_path\n"
            "from quoin.losses import squared_loss\n"
            "X, y = examples()\n"
            f"w, b = sgd_path({batch}, {rate[0]!r}, {printed})[{steps}]\n"
            "print(float(squared_loss(w * X[:, 0] + b, y).mean()))"
        ),
    )


@app.cell
def _():
    play(a_step_by_hand)
    return


@app.function
def bent_pair(
    mean: float, bend: float, noise: float
) -> tuple[Float[Tensor, "x y"], Float[Tensor, "x"], Float[Tensor, "y"]]:
    """P(x, y), the values of X and of Y: X nearly normal on 25 values, Y = (1 - bend) x + bend x² ± noise."""
    x = mean + NODES
    mass = torch.softmax(-NODES.square() / 2, dim=0)
    truth = (1 - bend) * x + bend * x.square()
    y = torch.stack([truth - noise, truth + noise], dim=1).flatten()
    return torch.kron(torch.diag(mass), torch.full((1, 2), 0.5, dtype=torch.float64)), x, y


@app.function
@exhibit(
    "The best guess",
    ids="Z3.16 Z3.19",
    intro="Bend the mean of Y given X. Drag the middle of X below. Y lies as often above as below its mean.",
    controls=(
        Handle("middle", "mean of X", (0.0, 0.0), (-2.0, 0.0), (2.0, 0.0)),
        Slider("bend", "bend", 0.0, 1.0, 0.5, 0.05),
        Slider("noise", "noise", 0.0, 2.0, 0.8, 0.1),
    ),
    surprise="For Y = X² and X even about 0 the best line is flat: it sees nothing of a Y that X determines.",
    surprise_at={"bend": 1.0},
    definition=(conditional_expectation, best_affine_predictor),
)
def the_best_guess(middle: tuple[float, float], bend: float, noise: float) -> View:
    """The conditional mean, the best line, and the mean squared error of both."""
    joint, x, y = bent_pair(middle[0], bend, noise)
    mean, fit = conditional_expectation(joint, y), best_affine(joint, x, y)
    line = fit.predict(x.unsqueeze(1))
    risks = [round(float(mean_squared_error(joint, guess, y)), 12) for guess in (line, mean)]
    picture = Picture(f"The best line has slope {float(fit.weight[0]):.2f} and risk {digits(risks[0])}.")
    axes = picture.axes((-5, 5), (-4, 12), box=(46, 20, 580, 300), y_label="Y")
    mass = joint.sum(dim=1)
    for side in (-1, 1):
        for place, height, weight in zip(x.tolist(), mean.tolist(), mass.tolist()):
            axes.points([place], [height + side * noise], "ink", size=1 + 12 * math.sqrt(weight / 6))
    axes.line(x, mean, "ink", width=1.6, label="E[Y|X]")
    axes.line(x, line, "model", label="the best line")
    for place, low, high in zip(x.tolist(), mean.tolist(), line.tolist()):
        axes.line([place, place], [low, high], "change", width=1)
    axes.text(float(x[-1]), min(float(mean[-1]), 11.0), "E[Y|X]", "ink", anchor="end", dy=-14)
    axes.text(float(x[0]), float(line[0]), "best line", "model", dy=-8)
    ground = picture.axes((-5, 5), (-1, 1), box=(46, 352, 580, 18), y_ticks=False, x_label="X: drag its mean")
    for place, weight in zip(x.tolist(), mass.tolist()):
        ground.line([place, place], [-1, -1 + 18 * weight], "ink", width=4)
    ground.handle("middle", middle[0], 0.0, label="mean of X", along="x")
    return View(
        picture,
        [
            Number("risk of the best line", risks[0]),
            Number("risk of E[Y|X]", risks[1]),
            Number("slope", round(float(fit.weight[0]), 12)),
        ],
        reached=abs(float(fit.weight[0])) < 0.02 and risks[0] > risks[1] + 1,
        note="Risk: E(Y − guess)². No function of X has less than E[Y|X].",
        code=(
            "from quoin.lab.linear import bent_pair\n"
            "from quoin.notes.claims.linear_models_population import best_affine, mean_squared_error\n"
            f"joint, x, y = bent_pair({middle[0]!r}, {bend!r}, {noise!r})\n"
            "fit = best_affine(joint, x, y)\n"
            "print(round(float(mean_squared_error(joint, fit.predict(x.unsqueeze(1)), y)), 12))"
        ),
    )


@app.cell
def _():
    play(the_best_guess)
    return


@app.function
def three_clouds(*centers: tuple[float, float]) -> tuple[Float[Tensor, "n 2"], Int[Tensor, "n"]]:
    """Twenty points about each centre, every cloud even about its own: points and classes."""
    half = 0.4 * torch.randn(10, 2, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    cloud = torch.cat([half, -half])
    points = torch.cat([cloud + torch.tensor(center, dtype=torch.float64) for center in centers])
    return points, torch.arange(len(centers)).repeat_interleave(20)


@app.function
@exhibit(
    "Classes by regression",
    ids="Z4.2 Z4.2c ZE39",
    intro="Least squares on one-hot labels; the largest output decides. Drag the clouds by their middles.",
    controls=(
        *(Handle(name, f"{name} cloud", at, (-3.0, -2.0), (3.0, 2.0)) for name, at in CORNERS.items()),
        Switch("printed", "as printed: no sum to rely on (no bias)"),
    ),
    surprise="In a row the middle class is never chosen, yet the three outputs sum to 1 everywhere.",
    surprise_at={"middle": [0.0, -0.8]},
    definition=one_hot_regression,
)
def classes_by_regression(
    first: tuple[float, float], middle: tuple[float, float], last: tuple[float, float], printed: bool
) -> View:
    """Three clouds and where which output of a one-hot regression is largest."""
    points, labels = three_clouds(first, middle, last)
    form = form_of(least_squares_outputs_sum_to_one, printed)
    corners = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    at_corners = form(points, labels, 3, corners)  # an affine map is known by its values at three corners
    bias = at_corners[0]
    weight = (at_corners[1:] - bias).mT
    outputs = form(points, labels, 3, points)
    chosen = outputs.argmax(dim=1)
    found = int((chosen[20:40] == 1).sum())
    sums = outputs.sum(dim=1)
    right = accuracy(chosen, labels)
    picture = Picture(f"Of the middle class {found} of 20 points are chosen; {right:.0%} of all are right.")
    axes = picture.axes((-3.4, 3.4), (-2.3, 2.3), equal=True)
    draw_regions_of_scores(axes, weight, bias)
    draw_classes(axes, points, labels)
    for name, at in zip(CORNERS, (first, middle, last)):
        axes.handle(name, *at, label=f"{name} cloud")
    return View(
        picture,
        [
            Number("middle class chosen", str(found), "of 20"),
            Number("right", right),
            Number(
                "sum of the outputs", f"{digits(float(sums.min()))} to {digits(float(sums.max()))}", printed=printed
            ),
        ],
        reached=found == 0 and float((sums - 1).abs().max()) < 1e-9,
        code=(
            "from quoin.lab.linear import three_clouds\n"
            f"from quoin.notes.claims.linear_models_classes import {form.__name__}\n"
            f"points, labels = three_clouds({first!r}, {middle!r}, {last!r})\n"
            f"chosen = {form.__name__}(points, labels, 3, points).argmax(dim=1)\n"
            "print(int((chosen[20:40] == 1).sum()))"
        ),
    )


@app.cell
def _():
    play(classes_by_regression)
    return


@app.function
@functools.lru_cache(maxsize=4)
def own_columns(file: bytes | None) -> tuple[tuple[str, ...], Float[Tensor, "rows columns"]]:
    """The columns of numbers of a file, or of an example whose third weight is 0."""
    if file:
        table = read_table(file)
        return table.first_numbers(max(2, min(len(table.numbers), 13)))
    data = make_linear(40, [1.5, -0.8, 0.0], 2.0, noise=1.0, generator=torch.Generator().manual_seed(2))
    return ("first", "second", "third", "y"), torch.cat([data.features, data.targets.unsqueeze(1)], dim=1)


@app.function
@exhibit(
    "Yours: weights and how sure they are",
    intro="A CSV of numbers: the last column is predicted from the others, twelve at most.",
    controls=(File("file", "a CSV"), Switch("scaled", "per standard deviation of a column")),
    definition=fit_with_errors,
    yours=True,
)
def yours(file: bytes | None, scaled: bool) -> View:
    """Each weight with an interval that covers the true one in 95 of 100 tables, if the model is right."""
    names, table = own_columns(file)
    X, y = table[:, :-1].double(), table[:, -1].double()
    X = X / X.std(dim=0).clamp_min(1e-300) if scaled else X
    fit, errors, noise, t = fit_with_errors(X, y)
    weights, wide = fit.weight.tolist(), (t * errors).tolist()
    most = 1.15 * max(abs(w) + e for w, e in zip(weights, wide)) or 1.0
    sure = [abs(w) > e for w, e in zip(weights, wide)]
    picture = Picture(f"{len(y)} rows: {sum(sure)} of {len(sure)} weights differ from 0 beyond their errors.")
    axes = picture.axes((-most, most), (len(weights) - 0.5, -0.5), box=(150, 20, 470, 340), y_ticks=False)
    axes.line([0, 0], [-0.5, len(weights) - 0.5], "ink", width=1)
    for row, (name, weight, error) in enumerate(zip(names, weights, wide)):
        axes.line([weight - error, weight + error], [row, row], "change", width=3, label=f"± {digits(error)}")
        axes.points([weight], [row], "model", size=6, labels=[digits(weight)])
        axes.text(-most, row, name[:16], "ink" if sure[row] else "faint", anchor="end", dy=4)
    return View(
        picture,
        [
            Number("standard deviation of the noise", noise, names[-1][:12]),
            Number("R²", float(r2_score(fit.predict(X), y))),
            Number("rows", len(y)),
        ],
        note="Dots: weights; bars: 95% intervals." + ("" if file else " An example of ours; choose a file."),
    )


@app.cell
def _():
    play(yours)
    return


@app.cell
def _():
    rest("linear")
    return


if __name__ == "__main__":
    app.run()
