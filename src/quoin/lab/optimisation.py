# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""Optimisation: learning rate and momentum answer curvature. Area 14 of the notes."""

import marimo

app = marimo.App(width="full", app_title="Optimisation · Quoin lab")

with app.setup:
    import functools
    import math
    from collections.abc import Callable

    import torch
    from torch import Tensor

    from quoin.errors import UserError
    from quoin.lab.parts import Number, Picture, View, digits, exhibit, head, play, rest
    from quoin.lab.parts.claim_forms import form_of
    from quoin.lab.parts.controls import Choice, DragPoints, Handle, Slider, Switch, Text, printed_choice
    from quoin.lab.parts.descent_problems import (
        TWO_CLASSES,
        logistic_problem,
        no_minimiser,
        set_below_is_convex,
        verdicts,
        weights_not_lower,
    )
    from quoin.lab.parts.formula import function_of
    from quoin.lab.parts.landscape_pictures import RULES, arrived, descent_until, draw_descent, rule_of
    from quoin.lab.parts.momentum_pictures import draw_momentum_map, radius_of
    from quoin.notes.claims.convergence import which_minimiser
    from quoin.notes.claims.momentum import momentum_is_stable
    from quoin.optim import (
        GradientDescent,
        Momentum,
        best_momentum,
        chord_gap,
        convex_bound,
        convex_combination,
        descend,
        double_well,
        momentum_convergence_rate,
        momentum_convergence_rate_definition,
        rate_proof,
        ravine,
        rosenbrock,
        saddle,
        sublevel_set,
    )

    LANDSCAPES = {"ravine": ravine, "Rosenbrock": rosenbrock, "saddle": saddle, "two wells": double_well}
    IMPORTED = {"ravine": "ravine", "Rosenbrock": "rosenbrock", "saddle": "saddle", "two wells": "double_well"}
    CONDITION = 20.0  # of the ravine
    PRINTED = {"ZE29": "convex if the sets below are", "ZE27": "sets convex by any λ", "ZE28": "lower at λ = 1 too"}
    START, RATE_STEPS = torch.tensor([-1.5, 2.0], dtype=torch.float64), 60


@app.cell
def _():
    head("optimisation")
    return


@app.function
@exhibit(
    "Drop it",
    ids="Z12.1 Z12.11 D1.5-3 D1.5-4 D1.5F",
    intro="Drag the start. Lower is nearer to the paper's colour. Rules know the slope, Newton's the curvature too.",
    controls=(
        Handle("start", "start", (-1.2, 1.0), (-2.0, -2.0), (2.0, 2.0)),
        Choice("landscape", "landscape", tuple(LANDSCAPES), "Rosenbrock"),
        Choice("rule", "rule", RULES),
        Slider("lr", "learning rate", 1e-4, 1.0, 0.002, log=True),
    ),
    surprise="Newton needs seven steps where plain descent creeps along the valley's floor. "
    "On the saddle descent lingers, and Newton sits down on it.",
    surprise_at={"rule": "Newton"},
    definition=(descend, GradientDescent),
)
def drop_it(start: tuple[float, float], landscape: str, rule: str, lr: float) -> View:
    """A descent on one of four landscapes."""
    f = LANDSCAPES[landscape]
    chosen, steps = rule_of(rule, f, lr)
    path = descent_until(f, start, chosen, steps, radius=100.0)
    end, still = float(path.values[-1]), arrived(path)
    picture = Picture(f"{rule} on {landscape} from {digits(start[0])}, {digits(start[1])}: {digits(end)} at the end.")
    draw_descent(picture, f, (-2, 2), (-2, 2), path)
    written = f"Newton({IMPORTED[landscape]})" if rule == "Newton" else repr(chosen)
    return View(
        picture,
        [
            Number("loss at the end", end),
            Number("steps until it is flat", "not yet" if still is None else str(still)),
            Number("length of the gradient", float(path.gradient_norms[-1])),
        ],
        reached=rule == "Newton" and still is not None and still <= 7,
        note=f"It leaves the map at step {len(path.values)}." if len(path.values) <= steps else "",
        code=(
            "import torch\n"
            "from quoin.optim import *\n"
            f"start = torch.tensor({list(start)!r}, dtype=torch.float64)\n"
            f"path = descend({IMPORTED[landscape]}, start, {written}, {len(path.values) - 1})\n"
            "print(float(path.values[-1]))"
        ),
    )


@app.cell
def _():
    play(drop_it)
    return


