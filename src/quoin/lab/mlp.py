# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""Multilayer perceptrons: a folded sheet. Area 5 of the notes, and the regions of area 20."""

import marimo

app = marimo.App(width="full", app_title="Multilayer perceptrons · Quoin lab")

with app.setup:
    import functools
    import math

    import torch
    from jaxtyping import Float
    from torch import Tensor, nn

    from quoin.errors import UserError
    from quoin.expressivity import break_lines, max_regions, regions_in_window
    from quoin.inspect import activation_sparsity, confidence_along_ray, dead_units
    from quoin.lab.parts import Number, Picture, View, digits, exhibit, head, play, read_table, rest
    from quoin.lab.parts.claim_forms import form_of
    from quoin.lab.parts.controls import Choice, DragPoints, File, Handle, Slider, Step, Switch
    from quoin.lab.parts.mlp_pictures import (
        ACTIVATIONS,
        creased_net,
        draw_creases,
        draw_regions,
        draw_sides,
        grid_of,
        layers_in_one,
        learned,
    )
    from quoin.layers import collapse, dense_definition
    from quoin.losses import logistic_loss
    from quoin.models import MLP, mlp_definition
    from quoin.notes.claims.activations import exact_zeros_behind_a_dead_layer
    from quoin.notes.claims.regions import order_keeps_below_the_bound
    from quoin.tensor import softmax
    from quoin.train import DeviceContext, GradientUpdater

    CREASES = ((0.35, 0.1), (-0.3, 0.35), (0.05, -0.45), (-0.55, -0.3), (0.5, -0.62))
    CROSS = (
        *((-1.2, 1.1, 0), (-0.7, 0.6, 0), (-1.5, 0.5, 0), (1.1, -0.9, 0), (0.6, -1.3, 0), (1.5, -0.4, 0)),
        *((1.0, 1.2, 1), (0.5, 0.7, 1), (1.4, 0.6, 1), (-0.9, -1.0, 1), (-0.4, -0.6, 1), (-1.4, -0.5, 1)),
    )
    NUM_UNITS, WIDE = 12, 12.0
    CLOUD = torch.randn(40, 2, generator=torch.Generator().manual_seed(0))


@app.cell
def _():
    head("mlp")
    return


@app.function
@exhibit(
    "Where does it fold?",
    ids="D1-18 D1-21 D1F1 D1F2 D1.1-14 DE10",
    intro="Each green point is a unit: its crease runs through it, square to the way from the middle. Click for more.",
    controls=(
        DragPoints("creases", "units", CREASES, (-1.0, -1.0), (1.0, 1.0), most=8, least=2),
        Slider("layers", "hidden layers", 1, 3, 1, 1),
        Switch("printed", "as printed: a binomial for n/d"),
    ),
    surprise="Creases of a deeper layer are broken lines: they bend where they cross an earlier one. "
    "As printed, five units and two layers have the order 2500, where at most 256 regions are possible; "
    "four units have 576 for 121.",
    surprise_at={"layers": 2},
    definition=(dense_definition, max_regions),
)
def where_does_it_fold(creases: list[tuple[float, ...]], layers: int, printed: bool) -> View:
    """The exact linear regions of a small ReLU network, shaded by height."""
    width, net = len(creases), creased_net(creases, layers)
    regions = regions_in_window(net, (-1.0, -1.0), (1.0, 1.0))
    most = max_regions([width] * layers, 2)
    form = form_of(order_keeps_below_the_bound, printed)
    bent = [line for line in break_lines(regions) if line.fraction < 0.99]
    picture = Picture(f"A network of {layers} layers of {width} units: {len(regions)} regions of at most {most} here.")
    axes = picture.axes((-1, 1), (-1, 1), box=(120, 10, 400, 400), bare=True)
    draw_regions(axes, regions)
    draw_creases(axes, regions, [width] * layers, ("hand", "ink", "model")[:layers])
    axes.points_to_drag("creases", creases, label="unit")
    return View(
        picture,
        [
            Number("regions here", str(len(regions))),
            Number("at most", str(most)),
            Number(
                "order, as printed" if printed else "order, but for a factor", form(width, layers, 2), printed=printed
            ),
        ],
        reached=layers > 1 and len(bent) > 0,
        note=f"A 2-{'-'.join([str(width)] * layers)}-1 network, {sum(p.numel() for p in net.parameters())} parameters.",
        code=(
            "from quoin.expressivity import regions_in_window\n"
            "from quoin.lab.parts.mlp_pictures import creased_net\n"
            f"net = creased_net({[tuple(foot) for foot in creases]!r}, {layers})\n"
            "print(len(regions_in_window(net, (-1.0, -1.0), (1.0, 1.0))))"
        ),
    )


