# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""Automatic differentiation: one sweep backwards. Area 2 of the notes."""

import marimo

app = marimo.App(width="full", app_title="Automatic differentiation · Quoin lab")

with app.setup:
    import functools
    from collections.abc import Callable

    import numpy as np
    import torch
    from jaxtyping import Float
    from torch import Tensor

    from quoin.autodiff import derivatives, finite_differences, gradient, gradient_definition, jvp, taylor, trace, vjp
    from quoin.errors import UserError
    from quoin.lab.parts import Number, Picture, View, digits, exhibit, head, play, read_table, rest
    from quoin.lab.parts.controls import DragPoints, File, Handle, Slider, Step, Switch, Text
    from quoin.lab.parts.formula import function_of, last_use_apart, parse_formula
    from quoin.lab.parts.graph_picture import adjoint_of, draw_trace, local_derivatives, trace_formula
    from quoin.models import MLP

    MOST_SHOWN = 16  # rows and columns of a Jacobian
    STEPS = np.logspace(0, -15, 91)
    BEST_STEP = torch.finfo(torch.float64).eps ** (1 / 3)
    INPUTS = ((1.2, 3.5), (0.7, 2.5), (-0.5, 1.5), (0.4, 0.5))
    OWN = "size,age,rooms,price\n70,12,3,210\n120,40,5,260\n45,3,2,180\n88,25,3,205\n150,8,6,420\n"


@app.cell
def _():
    head("autodiff")
    return


@app.function
@exhibit(
    "Where does a derivative go?",
    ids="Z2.6 Z2.7 Z5.14 Z5.15 Z5.16",
    intro="Type a formula, drag its inputs. Each step walks back a node: adjoint times local derivative, then add.",
    controls=(
        Text("formula", "formula", "x*y + sin(x)"),
        DragPoints("inputs", "inputs", INPUTS, (-3.0, 0.0), (3.0, 4.0), most=4, least=4),
        Step("back", "Step back", most=40),
        Switch("hidden", "hide one path of the input used twice"),
    ),
    surprise="An input that is used twice has two paths. Hide one, and the gradient lacks exactly its share.",
    surprise_at={"hidden": True},
    definition=(gradient_definition, trace),
)
def where_does_a_derivative_go(formula: str, inputs: list[tuple[float, ...]], back: int, hidden: bool) -> View:
    """A formula's graph: values forwards, adjoints backwards, local derivatives on the edges."""
    parsed = parse_formula(formula)
    if not 1 <= len(parsed.names) <= 4:
        raise UserError(f"expected one to four inputs such as x and y, got {len(parsed.names)}; change the formula")
    names, values = parsed.names, [point[0] for point in inputs[: len(parsed.names)]]
    graph = trace_formula(parsed, values)
    uses = [sum(edge.source == index for edge in local_derivatives(graph)) for index in range(len(names))]
    of = next((index for index, count in enumerate(uses) if count > 1), 0)
    whole = adjoint_of(graph, of)
    found, shown_names, apart, numbers = graph, names, None, [Number(f"∂f/∂{names[of]}, all paths", whole)]
    if hidden and uses[of] > 1:
        split = parse_formula(last_use_apart(formula, names[of]))
        found = trace_formula(split, [values[names.index(name.removesuffix("_hidden"))] for name in split.names])
        shown_names, apart = split.names, split.names.index(f"{names[of]}_hidden")
        rest_of_it = adjoint_of(found, split.names.index(names[of]))
        share = adjoint_of(found, apart)
        numbers += [Number("with one path hidden", rest_of_it), Number("the hidden path's share", share)]
        reached = share != 0 and abs(rest_of_it + share - whole) <= 1e-12 * max(1.0, abs(whole))
    else:
        reached = False
        numbers.append(Number("f", float(graph.output)))
    picture = Picture(
        f"The graph of {formula}: value {digits(float(graph.output))}; "
        f"the derivative by {names[of]} is {digits(numbers[-2].value if reached else whole)}."  # pyright: ignore[reportArgumentType]
    )
    draw_trace(picture, found, shown_names, 40 if hidden else back, apart, box=(8, 12, 624, 268))
    rows = len(names)
    axes = picture.axes((-3, 3), (4 - rows, 4), box=(60, 300, 520, 22 * rows), y_ticks=False)
    for index, (name, value) in enumerate(zip(names, values)):
        axes.text(-3.08, 3.5 - index, name, "hand", anchor="end", dy=5)
        axes.text(3, 3.5 - index, f"  {digits(value)}", "hand", dy=5)
    axes.points_to_drag(
        "inputs", [(value, 3.5 - index) for index, value in enumerate(values)], label="input", along="x"
    )
    return View(
        picture,
        numbers,
        reached=reached,
        note="" if uses[of] > 1 or not hidden else "No input of this formula is used twice: try x*x + x.",
        steps=sum(node.adjoint is not None for node in graph.nodes) - 1,
        code=(
            "import torch\n"
            "from quoin.autodiff import trace\n"
            "from quoin.lab.parts import parse_formula\n"
            f"formula = parse_formula({formula!r})\n"
            f"values = torch.tensor({values!r}, dtype=torch.float64)\n"
            "graph = trace(lambda *given: formula.of(dict(zip(formula.names, given))), *values)\n"
            f"print(float(graph.nodes[{of}].adjoint))"
        ),
    )


