# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""Probability: conditioning is slicing, and what sums forget. Area 15 of the notes."""

import marimo

app = marimo.App(width="full", app_title="Probability · Quoin lab")

with app.setup:
    import math

    import torch

    from quoin.lab.parts import Choice, DragPoints, File, Handle, Number, Paint, Picture, Slider, Switch, View
    from quoin.lab.parts import exhibit, head, play, read_table, rest  # isort: skip
    from quoin.lab.parts.cauchy_means import MOST_DRAWS, cauchy_view
    from quoin.lab.parts.controls import printed_choice
    from quoin.lab.parts.normal_pictures import ellipse
    from quoin.lab.parts.paired_factors import COVARIANCE, FACTORS, draw_pairings, paired_moments, printed_sum
    from quoin.lab.parts.sliced_normal import (
        FORMS,
        RADIUS,
        SIGMA_X,
        draw_slice,
        held_normal,
        printed_slice,
        right_slice,
    )
    from quoin.prob import (
        MultivariateNormal,
        bayes_rule,
        bayes_rule_definition,
        condition_normal_definition,
        iid_sum_distribution,
        iid_sum_distribution_definition,
        kolmogorov_distance,
        normal_density_1d,
        pairings,
        typewriter,
        typewriter_interval,
        wick,
        wick_definition,
    )

    MEASURED = [(1.2, 0.7), (0.2, 0.9), (-0.7, -0.2), (-1.1, -1.3), (0.5, 0.2), (1.9, 1.4), (-0.3, 0.1)]


@app.cell
def _():
    head("probability")
    return


@app.function
@exhibit(
    "Slice",
    ids="D5-12 D5-13 D5-24 D5-25 DE44 DE45 DE46",
    intro="Drag the ellipse by its dot, and the line: what is known of Y. Below, what is then known of X.",
    controls=(
        Handle("shape", "the ellipse", (0.6, 2.4), (-1.9, 0.8), (1.9, 3.2)),
        Handle("y", "Y is seen to be", (-3.2, -1.2), (-3.2, -3.0), (-3.2, 3.0)),
        printed_choice(FORMS),
    ),
    surprise="The slice moves with y and keeps its width. The printed inverse makes it as wide as X alone.",
    surprise_at={"shape": [1.8, 2.4], "printed": "DE44"},
    definition=condition_normal_definition,
)
def slice_it(shape: tuple[float, float], y: tuple[float, float], printed: str) -> View:
    """A joint normal density, and X given Y = y."""
    joint = held_normal(shape)
    right, wrong = right_slice(joint, y[1]), printed_slice(printed, joint, y[1]) if printed in FORMS else None
    rho = shape[0] / RADIUS / SIGMA_X
    picture = Picture(
        f"A joint density, ρ = {rho:.2f}, cut at Y = {y[1]:.2f}: X then has mean {right.mean:.2f}, "
        f"variance {right.variance:.2f}."
    )
    draw_slice(picture, joint, y[1], right, wrong)
    numbers = [Number("variance of X given Y", right.variance), Number("mean of X given Y", right.mean)]
    if wrong is not None:
        name = {"DE44": "variance", "DE45": "mean", "DE46": "area"}[printed]
        numbers.append(Number(f"{name}, as printed", getattr(wrong, name), printed=True))
    return View(
        picture,
        numbers,
        reached=wrong is not None and wrong.variance > 2 * right.variance,
        note=f"σ of X is {SIGMA_X:g}, of Y {shape[1] / RADIUS:.2f}; their correlation ρ is {rho:.2f}.",
        code=(
            "import torch\n"
            "from quoin.lab.parts.sliced_normal import held_normal\n"
            f"joint = held_normal({tuple(shape)!r})  # by where its ellipse reaches farthest up\n"
            f"print(float(joint.condition([1], torch.tensor([{y[1]!r}])).covariance[0, 0]))"
        ),
    )


@app.cell
def _():
    play(slice_it)
    return