@app.cell
def _():
    play(where_does_it_fold)
    return


@app.function
@exhibit(
    "Learning, seen from inside",
    ids="D1-17 D1-20 Z5.3",
    intro="Put points of two classes; a step is 20 updates. Thin lines are the creases that learning moves.",
    controls=(
        DragPoints("points", "points", CROSS, (-2.0, -2.0), (2.0, 2.0), most=40, least=2, classes=2, class_name="kind"),
        Choice("kind", "a click puts a", ("circle", "triangle")),
        Choice("activation", "activation", tuple(ACTIVATIONS)),
        Step("steps", "20 updates", most=30, default=5),
    ),
    surprise="With the identity all layers are one affine map: three of them draw one straight line.",
    surprise_at={"activation": "identity"},
    definition=(mlp_definition, collapse),
)
def learning_seen_from_inside(points: list[tuple[float, ...]], kind: str, activation: str, steps: int) -> View:
    """A 2-8-8-1 network as it learns: its two sides, its creases, its loss."""
    model, _, losses = learned(tuple(map(tuple, points)), activation, steps)
    picture = Picture(f"{activation}, {20 * steps} updates on {len(points)} points.")
    axes = picture.axes((-2, 2), (-2, 2), box=(38, 10, 382, 380))
    draw_sides(axes, model)
    count = "1" if activation == "identity" else "none: it is smooth"
    if activation == "ReLU":
        regions = regions_in_window(model, (-2.0, -2.0), (2.0, 2.0))
        draw_creases(axes, regions, (8, 8), ("ink", "faint"), width=0.9)
        count = str(len(regions))
    shapes = ["triangle" if point[2] else "circle" for point in points]
    axes.points_to_drag("points", [point[:2] for point in points], shapes=shapes)
    curve = picture.axes((0, 30), (0, 1), box=(480, 36, 150, 300), title="loss", x_label="steps of 20 updates")
    curve.line(range(1, steps + 1), losses, "change")
    weight, bias = layers_in_one(model)
    at = grid_of(axes).reshape(-1, 2)
    with torch.no_grad():
        off = float((model(at) - (at @ weight.T + bias)).abs().max())
    picture.text(480, 395, f"a click puts a {kind}", role="hand", size=13)
    return View(
        picture,
        [
            Number("farthest from one affine map", round(off, 5) + 0.0),
            Number("loss", losses[-1] if losses else math.log(2)),
            Number("regions", count),
        ],
        reached=off < 1e-4,
        code=(
            "import torch\n"
            "from quoin.lab.parts.mlp_pictures import layers_in_one, learned\n"
            f"model, _, losses = learned({tuple(map(tuple, points))!r}, {activation!r}, {steps})\n"
            "weight, bias = layers_in_one(model)\n"
            "x = torch.cartesian_prod(torch.linspace(-2, 2, 70), torch.linspace(-2, 2, 70))\n"
            "print(round(float((model(x) - (x @ weight.T + bias)).abs().max().detach()), 5))"
        ),
    )


@app.cell
def _():
    play(learning_seen_from_inside)
    return


