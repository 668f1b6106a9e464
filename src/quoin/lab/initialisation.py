# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""Initialisation: depth multiplies; only one scale neither dies nor explodes. Area 6 of the notes."""

import marimo

app = marimo.App(width="full", app_title="Initialisation · Quoin lab")

with app.setup:
    import math

    import torch
    from jaxtyping import Float
    from torch import Tensor

    from quoin.inspect import jacobian_rank, stability_report
    from quoin.lab.parts import Number, Picture, View, digits, exhibit, head, play, rest
    from quoin.lab.parts.claim_forms import form_of
    from quoin.lab.parts.controls import Choice, Handle, Slider, Switch
    from quoin.lab.parts.depth_pictures import deep_start, narrowed, weights_of
    from quoin.lab.parts.open_runs import open_paths
    from quoin.layers import kaiming_normal, tanh
    from quoin.notes.claims.activations import tanh_everywhere
    from quoin.tensor import logsumexp, softmax

    FLOATS = {"float16": torch.float16, "float32": torch.float32, "float64": torch.float64}
    BELOW = (0.0, 1.0, 2.0)  # how far the logits lie below the largest


@app.cell
def _():
    head("initialisation")
    return


@app.function
@exhibit(
    "The gain",
    ids="Z5.17 Z5.18 Z5.19 Z5.20 D1.6-6 D1-14i",
    intro="A network of 64 units a layer before its first step. Change the size of its weights.",
    controls=(
        Slider("gain", "gain, times He's or Xavier's scale", 0.5, 2.0, 1.0, 0.05),
        Slider("depth", "layers", 2, 60, 45, 1),
        Choice("activation", "activation", ("ReLU", "tanh", "sigmoid")),
    ),
    surprise="Weights 1.5 times too large make a signal of some 10⁸ after 45 layers; and the gradient grows as much.",
    surprise_at={"gain": 1.5},
    definition=(stability_report, kaiming_normal),
)
def the_gain(gain: float, depth: int, activation: str) -> View:
    """The size of signals and gradients by layer, on a logarithmic axis, over the histograms of the activations."""
    found = deep_start(gain, depth, activation)
    last = found.rows[-1].output_rms
    picture = Picture(
        f"After {depth} layers the signal has size {digits(last)}; the gradient grew {digits(found.returned)}-fold."
    )
    axes = picture.axes(
        (0.5, depth + 0.5), (1e-20, 1e20), box=(56, 30, 570, 320), y_log=True, x_label="layer", title="size by layer"
    )
    shades = found.histograms / found.histograms.max()
    axes.image(0.35 * shades)
    layers = range(1, depth + 1)
    first = found.rows[-1].gradient_norm
    axes.line([0.5, depth + 0.5], [1, 1], "faint", dashed=True, width=1)
    axes.line(layers, [row.output_rms for row in found.rows], "model", label="signal, root mean square")
    axes.line(
        layers, [row.gradient_norm / first for row in found.rows], "change", label="gradient, of the last layer's"
    )
    picture.text(70, 50, "signal forwards", role="model", size=13)
    picture.text(70, 68, "gradient coming back, the last layer's is 1", role="change", size=13)
    picture.text(70, 340, "grey: all activations of a layer", role="faint", size=13)
    return View(
        picture,
        [
            Number("signal at the last layer", last),
            Number("gradient at the first, of the last", found.returned),
            Number("factor a layer", (last / found.rows[0].output_rms) ** (1 / (depth - 1))),
        ],
        reached=last > 1e6 and found.returned > 1e6,
        code=(
            "from quoin.lab.parts.depth_pictures import deep_start\n"
            f"found = deep_start({gain!r}, {depth}, {activation!r})\n"
            "print(found.rows[-1].output_rms)"
        ),
    )


@app.cell
def _():
    play(the_gain)
    return


