# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""Attention: a soft lookup. Area 11 of the notes."""

import marimo

app = marimo.App(width="full", app_title="Attention · Quoin lab")

with app.setup:
    import math

    import torch

    from quoin.data import keyed_generator
    from quoin.errors import UserError
    from quoin.inspect import attention_maps
    from quoin.lab.parts import (
        Choice,
        DragPoints,
        Handle,
        Number,
        Picture,
        Slider,
        Switch,
        Text,
        View,
        digits,
        exhibit,
        head,
        play,
        rest,
    )
    from quoin.lab.parts.attention_pictures import draw_alignment, draw_heads, draw_masked, draw_window, head_names
    from quoin.lab.parts.claim_forms import form_of
    from quoin.lab.parts.smoothing_windows import KERNELS, printed_kernel, printed_window
    from quoin.lab.parts.text_models import DATES, TRANSFORMER, align
    from quoin.layers import (
        additive_attention_definition,
        nadaraya_watson,
        nadaraya_watson_definition,
        scaled_dot_product_attention_definition,
        scaled_dot_score,
    )
    from quoin.models import bahdanau_decoder_definition
    from quoin.notes.claims.attention import scores_keep_their_variance
    from quoin.notes.claims.attention_scores import mask_scores_not_weights
    from quoin.tensor import EpanechnikovKernel, masked_softmax

    KEYS = torch.tensor([[0.9, 0.1], [0.5, 0.8], [-0.3, 0.9], [-0.9, 0.2], [-0.5, -0.7], [0.4, -0.8]])
    VALUES = torch.tensor([[1.0, 0.0], [0.4, 0.9], [-0.5, 0.8], [-1.0, -0.1], [-0.3, -0.9], [0.7, -0.6]])
    MOST_WORDS = 8
    POINTS = (
        (0.4, 1.0),
        (0.9, 1.7),
        (1.5, 2.3),
        (2.1, 2.2),
        (2.6, 1.5),
        (5.1, -0.6),
        (5.7, 0.3),
        (6.4, 0.7),
        (7.2, 0.4),
    )


@app.cell
def _():
    head("attention")
    return


@app.function
@exhibit(
    "Ask",
    ids="Z11.1 Z11.2 Z11.3 Z11.4 Z11.5 Z11.6 D2.2-1 D2.2-3 D2.2F",
    intro="Drag the query. Each key answers with its value, weighted by how well it matches.",
    controls=(
        Handle("query", "query", (0.6, 0.4), (-1.2, -1.2), (1.2, 1.2)),
        Slider("sharpness", "sharpness", 0.1, 100.0, 2.0, log=True),
    ),
    surprise="One slider leads from the mean of all values to a lookup of one. The answer never leaves their hull.",
    surprise_at={"sharpness": 100.0},
    definition=scaled_dot_product_attention_definition,
)
def ask(query: tuple[float, float], sharpness: float) -> View:
    """A query among six keys; sharpness is the factor of the scores."""
    found = scaled_dot_product_attention_definition(torch.tensor([query]), KEYS, VALUES, scale=sharpness)
    weights, answer = found.weights[0], found.output[0]
    best = int(weights.argmax())
    picture = Picture(
        f"A query at {query[0]:.2f}, {query[1]:.2f}; key {best + 1} of six has {weights[best]:.0%} of the weight.",
    )
    keys = picture.axes((-1.3, 1.3), (-1.3, 1.3), box=(10, 34, 300, 300), title="keys and the query", bare=True)
    values = picture.axes((-1.3, 1.3), (-1.3, 1.3), box=(330, 34, 300, 300), title="values and the answer", bare=True)
    for key, weight in zip(KEYS, weights):
        keys.line([query[0], float(key[0])], [query[1], float(key[1])], "model", width=0.5 + 11 * float(weight))
    keys.points(KEYS[:, 0], KEYS[:, 1], "ink", size=6)
    values.polygon(VALUES.tolist(), "faint 12%", edge="faint")
    for value, weight in zip(VALUES, weights):
        values.line(
            [float(answer[0]), float(value[0])],
            [float(answer[1]), float(value[1])],
            "model",
            width=0.5 + 11 * float(weight),
        )
    values.points(VALUES[:, 0], VALUES[:, 1], "ink", size=6)
    values.points([float(answer[0])], [float(answer[1])], "model", size=10)
    for axes, rows in ((keys, KEYS), (values, VALUES)):
        for number, row in enumerate(rows):
            axes.text(float(row[0]) * 1.18, float(row[1]) * 1.18, str(number + 1), "faint", anchor="middle", dy=4)
    keys.handle("query", *query, label="query")
    entropy = float(-(weights * weights.clamp_min(1e-30).log()).sum())
    return View(
        picture,
        [Number("largest weight", float(weights[best])), Number("entropy of the weights", entropy, "nats")],
        reached=float(weights[best]) > 0.95,
        code=(
            "import torch\n"
            "from quoin.layers import scaled_dot_product_attention_definition\n"
            f"keys = torch.tensor({KEYS.tolist()!r})\n"
            f"query = torch.tensor([[{query[0]!r}, {query[1]!r}]])\n"
            f"found = scaled_dot_product_attention_definition(query, keys, keys, scale={sharpness!r})\n"
            "print(float(found.weights.max()))"
        ),
    )