@app.function
def logistic_gradient(model: MLP) -> tuple[Float[Tensor, ""], Float[Tensor, "units weights"]]:
    """The loss of telling the cloud's left from its right, and the gradient of each hidden unit's weights."""
    signs = torch.where(CLOUD[:, 0] > 0, 1.0, -1.0)
    loss = logistic_loss(signs * model(CLOUD)[:, 0]).mean()
    weight, bias, *others = torch.autograd.grad(loss, list(model.parameters()))
    return loss.detach(), torch.cat([weight, bias[:, None], others[0].T], dim=1)  # others[0]: the weights that leave it


@app.function
@functools.lru_cache(maxsize=64)
def shifted_and_trained(shift: float, lr: float) -> tuple[MLP, MLP]:
    """A 2-12-1 network whose biases start at `shift`, before and after 60 steps of gradient descent."""
    before = MLP([2, NUM_UNITS, 1], generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        before.features[0].get_parameter("bias").fill_(shift)
    after = MLP([2, NUM_UNITS, 1])
    after.load_state_dict(before.state_dict())
    signs, optimizer = torch.where(CLOUD[:, 0] > 0, 1.0, -1.0), torch.optim.SGD(after.parameters(), lr=lr)
    updater = GradientUpdater(after, optimizer, total_steps=60, device_context=DeviceContext())
    for _ in range(60):
        updater.update([(CLOUD,)], lambda points: logistic_loss(signs * after(points)[:, 0]), weight=1 / len(CLOUD))
    return before, after


@app.function
@exhibit(
    "Who is dead?",
    ids="D1F0 D1-9 D1-12 D1-13c DE77",
    intro="Twelve units on forty points, after 60 steps of descent. Shift their biases at the start, or hurry.",
    controls=(
        Slider("shift", "biases at the start", -4.0, 2.0, 0.0, 0.1),
        Slider("lr", "learning rate", 0.01, 10.0, 0.1, log=True),
        Switch("printed", "as printed: no input of a ReLU is exactly 0"),
    ),
    surprise="A unit that is negative on all data has a gradient of exactly 0: no step moves it, it never returns.",
    surprise_at={"shift": -3.0},
    definition=(dead_units, activation_sparsity),
)
def who_is_dead(shift: float, lr: float, printed: bool) -> View:
    """The pre-activations of each unit on the data, and the length of its gradient."""
    before, model = shifted_and_trained(shift, lr)
    first, dead = dead_units(before, CLOUD)[0].dead, dead_units(model, CLOUD)[0].dead
    sparsity = activation_sparsity(model, CLOUD)[0].fraction
    gradients = logistic_gradient(model)[1].norm(dim=1)
    with torch.no_grad():
        z, hidden = model.features[0](CLOUD), model.features(CLOUD)
    # behind this layer, without a bias, an input is exactly 0 where no unit is on
    all_off = float((hidden == 0).all(dim=1).double().mean())
    zeros = form_of(exact_zeros_behind_a_dead_layer, True)(NUM_UNITS) if printed else all_off
    picture = Picture(f"{int(dead.sum())} of {NUM_UNITS} units are dead; {sparsity:.0%} of the activations are zero.")
    wide = max(4.0, math.ceil(float(z.abs().max())))
    axes = picture.axes((-wide, wide), (-3.2, NUM_UNITS), box=(20, 30, 400, 350), title="its inputs", y_ticks=False)
    bars = picture.axes((0, NUM_UNITS + 3.2), (0, 1), box=(440, 30, 190, 350), title="gradient, relative", bare=True)
    line = torch.linspace(-wide, wide, 81)
    axes.line(line, -3.1 + 2.6 * torch.relu(line) / wide, "ink", width=1.6, label="ReLU")
    axes.line([0, 0], [-3.2, NUM_UNITS], "faint", width=1)
    longest = float(gradients.max()) or 1.0
    for unit in range(NUM_UNITS):
        y, role = NUM_UNITS - 0.6 - unit, "faint" if dead[unit] else "model"
        axes.line([float(z[:, unit].min()), float(z[:, unit].max())], [y, y], role, width=1.4)
        axes.points(z[:, unit], [y] * len(CLOUD), role, size=3, shape="ring" if dead[unit] else "circle")
        level = 1 - (unit + 0.6) / (NUM_UNITS + 3.2)
        length = 0.6 * NUM_UNITS * float(gradients[unit]) / longest
        bars.line([0, length], [level, level], "change", width=8)
        bars.text(length, level, " dead: 0" if dead[unit] else f" {digits(float(gradients[unit]), 2)}", "faint", dy=4)
    return View(
        picture,
        [
            Number("dead units", str(int(dead.sum()))),
            Number("zeros among the activations", sparsity),
            Number("points where all are off", zeros, printed=printed),
        ],
        reached=bool(first.any()) and bool((gradients[first] == 0).all()) and bool(dead[first].all()),
        note=f"{int(first.sum())} were dead at the start.",
        code=(
            "import torch\n"
            "from quoin.inspect import dead_units\n"
            "from quoin.lab.mlp import CLOUD, shifted_and_trained\n"
            f"before, after = shifted_and_trained({shift!r}, {lr!r})\n"
            "print(int(dead_units(after, CLOUD)[0].dead.sum()))"
        ),
    )


@app.cell
def _():
    play(who_is_dead)
    return


@app.function
@functools.lru_cache(maxsize=1)
def two_way_classifier() -> nn.Sequential:
    """The network of the exhibits above after 60 updates, with a logit for each class: 0 and its score."""
    model, _, _ = learned(CROSS, "ReLU", 3)
    both = nn.Linear(1, 2)
    with torch.no_grad():
        both.weight.copy_(torch.tensor([[0.0], [1.0]]))
        both.bias.zero_()
    return nn.Sequential(model, both)


@app.function
@exhibit(
    "Sure in the dark",
    ids="D1-14",
    intro="The network has learned the points in the middle. Drag the green one away from them.",
    controls=(Handle("x", "a point", (0.35, 0.15), (-WIDE, -WIDE), (WIDE, WIDE)),),
    surprise="Far from all it has seen the network is surest: along a ray its logits grow, and with them certainty.",
    surprise_at={"x": [10.0, 6.0]},
    definition=confidence_along_ray,
)
def sure_in_the_dark(x: tuple[float, float]) -> View:
    """The confidence of a classifier over the plane and along a ray."""
    model, point = two_way_classifier(), torch.tensor(x)
    distance = float(point.norm())
    scales = torch.linspace(0, 1.4 * WIDE, 120) / max(distance, 1e-6)
    along = confidence_along_ray(model, point, scales)
    here = float(confidence_along_ray(model, point, torch.ones(1))[0])
    data = torch.tensor([each[:2] for each in CROSS])
    with torch.no_grad():
        seen = float(softmax(model(data)).amax(dim=-1).mean())
    picture = Picture(f"At distance {distance:.1f} it gives {here:.4f} to its class; on its data {seen:.4f}.")
    axes = picture.axes((-WIDE, WIDE), (-WIDE, WIDE), box=(34, 30, 340, 340), title="confidence over the plane")
    with torch.no_grad():
        surest = softmax(model(grid_of(axes).reshape(-1, 2))).amax(dim=-1).reshape(70, 70)
    axes.image((surest - 0.5) * 0.9)
    for label, shape in ((0, "circle"), (1, "triangle")):
        rows = [each for each in CROSS if each[2] == label]
        axes.points([row[0] for row in rows], [row[1] for row in rows], "change", size=3, shape=shape)
    end = point / max(distance, 1e-6) * 1.4 * WIDE
    axes.line([0, float(end[0])], [0, float(end[1])], "model", width=1.4)
    axes.handle("x", *x, label="a point")
    ray = picture.axes((0, 1.4 * WIDE), (0.5, 1.01), box=(430, 30, 200, 320), title="along the ray", x_label="distance")
    ray.line(scales * distance, along, "model")
    ray.points([distance], [here], "hand", size=6)
    return View(
        picture,
        [Number("confidence", here), Number("mean on its data", seen), Number("distance from 0", distance)],
        reached=distance > 4 and here > 0.999 and here > seen,
        code=(
            "import torch\n"
            "from quoin.inspect import confidence_along_ray\n"
            "from quoin.lab.mlp import two_way_classifier\n"
            f"x = torch.tensor({list(x)!r})\n"
            "print(float(confidence_along_ray(two_way_classifier(), x, torch.ones(1))))"
        ),
    )


@app.cell
def _():
    play(sure_in_the_dark)
    return


@app.function
@functools.lru_cache(maxsize=4)
def own_points(file: bytes) -> tuple[tuple[str, ...], tuple[tuple[float, ...], ...]]:
    """Two columns, brought to mean 0 and variance 1, and which of two classes; in one random order."""
    table = read_table(file)
    names, values = table.first_numbers(2)
    labels = next(iter(table.words.values()), None) or [str(each) for each in list(table.numbers.values())[-1].tolist()]
    kinds = sorted(set(labels))
    if len(kinds) != 2:
        raise UserError(f"expected a column of two classes, got {len(kinds)}; keep two")
    scaled = (values - values.mean(0)) / values.std(0).clamp_min(1e-12)
    rows = [(*row, kinds.index(label)) for row, label in zip(scaled.tolist(), labels)]
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0)).tolist()
    return (*names, *kinds), tuple(rows[index] for index in order[:400])