@app.function
@exhibit(
    "The bottleneck",
    ids="D1.6-7",
    intro="A network 12-12-?-12-12. Make its middle layer narrow.",
    controls=(
        Slider("narrow", "width of the middle layer", 1, 12, 12, 1),
        Choice("activation", "activation", ("tanh", "sigmoid", "ReLU", "identity")),
    ),
    surprise="The Jacobian's rank is cut to the narrow width. The activations behind it have full rank all the same.",
    surprise_at={"narrow": 3},
    definition=jacobian_rank,
)
def the_bottleneck(narrow: int, activation: str) -> View:
    """Singular values behind a narrow layer."""
    found = narrowed(narrow, activation)
    picture = Picture(
        f"Width {narrow}: Jacobian of rank {found.jacobian_rank}, activations of rank {found.activation_rank}."
    )
    for place, (title, values, rank, role) in enumerate(
        (
            ("of the Jacobian", found.jacobian, found.jacobian_rank, "change"),
            ("of 40 activations", found.activations, found.activation_rank, "model"),
        )
    ):
        axes = picture.axes(
            (0.3, 12.7),
            (1e-18, 1e3),
            box=(56 + 310 * place, 34, 250, 310),
            y_log=True,
            title=title,
            x_label="index, largest first",
        )
        heights = values.clamp_min(1e-18).tolist()
        axes.bars(heights, role, positions=range(1, 13), width=0.7, base=1e-18)
        axes.line([rank + 0.5] * 2, [1e-18, 1e3], "ink", dashed=True, width=1.2, label="rank")
        axes.text(min(rank + 0.4, 9.0), 200, f"rank {rank}", "ink", anchor="end" if rank > 6 else "start")
    return View(
        picture,
        [
            Number("rank of the Jacobian", str(found.jacobian_rank)),
            Number("rank of the activations", str(found.activation_rank)),
        ],
        reached=found.jacobian_rank <= narrow < 12 and found.activation_rank > narrow + 1,
        note="Singular values, on a logarithmic axis; those near 10⁻¹⁶ are rounding.",
        code=(
            "from quoin.lab.parts.depth_pictures import narrowed\n"
            f"found = narrowed({narrow}, {activation!r})\n"
            "print(found.jacobian_rank)"
        ),
    )


@app.cell
def _():
    play(the_bottleneck)
    return


@app.function
def naive_logsumexp(x: Float[Tensor, "n"]) -> float:
    """log Σ exp as it is written."""
    return float(x.exp().sum().log())


@app.function
@exhibit(
    "A thousand in the exponent",
    ids="Z4.8n D1-4",
    intro="log Σ eˣ of three logits near a size, as it is written and with the largest taken off first.",
    controls=(
        Handle("x", "x", (-8.0, 0.0), (-100.0, 0.0), (100.0, 0.0)),
        Slider("size", "largest logit", 1.0, 1000.0, 10.0, log=True),
        Choice("kind", "numbers", tuple(FLOATS), "float32"),
        Switch("printed", "as printed: tanh as a quotient"),
    ),
    surprise="eˣ overflows, and the weights are ∞/∞: not a number. With the largest taken off nothing happens.",
    surprise_at={"size": 1000.0},
    definition=(logsumexp, tanh),
)
def a_thousand_in_the_exponent(x: tuple[float, float], size: float, kind: str, printed: bool) -> View:
    """Naive and stable forms, in floats of three sizes."""
    dtype = FLOATS[kind]
    logits = torch.tensor([size - each for each in BELOW], dtype=dtype)
    stable, naive = float(logsumexp(logits)), naive_logsumexp(logits)
    weight = float((logits.exp() / logits.exp().sum())[0])
    form = form_of(tanh_everywhere, printed)
    at = float(form(torch.tensor(x[0], dtype=dtype)))
    picture = Picture(f"Largest logit {digits(size)} in {kind}: stable {digits(stable)}, as written {digits(naive)}.")
    left = picture.axes(
        (1, 1000), (1, 2000), box=(56, 30, 250, 310), x_log=True, y_log=True, x_label="largest logit", title="log Σ eˣ"
    )
    sizes = torch.logspace(0, 3, 121, dtype=torch.float64).tolist()
    rows = [torch.tensor([each - below for below in BELOW], dtype=dtype) for each in sizes]
    left.line(sizes, [float(logsumexp(row)) for row in rows], "model 50%", width=7, label="largest taken off first")
    left.line(sizes, [naive_logsumexp(row) for row in rows], "change", width=2.2, label="as written")
    left.points([size], [stable], "model", size=6)
    if not math.isfinite(naive):
        left.text(900, 1.4, f"as written: {digits(naive)}", "change", anchor="end")
    right = picture.axes((-100, 100), (-1.3, 1.3), box=(370, 30, 258, 310), x_label="x: drag", title="tanh")
    grid = torch.linspace(-100, 100, 401, dtype=torch.float64)
    right.line(grid, form(grid.to(dtype)), "printed" if printed else "model")
    if math.isfinite(at):
        right.points([x[0]], [at], "printed" if printed else "model", size=6)
    else:
        right.text(-95, 0.3, "not a number", "change")
    right.handle("x", x[0], 0.0, label="x", along="x")
    return View(
        picture,
        [
            Number("log Σ eˣ, stable", stable),
            Number("first weight, as written", weight),
            Number("tanh at x", at, printed=printed),
        ],
        reached=math.isfinite(stable) and math.isnan(weight),
        note=f"Thick: the largest taken off first. Thin: as written. Weight: {digits(float(softmax(logits)[0]))}.",
        code=(
            "import torch\n"
            "from quoin.tensor import logsumexp\n"
            f"logits = torch.tensor([{size!r} - each for each in {BELOW!r}], dtype=torch.{kind})\n"
            "print(float(logsumexp(logits)))"
        ),
    )