@app.cell
def _():
    play(ask)
    return


@app.function
@exhibit(
    "Why the root?",
    ids="Z11.15 Z11.16 D2.2-4 DE27",
    intro="Random queries and keys of dimension d. Without the root of d, one key takes all.",
    controls=(
        Slider("d", "dimension d", default=8, choices=(2, 4, 8, 16, 32, 64, 128, 256, 512)),
        Switch("printed", "as printed: no root"),
    ),
    surprise="Without the root one key of six has almost all the weight from d = 64 on; with it d does not matter.",
    surprise_at={"d": 64, "printed": True},
    definition=scaled_dot_product_attention_definition,
)
def why_the_root(d: int, printed: bool) -> View:
    """Mean weights of six keys, largest first, over 200 random queries."""
    form = form_of(scores_keep_their_variance, printed)
    generator = torch.Generator().manual_seed(0)
    query, key = torch.randn(200, 1, d, generator=generator), torch.randn(200, 6, d, generator=generator)
    found = scaled_dot_product_attention_definition(query, key, key, scale=form(d)).weights[:, 0]
    means = found.sort(descending=True).values.mean(dim=0)
    entropy = float(torch.special.entr(found).sum(dim=-1).mean())
    picture = Picture(f"Mean weights of six keys at d = {d}, largest first: the first has {means[0]:.2f}.")
    axes = picture.axes((-0.6, 5.6), (0, 1), y_label="mean weight", box=(56, 20, 570, 340), x_ticks=False)
    axes.bars(means, "printed" if printed else "model", names=[f"key {i + 1}" for i in range(6)])
    axes.line([-0.6, 5.6], [1 / 6, 1 / 6], "faint", dashed=True, label="all alike: 1/6")
    axes.text(5.6, 1 / 6, "all alike: 1/6", "faint", anchor="end", dy=-6)
    return View(
        picture,
        [
            Number("largest weight, mean", float(means[0]), printed=printed),
            Number("entropy", entropy, f"of {math.log(6):.2f} nats", printed=printed),
        ],
        reached=float(means[0]) > 0.85,
        code=(
            "import torch\n"
            "from quoin.layers import scaled_dot_product_attention_definition\n"
            "generator = torch.Generator().manual_seed(0)\n"
            f"query = torch.randn(200, 1, {d}, generator=generator)\n"
            f"key = torch.randn(200, 6, {d}, generator=generator)\n"
            f"found = scaled_dot_product_attention_definition(query, key, key, scale={form(d)!r})\n"
            "print(float(found.weights.amax(dim=-1).mean()))"
        ),
    )


@app.cell
def _():
    play(why_the_root)
    return


