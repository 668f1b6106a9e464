# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""Linear attention: keys summed once, and what that costs in variance. Area 13 of the notes."""

import marimo

app = marimo.App(width="full", app_title="Linear attention · Quoin lab")

with app.setup:
    import torch

    from quoin.data import keyed_generator
    from quoin.errors import UserError
    from quoin.lab.parts import (
        Choice,
        Handle,
        Number,
        Picture,
        Slider,
        Step,
        Switch,
        Text,
        View,
        exhibit,
        head,
        play,
        rest,
    )
    from quoin.lab.parts.claim_forms import form_of
    from quoin.lab.parts.feature_pictures import (
        PROJECTIONS,
        draw_brackets,
        draw_maps,
        draw_states,
        estimates,
        relative_error,
    )
    from quoin.lab.parts.open_runs import open_paths
    from quoin.lab.parts.text_models import TRANSFORMER, queries_and_keys
    from quoin.lab.parts.trained import OpenOrTrained
    from quoin.layers import (
        CacheSpec,
        Features,
        LinearAttention,
        LinearAttentionCache,
        causal_feature_step,
        elu_plus_one_definition,
        feature_attention_definition,
        hyperbolic_features_definition,
        orthogonal_random_matrix,
        performer_features_definition,
        performer_variance,
    )
    from quoin.notes.claims.linear_attention import sums_run_over_the_keys
    from quoin.tensor import einsum_multiplications, matrix_rank

    DIM, MOST_FEATURES = 64, 1024
    LENGTHS = tuple(2**power for power in range(4, 13))
    OTHERS = [[2.0, 2.0], [0.0, 3.0], [-2.0, 2.0], [-3.0, 0.0], [-2.0, -2.0], [0.0, -3.0], [2.0, -2.0]]
    KEYS = [[0.7, -0.7], [0.0, -2.5], [-1.0, -1.0], [-3.0, 0.0], [-1.5, 1.5], [0.0, 1.0], [2.0, 2.0], [1.2, 0.0]]
    VALUES = [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [-0.6, 0.6], [-1.0, 0.0], [-0.4, -0.4], [0.0, -1.0], [0.6, -0.6]]
    STEPS, HEAD_DIM = 16, 6


@app.cell
def _():
    head("linear-attention")
    return


@app.function
def bracket_costs(n: int, features: int) -> tuple[int, int]:
    """The multiplications of (φ(Q) φ(K)ᵀ) V, which exact attention has too with d for M, and of φ(Q) (φ(K)ᵀ V)."""
    scores = einsum_multiplications("nd,md->nm", (n, DIM), (n, DIM))
    pooled = einsum_multiplications("nm,mv->nv", (n, n), (n, DIM))
    sums = einsum_multiplications("mf,mv->fv", (n, features), (n, DIM))
    read = einsum_multiplications("nf,fv->nv", (n, features), (features, DIM))
    return scores + pooled, sums + read


@app.function
@exhibit(
    "Move the bracket",
    ids="D4.1-1 D4.1-2 D2.2-7",
    intro="n tokens of 64 features, M features of the kernel. Which product first: (QKᵀ)V, or Q(KᵀV)?",
    controls=(
        Slider("n", "tokens n", default=1024, choices=LENGTHS),
        Slider("features", "features M", default=256, choices=LENGTHS[:7]),
    ),
    surprise="For a short text the linear form costs more: it pays M features for every token.",
    surprise_at={"n": 64},
    definition=einsum_multiplications,
)
def move_the_bracket(n: int, features: int) -> View:
    """Multiplications of both orders, as areas and by length."""
    quadratic, linear = bracket_costs(n, features)
    picture = Picture(f"{n} tokens: {quadratic:,} multiplications for all pairs, {linear:,} with {features} features.")
    draw_brackets(picture, n, features, (quadratic, linear))
    axes = picture.axes(
        (LENGTHS[0], LENGTHS[-1]), (1e4, 4e9), box=(390, 30, 238, 300), x_log=True, y_log=True, x_label="tokens n"
    )
    for index, role in enumerate(("ink", "model")):
        costs = [bracket_costs(length, features)[index] for length in LENGTHS]
        axes.line(LENGTHS, costs, role, label=("(QKᵀ)V", "Q(KᵀV)")[index])
        axes.points([n], [(quadratic, linear)[index]], role, size=6)
    axes.text(LENGTHS[-1], bracket_costs(LENGTHS[-1], features)[0], "(QKᵀ)V", "ink", anchor="end", dy=-8)
    axes.text(LENGTHS[-1], bracket_costs(LENGTHS[-1], features)[1], "Q(KᵀV)", "model", anchor="end", dy=22)
    ratio = linear / quadratic
    return View(
        picture,
        [
            Number("linear over quadratic", ratio),
            Number("products, (QKᵀ)V", quadratic),
            Number("products, Q(KᵀV)", linear),
        ],
        reached=ratio > 1,
        code=(
            "from quoin.tensor import einsum_multiplications as count\n"
            f"n, d, M = {n}, {DIM}, {features}\n"
            "quadratic = count('nd,md->nm', (n, d), (n, d)) + count('nm,mv->nv', (n, n), (n, d))\n"
            "linear = count('mf,mv->fv', (n, M), (n, d)) + count('nf,fv->nv', (n, M), (M, d))\n"
            "print(linear / quadratic)"
        ),
    )


