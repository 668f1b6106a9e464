# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""Classification: a classifier bets, cross-entropy charges for the bet. Area 4 of the notes."""

import marimo

app = marimo.App(width="full", app_title="Classification · Quoin lab")

with app.setup:
    import math

    import torch

    from quoin.lab.parts import Number, Picture, View, digits, exhibit, head, play, rest
    from quoin.lab.parts.claim_forms import form_of
    from quoin.lab.parts.class_pictures import draw_classes, draw_decision
    from quoin.lab.parts.class_problems import (
        CLASSIFIERS,
        LENGTHS,
        costs_of,
        decide,
        distances,
        held_out,
        least_cost_actions,
        losses_at,
        losses_by_length,
        own_classes,
        patients,
        stated,
    )
    from quoin.lab.parts.controls import Choice, DragPoints, File, Handle, Slider, Switch
    from quoin.losses import (
        cross_entropy,
        cross_entropy_definition,
        hinge_loss,
        logistic_loss_definition,
    )
    from quoin.metrics import minimize_expected_cost
    from quoin.notes.claims.classification import no_minimiser_on_separable_data
    from quoin.notes.claims.divergence_shape import jointly_convex
    from quoin.notes.claims.losses import softmax_along_an_axis_sums_to_one
    from quoin.prob import (
        kl_divergence,
        total_variation_distance_definition,
    )
    from quoin.tensor import softmax

    BEASTS, TRUTH = ("cat", "chicken", "dog"), 1
    CORNERS = torch.tensor([[0.0, 0.0], [0.5, math.sqrt(0.75)], [1.0, 0.0]], dtype=torch.float64)
    STRIP = tuple((x, 0.0, 0) for x in (-2.6, -1.9, -1.3, -0.7, 0.6)) + tuple(
        (x, 0.0, 1) for x in (0.9, 1.2, 1.8, 2.3, 2.8)
    )
    APART = [[-0.5 if x == 0.6 else x, y, label] for x, y, label in STRIP]
    LONG = {"TV": "total variation", "CE": "cross-entropy"}
    LABELS = {"logistic": (-3.9, 2.6), "hinge": (-2.4, 3.7), "0-1": (-3.9, 1.12)}  # where a curve has its name
    EVEN = torch.tensor([0.5, 0.5], dtype=torch.float64)


@app.cell
def _():
    head("classification")
    return


@app.function
@exhibit(
    "Bet",
    ids="Z4.5 Z4.6 Z4.7 Z4.8 Z4.9 D2.1-1 D2.1-2 D2.1-3 D2.1-4 D2.1-5 DE26",
    intro="A chicken is shown. Drag the three logits; the dot is the bet. Arrows: where less loss is.",
    controls=(
        *(
            Handle(name, f"logit of {name}", (i, at), (i, -3.0), (i, 3.0))
            for i, (name, at) in enumerate(zip(BEASTS, (1.5, 1.5, -0.5)))
        ),
        Slider("temperature", "temperature", 0.01, 10.0, 1.0, log=True),
        Slider("lift", "lift all logits by", -3.0, 3.0, 0.0, 0.5),
        Switch("printed", "as printed: sums end at c"),
    ),
    surprise="Two equal logits cool to a half each, not to a corner. Lift all three: nothing moves.",
    surprise_at={"temperature": 0.01},
    definition=(softmax, cross_entropy_definition),
)
def bet(
    cat: tuple[float, float],
    chicken: tuple[float, float],
    dog: tuple[float, float],
    temperature: float,
    lift: float,
    printed: bool,
) -> View:
    """Three logits, the distribution they bet on, and the gradient of its cross-entropy."""
    logits = torch.tensor([cat[1], chicken[1], dog[1]], dtype=torch.float64) + lift
    cooled = (logits / temperature).requires_grad_()
    loss = cross_entropy(cooled, torch.tensor(TRUTH))
    (slope,) = torch.autograd.grad(loss, cooled)
    cooled = cooled.detach()
    form = form_of(softmax_along_an_axis_sums_to_one, printed)
    p = form(cooled, 0)
    picture = Picture(", ".join(f"{name} {value:.2f}" for name, value in zip(BEASTS, p.tolist())) + ".")
    bars = picture.axes((-0.6, 2.6), (-6, 6), box=(46, 30, 240, 320), title="logits", x_ticks=False)
    bars.bars(logits, "model", names=BEASTS, width=0.5)
    for index, (name, at) in enumerate(zip(BEASTS, (cat, chicken, dog))):
        height = float(logits[index])
        bars.arrow((index + 0.36, height), (index + 0.36, height - 2.5 * float(slope[index])), label="−gradient")
        bars.handle(name, index, at[1], label=f"logit of {name}", along="y")
    plane = picture.axes((-0.2, 1.2), (-0.2, 1.1), box=(320, 30, 310, 320), title="the bet", bare=True, equal=True)
    plane.polygon(CORNERS.tolist(), "faint 10%", edge="faint")
    for name, (x, y), below in zip(BEASTS, CORNERS.tolist(), (20, -10, 20)):
        plane.text(x, y, name, "ink", anchor="middle", dy=below)
    path = torch.stack([softmax(logits / t) for t in torch.logspace(1, -2, 60).tolist()]) @ CORNERS
    plane.line(path[:, 0], path[:, 1], "faint", width=1.4, label="from hot to cold")
    plane.points(CORNERS[TRUTH, :1], CORNERS[TRUTH, 1:], "ink", size=6, labels=["the truth"])
    dot = (p @ CORNERS).tolist()
    plane.arrow(dot, (softmax(cooled - slope) @ CORNERS).tolist(), label="after a step of 1")
    plane.points(dot[:1], dot[1:], "printed" if printed else "model", size=8)
    tie = torch.sort(p, descending=True).values
    shown = [
        Number(f"P({BEASTS[TRUTH]})", float(p[TRUTH]), printed=printed),
        Number("sum of the three", float(p.sum()), printed=printed),
    ]
    return View(
        picture,
        shown if printed else [Number("cross-entropy", float(loss.detach()), "nats"), *shown],
        reached=not printed and abs(float(tie[0]) - 0.5) < 0.005 and abs(float(tie[1]) - 0.5) < 0.005,
        note="Gradient: bet minus truth. Pale line: all temperatures.",
        code=(
            "import torch\n"
            "from quoin.losses import cross_entropy\n"
            "from quoin.notes.claims.losses import cumulative_softmax\n"
            f"logits = torch.tensor({logits.tolist()!r}, dtype=torch.float64) / {temperature!r}\n"
            + (
                f"print(float(cumulative_softmax(logits, 0)[{TRUTH}]))"
                if printed
                else f"print(float(cross_entropy(logits, torch.tensor({TRUTH}))))"
            )
        ),
    )