@app.cell
def _():
    play(a_thousand_in_the_exponent)
    return


@app.function
@exhibit(
    "Yours: the weights of a run",
    intro="Open the lab with quoin lab RUN: here is the gain of each of its layers.",
    controls=(Slider("layer", "layer", 1, 40, 1, 1),),
    definition=kaiming_normal,
    yours=True,
)
def yours(layer: int) -> View:
    """The scale of each matrix of a run's model, and the singular values of one."""
    paths = open_paths()
    weights = weights_of(paths[0] if paths else None)
    chosen = min(layer, len(weights)) - 1
    # root mean square times the root of the inputs: what a layer multiplies the size of white noise by
    gains = [float(value.square().mean().sqrt()) * math.sqrt(value.shape[1]) for _, value in weights]
    name, matrix = weights[chosen]
    values = torch.linalg.svdvals(matrix)
    picture = Picture(f"{len(weights)} matrices; {name} has gain {digits(gains[chosen])}.")
    axes = picture.axes(
        (0.3, len(gains) + 0.7), (0.01, 100), box=(56, 34, 270, 310), y_log=True, x_label="layer", title="gain"
    )
    axes.line([0.3, len(gains) + 0.7], [math.sqrt(2)] * 2, "ink", dashed=True, width=1.2, label="He: √2")
    axes.points(
        range(1, len(gains) + 1), [min(max(each, 0.01), 100) for each in gains], "model", labels=[n for n, _ in weights]
    )
    axes.points([chosen + 1], [min(max(gains[chosen], 0.01), 100)], "hand", size=7)
    spectrum = picture.axes(
        (0, len(values)),
        (1e-4, 100),
        box=(390, 34, 240, 310),
        y_log=True,
        x_label="index, largest first",
        title="its singular values",
    )
    spectrum.line(torch.arange(len(values)) + 0.5, values.clamp_min(1e-4), "model")
    return View(
        picture,
        [
            Number("gain of this layer", gains[chosen]),
            Number("largest singular value", float(values[0])),
            Number("layer", f"{chosen + 1} of {len(weights)}"),
        ],
        note=f"{paths[0].name}" if paths else "No run is open: a fresh network by He's rule. Dashed: √2.",
    )


@app.cell
def _():
    play(yours)
    return


@app.cell
def _():
    rest("initialisation")
    return


if __name__ == "__main__":
    app.run()