@app.cell
def _():
    play(move_the_bracket)
    return


@app.function
@exhibit(
    "How many features?",
    ids="D4.1-6 D4.1-7 D4.1-8 D4.1-9 D4.1-10 D4.1-11 D4.1-12 DE33 DE65",
    intro="Eight queries and keys around a circle. exp(q·k) is a mean over random features; drag their number.",
    controls=(
        Handle("features", "features", (float(MOST_FEATURES), 0.0), (16.0, 0.0), (float(MOST_FEATURES), 0.0)),
        Slider("length", "length of q and k", 0.25, 2.5, 1.0, step=0.05),
        Choice("projection", "directions", tuple(PROJECTIONS), "independent"),
        Switch("printed", "as printed: cosh of each"),
    ),
    surprise="1024 features err by 8 % at length 1, and by 170 % at length 2: the variance explodes with length.",
    surprise_at={"length": 2.0},
    definition=(performer_features_definition, hyperbolic_features_definition, performer_variance),
)
def how_many_features(features: tuple[float, float], length: float, projection: str, printed: bool) -> View:
    """The kernel of the circle, its estimate, the difference; and the error at right angles by number of features."""
    count = 2 * round(features[0] / 2)
    found = estimates(count, length, projection, printed)
    error = relative_error(length, count, projection)
    picture = Picture(f"{count} features at length {length:g}: a pair at right angles errs by {error:.1%}.")
    draw_maps(picture, found, printed)
    counts = [2**power for power in range(4, 11)]
    axes = picture.axes(
        (16, MOST_FEATURES), (0.001, 1e3), box=(62, 236, 562, 140), x_log=True, y_log=True, x_label="features",
        y_label="relative error",
    )  # fmt: skip
    axes.line(counts, [relative_error(length, each, projection) for each in counts], "model", label="in closed form")
    axes.line([16, MOST_FEATURES], [1, 1], "faint", width=1, dashed=True, label="100 %")
    axes.points([count], [found.measured], "printed" if printed else "model", shape="ring", size=7)
    axes.handle("features", features[0], error, label="features", along="x")
    numbers = [
        Number("error at right angles", 100 * error, "%"),
        Number("measured (ring)", 100 * found.measured, "%", printed=printed),
        Number("opposite pair, over exact", found.opposite, printed=printed),
    ]
    variance = {
        "independent": "performer_variance(x, y, m)",
        "orthogonal": "performer_variance(x, y, m) - orthogonal_variance_reduction(x, y, m)",
        "hyperbolic": "hyperbolic_variance(x, y, m)",
    }[projection]
    return View(
        picture,
        numbers,
        reached=error > 1,
        code=(
            "import torch\n"
            "from quoin.layers import hyperbolic_variance, orthogonal_variance_reduction, performer_variance\n"
            f"x, y = {length!r} * torch.eye(16, dtype=torch.float64)[:2]\n"
            f"m = {count}\n"
            f"print(100 * float({variance}) ** 0.5)"
        ),
    )


@app.cell
def _():
    play(how_many_features)
    return