@app.function
@exhibit(
    "What may be seen?",
    ids="Z11.17 Z11.18 Z11.18c ZE25",
    intro="Each word asks, the words left of the wall may answer. A word's value is its number of letters.",
    controls=(
        Handle("wall", "wall", (5.0, 0.0), (1.0, 0.0), (8.0, 0.0), whole=True),
        Text("words", "words", "the dog bites a man of letters", most=80),
        Switch("causal", "causal: no word sees a later one"),
        Switch("printed", "as printed: −10⁶ into the weights"),
    ),
    surprise="Put into the weights, −10⁶ is a weight: the answer is some million letters below zero.",
    surprise_at={"printed": True},
    definition=(masked_softmax, scaled_dot_product_attention_definition),
)
def what_may_be_seen(wall: tuple[float, float], words: str, causal: bool, printed: bool) -> View:
    """Self-attention of the words by random embeddings, masked behind the wall and, if asked, after each word."""
    said = words.split()
    if not 2 <= len(said) <= MOST_WORDS:
        raise UserError(f"expected 2 to {MOST_WORDS} words, got {len(said)}; add or leave out some")
    n, length = len(said), min(round(wall[0]), len(said))
    embedded = torch.stack([torch.randn(16, generator=keyed_generator("word", word.lower())) for word in said])
    letters = torch.tensor([float(len(word)) for word in said])
    scores = scaled_dot_score(embedded, embedded)
    lengths = torch.arange(1, n + 1).clamp(max=length) if causal else torch.full((n,), length)
    form = form_of(mask_scores_not_weights, printed)
    weights = form(scores, lengths)
    answers = weights @ letters
    picture = Picture(f"Weights of {n} words over one another; the first {length} may be seen.")
    draw_masked(picture, said, weights, answers, min(wall[0], n), "printed" if printed else "model")
    make = "mask_scores_not_weights.printed" if printed else "mask_scores_not_weights.right"
    return View(
        picture,
        [
            Number(f"answer of “{said[-1]}”", float(answers[-1]), "letters", printed=printed),
            Number("its row sum", float(weights[-1].sum()), printed=printed),
        ],
        reached=float(answers.min()) < -1e5,
        code=(
            "import torch\n"
            "from quoin.notes.claims.attention_scores import mask_scores_not_weights\n"
            f"scores = torch.tensor([{scores[-1].tolist()!r}])\n"
            f"letters = torch.tensor({letters.tolist()!r})\n"
            f"weights = {make}(scores, torch.tensor([{int(lengths[-1])}]))\n"
            "print(float(weights[0] @ letters))"
        ),
    )


@app.cell
def _():
    play(what_may_be_seen)
    return


@app.function
@exhibit(
    "A window on a line",
    ids="Z11.7 Z11.8 Z11.9 Z11.10 Z11.11 ZE22 ZE23",
    intro="Drag points and the query; click to add a point. The answer is the mean of what the window sees.",
    controls=(
        Handle("query", "query", (4.0, 0.0), (0.0, 0.0), (8.0, 0.0)),
        DragPoints("points", "points", POINTS, (0.0, -2.0), (8.0, 3.0), most=40, least=2),
        Choice("kernel", "kernel", tuple(KERNELS), "boxcar"),
        Slider("bandwidth", "bandwidth h", 0.2, 4.0, 0.8, log=True),
        Switch("printed", "as printed"),
    ),
    surprise="A boxcar with no point in its window has no answer: 0/0. And the printed “Epanechnikov” is the triangle.",
    surprise_at={"printed": True},
    definition=(nadaraya_watson_definition, EpanechnikovKernel),
)
def a_window_on_a_line(
    query: tuple[float, float],
    points: list[tuple[float, ...]],
    kernel: str,
    bandwidth: float,
    printed: bool,
) -> View:
    """Kernel regression through the points, and the weights of one query."""
    table = torch.tensor(points, dtype=torch.float64)
    key, value = table[:, :1], table[:, 1:2]
    grid = torch.linspace(0, 8, 321, dtype=torch.float64)[:, None]
    at = torch.tensor([[query[0]]], dtype=torch.float64)
    right = nadaraya_watson(grid, key, value, KERNELS[kernel], bandwidth)[:, 0]
    found = nadaraya_watson_definition(at, key, value, KERNELS[kernel], bandwidth)
    alone = nadaraya_watson(key, key, value, KERNELS[kernel], bandwidth, mask=~torch.eye(len(key), dtype=torch.bool))
    error = float((alone - value).square().mean())
    wrong = printed_window(kernel, bandwidth, grid, key, value) if printed else right
    answer = float(printed_window(kernel, bandwidth, at, key, value) if printed else found.output)
    picture = Picture(f"{len(points)} points; the query at {query[0]:.2f} is answered by {digits(answer)}.")
    lines = (right, wrong if printed else None)
    draw_window(picture, grid[:, 0], lines, points, found.weights[0], query[0], answer)
    name, empty = type(printed_kernel(kernel) if printed else KERNELS[kernel]).__name__, printed and kernel == "boxcar"
    call = (
        f"empty_windows_are_answered.printed(query / {bandwidth!r}, key / {bandwidth!r}, value)"
        if empty
        else f"nadaraya_watson(query, key, value, {name}(), {bandwidth!r})"
    )
    gap = float((wrong - right).abs().nan_to_num(nan=math.inf).max())
    return View(
        picture,
        [
            Number("answer at the query", answer, printed=printed),
            Number("leave-one-out error", error, "squared"),
        ],
        reached=gap > 0.05,
        note="A window of a boxcar, triangle or Epanechnikov can be empty; Quoin then asks the nearest key.",
        code=(
            "import torch\n"
            "from quoin.layers import nadaraya_watson\n"
            "from quoin.notes.claims.kernel_pooling import empty_windows_are_answered\n"
            "from quoin.tensor import BoxcarKernel, EpanechnikovKernel, GaussianKernel, TriangularKernel\n"
            f"table = torch.tensor({[list(point) for point in points]!r}, dtype=torch.float64)\n"
            f"query, key, value = torch.tensor([[{query[0]!r}]], dtype=torch.float64), table[:, :1], table[:, 1:]\n"
            f"print(float({call}))"
        ),
    )


