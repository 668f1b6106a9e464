# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""Expressivity: curves as sums of hinges, and what folding buys. Area 20 of the notes."""

import marimo

app = marimo.App(width="full", app_title="Expressivity · Quoin lab")

with app.setup:
    import functools
    import math

    import torch

    from quoin.errors import UserError
    from quoin.expressivity import (
        affine_layers,
        approximate_1d,
        interpolant,
        l1_distance,
        partial_sawtooth_net,
        pieces_on_segment,
        relu_form_definition,
        sawtooth_definition,
        sawtooth_l1_lower_bound,
        sawtooth_net,
        shallow_definition,
        sup_error_in_span,
        to_relu_network,
    )
    from quoin.lab.parts import (
        Choice,
        DragPoints,
        File,
        Number,
        Picture,
        Slider,
        Switch,
        View,
        exhibit,
        head,
        play,
        rest,
    )
    from quoin.lab.parts.claim_forms import form_of
    from quoin.lab.parts.drawn_curve import DrawnCurve, own_curve
    from quoin.layers import Affine, relu, tanh
    from quoin.notes.claims.approximation import third_term
    from quoin.notes.claims.depth import depth_separates
    from quoin.notes.claims.piecewise import ramps_sum_to_f, relus_sum_to_f

    WINDOW = torch.linspace(-3, 3, 241, dtype=torch.float64)
    UNIT = torch.linspace(0, 1, 401, dtype=torch.float64)
    CORNERS = ((-2.6, -1.0), (-1.8, 1.4), (-0.9, -1.4), (0.5, 1.4), (1.4, -1.4), (2.4, 1.11))
    HEIGHTS = (0.2, 0.5, 0.75, 0.55, 0.3, 0.35, 0.6, 0.8)
    MARKS = tuple(((j + 0.5) / 8, height) for j, height in enumerate(HEIGHTS))
    FIRST_EPS = 0.2
    LINE = torch.linspace(-1, 1, 401, dtype=torch.float64)
    ACTIVATIONS = {"ReLU": relu, "tanh": tanh, "x²": torch.square, "x³ − x": lambda x: x**3 - x}
    WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128)


@app.cell
def _():
    head("expressivity")
    return


@app.function
@exhibit(
    "Hinges",
    ids="D1.1-1 D1.1-2 D1.1-3 D1.1-4 D1.1F2 DE4 DE5",
    intro="Drag the corners of the curve. Below: the hinges, each one unit of the network, that add up to it.",
    controls=(
        DragPoints("corners", "corners", CORNERS, (-2.9, -2.0), (2.9, 2.0), most=12, least=4),
        Switch("printed", "as printed: the sums with their indices off by one"),
    ),
    surprise="The sum of hinges is the curve itself. The printed sums, indices off by one, drift away by 8.75.",
    surprise_at={"printed": True},
    definition=(to_relu_network, relu_form_definition),
)
def hinges(corners: list[tuple[float, float]], printed: bool) -> View:
    """A piecewise linear function, the hidden units of its network, and the two sums as printed."""
    x, y = torch.tensor(sorted(corners), dtype=torch.float64).T.contiguous()
    f = interpolant(x, y)
    hidden, last = affine_layers(to_relu_network(f))
    units = len(hidden.bias)
    each_unit = relu(WINDOW.unsqueeze(1) @ hidden.weight.T + hidden.bias) * last.weight[0]
    network = shallow_definition(WINDOW[:, None], hidden, last)[:, 0]
    picture = Picture(f"A curve with {len(f.breakpoints)} breakpoints is a sum of {units} hinges.")
    numbers, wrong = [Number("units", str(units))], []
    if printed:
        forms = (("ramps", ramps_sum_to_f), ("hinges", relus_sum_to_f))
        wrong = [form_of(claim, True)(WINDOW, f.breakpoints, f.slopes, f.offset) for _, claim in forms]
        off = [float((sums - f(WINDOW)).abs().max()) for sums in wrong]
        numbers += [Number(f"{name}, as printed: off by", each, printed=True) for (name, _), each in zip(forms, off)]
    span = (min([-3.0, *(float(sums.min()) for sums in wrong)]), max([3.0, *(float(sums.max()) for sums in wrong)]))
    plane = picture.axes((-3, 3), span, box=(40, 26, 584, 186), title="the curve, and the network")
    plane.line(WINDOW, network, "model", width=3)
    for sums in wrong:
        plane.line(WINDOW, sums, "printed")
    reach = max(1.0, float(each_unit.abs().max()))
    below = picture.axes((-3, 3), (-reach, reach), box=(40, 262, 584, 112), title="its hinges", x_label="x")
    for unit in range(units):
        below.line(WINDOW, each_unit[:, unit], "model 60%", width=1.5, label=f"unit {unit + 1}")
    plane.points_to_drag("corners", corners, label="corner")
    return View(
        picture,
        numbers,
        reached=any(float((sums - f(WINDOW)).abs().max()) > 1 for sums in wrong),
        code=(
            "import torch\n"
            "from quoin.expressivity import interpolant, to_relu_network\n"
            f"x, y = torch.tensor({[list(corner) for corner in sorted(corners)]!r}).T\n"
            "print(to_relu_network(interpolant(x, y))[0].out_features)"
        ),
    )