@app.function
@exhibit(
    "The map of momentum",
    ids="D1.5-7 D1.5-8 D1.5-9 DE19",
    intro="On a parabola only two numbers matter. Drag the dot: bluer is faster, vermilion runs away.",
    controls=(
        Handle("dot", "rate × curvature, and momentum", (0.2, 0.9), (0.01, 0.0), (4.0, 0.99)),
        Switch("printed", "as printed: moved by the old velocity"),
    ),
    surprise="Moved by the old velocity, as printed, the stable edge falls from 2(1 + m) to 1 − m: this dot blows up.",
    surprise_at={"printed": True},
    definition=(momentum_convergence_rate_definition, Momentum),
)
def the_map_of_momentum(dot: tuple[float, float], printed: bool) -> View:
    """The convergence rate over the plane of rate times curvature and momentum, and the dot's iterates."""
    product, m = dot
    form = form_of(momentum_is_stable, printed)
    one = torch.ones((), dtype=torch.float64)
    rate = radius_of(form, product, m) if printed else float(momentum_convergence_rate(product * one, m * one, one))
    rule, x, velocity, xs = Momentum(product, m), one, 0 * one, [1.0]
    for _ in range(60):
        x, velocity = form(rule, x, x, velocity)
        xs.append(float(x))
    picture = Picture(
        f"At rate times curvature {digits(product)} and momentum {digits(m)} errors times {rate:.3f} a step."
    )
    axes = draw_momentum_map(picture, printed)
    axes.handle("dot", product, m, label="dot")
    best = best_momentum(1.0, CONDITION)
    axes.points([best.lr, best.lr * CONDITION], [best.momentum] * 2, "ink", shape="diamond", labels=["flat", "steep"])
    tall = max(1.0, *(abs(each) for each in xs[:41])) if rate < 1 else 4.0
    iterates = picture.axes((0, 40), (-tall, tall), box=(440, 40, 190, 300), x_label="step", title="θ by step")
    iterates.line(range(41), xs[:41], "printed" if printed else "model", width=1.6)
    return View(
        picture,
        [
            Number("factor a step", rate, printed=printed),
            Number("after 60 steps", abs(xs[-1]), printed=printed),
            Number("best, curvatures 1 to 20", best.convergence_rate),
        ],
        reached=printed and rate > 1 > float(momentum_convergence_rate(product * one, m * one, one)),
        note="Diamonds: the best rate and momentum where curvatures go from 1 to 20; both ends are equally fast.",
        code=(
            "from quoin.lab.parts.momentum_pictures import momentum_is_stable, radius_of\n"
            f"print(radius_of(momentum_is_stable.printed, {product!r}, {m!r}))"
            if printed
            else "import torch\n"
            "from quoin.optim import momentum_convergence_rate\n"
            f"product, m, one = torch.tensor([{product!r}, {m!r}, 1.0], dtype=torch.float64)\n"
            "print(float(momentum_convergence_rate(product, m, one)))"
        ),
    )


@app.cell
def _():
    play(the_map_of_momentum)
    return


