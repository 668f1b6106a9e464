# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""Regularisation: what closes the gap between training and truth. Area 7 of the notes."""

import marimo

app = marimo.App(width="full", app_title="Regularisation · Quoin lab")

with app.setup:
    import math

    import torch

    from quoin.lab.parts import (
        DragPoints,
        File,
        Handle,
        Number,
        Picture,
        Slider,
        Step,
        Switch,
        View,
        exhibit,
        head,
        play,
        rest,
    )
    from quoin.lab.parts.claim_forms import form_of
    from quoin.lab.parts.dropout_pictures import draw_layer
    from quoin.lab.parts.noisy_curve import errors_by_degree, known_curve, sample_curve
    from quoin.lab.parts.own_degree import DEGREES, compare_degrees, fit_ridge_polynomial
    from quoin.lab.parts.two_weights import FEATURES, TARGETS, contour, descent, penalized_loss
    from quoin.layers import dropout_definition, dropout_mask
    from quoin.losses import input_dropout_penalty, l2_penalty, l2_regularized_loss, squared_loss
    from quoin.metrics import estimate_risk, expected_risk
    from quoin.models import fit_polynomial, least_squares, polynomial_features, relu_interpolant, ridge
    from quoin.notes.claims.linear_models import weight_decay_keeps_its_factor
    from quoin.notes.claims.regularisation import dropout_scales_the_survivors, least_error

    FINE = torch.linspace(-3, 3, 241, dtype=torch.float64)
    SEEN = tuple((round(-2.8 + 5.6 * i / 13, 2), y) for i, y in enumerate(
        (0.71, 0.62, -0.13, -0.61, -1.28, -1.17, -0.51, 0.63, 0.92, 1.35, 0.74, 0.22, -0.33, -1.05)))  # fmt: skip
    START, RATE, STEPS = (-1.5, 1.5), 0.3, 80
    LINE = tuple(zip((-2.6, -1.9, -1.0, -0.3, 0.5, 1.2, 2.0, 2.6), (0.9, 1.2, 0.4, -0.6, -0.9, -0.2, 0.8, 1.1)))


@app.cell
def _():
    head("regularisation")
    return


@app.function
@exhibit(
    "Wiggle",
    ids="Z3.20 Z3.21 Z3.22 Z3.23 Z3.24 Z3.25 Z3.26 Z3.27 Z3.28 Z3.29 Z3.30",
    intro="A polynomial through noisy points of the grey curve. Drag a point; raise the degree; add points.",
    controls=(
        DragPoints("points", "points", SEEN, (-3.0, -2.0), (3.0, 2.0), most=30, least=3),
        Slider("degree", "degree", 0, 13, 5, step=1),
        Slider("more", "more points", default=0, choices=(0, 14, 56, 126)),
    ),
    surprise="Degree 13 touches all 14 points and is useless between them. Ten times the data tames it as well.",
    surprise_at={"degree": 13},
    definition=(fit_polynomial, expected_risk),
)
def wiggle(points: list[tuple[float, float]], degree: int, more: int) -> View:
    """A fit, and training error and true risk (an integral, since here the truth is known) by degree."""
    given = torch.tensor(points, dtype=torch.float64)
    x, y = torch.cat([given, torch.stack(sample_curve(more), dim=1)]).T
    errors = errors_by_degree(tuple(x.tolist()), tuple(y.tolist()))
    training, risk = errors[degree]
    picture = Picture(f"Degree {degree} on {len(x)} points: training error {training:.3g}, true risk {risk:.3g}.")
    plane = picture.axes((-3, 3), (-2, 2), box=(40, 28, 340, 340), title="points, truth and fit", x_label="x")
    plane.line(FINE, known_curve(FINE), "faint", width=3)
    plane.points(x[len(points) :], y[len(points) :], "ink", size=2.4)
    plane.line(FINE, polynomial_features(FINE, degree) @ fit_polynomial(x, y, degree), "model")
    plane.points_to_drag("points", points, label="point")
    log = picture.axes((-0.5, 13.5), (1e-3, 1e2), box=(440, 28, 184, 340), title="error", x_label="degree", y_log=True)
    log.line(range(14), [max(each, 1e-4) for each, _ in errors], "ink", dashed=True, label="training error")
    log.line(range(14), [each for _, each in errors], "model", label="true risk")
    log.points([degree], [max(training, 1e-3)], "ink", size=5, shape="ring")
    log.points([degree], [min(risk, 1e2)], "model", size=6)
    picture.text(450, 44, "risk", role="model", size=13)
    picture.text(450, 62, "training (dashed)", size=13)
    return View(
        picture,
        [Number("true risk", risk), Number("training error", training if training > 1e-9 else 0.0)],
        reached=training < 1e-6 and risk > 3 * min(each for _, each in errors),
        code=(
            "import torch\n"
            "from quoin.lab.parts.noisy_curve import known_population, sample_curve\n"
            "from quoin.losses import squared_loss\n"
            "from quoin.metrics import expected_risk\n"
            "from quoin.models import fit_polynomial, polynomial_features\n"
            f"x, y = torch.tensor({[list(point) for point in points]!r}, dtype=torch.float64).T\n"
            f"more_x, more_y = sample_curve({more})\n"
            f"weights = fit_polynomial(torch.cat([x, more_x]), torch.cat([y, more_y]), {degree})\n"
            f"fit = lambda x: polynomial_features(x, {degree}) @ weights\n"
            "print(expected_risk(fit, squared_loss, known_population()))"
        ),
    )