@app.function
@exhibit(
    "The sum that was not",
    ids="D4.1-3 DE32",
    intro="Eight queries ask eight keys by linear attention. Drag one of them.",
    controls=(
        Handle("query", "query", (3.0, 1.0), (-4.0, -4.0), (4.0, 4.0)),
        Switch("printed", "as printed: Kᵢ under its own sum"),
    ),
    surprise="As printed the key has the query's index, and cancels: all eight answers fall onto the mean of V.",
    surprise_at={"printed": True},
    definition=feature_attention_definition,
)
def the_sum_that_was_not(query: tuple[float, float], printed: bool) -> View:
    """Answers of eight queries, in the hull of eight values."""
    queries, keys, values = (torch.tensor(each, dtype=torch.float64) for each in ([list(query), *OTHERS], KEYS, VALUES))
    form = form_of(sums_run_over_the_keys, printed)
    answers = form(Features(elu_plus_one_definition(queries)), Features(elu_plus_one_definition(keys)), values)
    spread = float(torch.cdist(answers, answers).max())
    role = "printed" if printed else "model"
    picture = Picture(f"Answers of eight queries, at most {spread:.3g} apart.")
    left = picture.axes((-4.3, 4.3), (-4.3, 4.3), box=(8, 34, 300, 300), title="keys and queries", bare=True)
    right = picture.axes((-1.2, 1.2), (-1.2, 1.2), box=(328, 34, 300, 300), title="values and answers", bare=True)
    left.points(keys[:, 0], keys[:, 1], "ink", size=5, shape="square")
    left.points(queries[1:, 0], queries[1:, 1], role, size=6)
    left.handle("query", *query, label="query")
    right.polygon(VALUES, "faint 12%", edge="faint")
    right.points(values[:, 0], values[:, 1], "ink", size=5, shape="square")
    mean = values.mean(dim=0).tolist()
    right.points([mean[0]], [mean[1]], "faint", size=6, shape="cross", labels=["mean of V"])
    right.points(answers[1:, 0], answers[1:, 1], role, size=6)
    right.points([float(answers[0, 0])], [float(answers[0, 1])], "hand", size=7)
    picture.text(20, 366, "■ given   ● query and its answer   ✕ mean of V", role="faint", size=13)
    name, distance = "printed" if printed else "right", float((answers[0] - values.mean(dim=0)).norm())
    return View(
        picture,
        [
            Number("largest distance of two answers", round(spread, 9), printed=printed),
            Number("your answer from the mean of V", round(distance, 9), printed=printed),
        ],
        reached=spread < 1e-9,
        code=(
            "import torch\n"
            "from quoin.layers import Features, elu_plus_one\n"
            "from quoin.notes.claims.linear_attention import sums_run_over_the_keys\n"
            f"queries = torch.tensor({[list(query), *OTHERS]!r}, dtype=torch.float64)\n"
            f"keys, values = torch.tensor({[KEYS, VALUES]!r}, dtype=torch.float64)\n"
            "query, key = (Features(elu_plus_one(each)) for each in (queries, keys))\n"
            f"answers = sums_run_over_the_keys.{name}(query, key, values)\n"
            "print(round(float(torch.cdist(answers, answers).max()), 9))"
        ),
    )


@app.cell
def _():
    play(the_sum_that_was_not)
    return