@app.function
@exhibit(
    "A promise kept",
    ids="D1.5-5 D1.5-5c DE21",
    intro="The loss of a line between two classes. Its distance from the least stays under the dashed bound.",
    controls=(
        DragPoints("points", "points", TWO_CLASSES, (-2.0, -2.0), (2.0, 2.0), most=12, least=12, classes=2),
        Slider("rate", "learning rate × L", 0.1, 6.0, 1.0, 0.1),
        Choice("cost", "cost", ("these points", "ln(1 + e⁻ˣ)")),
        Switch("printed", "as printed: θ* is any point"),
    ),
    surprise="Up to 1/L the bound holds whatever the data. Beyond 2/L steps overshoot, and soon the curve breaks it. "
    "And ln(1 + e⁻ˣ) has no minimiser to reach.",
    surprise_at={"rate": 3.0},
    definition=(convex_bound, rate_proof),
)
def held_to_its_bound(points: list[tuple[float, ...]], rate: float, cost: str, printed: bool) -> View:
    """The suboptimality of gradient descent beside its bound."""
    on_points = cost == "these points"
    problem = logistic_problem(tuple(points)) if on_points else no_minimiser()
    start = START if on_points else torch.zeros(1, dtype=torch.float64)
    form = form_of(which_minimiser, printed)
    star = form(problem, torch.zeros_like(start), start, torch.Generator().manual_seed(0))
    smoothness = problem.constants.smoothness
    path = descend(problem.cost, start, GradientDescent(rate / smoothness), RATE_STEPS)
    least = float(problem.cost(problem.minimizer)) if on_points else 0.0
    above = path.values[1:] - least
    # the bound at any rate, as the last line of the proof has it: what is left of it, and what was taken
    proof = rate_proof(problem.cost, path.points, star, lr=rate / smoothness, smoothness=smoothness)
    bound = proof.bound + path.values[1:] - float(problem.cost(star))
    worst = float((above / bound).max())
    picture = Picture(f"Suboptimality at {rate:g}/L: at most {worst:.2f} of the bound.")
    axes = picture.axes(
        (1, RATE_STEPS),
        (1e-6, 10),
        box=(300, 30, 330, 330),
        x_log=True,
        y_log=True,
        x_label="step t",
        title="loss − least",
    )
    steps = range(1, RATE_STEPS + 1)
    axes.line(steps, above.clamp_min(1e-8), "model")
    axes.line(steps, bound, "printed" if printed else "ink", dashed=True, label="|θ₀ − θ*|² / 2ηt")
    axes.text(1.15, min(max(float(bound[0]), 1e-5), 5.0), "bound", "printed" if printed else "ink", dy=-8)
    plane = picture.axes((-2, 2), (-2, 2), box=(30, 30, 225, 225), title="two classes; a line through 0")
    if on_points:
        w = path.points[-1]
        across = torch.stack([-w[1], w[0]]) / w.norm() * 4
        plane.line([-float(across[0]), float(across[0])], [-float(across[1]), float(across[1])], "model")
    shapes = ["triangle" if point[2] else "circle" for point in points]
    plane.points_to_drag("points", [point[:2] for point in points], roles=["hand"] * len(points), shapes=shapes)
    return View(
        picture,
        [
            Number("largest (loss − least)/bound", worst, printed=printed),
            Number("L, the largest curvature", smoothness),
            Number("loss − least at the end", float(above[-1])),
        ],
        reached=not printed and on_points and worst > 1 and rate > 1,
        note="" if on_points else "The bound if x = 1 were a minimiser of value 0: there is none, and it breaks.",
        code=(
            "import torch\n"
            "from quoin.lab.parts.descent_problems import logistic_problem, no_minimiser\n"
            "from quoin.optim import GradientDescent, descend, rate_proof\n"
            f"problem = {f'logistic_problem({tuple(points)!r})' if on_points else 'no_minimiser()'}\n"
            f"L, lr = problem.constants.smoothness, {rate!r} / problem.constants.smoothness\n"
            f"start, star = (torch.tensor(each).double() for each in ({start.tolist()!r}, {star.tolist()!r}))\n"
            f"path = descend(problem.cost, start, GradientDescent(lr), {RATE_STEPS})\n"
            "left = rate_proof(problem.cost, path.points, star, lr=lr, smoothness=L).bound\n"
            "bound = left + path.values[1:] - problem.cost(star)\n"
            f"print(float(((path.values[1:] - {least!r}) / bound).max()))"
        ),
    )


@app.cell
def _():
    play(held_to_its_bound)
    return