@app.function
@exhibit(
    "Yours: two columns and a class",
    intro="A CSV with two columns of numbers and one of two classes. A quarter of the rows is held out.",
    controls=(
        File("file", "a CSV"),
        Choice("activation", "activation", tuple(ACTIVATIONS)),
        Step("steps", "20 updates", most=30, default=5),
    ),
    definition=mlp_definition,
    yours=True,
)
def yours(file: bytes | None, activation: str, steps: int) -> View:
    """A 2-8-8-1 network on the reader's own rows, judged on those it did not see."""
    example = (("x", "y", "circle", "triangle"), tuple((x / 1.1, y / 1.1, c) for x, y, c in CROSS[::-1][::5] + CROSS))
    names, rows = own_points(file) if file else example
    held, kept = rows[: len(rows) // 4], rows[len(rows) // 4 :]
    model, _, losses = learned(kept, activation, steps)
    with torch.no_grad():
        scores = model(torch.tensor([row[:2] for row in held] or [(0.0, 0.0)]))[:, 0].tolist()
    right = sum((score > 0) == bool(row[2]) for score, row in zip(scores, held)) / max(len(held), 1)
    picture = Picture(f"{len(kept)} rows learned, {len(held)} held out: {right:.0%} of those right.")
    axes = picture.axes((-2.6, 2.6), (-2.6, 2.6), box=(46, 10, 380, 370), x_label=names[0], y_label=names[1])
    draw_sides(axes, model)
    for label, shape in ((0, "circle"), (1, "triangle")):
        for part, role, size in ((kept, "ink", 3.0), (held, "hand", 5.0)):
            chosen = [row for row in part if row[2] == label]
            axes.points([row[0] for row in chosen], [row[1] for row in chosen], role, size=size, shape=shape)
    picture.text(450, 40, f"circles: {names[2]}"[:26], size=13)
    picture.text(450, 60, f"triangles: {names[3]}"[:26], size=13)
    picture.text(450, 80, "green: held out", role="hand", size=13)
    return View(
        picture,
        [Number("right of those held out", right), Number("loss", losses[-1] if losses else math.log(2))],
        note="" if file else "An example of ours; choose a file.",
    )


@app.cell
def _():
    play(yours)
    return


@app.cell
def _():
    rest("mlp")
    return


if __name__ == "__main__":
    app.run()