@app.cell
def _():
    play(wiggle)
    return


@app.function
@exhibit(
    "Pull",
    ids="Z3.31 Z3.32 ZE11 D1.6-4",
    intro="Grey: the loss of two weights. Descend from where you like while l2 pulls towards 0.",
    controls=(
        Handle("start", "start", START, (-2.4, -2.4), (2.4, 2.4)),
        Slider("l2", "l2", 0.0, 2.0, 0.5, step=0.05),
        Switch("printed", "as printed: without the factor 1 − lr·l2"),
    ),
    surprise="The printed step has lost the factor 1 − lr·l2: it goes to the minimum without a penalty.",
    surprise_at={"printed": True},
    definition=(l2_regularized_loss, l2_penalty, ridge),
)
def pull(start: tuple[float, float], l2: float, printed: bool) -> View:
    """Gradient descent with weight decay; the ball is that of the penalised minimum's length."""
    free = least_squares(FEATURES, TARGETS).weight
    best = ridge(FEATURES, TARGETS, l2).weight if l2 > 0 else free
    path = descent(form_of(weight_decay_keeps_its_factor, False), start, lr=RATE, l2=l2, steps=STEPS)
    loss = penalized_loss(path[-1], l2)
    picture = Picture(f"With l2 = {l2:.2f} descent ends at weights of length {float(path[-1].norm()):.2f}.")
    plane = picture.axes((-2.5, 2.5), (-2.5, 2.5), equal=True, x_label="first weight", y_label="second weight")
    for height in (0.03, 0.15, 0.5, 1.2, 2.5):
        plane.curve(contour(free, height), "faint", width=1)
    plane.circle((0, 0), float(best.norm()), "model", fill="model 10%")
    plane.points([float(free[0])], [float(free[1])], "ink", size=6, shape="square")
    plane.text(float(free[0]), float(free[1]), "least loss", anchor="middle", dy=-12)
    plane.curve(path, "model")
    plane.points(path[:, 0], path[:, 1], "model", size=2.6)
    numbers = [Number("penalised loss at the end", loss), Number("length of w", float(path[-1].norm()))]
    lost = False
    if printed:
        wrong = descent(form_of(weight_decay_keeps_its_factor, True), start, lr=RATE, l2=l2, steps=STEPS)
        plane.curve(wrong, "printed")
        numbers.append(Number("penalised loss, as printed", penalized_loss(wrong[-1], l2), printed=True))
        lost = float((wrong[-1] - free).norm()) < 0.05 < 0.2 < float((wrong[-1] - best).norm())
    plane.handle("start", *start, label="start")
    return View(
        picture,
        numbers,
        reached=lost,
        code=(
            "import torch\n"
            "from quoin.losses import l2_regularized_loss, squared_loss\n"
            f"X, y = torch.tensor({FEATURES.tolist()!r}), torch.tensor({TARGETS.tolist()!r})\n"
            f"w = torch.tensor({list(start)!r}, requires_grad=True)\n"
            f"sgd = torch.optim.SGD([w], lr={RATE}, weight_decay={l2!r})\n"
            f"for _ in range({STEPS}):\n"
            "    sgd.zero_grad()\n"
            "    squared_loss(X @ w, y).mean().backward()\n"
            "    sgd.step()\n"
            f"print(l2_regularized_loss(squared_loss(X @ w, y).mean(), w, {l2!r}).item())"
        ),
    )


