# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""Normalisation and residuals: who shares a mean, and what a shortcut keeps. Area 9 of the notes."""

import marimo

app = marimo.App(width="full", app_title="Normalisation and residuals · Quoin lab")

with app.setup:
    import math

    import torch

    from quoin.inspect import gradient_norms
    from quoin.lab.parts import (
        Choice,
        File,
        Handle,
        Number,
        Picture,
        Slider,
        Switch,
        View,
        exhibit,
        head,
        play,
        read_table,
        rest,
    )
    from quoin.lab.parts.bottleneck_pictures import bottleneck_channels, draw_channels
    from quoin.lab.parts.claim_forms import form_of
    from quoin.lab.parts.deep_gradients import BODIES, DEPTH, MOST_DEPTH, WIDTH, draw_gradients_back, gradients_back
    from quoin.lab.parts.norm_pictures import NORMS, column_of_std, draw_blocks, moved_by, outline, printed_batch_norm
    from quoin.lab.parts.open_runs import open_paths
    from quoin.lab.parts.run_modes import SIZES, classifier_of, column_modes, draw_column, draw_modes, modes_of
    from quoin.layers import (
        Moments,
        batch_norm_definition,
        batch_norm_eval_definition,
        bottleneck_definition,
        layer_norm_definition,
        moments,
        position_batch_norm_definition,
        residual_definition,
    )
    from quoin.notes.claims.normalisation import eps_is_under_the_root, variance_is_not_one
    from quoin.notes.claims.residual import a_shortcut_is_no_guarantee

    EPS, BETA = 1e-5, 0.5
    ONE, ZERO = torch.ones(1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)


@app.cell
def _():
    head("normalisation")
    return