@app.function
@exhibit(
    "It is an RNN",
    ids="D4.1-4",
    intro="Step a token: linear attention adds it to a state, exact attention keeps all keys and values.",
    controls=(Step("tokens", "Step", most=STEPS, default=1),),
    surprise="The state has the same size for ever, and gives what the parallel form gives: the difference is zero.",
    surprise_at={"tokens": STEPS},
    definition=causal_feature_step,
)
def it_is_an_rnn(tokens: int) -> View:
    """The state of linear attention after so many tokens, and the cache of exact attention."""
    query, key, value = torch.randn(3, 1, 1, STEPS, HEAD_DIM, generator=keyed_generator("rnn"), dtype=torch.float64)
    attend = LinearAttention()
    spec = CacheSpec(1, 1, HEAD_DIM, HEAD_DIM, STEPS, torch.float64, query.device)
    cache, outputs = attend.init_cache(spec), []
    for t in range(tokens):
        output, cache = attend.decode_step(cache, *(each[:, :, t : t + 1] for each in (query, key, value)))
        outputs.append(output)
    parallel = attend(query, key, value, causal=True)[:, :, :tokens]
    difference = float((torch.cat(outputs, dim=-2) - parallel).abs().max()) if outputs else 0.0
    assert isinstance(cache, LinearAttentionCache)
    state, kept = cache.sums.moments.nbytes, (key[:, :, :tokens].nbytes + value[:, :, :tokens].nbytes)
    picture = Picture(f"After {tokens} tokens the state has {state} bytes, a cache of keys and values {kept}.")
    draw_states(picture, cache.sums.moments[0, 0, 0], key[0, 0, :tokens], value[0, 0, :tokens], STEPS)
    return View(
        picture,
        [
            Number("keys and values, bytes", f"{kept:,}"),
            Number("state, bytes", state),
            Number("largest difference to parallel", round(difference, 12)),
        ],
        reached=kept > state and tokens > 0 and difference < 1e-12,
        code=(
            "import torch\n"
            "from quoin.layers import CacheSpec, KeyValueCache\n"
            f"spec = CacheSpec(1, 1, {HEAD_DIM}, {HEAD_DIM}, {STEPS}, torch.float64, torch.device('cpu'))\n"
            f"key = value = torch.randn(1, 1, {tokens}, {HEAD_DIM}, dtype=torch.float64)\n"
            "cache = KeyValueCache.empty(spec).append(key, value)\n"
            "print(f'{cache.keys.numel() * 8 + cache.values.numel() * 8:,}')"
        ),
    )


@app.cell
def _():
    play(it_is_an_rnn)
    return


@app.function
@exhibit(
    "Yours: the rank of a head",
    ids="D4.1-16",
    intro="A head of your run (quoin lab RUN, a transformer-lm) or ours: how much of exp(QKᵀ) can M features hold?",
    controls=(
        Text("sentence", "sentence", "the cat sat on the mat and the dog sat on the cat", most=100),
        Slider("head_number", "head", 1, 64, 1, step=1),
        Slider("features", "features M", default=16, choices=(4, 8, 16, 32, 64, 128)),
    ),
    definition=(performer_features_definition, matrix_rank),
    needs={"run": OpenOrTrained(**vars(TRANSFORMER))},
    yours=True,
)
def your_rank(sentence: str, head_number: int, features: int, run) -> View:
    """Singular values of the exponential scores, and of their estimate by random features."""
    if len(sentence) < 2:
        raise UserError(f"expected a sentence of at least 2 characters, got {len(sentence)}; type more")
    queries, keys = queries_and_keys(run, sentence)
    which = min(head_number, len(queries)) - 1
    shared = which * len(keys) // len(queries)  # heads may share their keys
    x, y = (each.double() / each.shape[-1] ** 0.25 for each in (queries[which], keys[shared]))
    directions = orthogonal_random_matrix(features, x.shape[-1], generator=keyed_generator("rank"))
    exact = (x @ y.T).exp()
    found = performer_features_definition(x, directions) @ performer_features_definition(y, directions).T
    values = [torch.linalg.svdvals(each) for each in (exact, found)]
    n, top = len(x), float(max(each[0] for each in values))
    picture = Picture(f"Singular values of head {which + 1} on {n} tokens, exact and by {features} features.")
    axes = picture.axes(
        (1, max(n, 3)), (1e-11 * top, 2 * top), y_log=True, x_label="index, largest first", y_label="singular value"
    )
    ranks = [int(matrix_rank(each)) for each in (exact, found)]
    for role, each, label, rank in zip(("ink", "model"), values, ("exact", f"{features} features"), ranks):
        kept = each.clamp_min(1e-11 * top)[:rank]
        axes.line(range(1, rank + 1), kept, role, label=label)
        axes.points(range(1, rank + 1), kept, role, size=3.5, shape="circle" if role == "ink" else "diamond")
    picture.text(624, 24, "● exact", anchor="end")
    picture.text(624, 44, f"◆ {features} features", role="model", anchor="end")
    error = float((found - exact).norm() / exact.norm())
    return View(
        picture,
        [
            Number("rank, exact", ranks[0]),
            Number(f"rank, {features} features", ranks[1]),
            Number("relative error of the matrix", error),
        ],
        note=f"{run.path.name if run.path in open_paths() else 'a small Transformer of ours'}: head {which + 1} of "
        f"{len(queries)} in all layers; {n} tokens.",
    )


@app.cell
def _():
    play(your_rank)
    return


@app.cell
def _():
    rest("linear-attention")
    return


if __name__ == "__main__":
    app.run()