@app.cell
def _():
    play(bet)
    return


@app.function
@exhibit(
    "Margins",
    ids="M7F M8 M9 M10 M11F D1.3-11 ME8",
    intro="Left: drag the margin. Right: separate the data by dragging a point; triangles belong to the right.",
    controls=(
        Handle("m", "margin", (-1.0, 0.0), (-4.0, 0.0), (4.0, 0.0)),
        DragPoints("points", "points", STRIP, (-3.0, 0.0), (3.0, 0.0), most=10, least=10, classes=2),
        Switch("printed", "as printed: a least loss exists"),
    ),
    surprise="Separated, longer weights always cost less: they run off, there is no minimum. 0-1 has no slope at all.",
    surprise_at={"points": APART},
    definition=(logistic_loss_definition, hinge_loss),
)
def margins(m: tuple[float, float], points: list[tuple[float, ...]], printed: bool) -> View:
    """Losses of a margin with their tangents, and the mean logistic loss by the length of the weight."""
    at = torch.tensor([m[0]], dtype=torch.float64, requires_grad=True)
    here = losses_at(at)
    slopes = {name: float(torch.autograd.grad(here[name].sum(), at)[0]) for name in ("logistic", "hinge")} | {
        "0-1": 0.0
    }
    here = {name: float(value.detach()[0]) for name, value in here.items()}
    x, _, label = torch.tensor(points, dtype=torch.float64).unbind(dim=1)
    signs = 2 * label - 1
    curve, ray = losses_by_length(x, signs, LENGTHS), losses_by_length(x, signs, 2.0 ** torch.arange(8))
    best = int(curve.argmin())
    form = form_of(no_minimiser_on_separable_data, printed)
    runs_off = bool((x * signs > 0).all()) and form_of(no_minimiser_on_separable_data, False)(ray) == 0
    length = "none" if runs_off else digits(float(LENGTHS[best]))
    picture = Picture(f"Logistic loss {here['logistic']:.2f} at margin {m[0]:.2f}; least at weight {length}.")
    axes = picture.axes((-4, 4), (-0.3, 5), box=(40, 30, 280, 330), title="loss of a margin", x_label="margin m")
    grid = torch.linspace(-4, 4, 161, dtype=torch.float64)
    roles = {"logistic": "model", "hinge": "ink", "0-1": "faint"}
    for name, values in losses_at(grid).items():
        axes.line(grid, values, roles[name], label=name)
        axes.text(*LABELS[name], name, roles[name])
        level = here[name]
        axes.line([m[0] - 1, m[0] + 1], [level - slopes[name], level + slopes[name]], "change", width=1.4)
    axes.handle("m", m[0], 0.0, label="margin", along="x")
    right = picture.axes(
        (0.01, 1000), (1e-6, 2), box=(386, 30, 244, 210), x_log=True, y_log=True, title="mean loss, by length of w"
    )
    right.line(LENGTHS, curve.clamp_min(1e-9), "model")
    if not runs_off:
        right.points([float(LENGTHS[best])], [float(curve[best])], "model", size=6, labels=["the least"])
    if printed:
        candidate = int(ray[:-1].argmin())
        right.points([2.0**candidate], [float(ray[candidate].clamp_min(1e-6))], "printed", size=6, shape="ring")
    strip = picture.axes((-3, 3), (-1, 1), box=(386, 300, 244, 50), y_ticks=False, x_label="x: drag the points")
    strip.line([0, 0], [-1, 1], "model", width=1.4)
    shapes = ["triangle" if point[2] else "circle" for point in points]
    strip.points_to_drag("points", [point[:2] for point in points], shapes=shapes, along="x")
    return View(
        picture,
        [
            Number("logistic loss at m", here["logistic"], "nats"),
            Number("its slope; that of 0-1 is 0", slopes["logistic"]),
            Number("weights that beat it", str(form(ray)), printed=True)
            if printed
            else Number("weight of least loss", length),
        ],
        reached=runs_off and float(curve[-1]) < 1e-6,
        code=(
            "import torch\n"
            "from quoin.losses import logistic_loss\n"
            f"print(float(logistic_loss(torch.tensor({m[0]!r}, dtype=torch.float64))))"
        ),
    )