@app.cell
def _():
    play(hinges)
    return


@app.function
def built(heights: list[float], eps: float, known: str):
    """A network certified to be within eps of the drawn curve, from a bound of its slope or of its curvature."""
    curve = DrawnCurve(heights)
    if known == "its slope":
        return curve, approximate_1d(curve, eps, (0.0, 1.0), lipschitz=curve.lipschitz)
    return curve, approximate_1d(curve, eps, (0.0, 1.0), curvature=curve.curvature)


@app.function
@exhibit(
    "Draw a curve",
    ids="D1.1-6 D1.1-8 D1.1-9 DE6",
    intro="Drag the curve into shape. The network stays in the band of ε, by proof and not by trial.",
    controls=(
        DragPoints("curve", "heights", MARKS, (0.0, 0.0), (1.0, 1.0), most=8, least=8),
        Slider("eps", "ε", 0.01, 0.5, FIRST_EPS, log=True),
        Choice("known", "what is bounded", ("its slope", "its curvature")),
        Switch("printed", "as printed: the third term by the other end"),
    ),
    surprise="Half the ε, twice the units: so it is with a bound of the slope. One of the curvature asks for fewer.",
    surprise_at={"eps": FIRST_EPS / 2},
    definition=(approximate_1d, interpolant),
)
def draw_a_curve(curve: list[tuple[float, float]], eps: float, known: str, printed: bool) -> View:
    """A drawn curve, its certified network, and the error inside its bound."""
    heights = [height for _, height in sorted(curve)]
    g, found = built(heights, eps, known)
    first = built(heights, FIRST_EPS, known)[1]
    picture = Picture(f"{found.num_units} units stay within {eps:.2g} of the curve; {found.measured:.2g} at worst.")
    top = picture.axes((0, 1), (-0.4, 1.4), box=(46, 26, 580, 200), title="the curve, its band, and the network")
    upper, lower = (list(zip(UNIT.tolist(), (g(UNIT) + side * eps).tolist())) for side in (1, -1))
    top.polygon([*upper, *reversed(lower)], "model 14%", edge="none")
    top.line(UNIT, g(UNIT), "ink", width=1.4)
    top.line(UNIT, found.function(UNIT), "model")
    top.points(found.function.breakpoints, found.function(found.function.breakpoints), "model", size=2.4)
    top.points_to_drag("curve", sorted(curve), label="height", along="y")
    error = (g(UNIT) - found.function(UNIT)).abs()
    numbers = [Number("units", str(found.num_units)), Number(f"units at ε = {FIRST_EPS}", first.num_units)]
    high, terms = eps * 1.1, []
    if printed:
        pieces = len(found.function.breakpoints) + 1
        piece = (UNIT * pieces).floor().clamp(max=pieces - 1)
        left, right = piece / pieces, (piece + 1) / pieces
        slope = (g(right) - g(left)).abs() * pieces
        terms = [slope * form(UNIT, left, right) for form in (form_of(third_term, False), form_of(third_term, True))]
        high = max(high, float(torch.stack(terms).max()) * 1.1)
        numbers.append(Number("third term, off by", float((terms[0] - terms[1]).abs().max()), printed=True))
    title = "|L(t) − L(x)|, the third term" if printed else "the error, below ε"
    below = picture.axes((0, 1), (0, high), box=(46, 276, 580, 100), title=title, x_label="x")
    for term, role in zip(terms, ("model", "printed")):
        below.line(UNIT, term, role, width=1.6)
    if not printed:
        below.line(UNIT, error, "change")
        below.line([0, 1], [eps, eps], "ink", dashed=True, width=1.4)
    return View(
        picture,
        numbers,
        reached=eps < FIRST_EPS and found.num_units >= 1.9 * first.num_units,
        code=(
            "from quoin.expressivity import approximate_1d\n"
            "from quoin.lab.parts.drawn_curve import DrawnCurve\n"
            f"curve = DrawnCurve({heights!r})\n"
            f"bound = dict({'lipschitz=curve.lipschitz' if known == 'its slope' else 'curvature=curve.curvature'})\n"
            f"print(approximate_1d(curve, {eps!r}, (0.0, 1.0), **bound).num_units)"
        ),
    )