@app.cell
def _():
    play(a_window_on_a_line)
    return


@app.function
@exhibit(
    "Who looks where?",
    ids="Z11.21 Z11.23",
    intro="Type a date; a GRU with attention writes it in digits. Choose a character that it writes.",
    controls=(
        Text("date", "date", "3 May 2027", most=40),
        Slider("character", "character written", 1, 10, 1, step=1),
    ),
    surprise="To write the month's digits it reads the month's letters.",
    surprise_at={"character": 7},
    definition=(bahdanau_decoder_definition, additive_attention_definition),
    needs={"run": DATES},
)
def who_looks_where(date: str, character: int, run) -> View:
    """The alignment of a trained decoder with the characters of a date."""
    said = align(run, date)
    row = min(character, len(said.target)) - 1
    weights = said.weights[row]
    letters = sum(w for w, c in zip(weights.tolist(), said.source) if len(c) == 1 and c.isalpha())
    picture = Picture(f"“{date}” is written {''.join(said.target)}; {letters:.0%} of the weight is on letters.")
    draw_alignment(picture, said, row)
    best = int(weights.argmax())
    return View(
        picture,
        [
            Number(f"largest weight, on “{said.source[best]}”", float(weights[best])),
            Number(f"probability of “{said.target[row]}”", float(said.probabilities[row])),
            Number("weight on letters", letters),
        ],
        reached=letters > 0.9 and said.target[row].isdigit(),
        code=(
            "from quoin.lab.parts.text_models import DATES, align\n"
            f"print(float(align(DATES.open(), {date!r}).weights[{row}].max()))"
        ),
    )


@app.cell
def _():
    play(who_looks_where)
    return


@app.function
@exhibit(
    "Yours: your sentence in every head",
    intro="Type a sentence, choose a character of it: what each head of a small Transformer reads there.",
    controls=(
        Text("sentence", "sentence", "the cat sat on the mat", most=60),
        Slider("character", "character", 1, 60, 12, step=1),
    ),
    definition=(attention_maps,),
    needs={"run": TRANSFORMER},
    yours=True,
)
def your_sentence(sentence: str, character: int, run) -> View:
    """The attention weights of every head, at one character and as maps."""
    if not sentence:
        raise UserError("expected a sentence, got none; type one")
    maps = attention_maps(run.model, run.trained.tokenizer.encode(sentence)[None])
    heads = torch.cat([each.weights for each in maps])
    names, n = head_names(maps), len(sentence)
    row = min(character, n) - 1
    here = heads[:, row]
    picture = Picture(f"What {len(heads)} heads read at character {row + 1} of “{sentence}”.")
    draw_heads(picture, heads, names, sentence, row)
    best, place = divmod(int(here.argmax()), n)
    return View(
        picture,
        [Number(f"largest weight: {names[best]} on “{sentence[place]}”", float(here.max()))],
        note="A weight says what was read, not why the next character was predicted.",
    )


@app.cell
def _():
    play(your_sentence)
    return


@app.cell
def _():
    rest("attention")
    return


if __name__ == "__main__":
    app.run()
