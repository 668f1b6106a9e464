# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""Positions: attention does not see order, and what puts it in. Area 12 of the notes."""

import marimo

app = marimo.App(width="full", app_title="Positions · Quoin lab")

with app.setup:
    import functools

    import torch

    from quoin.data import keyed_generator
    from quoin.errors import UserError
    from quoin.inspect import attention_distance, attention_maps
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
        exhibit,
        head,
        play,
        rest,
    )
    from quoin.lab.parts.attention_pictures import head_names
    from quoin.lab.parts.claim_forms import form_of
    from quoin.lab.parts.position_pictures import draw_clocks, draw_order
    from quoin.lab.parts.text_models import TRANSFORMER
    from quoin.layers import (
        MultiHeadAttention,
        additive_position_definition,
        apply_rotary,
        apply_rotary_definition,
        multi_head_attention_definition,
        sinusoidal_encoding,
        sinusoidal_encoding_definition,
    )
    from quoin.notes.claims.positions import (
        a_rotation_is_a_complex_product,
        every_token_has_an_encoding,
        with_positions,
    )

    MOST_WORDS, WIDTH, HEADS = 8, 16, 2
    KINDS = ("none", "sinusoidal", "learned", "rotary", "ALiBi", "relative bias", "a causal mask")
    SLOTS = tuple((float(i + 1), 0.0) for i in range(MOST_WORDS))
    TOKENS, FURTHEST = 64, 40


@app.cell
def _():
    head("positions")
    return


@app.function
@functools.cache
def self_attention(kind: str):
    """Two heads of self-attention with random weights, and with this kind of positions."""
    generator = keyed_generator("positions")
    if kind == "none":
        return MultiHeadAttention(WIDTH, HEADS, generator=generator).double()
    return with_positions(WIDTH, HEADS, generator)[kind]


@app.function
@exhibit(
    "Shuffle the words",
    ids="D3-1 D3-2 D3-3 D3-6",
    intro="Drag the words below into another order. Above each word is what self-attention makes of it.",
    controls=(
        DragPoints("places", "words", SLOTS, (0.4, 0.0), (8.6, 0.0), most=MOST_WORDS, least=MOST_WORDS),
        Text("sentence", "sentence", "dog bites man", most=80),
        Choice("positions", "positions", KINDS, "none"),
    ),
    surprise="In any order every word keeps its output, to rounding: “man bites dog” is “dog bites man”. "
    "Switch positions on, and it is not.",
    surprise_at={"places": [[3.0, 0.0], [2.0, 0.0], [1.0, 0.0], *map(list, SLOTS[3:])]},
    definition=(multi_head_attention_definition, additive_position_definition),
)
def shuffle_the_words(places: list[tuple[float, ...]], sentence: str, positions: str) -> View:
    """Self-attention of a sentence, and of the same words in the order of their places."""
    words = sentence.split()
    if not 2 <= len(words) <= MOST_WORDS:
        raise UserError(f"expected 2 to {MOST_WORDS} words, got {len(words)}; add or leave out some")
    order = sorted(range(len(words)), key=lambda word: places[word][0])
    x = torch.stack([torch.randn(WIDTH, generator=keyed_generator("word", w.lower())) for w in words])[None].double()
    layer = self_attention(positions)
    with torch.no_grad():
        before, after = layer(x)[0], layer(x[:, order])[0]
    changes = (after - before[order]).abs().amax(dim=-1)
    change = round(float(changes.max()), 9)
    moved = order != sorted(order)
    picture = Picture(
        f"“{sentence}” and “{' '.join(words[i] for i in order)}”; the largest change of an output is {change:.3g}."
    )
    draw_order(picture, words, order, (before, after), places)
    make = (
        f"MultiHeadAttention({WIDTH}, {HEADS}, generator=generator).double()"
        if positions == "none"
        else f"with_positions({WIDTH}, {HEADS}, generator)[{positions!r}]"
    )
    return View(
        picture,
        [
            Number("largest change of an output", change),
            Number("largest output", float(before.abs().max())),
        ],
        reached=moved and change < 1e-6,
        note="ALiBi sees distances alone: a mirrored sentence is the same to it." if positions == "ALiBi" else "",
        code=(
            "import torch\n"
            "from quoin.data import keyed_generator\n"
            "from quoin.layers import MultiHeadAttention\n"
            "from quoin.notes.claims.positions import with_positions\n"
            f"generators = [keyed_generator('word', word) for word in {[word.lower() for word in words]!r}]\n"
            f"x = torch.stack([torch.randn({WIDTH}, generator=each) for each in generators])[None].double()\n"
            f"order, generator = {order!r}, keyed_generator('positions')\n"
            f"layer = {make}\n"
            "print(round((layer(x[:, order]) - layer(x)[:, order]).abs().max().item(), 9))"
        ),
    )