@app.cell
def _():
    play(where_does_a_derivative_go)
    return


@app.function
def some_map(outputs: int) -> Callable[[Tensor], Tensor]:
    """From any number of inputs to `outputs` numbers, each of which depends on every input."""
    mix = torch.randn(outputs, 3, generator=torch.Generator().manual_seed(1))
    return lambda x: torch.sin(mix @ torch.stack([x.sum(), x.square().sum(), (3 * x).sin().sum()]) / len(x) ** 0.5)


@app.function
@functools.lru_cache(maxsize=128)
def one_sweep(inputs: int, outputs: int, backwards: bool, number: int) -> Float[Tensor, " shown"]:
    """Row `number` of the Jacobian by one vjp, or column `number` by one jvp."""
    x, f = torch.linspace(-1, 1, inputs), some_map(outputs)
    unit = torch.zeros(outputs if backwards else inputs)
    unit[number] = 1
    found = vjp(f, x, unit).product[:MOST_SHOWN] if backwards else jvp(f, x, unit).product[:MOST_SHOWN]
    return found.clone()  # not a view: the cache is to keep what is shown alone


@app.function
@exhibit(
    "Rows or columns?",
    ids="D1.5-2 D6-22 Z13.4",
    intro="A sweep forwards gives a column of the Jacobian, a sweep backwards a row. Step both, then change its shape.",
    controls=(
        Slider("n", "inputs", default=8, choices=(1, 2, 4, 8, 16, 64, 1000, 1_000_000)),
        Slider("m", "outputs", default=1, choices=(1, 2, 4, 8, 16)),
        Step("done", "Sweep", most=MOST_SHOWN),
    ),
    surprise="A million inputs and one output: one sweep backwards gives the whole gradient.",
    surprise_at={"n": 1_000_000, "done": 1},
    definition=(jvp, vjp),
)
def rows_or_columns(n: int, m: int, done: int) -> View:
    """The Jacobian of a map after some sweeps, by columns and by rows."""
    rows, columns = min(m, MOST_SHOWN), min(n, MOST_SHOWN)
    by_columns = torch.zeros(rows, columns)
    for number in range(min(done, columns)):
        by_columns[:, number] = one_sweep(n, m, False, number)[:rows]
    by_rows = torch.zeros(rows, columns)
    for number in range(min(done, rows)):
        by_rows[number] = one_sweep(n, m, True, number)[:columns]
    full = [min(done, n) / n, min(done, m) / m]
    picture = Picture(
        f"A Jacobian of {m} by {n:,} after {done} sweeps: forwards {full[0]:.0%} of it, backwards {full[1]:.0%}."
    )
    largest = float(torch.stack([one_sweep(n, m, True, number).abs().max() for number in range(rows)]).max())
    cell = min(280 / columns, 220 / rows, 34)
    modes = (16, by_columns, "forwards: columns (jvp)", full[0]), (336, by_rows, "backwards: rows (vjp)", full[1])
    for left, table, mode, part in modes:
        axes = picture.axes(box=(left, 40, cell * columns, cell * rows), title=mode, bare=True)
        axes.cells(table, most=largest, rows=[""] * rows, columns=[""] * columns)
        shown = f", {columns} of {n:,} columns shown" if n > columns else ""
        picture.text(left, 40 + cell * rows + 24, f"{100 * part:.3g}% filled{shown}", role="faint", size=13)
    costs = {"backwards": m, "forwards": n, "differences": 2 * n}
    sweeps = picture.axes((0.7, 3e6), (-0.6, 2.6), box=(100, 310, 520, 80), x_log=True, y_ticks=False)
    for number, (name, cost) in enumerate(costs.items()):
        sweeps.line([0.7, cost], [2 - number] * 2, "model" if number == 0 else "faint", width=12, label=f"{cost:,}")
        picture.text(94, 328 + 25 * number, name, anchor="end", size=13)
    picture.text(100, 300, "sweeps, or evaluations, for all of it", role="faint", size=13)
    names = ("sweeps backwards", "sweeps forwards", "evaluations by differences")
    return View(
        picture,
        [Number(name, f"{cost:,}") for name, cost in zip(names, costs.values())],
        reached=n >= 1_000_000 and m == 1 and full[1] == 1.0,
        steps=max(rows, columns),
        code=(
            "import torch\n"
            "from quoin.autodiff import vjp\n"
            f"x, mix = torch.linspace(-1, 1, {n}), torch.randn({m}, 3)\n"
            "f = lambda x: torch.sin(mix @ torch.stack([x.sum(), x.square().sum(), (3 * x).sin().sum()]))\n"
            f"jacobian = [vjp(f, x, unit).product for unit in torch.eye({m})]\n"
            "print(len(jacobian))"
        ),
    )