@app.function
@exhibit(
    "Ill or not?",
    ids="Z2.8",
    intro="A thousand people, each a dot; those whose test is positive are coloured.",
    controls=(
        Slider("prevalence", "how many are ill", 0.001, 0.5, 0.3, log=True),
        Slider("found", "ill and found", 0.5, 1.0, 0.99),
        Slider("false", "well, yet positive", 0.0, 0.5, 0.05),
    ),
    surprise="The test finds 99 of 100 of the ill. Where few are ill, most positives are well.",
    surprise_at={"prevalence": 0.01},
    definition=bayes_rule_definition,
)
def ill_or_not(prevalence: float, found: float, false: float) -> View:
    """P(ill | positive) by Bayes' rule, and the same by counting a thousand people."""
    posterior = float(bayes_rule(torch.tensor([prevalence, 1 - prevalence]), torch.tensor([found, false]))[0])
    ill = round(1000 * prevalence)
    positive_ill, positive_well = round(ill * found), round((1000 - ill) * false)
    picture = Picture(
        f"Of a thousand people {ill} are ill; {positive_ill} of them and {positive_well} others test positive."
    )
    axes = picture.axes((-1, 50), (-1, 20), bare=True, box=(10, 30, 620, 330))
    groups = (
        ("change", "ill, positive", 0, positive_ill, "triangle"),
        ("ink", "ill, negative", positive_ill, ill, "triangle"),
        ("model", "well, positive", ill, ill + positive_well, "circle"),
        ("faint 45%", "well, negative", ill + positive_well, 1000, "circle"),
    )
    for number, (role, label, first, last, shape) in enumerate(groups):
        places = range(first, last)
        axes.points([at // 20 for at in places], [19 - at % 20 for at in places], role, size=3.6, shape=shape)
        picture.text(14 + 156 * number, 392, f"{label}: {last - first}", role=role.split()[0], size=13)
    return View(
        picture,
        [Number("P(ill | positive)", posterior), Number("positive", positive_ill + positive_well, "people")],
        reached=posterior < 0.5,
        code=(
            "import torch\n"
            "from quoin.prob import bayes_rule\n"
            f"prior = torch.tensor([{prevalence!r}, {1 - prevalence!r}])\n"
            f"print(float(bayes_rule(prior, torch.tensor([{found!r}, {false!r}]))[0]))"
        ),
    )


@app.cell
def _():
    play(ill_or_not)
    return


@app.function
@exhibit(
    "Your die",
    ids="D5-32 D5-33 D5-34 D5-26",
    intro="Drag the bars of your die. Right: the sum of n throws, beside the normal with its mean and variance.",
    controls=(
        DragPoints(
            "faces",
            "face",
            ((1, 0.9), (2, 0.1), (3, 0.1), (4, 0.1), (5, 0.1), (6, 0.9)),
            (1, 0.0),
            (6, 1.0),
            most=6,
            least=6,
        ),
        Slider("n", "throws n", 1, MOST_DRAWS, 1, step=1),
        Choice("source", "what is thrown", ("your die", "Cauchy's variable, which has no mean")),
    ),
    surprise="Whatever the die, the sum of many throws is nearly normal: it forgets all but mean and variance. "
    "Cauchy's mean never settles: that of a hundred is as wide as one alone.",
    surprise_at={"n": 100},
    definition=(iid_sum_distribution_definition, kolmogorov_distance),
)
def your_die(faces: list[tuple[float, float]], n: int, source: str) -> View:
    """The exact distribution of a sum, by convolution, and its Kolmogorov distance to the normal."""
    if source != "your die":
        return cauchy_view(n)
    weights = torch.tensor([max(height, 1e-3) for _, height in faces], dtype=torch.float64)
    probs = weights / weights.sum()
    face = torch.arange(1, 7, dtype=torch.float64)
    mean, variance = float(probs @ face), float(probs @ face.square() - (probs @ face) ** 2)
    total = iid_sum_distribution(probs, n)
    values = torch.arange(n, 6 * n + 1, dtype=torch.float64)
    center, spread = n * mean, math.sqrt(n * variance)
    distance = float(kolmogorov_distance(values, total, lambda x: torch.special.ndtr((x - center) / spread)))
    picture = Picture(f"The sum of {n} throws of a loaded die; its distance to the normal is {distance:.3f}.")
    die = picture.axes((0.4, 6.6), (0, 1), box=(46, 26, 250, 320), title="your die", x_label="face")
    die.bars([height for _, height in faces], "hand 40%", positions=range(1, 7))
    die.points_to_drag("faces", faces, label="face", along="y")
    low, high = max(n, center - 4 * spread - 1), min(6 * n, center + 4 * spread + 1)
    shown = (values >= low) & (values <= high)
    top = max(float(total.max()), 0.4 / spread) * 1.1
    sums = picture.axes((low - 1, high + 1), (0, top), box=(360, 26, 262, 320), title="the sum", x_label="sum")
    sums.bars(total[shown], "ink", positions=values[shown], width=0.7)
    line = torch.linspace(low - 1, high + 1, 120)
    sums.line(line, normal_density_1d(line, torch.tensor(center), torch.tensor(spread)), "model")
    return View(
        picture,
        [Number("Kolmogorov distance", distance), Number("mean", center), Number("standard deviation", spread)],
        reached=distance < 0.05,
        code=(
            "import torch\n"
            "from quoin.prob import iid_sum_distribution, kolmogorov_distance\n"
            f"weights, n = torch.tensor({[round(w, 6) for w in weights.tolist()]!r}).double(), {n}\n"
            "probs, face = weights / weights.sum(), torch.arange(1, 7).double()\n"
            "mean = probs @ face\n"
            "std = (n * (probs @ face.square() - mean**2)).sqrt()\n"
            "values = torch.arange(n, 6 * n + 1).double()\n"
            "normal = lambda x: torch.special.ndtr((x - n * mean) / std)\n"
            "print(float(kolmogorov_distance(values, iid_sum_distribution(probs, n), normal)))"
        ),
    )


@app.cell
def _():
    play(your_die)
    return


@app.function
@exhibit(
    "The typewriter",
    ids="D5-27 D5-28 D5-29 D5-30 D5-31 DE48",
    intro="Xₙ is 1 on a bar that sweeps over [0, 1), ever thinner. Choose n, and a point ω to watch.",
    controls=(
        Slider("n", "n", 1, 500, 4, step=1),
        Slider("omega", "ω", 0.0, 0.99, 0.31),
    ),
    surprise="P(Xₙ = 1) goes to 0, and yet at every ω the bar comes back for ever: the printed implication fails.",
    surprise_at={"n": 500},
    definition=typewriter,
)
def the_typewriter(n: int, omega: float) -> View:
    """The sequence that converges in probability and at no point."""
    numbers = torch.arange(1, n + 1)
    strokes = typewriter_interval(numbers)
    hits = typewriter(numbers, torch.tensor(omega))
    width = 1 / int(strokes.parts[-1])
    picture = Picture(
        f"The bar of X_{n} has width {width:.3f}; at ω = {omega:.2f} it was seen {int(hits.sum())} times."
    )
    sheet = picture.axes((0, 1), (n + 1, 0), box=(52, 24, 400, 340), x_label="ω", y_label="n", title="where Xₙ is 1")
    starts = strokes.part_index / strokes.parts
    height = max(0.9, n / 170)
    bars = [
        [
            (float(a), i - height / 2),
            (float(a + 1 / p), i - height / 2),
            (float(a + 1 / p), i + height / 2),
            (float(a), i + height / 2),
        ]
        for i, (a, p) in enumerate(zip(starts, strokes.parts), start=1)
    ]
    sheet.polygons(bars, ["model" if hit else "faint 60%" for hit in hits], edge="none")
    sheet.handle("omega", omega, 0.0, label="ω", along="x")
    sheet.line([omega, omega], [0, n + 1], "hand", width=1.4)
    count = picture.axes(
        (0, n + 1), (0, float(hits.sum()) + 1), box=(500, 24, 126, 340), title="visits at ω", x_label="n"
    )
    count.line(numbers, hits.cumsum(0), "model")
    return View(
        picture,
        [Number("P(Xₙ = 1)", width), Number("visits at ω so far", int(hits.sum()))],
        reached=width < 0.04 and int(hits[n // 2 :].sum()) > 0,
        code=(
            "import torch\n"
            "from quoin.prob import typewriter_interval\n"
            f"print(1 / int(typewriter_interval(torch.tensor({n})).parts))"
        ),
    )


@app.cell
def _():
    play(the_typewriter)
    return


@app.function
@exhibit(
    "Pair them",
    ids="D5-21 D5-22 D5-23 DE41",
    intro="A moment of a centred normal is a sum over all ways to pair its factors. Click the factors: X, Y or none.",
    controls=(
        Paint("factors", "factors", 1, FACTORS, 3, (1, 1, 1, 1, 0, 0)),
        Slider("mean", "mean of X and Y", 0.0, 1.0, 0.0, step=0.1),
        Switch("printed", "as printed: E[X, X] for E[XX]"),
    ),
    surprise="Pairing is for centred variables: with a mean of 1 it says 12 for E[XXXX], and the truth is 10.",
    surprise_at={"mean": 1.0},
    definition=(wick_definition, wick),
)
def pair_them(factors: list[int], mean: float, printed: bool) -> View:
    """All pairings of the factors as arcs; the moment by Wick's formula and by the exact one with a mean."""
    indices = [level - 1 for level in factors if level]
    paired, exact = paired_moments(indices, mean)
    ways = len(list(pairings(len(indices))))
    picture = Picture(f"{ways} pairings of {len(indices)} factors add up to {paired:.3g}; the moment is {exact:.3g}.")
    draw_pairings(picture, factors)
    last = Number("sum, as printed", printed_sum(indices, mean), printed=True) if printed else Number("pairings", ways)
    return View(
        picture,
        [Number("sum over pairings", paired), Number("the moment", exact), last],
        reached=abs(paired - exact) > 0.5,
        note="A pair of means, and no number: the comma makes the moments vanish."
        if printed
        else "Variances 1 of X and 2 of Y; their covariance is 1.",
        code=(
            "import torch\n"
            "from quoin.prob import wick\n"
            f"second_moments = torch.tensor({COVARIANCE!r}) + {mean!r} ** 2\n"
            f"print(float(wick(second_moments, {indices!r})))"
        ),
    )


@app.cell
def _():
    play(pair_them)
    return


@app.function
@exhibit(
    "Yours: two columns as a Gaussian",
    intro="A CSV: its first two columns of numbers. The line is what the second tells of the first.",
    controls=(
        File("table", "a CSV of numbers"),
        Slider("known", "the second column, in standard deviations", -3, 3, 1.0, step=0.1),
    ),
    yours=True,
)
def two_columns(table: bytes | None, known: float) -> View:
    """The normal with the mean and covariance of two columns, conditioned on the second."""
    names, rows = ("first", "second"), torch.tensor(MEASURED)
    if table is not None:
        names, rows = read_table(table).first_numbers(2)
    mean, covariance = rows.mean(0), rows.T.cov() + 1e-6 * torch.eye(2) * rows.var(0).mean()
    value = float(mean[1] + known * covariance[1, 1].sqrt())
    joint = MultivariateNormal(mean, covariance)
    given = joint.condition([1], torch.tensor([value]))
    picture = Picture(
        f"{len(rows)} rows; given {names[1]} = {value:.3g}, {names[0]} has mean {float(given.mean[0]):.3g}."
    )
    spans = [
        (float(mean[i] - 4 * covariance[i, i].sqrt()), float(mean[i] + 4 * covariance[i, i].sqrt())) for i in (0, 1)
    ]
    axes = picture.axes(spans[0], spans[1], x_label=names[0], y_label=names[1], box=(66, 14, 560, 340))
    axes.points(rows[:2000, 0], rows[:2000, 1], "hand", size=3)
    for radius in (1, 2, 3):
        axes.curve(ellipse(joint, radius), "model", width=1.3)
    axes.line(spans[0], [value, value], "faint", dashed=True)
    axes.points([float(given.mean[0])], [value], "model", size=7)
    return View(
        picture,
        [
            Number(f"mean of {names[0]}, given", float(given.mean[0])),
            Number("its std", float(given.covariance[0, 0].sqrt())),
        ],
        note=f"{len(rows)} rows" if table is not None else "An example of ours; choose a file.",
    )


@app.cell
def _():
    play(two_columns)
    return


@app.cell
def _():
    rest("probability")
    return


if __name__ == "__main__":
    app.run()