@app.cell
def _():
    play(draw_a_curve)
    return


@app.function
@exhibit(
    "Fold",
    ids="D1.1-12 D1.1-14 D1.1-15 DE11",
    intro="Fold the interval k times with two units each. A shallow rival has p pieces to follow with.",
    controls=(
        Slider("k", "folds k", 1, 9, 3, step=1),
        Slider("pieces", "the rival's pieces p", 2, 64, 9, step=1),
        Switch("printed", "as printed: two layers of 8 nodes, for 4"),
    ),
    surprise="2k units make 2ᵏ teeth; a rival with few pieces stays farther than 1/32 away in the mean.",
    surprise_at={"k": 7},
    definition=(sawtooth_net, sawtooth_definition, sawtooth_l1_lower_bound, partial_sawtooth_net),
)
def fold(k: int, pieces: int, printed: bool) -> View:
    """The tent of the tent of ..., a shallow network, their exact mean distance, and what no rival gets below."""
    net, rival = sawtooth_net(k), partial_sawtooth_net(k, min(pieces, 2**k))
    teeth = pieces_on_segment(net, [0.0], [1.0])
    other = pieces_on_segment(rival, [0.0], [1.0])
    distance, bound = l1_distance(net, rival), sawtooth_l1_lower_bound(k, pieces)
    picture = Picture(
        f"{2 * k} units make {teeth.num_linear_pieces} pieces; a rival of {pieces} is {distance:.3g} away."
    )
    plane = picture.axes((0, 1), (-0.1, 1.1), box=(40, 26, 380, 350), title="deep and shallow", x_label="x")
    plane.line(other.breaks, other.values[:, 0], "ink", width=4)
    plane.line(teeth.breaks, teeth.values[:, 0], "model", width=1.8)
    side = picture.axes((0.5, 9.5), (0, 0.26), box=(476, 26, 150, 350), title="mean distance", x_label="folds k")
    folds = range(1, 10)
    side.line(folds, [sawtooth_l1_lower_bound(each, pieces) for each in folds], "model", label="no rival is nearer")
    side.line([0.5, 9.5], [1 / 32, 1 / 32], "faint", dashed=True, width=1.4)
    side.text(9.4, 1 / 32, "1/32", "faint", anchor="end", dy=14)
    side.points([k], [bound], "model", size=6)
    side.points([k], [distance], "ink", size=6, shape="square")
    numbers = [Number("the rival's mean distance", distance), Number("no rival is nearer than", bound)]
    if printed:
        most = math.floor((form_of(depth_separates, True)(2) / 2 + 1) ** 2)
        side.line(folds, [sawtooth_l1_lower_bound(each, most) for each in folds], "printed")
        numbers.append(Number(f"bound for {most} pieces", sawtooth_l1_lower_bound(k, most), printed=True))
    return View(
        picture,
        numbers,
        reached=bound > 1 / 32 and teeth.num_linear_pieces > 4 * pieces,
        code=(
            "from quoin.expressivity import l1_distance, partial_sawtooth_net, sawtooth_net\n"
            f"print(l1_distance(sawtooth_net({k}), partial_sawtooth_net({k}, {min(pieces, 2**k)})))"
        ),
    )


@app.cell
def _():
    play(fold)
    return


@app.function
def aim(x: torch.Tensor) -> torch.Tensor:
    """What the networks of the last exhibit are fitted to."""
    return x.abs() + (3 * x).sin()


@app.function
@functools.cache
def hidden_outputs(activation: str) -> torch.Tensor:
    """A constant and the outputs of 128 random hidden units on LINE."""
    generator = torch.Generator().manual_seed(0)
    weight = 3 * torch.randn(WIDTHS[-1], 1, generator=generator, dtype=torch.float64)
    bias = 2 * torch.randn(WIDTHS[-1], generator=generator, dtype=torch.float64)
    eye = Affine(torch.eye(WIDTHS[-1], dtype=torch.float64), torch.zeros(WIDTHS[-1], dtype=torch.float64))
    units = shallow_definition(LINE[:, None], Affine(weight, bias), eye, ACTIVATIONS[activation])
    return torch.cat([torch.ones(len(LINE), 1, dtype=torch.float64), units], dim=1)