@app.cell
def _():
    play(pull)
    return


@app.function
@exhibit(
    "Drop",
    ids="D1.6-1 D1.6-2 Z5.22 DE22",
    intro="Eight units of value 3; each is left out with probability p. Redraw; the mean is over two thousand draws.",
    controls=(
        Slider("p", "dropout probability p", 0.0, 0.9, 0.2, step=0.05),
        Step("draw", "redraw", most=50),
        Switch("printed", "as printed: zeroed, and not scaled"),
    ),
    surprise="Only zeroed, the mean falls from 3 to 2.4 at p = 0.2. Scaling the survivors by 1/(1 − p) keeps it.",
    surprise_at={"printed": True},
    definition=(dropout_definition, dropout_mask),
)
def drop(p: float, draw: int, printed: bool) -> View:
    """One mask on a row of units, and the running mean of one unit over many masks."""
    units = torch.full((2000, 8), 3.0)
    mask = dropout_mask(units.shape, p, generator=torch.Generator().manual_seed(draw))
    kept = form_of(dropout_scales_the_survivors, False)(units, mask, p)
    mean = float(kept.mean())
    picture = Picture(f"{int(mask[0].sum())} of 8 units are kept; the mean output of many draws is {mean:.3g}.")
    net = picture.axes((-1, 8), (-1, 5), box=(10, 28, 270, 340), bare=True, title="one draw of the layer")
    draw_layer(net, mask[0], kept[0])
    counts = torch.arange(1, 2001)
    shown = torch.unique(torch.logspace(0, math.log10(2000), 120).long()) - 1
    box, title = (330, 28, 294, 340), "mean output so far"
    plane = picture.axes((1, 2000), (0, 6), box=box, title=title, x_label="draws", x_log=True)
    plane.line([1, 2000], [3, 3], "ink", width=1.4)
    plane.line(counts[shown], (kept.mean(dim=1).cumsum(0) / counts)[shown], "model")
    numbers = [Number("mean output", mean), Number("units kept now", int(mask[0].sum()))]
    wrong = mean
    if printed:
        zeroed = form_of(dropout_scales_the_survivors, True)(units, mask, p)
        wrong = float(zeroed.mean())
        plane.line(counts[shown], (zeroed.mean(dim=1).cumsum(0) / counts)[shown], "printed")
        numbers.append(Number("mean, as printed", wrong, printed=True))
    return View(
        picture,
        numbers,
        reached=wrong < 2.7 < mean,
        code=(
            "import torch\n"
            "from quoin.layers import dropout_definition, dropout_mask\n"
            "units = torch.full((2000, 8), 3.0)\n"
            f"mask = dropout_mask(units.shape, {p!r}, generator=torch.Generator().manual_seed({draw}))\n"
            f"print(float(dropout_definition(units, mask, {p!r}).mean()))"
        ),
    )


@app.cell
def _():
    play(drop)
    return