@app.cell
def _():
    play(margins)
    return


@app.function
@exhibit(
    "How far apart?",
    ids="D1.4F3 D1.4-2 D1.4-3 D1.4-4 D1.4-5 D1.4-14 DE15",
    intro="P is (p, 1 − p), Q is (q, 1 − q). Drag q along its axis and p below it.",
    controls=(
        Handle("p", "p", (0.4, 0.0), (0.0, 0.0), (1.0, 0.0)),
        Handle("q", "q", (0.8, 0.0), (0.0, 0.0), (1.0, 0.0)),
        Switch("printed", "as printed: convexity with one pair twice"),
    ),
    surprise="At the edge KL and cross-entropy are infinite, however small the other distances are.",
    surprise_at={"q": [1.0, 0.0]},
    definition=(total_variation_distance_definition, kl_divergence),
)
def how_far_apart(p: tuple[float, float], q: tuple[float, float], printed: bool) -> View:
    """Five distances between two coins, against q; how convex KL is at these two."""
    P, Q = (torch.tensor([each[0], 1 - each[0]], dtype=torch.float64) for each in (p, q))
    here = {name: float(value) for name, value in distances(P, Q).items()}
    grid = torch.linspace(0, 1, 101, dtype=torch.float64)
    coins = torch.stack([grid, 1 - grid], dim=-1)
    form = form_of(jointly_convex, printed)
    half = torch.tensor(0.5, dtype=torch.float64)
    bound = float(form(kl_divergence(EVEN, EVEN), kl_divergence(P, Q), half))
    mixed = float(kl_divergence((EVEN + P) / 2, (EVEN + Q) / 2))
    picture = Picture(f"At p = {p[0]:.2f}, q = {q[0]:.2f}: KL {digits(here['KL'])}, total variation {here['TV']:.2f}.")
    axes = picture.axes((0, 1), (0, 3), box=(40, 16, 370, 290), x_label="q")
    roles = {"L¹": "series-1", "L²": "series-2", "TV": "series-3", "KL": "series-6", "CE": "series-5"}
    for index, (name, values) in enumerate(distances(P.expand(101, 2), coins).items()):
        axes.line(grid, values, roles[name], width=2, label=name)
        if math.isfinite(here[name]):
            axes.points([q[0]], [min(here[name], 3.0)], roles[name], size=5)
        picture.text(430, 40 + 22 * index, f"{LONG.get(name, name)}  {digits(here[name])}", role=roles[name])
    axes.handle("q", q[0], 0.0, label="q", along="x")
    ruler = picture.axes((0, 1), (-1, 1), box=(40, 362, 370, 16), y_ticks=False, x_label="p: drag")
    ruler.handle("p", p[0], 0.0, label="p", along="x")
    bars = picture.axes((-0.6, 1.6), (0, 1), box=(450, 190, 180, 150), x_ticks=False, title="P ink, Q blue, excess")
    bars.bars(P, "ink", positions=[-0.2, 0.8], width=0.34, names=["first", "second"])
    bars.bars(Q, "model", positions=[0.2, 1.2], width=0.34)
    if p[0] != q[0]:
        where = 0 if p[0] > q[0] else 1
        bars.line([where - 0.2] * 2, [float(Q[where]), float(P[where])], "change", width=7, label="total variation")
    convex = "KL halfway to (½, ½), less bound"
    return View(
        picture,
        [
            Number("KL(P‖Q)", here["KL"], "nats"),
            Number("total variation", here["TV"]),
            Number(convex, "below any" if math.isinf(bound) else mixed - bound, printed=printed),
        ],
        reached=math.isinf(here["KL"]) and here["TV"] < 0.9,
        note="KL is convex in the pair: the last number must not be above 0. As printed it is.",
        code=(
            "import torch\n"
            "from quoin.prob import kl_divergence\n"
            f"P = torch.tensor({P.tolist()!r}, dtype=torch.float64)\n"
            f"Q = torch.tensor({Q.tolist()!r}, dtype=torch.float64)\n"
            "print(float(kl_divergence(P, Q)))"
        ),
    )