@app.function
@exhibit(
    "Who shares?",
    ids="Z8.1 Z8.2 Z8.4 Z8.6 Z8.7 Z8.8 D1.6-10 D1.6-11 D1.6-12 D1.6-13 D1.6-13b D1.6-14 DE24",
    intro="A block of 4 examples, 3 positions, 4 channels. Drag the dot to an entry, change it, see what moves.",
    controls=(
        Handle("entry", "the entry", (1.5, 4.5), (0.0, 0.0), (4.0, 12.0), whole=True),
        Choice("norm", "norm", tuple(NORMS)),
        Slider("change", "change of the entry", 0.0, 3.0, 2.0, step=0.1),
        Switch("printed", "as printed: batch norm for each position alone"),
    ),
    surprise="Batch norm lets strangers change your output. The printed groups, one a position, are not torch's.",
    surprise_at={"norm": "batch norm"},
    definition=(batch_norm_definition, layer_norm_definition, position_batch_norm_definition),
)
def one_mean(entry: tuple[float, float], norm: str, change: float, printed: bool) -> View:
    """An entry's group, found by changing the entry: the outputs that move are those that share its mean."""
    column, row = min(int(entry[0]), 3), min(int(entry[1]), 11)
    place = (row // 3, row % 3, column)
    moved = moved_by(NORMS[norm], place, change)
    group = moved > 1e-9
    strangers = int(group.sum() - group[place[0]].sum())
    picture = Picture(f"Changing one entry moves {int(group.sum())} outputs, {strangers} of them in other examples.")
    left = draw_blocks(picture, moved)
    outline(left, group.reshape(12, 4), "ink", 0.08)
    numbers = [Number("outputs of others that move", str(strangers)), Number("outputs that move", int(group.sum()))]
    if printed:
        wrong = moved_by(printed_batch_norm, place, change) > 1e-9
        outline(left, wrong.reshape(12, 4), "printed", 0.2)
        numbers.append(Number("batch norm, as printed: moves", int(wrong.sum()), printed=True))
    left.handle("entry", column + 0.5, row + 0.5, label="the entry")
    call = {
        "batch norm": "batch_norm_definition(x, torch.ones(4).double(), torch.zeros(4).double(), channel_dim=-1)",
        "layer norm": "layer_norm_definition(x, torch.ones(4).double(), torch.zeros(4).double())",
        "layer norm, whole example": "layer_norm_definition(x, torch.ones(3, 4).double(), torch.zeros(3, 4).double())",
    }[norm]
    return View(
        picture,
        numbers,
        reached=strangers > 0,
        code=(
            "import torch\n"
            f"from quoin.layers import {call.partition('(')[0]}\n"
            "x = torch.randn(4, 3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)\n"
            "other = x.clone()\n"
            f"other{list(place)!r} += {change!r}\n"
            f"norm = lambda x: {call}.output\n"
            "moved = ((norm(other) - norm(x)).abs() > 1e-9).sum(dim=(1, 2))\n"
            f"print(int(moved.sum() - moved[{place[0]}]))"
        ),
    )


@app.cell
def _():
    play(one_mean)
    return


@app.function
@exhibit(
    "Epsilon",
    ids="Z8.3 ZE18 DE25",
    intro="Eight values of one feature, normalised with ε = 10⁻⁵. Make them nearly equal.",
    controls=(
        Slider("std", "standard deviation", 1e-5, 10.0, 1.0, log=True),
        Switch("printed", "as printed: variance 1; ε outside the root"),
    ),
    surprise="At a standard deviation of 10⁻³ the variance left is 0.09, not 1. With ε outside the root: off by 1.5.",
    surprise_at={"std": 1e-3},
    definition=(batch_norm_definition, moments),
)
def epsilon(std: float, printed: bool) -> View:
    """The variance of a normalised batch by the standard deviation of its input, and the outputs themselves."""
    x = column_of_std(std)
    output = batch_norm_definition(x[:, None], ONE, ZERO, eps=EPS).output[:, 0]
    variance = float(moments(output).variance)
    picture = Picture(f"A feature of standard deviation {std:.2g} is left a variance of {variance:.3g}.")
    spread, box = torch.logspace(-5, 1, 121, dtype=torch.float64), (46, 28, 280, 340)
    plane = picture.axes(
        (1e-5, 10), (0, 1.15), box=box, title="variance out", x_label="standard deviation in", x_log=True
    )
    plane.line(spread, form_of(variance_is_not_one, False)(spread.square(), EPS), "model")
    plane.points([std], [variance], "model", size=7)
    bars = picture.axes((-0.6, 7.6), (-2.5, 2.5), box=(380, 28, 246, 340), title="the eight outputs", x_label="example")
    bars.bars(output, "model")
    numbers = [Number("variance out", variance)]
    if printed:
        outside = form_of(eps_is_under_the_root, True)(x[None], torch.ones(8).double(), torch.zeros(8).double())[0]
        plane.line(spread, form_of(variance_is_not_one, True)(spread.square(), EPS), "printed")
        bars.bars(outside, "printed", width=0.5)
        numbers.append(Number("variance, as printed", 1.0, printed=True))
        numbers.append(Number("ε outside the root: off by", float((outside - output).abs().max()), printed=True))
    return View(
        picture,
        numbers,
        reached=variance < 0.5,
        code=(
            "import torch\n"
            "from quoin.layers import batch_norm_definition, moments\n"
            f"x = torch.tensor({[float(f'{value:.9g}') for value in x.tolist()]!r}).double()[:, None]\n"
            "output = batch_norm_definition(x, torch.ones(1).double(), torch.zeros(1).double(), eps=1e-5).output\n"
            "print(float(moments(output).variance))"
        ),
    )


@app.cell
def _():
    play(epsilon)
    return


@app.function
@exhibit(
    "A batch of two",
    ids="Z8.5 Z8.5c D1.6-12",
    intro="Forty batches of a feature with mean 2, normalised with γ = 1 and β = 0.5. How large must a batch be?",
    controls=(
        Slider("size", "batch size", 1, 64, 16, step=1),
        Choice("mode", "mode", ("train", "eval")),
    ),
    surprise="A batch of one gives β whatever the input; of two, β plus or minus one: only a sign is left.",
    surprise_at={"size": 2},
    definition=(batch_norm_definition, batch_norm_eval_definition),
)
def a_batch_of_two(size: int, mode: str) -> View:
    """Output against input: each column of the tensor is a batch of its own; eval uses the true mean and variance."""
    x = 2 + 1.5 * torch.randn(size, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    weight, bias = torch.ones(40, dtype=torch.float64), torch.full((40,), BETA, dtype=torch.float64)
    if mode == "train":
        output = batch_norm_definition(x, weight, bias, eps=EPS).output
    else:
        output = batch_norm_eval_definition(x, Moments(2 * weight, 2.25 * weight), weight, bias, eps=EPS)
    away = float((output - BETA).square().mean().sqrt())
    wander = float((output - BETA - (x - 2) / 1.5).square().mean().sqrt())
    picture = Picture(f"Batches of {size} in {mode} mode: outputs miss those of the whole population by {wander:.3g}.")
    plane = picture.axes((-3, 7), (-3.5, 4.5), x_label="input", y_label="output")
    plane.line([-3, 7], [BETA + (at - 2) / 1.5 for at in (-3, 7)], "faint", width=3, label="with the true moments")
    for level, name in ((BETA, "β"), (BETA + 1, "β + 1"), (BETA - 1, "β − 1")):
        plane.line([-3, 7], [level, level], "faint", dashed=True, width=1)
        plane.text(6.9, level, name, "faint", anchor="end", dy=-5)
    plane.points(x.flatten()[:1200], output.flatten()[:1200], "model", size=2.6)
    signs = (output - BETA).abs()
    return View(
        picture,
        [Number("miss, root mean square", wander), Number("size of output − β", away)],
        reached=bool(signs.max() < 1e-6) or bool((signs - 1).abs().quantile(0.9) < 0.01),
        code=(
            "import torch\n"
            "from quoin.layers import Moments, batch_norm_definition, batch_norm_eval_definition\n"
            f"x = 2 + 1.5 * torch.randn({size}, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)\n"
            "one, beta = torch.ones(40).double(), torch.full((40,), 0.5).double()\n"
            "train = batch_norm_definition(x, one, beta).output\n"
            "eval = batch_norm_eval_definition(x, Moments(2 * one, 2.25 * one), one, beta)\n"
            f"print(float(({mode} - 0.5 - (x - 2) / 1.5).square().mean().sqrt()))"
        ),
    )


@app.cell
def _():
    play(a_batch_of_two)
    return


@app.function
@exhibit(
    "Skip",
    ids="D1.6-5 D1.6-8 D1.6-9 DE69",
    intro="The gradient on its way back through the blocks; drag the last one. A skip makes each Jacobian I + F′.",
    controls=(
        Handle("depth", "depth", (float(DEPTH), 1.0), (2.0, 1.0), (float(MOST_DEPTH), 1.0), whole=True),
        Choice("body", "blocks", BODIES),
        Slider("norm", "norm of F′", 0.05, 1.5, 1.0, step=0.05),
        Switch("printed", "as printed: a skip keeps the gradient, without risk"),
    ),
    surprise="A skip is no guarantee: with F(x) = −x it cancels, and no gradient is left.",
    surprise_at={"body": BODIES[2]},
    definition=(residual_definition, gradient_norms),
)
def skip(depth: tuple[float, float], body: str, norm: float, printed: bool) -> View:
    """Gradient norms by block, and the singular values of the first block's Jacobian."""
    blocks = round(depth[0])
    norms, values = gradients_back(body, norm, blocks)
    kept = norms[0] / norms[-1]
    smallest, promised = (form_of(a_shortcut_is_no_guarantee, which)(norm) for which in (False, True))
    picture = Picture(f"Of the gradient {kept:.2g} is left at the first of {blocks} blocks.")
    draw_gradients_back(picture, norms, values, None if body == BODIES[1] else smallest, promised if printed else None)
    numbers = [Number("gradient kept", kept), Number("smallest singular value", values[-1])]
    if printed:
        numbers.append(Number("promised, as printed: at least", promised, printed=True))
    return View(
        picture,
        numbers,
        reached=kept < 1e-9 and body != BODIES[1],
        note=f"{blocks} blocks of {WIDTH} units.",
        code=(
            "from quoin.lab.parts.deep_gradients import gradients_back\n"
            f"norms, singular_values = gradients_back({body!r}, {norm!r}, {blocks})\n"
            "print(norms[0] / norms[-1])"
        ),
    )


@app.cell
def _():
    play(skip)
    return


@app.function
@exhibit(
    "Does it add?",
    ids="Z8.9 D1.6-15 DE23",
    intro="A bottleneck for images of 3 channels: the channels at each step, on its main path and on its shortcut.",
    controls=(
        Slider("filters", "filters f", 2, 16, 4, step=1),
        Switch("printed", "as printed: one convolution on the main path"),
    ),
    surprise="The printed main path ends with f channels, its shortcut with 4f: they cannot be added.",
    surprise_at={"printed": True},
    definition=(bottleneck_definition, residual_definition),
)
def does_it_add(filters: int, printed: bool) -> View:
    """The block run on an image, in its right form and as printed."""
    found = bottleneck_channels(filters)
    main, refused = (found.main[:2], bool(found.refused)) if printed else (found.main, False)
    picture = Picture(f"The main path ends with {main[-1]} channels, the shortcut with {found.shortcut[-1]}.")
    draw_channels(picture, 46, "main path", main, found.out, "printed" if printed else "model")
    draw_channels(picture, 236, "shortcut", found.shortcut, found.out)
    picture.text(490, 214, "+", size=40, role="change" if refused else "ink")
    picture.text(522, 207, "does not add" if refused else f"{found.out} channels", size=15)
    numbers = [Number("channels out", str(found.out)), Number("of the shortcut", found.shortcut[-1])]
    if printed:
        numbers.append(Number("of the printed main path", main[-1], printed=True))
    return View(
        picture,
        numbers,
        reached=refused,
        code=(
            "import torch\n"
            "from quoin.layers import Bottleneck\n"
            f"print(Bottleneck(3, {filters})(torch.randn(2, 3, 5, 5)).shape[1])"
        ),
    )


@app.cell
def _():
    play(does_it_add)
    return


@app.function
@exhibit(
    "Yours: a column, train and eval",
    intro="The first column of your file through batch norm, in batches; then with its running averages.",
    controls=(
        File("table", "a CSV file with a column of numbers"),
        Slider("size", "batch size", 2, 64, 4, step=1),
        Slider("passes", "passes over the rows", 1, 30, 2, step=1),
    ),
    yours=True,
)
def train_and_eval(table: bytes | None, size: int, passes: int) -> View:
    """What a row becomes in training, by the company it is in, and at test."""
    name, rows = "x", 5 + 2 * torch.randn(120, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    if table is not None:
        (name,), columns = read_table(table).first_numbers(1)
        rows = columns[:600, 0].double()
    found = column_modes(rows, size, passes)
    apart = float((found.trained - found.tested).square().mean().sqrt())
    picture = Picture(f"{len(found.x)} rows in batches of {size}: train and eval outputs are {apart:.3g} apart.")
    draw_column(picture, found, name)
    return View(
        picture,
        [
            Number("train and eval apart by", apart),
            Number("running mean", float(found.running.mean)),
            Number("running std", math.sqrt(float(found.running.variance))),
        ],
        note=f"{len(rows)} rows" if table is not None else "An example of ours; choose a file.",
    )


@app.cell
def _():
    play(train_and_eval)
    return


@app.function
@exhibit(
    "Yours: a run in train and eval mode",
    intro="Open the lab with quoin lab RUN, a run that tells classes: its test rows, in batches as in training.",
    controls=(Slider("size", "batch size in train mode", default=8, choices=SIZES),),
    definition=(batch_norm_definition, batch_norm_eval_definition),
    yours=True,
)
def your_run(size: int) -> View:
    """What a run's model says of its test rows in train and in eval mode."""
    paths = open_paths()
    model = classifier_of(paths[0] if paths else None)
    by_size = {each: modes_of(model, each) for each in SIZES}
    found = by_size[size]
    picture = Picture(f"In batches of {size} train and eval outputs are {found.apart:.3g} apart.")
    draw_modes(picture, found, {each: modes.train_accuracy for each, modes in by_size.items()}, size)
    return View(
        picture,
        [
            Number("outputs apart by", found.apart, "logits"),
            Number("accuracy in train mode", found.train_accuracy),
            Number("accuracy in eval mode", found.eval_accuracy),
        ],
        note=f"{model.name}: {len(found.in_eval)} rows. What acts otherwise in training: {model.acting}.",
    )


@app.cell
def _():
    play(your_run)
    return


@app.cell
def _():
    rest("normalisation")
    return


if __name__ == "__main__":
    app.run()