@app.function
@exhibit(
    "What does dropout add?",
    ids="D1.6-16",
    intro="The loss of a linear model with dropout on its inputs, as a mean over masks. Drag the weight.",
    controls=(
        Handle("weight", "the first weight", (2.2, 0.0), (0.0, 0.0), (3.0, 0.0)),
        Slider("p", "dropout probability p", 0.0, 0.8, 0.5, step=0.05),
        Slider("masks", "masks", 1, 4096, 1, step=1, log=True),
    ),
    surprise="The mean over masks is the loss plus a ridge penalty: for a linear model dropout is a ridge.",
    surprise_at={"masks": 4096},
    definition=(input_dropout_penalty, dropout_definition),
)
def what_dropout_adds(weight: tuple[float, float], p: float, masks: int) -> View:
    """Squares by the first weight, the second at its least-squares value: plain, with masks, and with the penalty."""
    mask = dropout_mask((masks, *FEATURES.shape), p, generator=torch.Generator().manual_seed(1))
    dropped = dropout_definition(FEATURES.expand_as(mask), mask, p)
    first = torch.cat([torch.linspace(0, 3, 61, dtype=torch.float64), torch.tensor([weight[0]], dtype=torch.float64)])
    weights = torch.stack([first, torch.full_like(first, 1.1)], dim=1)
    rows = dropped.reshape(-1, 2)
    targets = TARGETS.repeat(masks)
    noisy = torch.stack([(targets - rows @ w).square().sum() for w in weights]) / masks
    plain = torch.stack([(TARGETS - FEATURES @ w).square().sum() for w in weights])
    penalty = torch.stack([input_dropout_penalty(FEATURES, w, p) for w in weights])
    added, ridge_term = float(noisy[-1] - plain[-1]), float(penalty[-1])
    top = float((plain + penalty).max()) * 1.15
    picture = Picture(f"At weight {weight[0]:.2f} dropout added {added:.3g}; the ridge penalty is {ridge_term:.3g}.")
    plane = picture.axes((0, 3), (0, top), x_label="the first weight", y_label="sum of squares", box=(56, 16, 570, 350))
    plane.line(first[:-1], plain[:-1], "faint", label="without dropout")
    plane.line(first[:-1], (plain + penalty)[:-1], "ink", width=5, label="with the ridge penalty")
    plane.line(first[:-1], noisy[:-1], "model", label="with dropout: the mean over the masks")
    plane.arrow((weight[0], float(plain[-1])), (weight[0], float((plain + penalty)[-1])), "change")
    plane.handle("weight", weight[0], 0.0, label="the first weight", along="x")
    picture.text(72, 34, "without dropout", role="faint", size=13)
    picture.text(72, 53, "with the ridge penalty", size=13)
    picture.text(72, 72, "with dropout, mean over masks", role="model", size=13)
    return View(
        picture,
        [Number("ridge penalty at w", ridge_term), Number("what dropout added", added)],
        reached=ridge_term > 0 and abs(added / ridge_term - 1) < 0.05,
        code=(
            "import torch\n"
            "from quoin.losses import input_dropout_penalty\n"
            f"X = torch.tensor({FEATURES.tolist()!r})\n"
            f"print(float(input_dropout_penalty(X, torch.tensor([{weight[0]!r}, 1.1]), {p!r})))"
        ),
    )


@app.cell
def _():
    play(what_dropout_adds)
    return