@app.cell
def _():
    play(shuffle_the_words)
    return


@app.function
@exhibit(
    "Clocks",
    ids="D3-7 D3-7c DE30",
    intro="A position is d/2 clocks, fast to slow. Move it: the hands turn, the products by offset stay.",
    controls=(
        Slider("position", "position m", 0, TOKENS - 1, 12, step=1),
        Slider("d", "dimension d", default=8, choices=(4, 8, 16, 32)),
        Switch("printed", "as printed: positions 1 to d"),
        Handle("offset", "offset k", (5.0, 0.0), (0.0, 0.0), (float(FURTHEST), 0.0)),
    ),
    surprise="Equal offsets have equal products, wherever they are. As printed, positions stop at d: "
    "the tokens behind have no clock.",
    surprise_at={"printed": True},
    definition=sinusoidal_encoding_definition,
)
def clocks(position: int, d: int, printed: bool, offset: tuple[float, float]) -> View:
    """The sinusoidal encoding of a position as hands of clocks, and its inner products with those after it."""
    encoding = sinusoidal_encoding(TOKENS + FURTHEST, d)
    k = round(offset[0])
    products = encoding[position : position + FURTHEST + 1] @ encoding[position]
    # the printed positions begin at 1 and end at d, whatever the sequence is long
    known = (
        set(range(1, len(form_of(every_token_has_an_encoding, True)(TOKENS, d)) + 1)) if printed else set(range(TOKENS))
    )
    has = position in known
    picture = Picture(
        f"Position {position} as {d // 2} clocks; its product with the position {k} later is {float(products[k]):.3g}."
        + ("" if has else " As printed it has no encoding.")
    )
    draw_clocks(picture, encoding[position], d, "printed" if printed else "model", has)
    axes = picture.axes(
        (0, FURTHEST), (-d / 2, d / 2), box=(52, 218, 572, 150), x_label="offset k", y_label="⟨peₘ, peₘ₊ₖ⟩"
    )
    axes.text(FURTHEST, d / 2, f"at offset 0: d/2 = {d // 2}", "faint", anchor="end", dy=12)
    axes.line(range(FURTHEST + 1), products, "model")
    axes.line([k, k], [0, float(products[k])], "hand", width=2)
    axes.points([k], [float(products[k])], "model", size=6)
    axes.handle("offset", offset[0], 0.0, label="offset k", along="x")
    without = TOKENS - len(known & set(range(TOKENS)))
    return View(
        picture,
        [
            Number(f"product at offset {k}", float(products[k])),
            Number(f"tokens of {TOKENS} without an encoding", without, printed=printed),
        ],
        reached=without > 0 and not has,
        code=(
            "from quoin.layers import sinusoidal_encoding\n"
            f"here, there = (sinusoidal_encoding(1, {d}, start=m) for m in ({position}, {position + k}))\n"
            "print(float((here * there).sum()))"
        ),
    )


@app.cell
def _():
    play(clocks)
    return