@app.cell
def _():
    play(how_far_apart)
    return


@app.function
@exhibit(
    "Decide",
    ids="D5.2-1 D5.2-2 D5.2-10 D1.3-10",
    intro="A measurement of the well (ink) and the ill (vermilion). Above the threshold a person is treated.",
    controls=(
        Handle("threshold", "threshold", (0.5, 0.0), (0.01, 0.0), (0.99, 0.0)),
        Slider("miss", "cost of a miss (a false alarm is 1)", 0.1, 50.0, 1.0, log=True),
        Switch("sharp", "overstate the probabilities"),
    ),
    surprise="Where a miss costs more than a false alarm the best threshold is not one half but 1/(1 + cost).",
    surprise_at={"miss": 9.0},
    definition=minimize_expected_cost,
)
def decision(threshold: tuple[float, float], miss: float, sharp: bool) -> View:
    """Two classes of one measurement, the price of a threshold, the confusions, and how honest the numbers are."""
    _, x, labels = patients()
    treated = decide(stated(x, sharp)[:, 1], threshold[0])
    now, least = costs_of(treated, labels, miss), costs_of(least_cost_actions(stated(x, False), miss), labels, miss)
    picture = Picture(f"At threshold {threshold[0]:.2f} a person costs {digits(now)}; the least is {digits(least)}.")
    draw_decision(picture, threshold[0], miss, sharp)
    return View(
        picture,
        [Number("cost a person", now), Number("least cost", least), Number("best threshold", 1 / (1 + miss))],
        reached=not sharp and now > 1.2 * least and abs(threshold[0] - 1 / (1 + miss)) > 0.3,
        code=(
            "from quoin.lab.parts.class_problems import costs_of, decide, patients, stated\n"
            "model, x, labels = patients()\n"
            f"treated = decide(stated(x, {sharp})[:, 1], {threshold[0]!r})\n"
            f"print(costs_of(treated, labels, {miss!r}))"
        ),
    )


@app.cell
def _():
    play(decision)
    return


@app.function
@exhibit(
    "Yours: a class to tell",
    intro="A CSV of numbers with one column of two to six classes. A quarter of the rows is held out.",
    controls=(File("file", "a CSV"), Choice("kind", "classifier", tuple(CLASSIFIERS))),
    definition=tuple(CLASSIFIERS.values()),
    yours=True,
)
def yours(file: bytes | None, kind: str) -> View:
    """A linear classifier on the reader's own rows, and how it does on those it did not see."""
    given, found = own_classes(file), held_out(file, kind)
    X, labels, held = given.X, given.labels, found.held
    wrong = found.predicted != labels[:held]
    picture = Picture(
        f"{found.right:.0%} of {held} rows held out are right; always the commonest: {found.commonest:.0%}."
    )
    axes = picture.axes(
        (-3, 3), (-3, 3), box=(46, 10, 330, 350), x_label=given.names[0][:20], y_label=given.names[1][:20]
    )
    draw_classes(axes, X[held : held + 400, :2], labels[held : held + 400], size=3)
    draw_classes(axes, X[:held, :2][:200], labels[:held][:200], size=5)
    axes.points(X[:held, 0][wrong], X[:held, 1][wrong], "change", size=9, shape="ring")
    draw_classes(axes, X[:held, :2][wrong], labels[:held][wrong], size=4)
    names = [name[:8] for name in given.classes]
    table = picture.axes((0, 1), (0, 1), box=(460, 60, 170, 170), title="held out: true by said", bare=True)
    table.cells(found.confusion, numbers=True, rows=names, columns=names)
    picture.text(400, 290, "large: held out", size=13)
    picture.text(400, 310, "ringed: taken for another", role="change", size=13)
    return View(
        picture,
        [
            Number("right of those held out", found.right),
            Number("right by the commonest class", found.commonest),
            Number("mean loss, held out", found.loss, "hinge" if kind == "SVM" else "nats"),
        ],
        note="Drawn: the first two columns, scaled." + ("" if file else " An example of ours; choose a file."),
    )


@app.cell
def _():
    play(yours)
    return


@app.cell
def _():
    rest("classification")
    return


if __name__ == "__main__":
    app.run()