@app.function
@exhibit(
    "Is it convex?",
    ids="Z12.5F Z12.6 Z12.9 ZE27 ZE28 ZE29",
    intro="Drag the chord's ends and the level. A convex curve lies below every chord.",
    controls=(
        Handle("a", "first end", (0.5, 0.0), (-3.0, -4.0), (3.0, 4.0)),
        Handle("b", "second end", (2.5, 0.0), (-3.0, -4.0), (3.0, 4.0)),
        Handle("level", "level", (-3.0, 0.4), (-3.0, -4.0), (-3.0, 4.0)),
        Text("formula", "formula of x", "x^2 / 2"),
        Slider("weight", "weight λ of the first end", -0.5, 1.5, 0.5, 0.05),
        printed_choice(PRINTED),
    ),
    surprise="All sets below a level of log are intervals, so convex; log is not: it lies above its chords.",
    surprise_at={"formula": "log(x)"},
    definition=(chord_gap, sublevel_set),
)
def is_it_convex(
    a: tuple[float, float],
    b: tuple[float, float],
    level: tuple[float, float],
    formula: str,
    weight: float,
    printed: str,
) -> View:
    """A curve, a chord of it, the set below a level, and two verdicts."""
    f = function_of(formula, "x")
    ends = torch.tensor([a[0], b[0]], dtype=torch.float64)
    if not bool(f(ends).isfinite().all()):
        raise UserError("expected both ends where the formula is defined, got one outside; drag it back")
    gap = float(chord_gap(f, ends[0], ends[1], weight))
    by_curvature, by_sets = verdicts(formula)
    at = convex_combination(ends[0], ends[1], weight)
    on_chord = float(convex_combination(f(ends[0]), f(ends[1]), weight))
    grid = torch.linspace(-3, 3, 241, dtype=torch.float64)
    inside = sublevel_set(f, level[1])
    picture = Picture(f"{formula} and a chord {digits(gap)} above it; convex: {'yes' if by_curvature else 'no'}.")
    axes = picture.axes((-3, 3), (-4, 4), x_label="x")
    below = torch.tensor([inside(x) for x in grid])
    axes.line(grid, torch.where(below, torch.full_like(grid, -3.9), math.nan), "hidden", width=9, label="the set below")
    axes.text(3, -3.9, "{x : f(x) ≤ level}", "faint", anchor="end", dy=-10)
    axes.line([-3, 3], [level[1]] * 2, "hidden", width=1.4)
    axes.line(grid, f(grid), "ink")
    axes.line(ends, f(ends), "hand")
    axes.line([float(at)] * 2, [float(f(at)), on_chord], "change", width=3, label="the gap")
    axes.points([float(at)], [on_chord], "hand", size=5)
    axes.handle("a", a[0], min(max(float(f(ends[0])), -4.0), 4.0), label="first end", along="x")
    axes.handle("b", b[0], min(max(float(f(ends[1])), -4.0), 4.0), label="second end", along="x")
    axes.handle("level", -3.0, level[1], label="level", along="y")
    second, note = Number("convex: f″ ≥ 0", "yes" if by_curvature else "no"), ""
    if printed == "ZE29":
        second = Number("convex, as printed", "yes" if by_sets else "no", printed=True)
    if printed == "ZE27":
        wrong, right = ("yes" if set_below_is_convex(formula, level[1], each) else "no" for each in (True, False))
        second = Number("this set below convex, by any λ", wrong, printed=True)
        far = float(convex_combination(ends[0], ends[1], 2.0))
        note = f"By λ from 0 to 1: {right}. At λ = 2 the chord's line is at x = {digits(far)}."
        axes.line([2 * a[0] - b[0], 2 * b[0] - a[0]], [-3.1, -3.1], "printed", dashed=True, label="λ from −1 to 2")
    if printed == "ZE28":
        weights, not_lower = weights_not_lower(formula, (a[0], b[0]), True)
        high = max(a[0], b[0], key=lambda x: float(f(torch.tensor(x, dtype=torch.float64))))
        xs = torch.tensor([each * high + (1 - each) * (a[0] + b[0] - high) for each in weights], dtype=torch.float64)
        axes.points(xs, f(xs), "printed", size=4)
        second = Number("λ where f is not lower", f"{len(not_lower)} of {len(weights)}", printed=True)
        note = "At λ = 1 it is the higher end itself, which is not lower than itself."
    return View(
        picture,
        [
            Number("chord above the curve by", gap),
            second,
            Number("all sublevel sets convex", "yes" if by_sets else "no"),
        ],
        reached=by_sets and not by_curvature and gap < 0,
        note=note or ("" if 0 <= weight <= 1 else "Only λ from 0 to 1 stays on the chord."),
        code=(
            "import torch\n"
            "from quoin.lab.parts import function_of\n"
            "from quoin.optim import chord_gap\n"
            f"a, b = torch.tensor([{a[0]!r}, {b[0]!r}], dtype=torch.float64)\n"
            f"print(float(chord_gap(function_of({formula!r}, 'x'), a, b, {weight!r})))"
        ),
    )


@app.cell
def _():
    play(is_it_convex)
    return


@app.function
@functools.lru_cache(maxsize=16)
def own_landscape(formula: str) -> Callable[[Tensor], Tensor]:
    """A formula of x and y as a function of points of the plane."""
    f = function_of(formula, "x", "y")
    return lambda point: f(point[..., 0], point[..., 1])


@app.function
@exhibit(
    "Yours: a landscape of x and y",
    intro="Type f(x, y), drag the start, choose a rule.",
    controls=(
        Handle("start", "start", (2.2, 1.6), (-3.0, -3.0), (3.0, 3.0)),
        Text("formula", "f(x, y)", "sin(3*x) * cos(2*y) + (x^2 + y^2) / 4"),
        Choice("rule", "rule", RULES),
        Slider("lr", "learning rate", 1e-4, 1.0, 0.02, log=True),
    ),
    definition=descend,
    yours=True,
)
def yours(start: tuple[float, float], formula: str, rule: str, lr: float) -> View:
    """A descent on the reader's own function."""
    f = own_landscape(formula)
    chosen, steps = rule_of(rule, f, lr)
    path = descent_until(f, start, chosen, steps, radius=100.0)
    picture = Picture(f"{rule} on {formula}: {digits(float(path.values[-1]))} at the end.")
    draw_descent(picture, f, (-3, 3), (-3, 3), path)
    x, y = path.points[-1].tolist()
    return View(
        picture,
        [Number("f at the end", float(path.values[-1])), Number("x at the end", x), Number("y at the end", y)],
        note=f"It stops after {len(path.values) - 1} of {steps} steps." if len(path.values) <= steps else "",
    )


@app.cell
def _():
    play(yours)
    return


@app.cell
def _():
    rest("optimisation")
    return


if __name__ == "__main__":
    app.run()