@app.function
@functools.cache
def errors_by_width(activation: str) -> list[float]:
    return [sup_error_in_span(hidden_outputs(activation)[:, : width + 1], aim(LINE)) for width in WIDTHS]


@app.function
@exhibit(
    "Polynomials stick",
    ids="D1.1-6 D1.1-7",
    intro="Random hidden units, and the best last layer for the grey curve. Choose the activation and the width.",
    controls=(
        Choice("activation", "activation", tuple(ACTIVATIONS), "x²"),
        Slider("width", "hidden units", default=8, choices=WIDTHS),
    ),
    surprise="x² stops at its degree: any sum of its units is a parabola. ReLU and tanh go on getting closer.",
    surprise_at={"width": 128},
    definition=(shallow_definition, sup_error_in_span),
)
def polynomials_stick(activation: str, width: int) -> View:
    """The best last layer over random hidden units, and its largest error by width."""
    columns, values = hidden_outputs(activation)[:, : width + 1], aim(LINE)
    fit = columns @ torch.linalg.lstsq(columns, values[:, None], rcond=1e-13, driver="gelsd").solution
    errors = errors_by_width(activation)
    error = errors[WIDTHS.index(width)]
    picture = Picture(f"{width} units with activation {activation} come within {error:.3g} of the curve.")
    plane = picture.axes((-1, 1), (-1.4, 2.4), box=(40, 26, 330, 350), title="curve and best fit", x_label="x")
    plane.line(LINE, values, "faint", width=4)
    plane.line(LINE, fit[:, 0], "model")
    side = picture.axes(
        (0.8, 160),
        (1e-4, 4),
        box=(430, 26, 194, 350),
        title="largest error",
        x_label="hidden units",
        x_log=True,
        y_log=True,
    )
    for name in ACTIVATIONS:
        chosen = name == activation
        line = errors_by_width(name)
        side.line(WIDTHS, line, "model" if chosen else "faint", width=2.4 if chosen else 1.2, label=name)
        side.text(128, line[-1], name, "model" if chosen else "faint", anchor="end", dy=-6, size=12)
    side.points([width], [error], "model", size=7)
    return View(
        picture,
        [Number("largest error", error), Number("hidden units", width)],
        reached=width > 8 and error > 0.95 * errors[WIDTHS.index(8)],
        code=(
            "from quoin.expressivity import sup_error_in_span\n"
            "from quoin.lab.expressivity import LINE, aim, hidden_outputs\n"
            f"print(sup_error_in_span(hidden_outputs({activation!r})[:, : {width + 1}], aim(LINE)))"
        ),
    )


@app.cell
def _():
    play(polynomials_stick)
    return


@app.function
@exhibit(
    "Yours: how many units?",
    intro="Two columns of your file as a curve, and a network that stays within ε of it.",
    controls=(
        File("table", "a CSV file with columns x and y"),
        Slider("eps", "ε, as a part of the height", 0.01, 0.5, 0.1, log=True),
    ),
    yours=True,
)
def your_curve(table: bytes | None, eps: float) -> View:
    """The exact network of the curve, and one of equally spaced breakpoints certified by its steepest slope."""
    names, curve, (low, high), y = own_curve(table)
    height = float(y.max() - y.min()) or 1.0
    steepest = float(curve.slopes.abs().max()) + 1e-9
    if steepest / (2 * eps * height) > 5000:
        raise UserError(
            "expected a curve without jumps, got a slope too steep for this ε; enlarge ε or smooth the file"
        )
    found = approximate_1d(curve, eps * height, (0.0, 1.0), lipschitz=steepest)
    exact = len(affine_layers(to_relu_network(curve))[0].bias)
    picture = Picture(f"{found.num_units} units stay within {eps * height:.3g} of a curve of {len(y)} points.")
    margin = 0.6 * eps * height + 0.1 * height
    span = (float(y.min()) - margin, float(y.max()) + margin)
    plane = picture.axes((low, high), span, x_label=names[0], y_label=names[1], box=(66, 14, 560, 350))
    x = low + (high - low) * UNIT
    plane.line(x, curve(UNIT), "hand", width=4)
    plane.line(x, found.function(UNIT), "model")
    return View(
        picture,
        [
            Number("units for this ε", found.num_units),
            Number("units for the curve itself", exact),
            Number("error, measured", found.measured),
        ],
        note=f"{len(y)} points" if table is not None else "An example of ours; choose a file.",
    )


@app.cell
def _():
    play(your_curve)
    return


@app.cell
def _():
    rest("expressivity")
    return


if __name__ == "__main__":
    app.run()