@app.function
@exhibit(
    "Any labels",
    ids="Z5.21 ZE40",
    intro="A network with a ReLU unit for each point, written down, not trained. Drag points, shuffle their labels.",
    controls=(
        DragPoints("points", "points", LINE, (-3.0, -2.0), (3.0, 2.0), most=20, least=2),
        Step("shuffle", "shuffle the labels", most=50),
        Switch("printed", "as printed: any data, even one input with two labels"),
    ),
    surprise="It fits noise exactly, whatever the labels. Two labels on one input no function fits: its error is 1/2.",
    surprise_at={"printed": True},
    definition=relu_interpolant,
)
def any_labels(points: list[tuple[float, float]], shuffle: int, printed: bool) -> View:
    """The interpolating network; where an input has two labels, that of their mean, which no function betters."""
    x, y = torch.tensor(points, dtype=torch.float64).T
    if shuffle:
        y = y[torch.randperm(len(y), generator=torch.Generator().manual_seed(shuffle))]
    if printed:
        x, y = torch.cat([x, x[:1]]), torch.cat([y, y[:1] + 1])
    error = round(math.sqrt(least_error((x[:, None], y[:, None]), torch.Generator().manual_seed(0))), 6)
    inputs, which = x.unique(return_inverse=True)
    means = torch.zeros_like(inputs).index_add(0, which, y) / which.bincount()
    network = relu_interpolant(inputs[:, None], means[:, None], generator=torch.Generator().manual_seed(0))
    picture = Picture(f"A network of {network.width} units through {len(x)} points; its largest error is {error:.3g}.")
    plane = picture.axes((-3, 3), (-2.2, 2.2), x_label="x", y_label="label")
    fine = torch.cat([FINE, inputs]).sort().values
    plane.line(fine, network(fine[:, None])[:, 0], "model")
    if shuffle:
        plane.points(x, y, "ink", size=6, shape="square")
    if printed:
        plane.line([float(x[0])] * 2, [float(y[0]), float(y[-1])], "change")
        plane.points([float(x[-1])], [float(y[-1])], "printed", size=8)
    plane.points_to_drag("points", points, label="point")
    return View(
        picture,
        [Number("largest error", error), Number("units", network.width)],
        reached=error > 0.1,
        code=(
            "import torch\n"
            "from quoin.models import relu_interpolant\n"
            f"x, y = torch.tensor({inputs.tolist()!r}).double(), torch.tensor({means.tolist()!r}).double()\n"
            "net = relu_interpolant(x[:, None], y[:, None])\n"
            f"data_x, data_y = torch.tensor({x.tolist()!r}).double(), torch.tensor({y.tolist()!r}).double()\n"
            "print(round((net(data_x[:, None])[:, 0] - data_y).abs().max().item(), 6))"
        ),
    )


@app.cell
def _():
    play(any_labels)
    return


@app.function
@exhibit(
    "Yours: which degree?",
    intro="Two columns of your file. Five folds choose the degree; a fifth of the rows, held out, judges it once.",
    controls=(
        File("table", "a CSV file with two columns of numbers"),
        Slider("degree", "degree", 1, 12, 3, step=1),
        Slider("l2", "l2", 1e-6, 10.0, 1e-4, log=True),
    ),
    yours=True,
)
def your_degree(table: bytes | None, degree: int, l2: float) -> View:
    """Cross-validation by degree; the test error is that of the degree that the folds choose, not of the slider's."""
    names, kept, held, errors = compare_degrees(table, l2)
    best = min(DEGREES, key=lambda each: errors[each - 1])
    test = estimate_risk(fit_ridge_polynomial(best, l2, *kept.T), squared_loss, *held.T).output
    picture = Picture(f"Degree {degree} has validation error {errors[degree - 1]:.3g}; the best is degree {best}.")
    low, high = (torch.cat([kept, held]).amin(0).tolist(), torch.cat([kept, held]).amax(0).tolist())
    plane = picture.axes(
        (low[0], high[0] + 1e-9), (1.15 * low[1] - 0.15 * high[1] - 1e-9, 1.15 * high[1] - 0.15 * low[1] + 1e-9),
        box=(56, 28, 320, 330), title="rows and fit", x_label=f"{names[0]}, standardised and doubled", y_label=names[1],
    )  # fmt: skip
    plane.points(kept[:, 0], kept[:, 1], "hand", size=3.4)
    plane.points(held[:, 0], held[:, 1], "ink", size=4, shape="ring")
    line = torch.linspace(low[0], high[0], 200, dtype=torch.float64)
    plane.line(line, fit_ridge_polynomial(degree, l2, *kept.T)(line), "model")
    least = min(errors)
    box, span = (446, 28, 178, 330), (least / 2 + 1e-12, least * 200 + 1e-10)
    log = picture.axes((0.5, 12.5), span, box=box, title="validation error", x_label="degree", y_log=True)
    log.line(DEGREES, errors, "model")
    log.points([degree], [errors[degree - 1]], "model", size=7)
    picture.text(60, 410, "rings: rows held out, on which nothing is chosen", role="faint", size=13)
    return View(
        picture,
        [
            Number("validation error", errors[degree - 1]),
            Number("the folds choose degree", best),
            Number("its error on rows held out", test),
        ],
        note=f"{len(kept) + len(held)} rows" if table is not None else "An example of ours; choose a file.",
    )


@app.cell
def _():
    play(your_degree)
    return


@app.cell
def _():
    rest("regularisation")
    return


if __name__ == "__main__":
    app.run()