@app.cell
def _():
    play(rows_or_columns)
    return


@app.function
@functools.lru_cache(maxsize=32)
def difference_errors(formula: str, x: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """|f'(x) by differences - f'(x)| at each of STEPS, and f(x), f'(x), f''(x), f'''(x)."""
    f, at = function_of(formula, "x"), torch.tensor(x, dtype=torch.float64)
    exact = float(gradient(f, at))
    errors = tuple(abs(float(finite_differences(f, at, float(h)).output) - exact) for h in STEPS)
    return errors, tuple(derivatives(f, at, 3).tolist())


@app.function
@exhibit(
    "How small is small?",
    ids="D6-22",
    intro="A derivative by central differences, f(x+h) − f(x−h) over 2h. Drag h to the left for a better one.",
    controls=(
        Text("formula", "formula of x", "exp(x) * sin(x)"),
        Slider("x", "x", -3.0, 3.0, 1.0, 0.05),
        Slider("h", "step h", 1e-15, 1.0, 0.001, log=True),
    ),
    surprise="Below about 6·10⁻⁶ smaller is worse: the values agree in so many digits that their difference has few.",
    surprise_at={"h": 1e-12},
    definition=finite_differences,
)
def how_small_is_small(formula: str, x: float, h: float) -> View:
    """The error of central differences by their step, with the two errors it is made of."""
    errors, (value, slope, _, third) = difference_errors(formula, x)
    f, at = function_of(formula, "x"), torch.tensor(x, dtype=torch.float64)
    error = abs(float(finite_differences(f, at, h).output) - slope)
    best = abs(float(finite_differences(f, at, BEST_STEP).output) - slope)
    floor = 1e-17
    picture = Picture(f"The error of differences by their step; at h = {digits(h)} it is {digits(error)}.")
    axes = picture.axes(
        (1e-15, 1.0), (floor, 100.0), x_log=True, y_log=True, x_label="step h", y_label="error of f′(x)"
    )
    axes.line(STEPS, abs(third) / 6 * STEPS**2, "faint", dashed=True, width=1.6, label="|f‴| h²/6")
    axes.line(STEPS, torch.finfo(torch.float64).eps / 2 * abs(value) / STEPS, "faint", dashed=True, width=1.6)
    axes.line([BEST_STEP, BEST_STEP], [floor, 100.0], "faint", width=1)
    axes.text(BEST_STEP, 30.0, "  ∛ε = 6·10⁻⁶", "faint")
    axes.text(0.9, max(abs(third) / 6 * 1e-5, 1e-15), "truncation, h² |f‴|/6", "faint", dy=80, anchor="end")
    axes.text(1e-12, max(1e-4 * abs(value), 1e-15), "rounding, ε|f|/2h with ε = 2⁻⁵²", "faint", dy=84, anchor="middle")
    axes.line(STEPS, [max(each, floor) for each in errors], "change")
    axes.handle("h", h, max(error, floor), label="step h", along="x")
    return View(
        picture,
        [Number("error", error), Number("error at 6·10⁻⁶", best), Number("f′(x)", slope)],
        reached=h < BEST_STEP / 10 and error > 10 * best,
        code=(
            "import torch\n"
            "from quoin.autodiff import finite_differences, gradient\n"
            "from quoin.lab.parts import function_of\n"
            f"f = function_of({formula!r}, 'x')\n"
            f"x = torch.tensor({x!r}, dtype=torch.float64)\n"
            f"print(float((finite_differences(f, x, {h!r}).output - gradient(f, x)).abs()))"
        ),
    )


@app.cell
def _():
    play(how_small_is_small)
    return


@app.function
def remainder_slope(distances: np.ndarray, remainders: np.ndarray, scale: float) -> float:
    """The slope of log remainder by log distance, over the smallest decade that rounding leaves; 0 where none is."""
    usable = np.flatnonzero(remainders > 1e-13 * max(scale, 1.0))
    if len(usable) < 5:
        return 0.0
    chosen = usable[distances[usable] <= 10 * distances[usable[0]]]
    return float(np.polyfit(np.log(distances[chosen]), np.log(remainders[chosen]), 1)[0])


@app.function
@exhibit(
    "A curve by its tangent",
    ids="Z12.24 Z13.3",
    intro="Drag the point. On the right, how far the polynomial is off: its slope is the degree plus one.",
    controls=(
        Text("formula", "formula of x", "exp(x)"),
        Handle("at", "point", (0.0, 0.0), (-3.0, -3.0), (3.0, 3.0)),
        Slider("degree", "degree", 0, 6, 1, 1),
    ),
    surprise="At its kink |x| is off by a slope of 1, not 2: no line is a tangent there. The same holds for relu(x).",
    surprise_at={"formula": "abs(x)"},
    definition=(taylor, derivatives),
)
def a_curve_by_its_tangent(formula: str, at: tuple[float, float], degree: int) -> View:
    """A curve, its Taylor polynomial, and the remainder by distance."""
    f, x = function_of(formula, "x"), at[0]
    polynomial = taylor(f, x, degree)
    grid = torch.linspace(-3, 3, 181, dtype=torch.float64)
    distances = np.logspace(-3, 0, 49)
    steps = torch.tensor(distances)
    sides = x + torch.stack([steps, -steps])
    remainders = (f(sides) - polynomial(sides)).abs().amax(0)
    value = float(f(torch.tensor(x, dtype=torch.float64)))
    slope = remainder_slope(distances, remainders.nan_to_num().numpy(), abs(value))
    picture = Picture(
        f"{formula} and its polynomial of degree {degree} at {digits(x)}; the remainder's slope is {slope:.2f}."
    )
    curve = picture.axes(
        (-3, 3), (-4, 4), box=(40, 30, 290, 330), title=f"{formula[:24]}, degree {degree}", x_label="x"
    )
    curve.line(grid, f(grid), "ink")
    curve.line(grid, polynomial(grid), "model")
    curve.handle("at", x, min(max(value, -4.0), 4.0), label="point", along="x")
    off = picture.axes(
        (1e-3, 1),
        (1e-16, 100),
        box=(400, 30, 230, 330),
        x_log=True,
        y_log=True,
        title="remainder",
        x_label="distance ε",
    )
    off.line(steps, remainders.clamp_min(1e-17), "change")
    return View(
        picture,
        [
            Number("slope of the remainder", slope),
            Number("degree + 1", degree + 1),
            Number("f′(x)", float(gradient(f, torch.tensor(x, dtype=torch.float64)))),
        ],
        reached=degree >= 1 and 0 < slope < 1.5,
        note="" if slope else "The polynomial is the curve itself: no remainder is left but rounding.",
        code=(
            "import numpy, torch\n"
            "from quoin.autodiff import taylor\n"
            "from quoin.lab.autodiff import remainder_slope\n"
            "from quoin.lab.parts import function_of\n"
            f"f, x, steps = function_of({formula!r}, 'x'), {x!r}, numpy.logspace(-3, 0, 49)\n"
            f"polynomial = taylor(f, x, {degree})\n"
            "sides = x + torch.tensor(numpy.stack([steps, -steps]))\n"
            "remainder = (f(sides) - polynomial(sides)).abs().amax(0).numpy()\n"
            "print(remainder_slope(steps, remainder, float(f(torch.tensor(x)).abs())))"
        ),
    )


@app.cell
def _():
    play(a_curve_by_its_tangent)
    return


@app.function
@functools.lru_cache(maxsize=4)
def own_rows(file: bytes) -> tuple[tuple[str, ...], Float[Tensor, "row column"]]:
    """The columns of numbers of a table, each brought to mean 0 and variance 1; the last one is the target."""
    names, values = (table := read_table(file)).first_numbers(min(max(len(table.numbers), 2), 12))
    return names, (values - values.mean(0)) / values.std(0).clamp_min(1e-12)


@app.function
@exhibit(
    "Yours: a row through a network",
    intro="A CSV: its last column of numbers is the target. The network is as initialised; nothing is trained.",
    controls=(File("file", "a CSV of numbers"), Slider("row", "row", 1, 200, 1, 1), Slider("seed", "seed", 0, 9, 0, 1)),
    definition=(trace, MLP),
    yours=True,
)
def yours(file: bytes | None, row: int, seed: int) -> View:
    """Values and adjoints of each layer of a small network, for one row of a table."""
    names, rows = own_rows(file or OWN.encode())
    x, target = rows[min(row, len(rows)) - 1, :-1], rows[min(row, len(rows)) - 1, -1]
    model = MLP([len(x), 8, 8, 1], activation=torch.nn.Tanh, generator=torch.Generator().manual_seed(seed))
    graph = trace(lambda x: (model(x)[0, 0] - target) ** 2 / 2, x[None])
    layers = [("columns", graph.nodes[0]), *(("hidden", node) for node in graph.find("tanh"))]
    layers.append(("loss", graph.nodes[graph.outputs[0]]))
    assert graph.nodes[0].adjoint is not None
    slopes = graph.nodes[0].adjoint[0]
    most = int(slopes.abs().argmax())
    picture = Picture(f"Row {min(row, len(rows))} of {len(rows)}: the loss answers most to {names[most]}.")
    for number, (title, node) in enumerate(layers):
        assert node.adjoint is not None
        entries = torch.stack([node.value.reshape(-1), node.adjoint.reshape(-1)], dim=-1)
        tall = min(34 * len(entries), 340)
        axes = picture.axes(box=(100 + 140 * number, 40, 92, tall), title=title, bare=True)
        axes.cells(entries, numbers=True, rows=names[:-1] if number == 0 else (), columns=("value", "adjoint"))
    return View(
        picture,
        [Number("loss", float(graph.output)), Number(f"∂loss/∂{names[most]}, the largest", float(slopes[most]))],
        note=f"{len(rows)} rows; target {names[-1]}; columns have mean 0 and variance 1."
        + ("" if file else " An example of ours; choose a file."),
    )


@app.cell
def _():
    play(yours)
    return


@app.cell
def _():
    rest("autodiff")
    return


if __name__ == "__main__":
    app.run()