@app.function
@exhibit(
    "Turn both",
    ids="D3-8 D3-8c DE29 DE31",
    intro="Drag the query and the key. Rotary turns each by its position; slide both along the text.",
    controls=(
        Handle("query", "query", (1.0, 0.3), (-1.4, -1.4), (1.4, 1.4)),
        Handle("key", "key", (0.4, 1.0), (-1.4, -1.4), (1.4, 1.4)),
        Slider("m", "position of the query", 0, 2000, 0, step=1),
        Slider("offset", "key minus query", -6, 6, 2, step=1),
        Switch("printed", "as printed: the other way round"),
    ),
    surprise="Slid by a thousand, both arrows point elsewhere and the score stands still. "
    "The printed sign mirrors the offset.",
    surprise_at={"m": 1000},
    definition=apply_rotary_definition,
)
def turn_both(query: tuple[float, float], key: tuple[float, float], m: int, offset: int, printed: bool) -> View:
    """A query and a key in the plane, turned by their positions, and the score by offset."""
    claim = a_rotation_is_a_complex_product
    form = form_of(claim, printed)
    q, k = (torch.tensor([each], dtype=torch.float64) for each in (query, key))
    n = m + offset
    turned_q, turned_k = form(q, torch.tensor([m])), form(k, torch.tensor([n]))
    score = float((turned_q * turned_k).sum())
    at_start = float((q * form(k, torch.tensor([offset]))).sum())
    offsets = torch.linspace(-6, 6, 161, dtype=torch.float64)
    right, mirrored = (
        (each(k.expand(161, 2), offsets) @ q.T)[:, 0] for each in (form_of(claim, False), form_of(claim, True))
    )
    picture = Picture(f"Query at position {m}, key at {n}: their score is {score:.3g}, at position 0 {at_start:.3g}.")
    plane = picture.axes((-1.5, 1.5), (-1.5, 1.5), box=(8, 30, 300, 300), bare=True, equal=True)
    plane.circle((0, 0), 1.0, "grid")
    role = "printed" if printed else "model"
    plane.arrow((0, 0), turned_q[0].tolist(), role, width=3, label="turned query")
    plane.arrow((0, 0), turned_k[0].tolist(), role, width=1.6, label="turned key")
    for name, turned in (("turned q", turned_q), ("turned k", turned_k)):
        plane.text(1.12 * float(turned[0, 0]), 1.12 * float(turned[0, 1]), name, role, anchor="middle", dy=22)
    for name, point in (("query", query), ("key", key)):
        plane.line([0, point[0]], [0, point[1]], "hand", width=1, dashed=True)
        plane.handle(name, *point, label=f"{name}, before it is turned")
        plane.text(point[0], point[1], name, "hand", anchor="middle", dy=-14)
    axes = picture.axes((-6, 6), (-2.2, 2.2), box=(368, 40, 258, 280), x_label="key minus query", y_label="score")
    axes.line(offsets, right, "model", label="RoFormer")
    if printed:
        axes.line(offsets, mirrored, "printed", label="as printed")
    axes.line([0, 0], [-2.2, 2.2], "faint", width=1)
    axes.points([offset], [score], role, size=7)
    call = ", clockwise=True" if printed else ""
    return View(
        picture,
        [
            Number("score", score, printed=printed),
            Number("score at position 0", at_start, printed=printed),
            Number("the query has turned by", m, "rad"),
        ],
        reached=m >= 1000 and abs(score - at_start) < 1e-6,
        code=(
            "import torch\n"
            "from quoin.layers import apply_rotary\n"
            f"query, key = torch.tensor([{list(query)!r}, {list(key)!r}], dtype=torch.float64).split(1)\n"
            f"query = apply_rotary(query, torch.tensor([{m}]){call})\n"
            f"key = apply_rotary(key, torch.tensor([{n}]){call})\n"
            "print(float((query * key).sum()))"
        ),
    )


@app.cell
def _():
    play(turn_both)
    return


@app.function
@exhibit(
    "Yours: how far does each head look?",
    intro="Type a sentence: how far back each head of a small rotary Transformer reads in it.",
    controls=(Text("sentence", "sentence", "the cat sat on the mat and the dog sat on the cat", most=120),),
    definition=(attention_distance, apply_rotary),
    needs={"run": TRANSFORMER},
    yours=True,
)
def your_distances(sentence: str, run) -> View:
    """The weight of every head by distance, and the mean distance."""
    if len(sentence) < 2:
        raise UserError(f"expected a sentence of at least 2 characters, got {len(sentence)}; type more")
    maps = attention_maps(run.model, run.trained.tokenizer.encode(sentence)[None])
    names, n = head_names(maps), len(sentence)
    distances = torch.cat([attention_distance(each.weights) for each in maps])
    heads = torch.cat([each.weights for each in maps])
    picture = Picture(
        f"Mean distances of {len(names)} heads in “{sentence}”: {distances.min():.1f} to {distances.max():.1f}."
    )
    far = min(n, 24)
    by_distance = [[float(weights.diagonal(-k).mean()) for k in range(far)] for weights in heads]
    axes = picture.axes((0, far), (0, 1), box=(108, 30, 420, 330), bare=True, title="mean weight by distance")
    axes.cells(by_distance, most=1.0, rows=names, columns=[str(k) if k % 4 == 0 else "" for k in range(far)])
    for row, distance in enumerate(distances.tolist()):
        picture.text(628, 30 + 330 * (row + 0.5) / len(names) + 4, f"{distance:.1f}", anchor="end")
    picture.text(628, 12, "mean distance", role="faint", anchor="end", size=13)
    picture.text(318, 396, "characters back", role="ink", anchor="middle", size=13)
    nearest, furthest = int(distances.argmin()), int(distances.argmax())
    return View(
        picture,
        [
            Number(f"furthest: {names[furthest]}", float(distances[furthest]), "characters"),
            Number(f"nearest: {names[nearest]}", float(distances[nearest]), "characters"),
        ],
    )


@app.cell
def _():
    play(your_distances)
    return


@app.cell
def _():
    rest("positions")
    return


if __name__ == "__main__":
    app.run()
