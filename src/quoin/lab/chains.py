# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""Markov chains: what is forgotten, what a function of a chain remembers. Area 17 of the notes."""

import marimo

app = marimo.App(width="full", app_title="Markov chains · Quoin lab")

with app.setup:
    import itertools
    import math

    import torch

    from quoin import prob
    from quoin.errors import UserError
    from quoin.info import entropy, entropy_rate
    from quoin.lab.parts import (
        Choice,
        DragPoints,
        File,
        Number,
        Paint,
        Picture,
        Slider,
        Step,
        Switch,
        Text,
        View,
        chain_pictures,
        digits,
        exhibit,
        head,
        play,
        printed_choice,
        read_table,
        rest,
    )
    from quoin.lab.parts.claim_forms import form_of
    from quoin.lab.parts.own_chain import hidden_states, letter_chain, two_state_model
    from quoin.notes.claims.processes import (
        FIVE,
        five_states_need_the_transpose,
        history_conditions_on_the_past,
        mass_is_kept,
    )

    STEPS = {1: (3, 5), 2: (1,), 3: (2,), 4: (1, 2, 3, 4, 5), 5: (4,)}  # the notes' chain: where each state may go
    EDGES = tuple(int(j in STEPS[i]) for i in range(1, 6) for j in range(1, 6))
    SEEN = (1.5, 1.5, 2.1, 0.3, 0.3, 2.9, 1.9, -0.6, 0.5, -0.1, 0.7, 1.5, -1.9, 0.4, 0.4, 2.0, -1.4, -1.4, -1.5, -1.7)


@app.cell
def _():
    head("chains")
    return


@app.function
@exhibit(
    "Walk",
    ids="D5.1-2 D5.1-5 D5.1-6 DE49",
    intro="Click a cell to open or close a step; each row shares its probability. All 300 walkers begin in state 1.",
    controls=(
        Paint("edges", "steps that are open", 5, 5, 2, EDGES),
        Step("time", "step", 60, 30),
        Switch("printed", "as printed: columns sum to 1"),
    ),
    surprise="Let state 4 go to 1 alone: every way round has three steps. "
    "The chain goes round for ever and never reaches its stationary distribution.",
    surprise_at={"edges": [*EDGES[:15], 1, 0, 0, 0, 0, *EDGES[20:]]},
    definition=(prob.chain_distribution_definition, prob.stationary_distribution),
)
def walk(edges: list[int], time: int, printed: bool) -> View:
    """A chain of five states, its chain_pictures.walkers and its distribution."""
    weights = torch.tensor(edges, dtype=torch.float64).reshape(5, 5)
    weights = torch.where(weights.sum(dim=1, keepdim=True) > 0, weights, torch.eye(5, dtype=torch.float64))
    transition = form_of(mass_is_kept, False)(weights)
    start = torch.eye(5, dtype=torch.float64)[0]
    settled = prob.absorption(transition).output[0] @ prob.stationary_distributions(transition)
    used = form_of(mass_is_kept, True)(weights.mT) if printed else transition
    # as a plain product: chain_distribution refuses rows that do not sum to 1
    now = start @ torch.linalg.matrix_power(used, time) if printed else prob.chain_distribution(start, used, time)
    distance = float(prob.total_variation_distance(prob.chain_distribution(start, transition, time), settled))
    counts = torch.bincount(
        chain_pictures.walkers(tuple(map(tuple, transition.tolist())), 60)[:, time], minlength=5
    ).tolist()
    picture = Picture(
        f"After {time} steps the chain is {distance:.3f} away from its stationary distribution.", height=470
    )
    chain_pictures.draw_edges(picture, edges, used)
    chain_pictures.draw_chain(picture, transition, counts, (280, 4, 350, 270))
    chain_pictures.draw_beside(picture, now, settled, (50, 320, 580, 116), "printed" if printed else "model")
    return View(
        picture,
        [
            Number("distance to stationary", distance),
            Number("sum of all probabilities", float(now.sum()), printed=printed),
            Number("steps", time),
        ],
        reached=time >= 10 and distance > 0.3,
        code=(
            "import torch\n"
            "from quoin.prob import absorption, chain_distribution, stationary_distributions\n"
            "from quoin.prob import total_variation_distance\n"
            f"edges = torch.tensor({weights.tolist()!r}, dtype=torch.float64)\n"
            "transition = edges / edges.sum(dim=1, keepdim=True)\n"
            f"now = chain_distribution(torch.eye(5, dtype=torch.float64)[0], transition, {time})\n"
            "settled = absorption(transition).output[0] @ stationary_distributions(transition)\n"
            "print(float(total_variation_distance(now, settled)))"
        ),
        note=f"Row 1 sums to {float(used[0].sum()):.3g}: the mass after one step." if printed else "",
    )


@app.cell
def _():
    play(walk)
    return


@app.function
@exhibit(
    "Not Markov any more",
    ids="D5.1-3 D5.1-10 D5.1-11 DE52 DE53",
    intro="Paint states 4 and 5 blue and see colours alone. Does the colour before still matter?",
    controls=(
        Paint("colors", "colours of the states", 1, 5, 2),
        Switch("history", "carry the whole past along"),
        printed_choice({"DE53": "given the present event too", "DE52": "the matrix as it stands"}),
    ),
    surprise="After sky comes blue with 0.208 if it was sky before, with 0.167 if it was blue: not Markov. "
    "With the whole past in the state it is again.",
    surprise_at={"colors": [0, 0, 0, 1, 1]},
    definition=(prob.markov_test, prob.history_chain),
)
def not_markov(colors: list[int], history: bool, printed: str) -> View:
    """A function of the notes' five-state chain, from its stationary start."""
    matrix = form_of(five_states_need_the_transpose, False)(FIVE)
    chain = prob.MarkovChain(prob.stationary_distribution(matrix), matrix)
    labels = torch.tensor(colors)
    joint = prob.function_distribution(chain, labels, 2)
    joint = torch.nn.functional.pad(joint, (0, 2 - len(joint)) * 3)  # if no state is blue, for certain none follows
    form = form_of(history_conditions_on_the_past, printed == "DE53")
    names, bars = ("sky", "blue"), []
    for now, before in itertools.product(range(2), repeat=2):
        if float(joint[before, now].sum()) > 0:
            value = float(form(joint, (before, now, 1)).nan_to_num(0.0))  # pyright: ignore[reportOptionalCall]
            bars.append(((names[before], names[now]), value, bool(now)))
    gap = prob.markov_test(prob.history_chain(joint).output.joint_distribution(2) if history else joint).output
    chances = {past: digits(value) for past, value, _ in bars}
    picture = Picture("P(next is blue | before, now): " + "; ".join(f"{p} {v}" for p, v in chances.items()), height=440)
    chain_pictures.draw_colors(picture, matrix, colors)
    note = "Conditioned on the present event itself, each probability is 1 or 0." if printed == "DE53" else ""
    if printed == "DE52":
        standing = form_of(five_states_need_the_transpose, True)(FIVE)
        chain_pictures.draw_row_sums(picture, standing, (350, 40, 220, 220))
        note = "Its columns sum to 1, its rows do not: no chain's matrix. The transpose, left, is the chain meant."
    else:
        chain_pictures.draw_pasts(picture, bars, (370, 24, 260, 330))
    return View(
        picture,
        [
            Number("two pasts differ by, whole past kept" if history else "two pasts differ by", gap),
            Number("P(blue) after sky, sky", chances.get(("sky", "sky"), "none"), printed=printed == "DE53"),
            Number("P(blue) after blue, sky", chances.get(("blue", "sky"), "none"), printed=printed == "DE53"),
        ],
        reached=gap > 0.02 and not history,
        code=(
            "import torch\n"
            "from quoin.prob import MarkovChain, function_distribution, history_chain, markov_test\n"
            "from quoin.prob import stationary_distribution\n"
            f"matrix = torch.tensor({matrix.tolist()!r}, dtype=torch.float64)\n"
            "chain = MarkovChain(stationary_distribution(matrix), matrix)\n"
            f"joint = function_distribution(chain, torch.tensor({colors!r}), 2)\n"
            + ("joint = history_chain(joint).output.joint_distribution(2)\n" if history else "")
            + "print(markov_test(joint).output)"
        ),
        note=note,
    )


@app.cell
def _():
    play(not_markov)
    return


@app.function
@exhibit(
    "What was hidden?",
    ids="D5.1-8 D5.1-10",
    intro="Two hidden states, calm and windy, stay with probability 0.8. Pull the point of day 9 down a little.",
    controls=(
        DragPoints("seen", "observations", tuple(enumerate(SEEN)), (0, -3), (len(SEEN) - 1, 3), len(SEEN), len(SEEN)),
        Slider("stay", "P(the state stays)", 0.5, 0.99, 0.8),
    ),
    surprise="One point changes what the days before it were. "
    "The best path (line) is not made of the best states (dots): it must hang together.",
    surprise_at={"seen": [[day, -0.5 if day == 8 else value] for day, value in enumerate(SEEN)]},
    definition=(prob.hmm_posterior_definition, prob.viterbi),
)
def what_was_hidden(seen: list[tuple[float, ...]], stay: float) -> View:
    """Posterior and most probable path of two hidden states behind twenty numbers."""
    model = two_state_model(stay)
    values = torch.tensor([[value] for _, value in seen], dtype=torch.float64)
    windy, path = model.posterior(values).output[:, 1], model.viterbi(values)
    best = (windy > 0.5).long()
    differ = int((best != path.output).sum())
    days = torch.arange(1, len(seen) + 1, dtype=torch.float64)
    picture = Picture(f"Twenty observations; the best path and the best states differ on {differ} days.", height=460)
    top = picture.axes((-0.7, 19.7), (-3, 3), box=(50, 28, 580, 200), title="what is seen, to drag", x_ticks=False)
    top.line([-0.7, 19.7], [1, 1], "hidden", width=1, dashed=True, label="mean if windy")
    top.line([-0.7, 19.7], [-1, -1], "hidden", width=1, dashed=True, label="mean if calm")
    top.points_to_drag("seen", seen, label="day", along="y")
    below = picture.axes(
        (0.3, 20.7), (0, 1), box=(50, 276, 580, 140), title="P(windy), and the best path", x_label="day"
    )
    below.bars(windy, "hidden 55%", positions=days, width=0.96)
    below.line(days, path.output * 0.94 + 0.03, "model", width=2.5, label="most probable path")
    below.points(days, best * 0.94 + 0.03, "ink", size=3.4)
    wrong = best != path.output
    below.points(days[wrong], best[wrong] * 0.94 + 0.03, "change", size=6)
    return View(
        picture,
        [
            Number("P(windy on day 8)", float(windy[7])),
            Number("days where they differ", differ),
            Number("ln P of the best path", float(path.log_prob), "nats"),
        ],
        reached=differ > 0,
        code=(
            "import torch\n"
            "from quoin.prob import GaussianEmission, HiddenMarkovModel, MarkovChain\n"
            f"step = torch.tensor([[{stay!r}, {1 - stay!r}], [{1 - stay!r}, {stay!r}]])\n"
            "emission = GaussianEmission(torch.tensor([[-1.0], [1.0]]), torch.ones(2, 1, 1))\n"
            "model = HiddenMarkovModel(MarkovChain(torch.tensor([0.5, 0.5]), step), emission)\n"
            f"seen = torch.tensor({[[value] for _, value in seen]!r})\n"
            "print(float(model.posterior(seen).output[7, 1]))"
        ),
    )


@app.cell
def _():
    play(what_was_hidden)
    return


@app.function
@exhibit(
    "Diffuse",
    ids="D5.1-1 D5.1F D5.1-4 D5.1-9",
    intro="Thirty paths from 0, and the band of two standard deviations, 2 √t. Zoom into the beginning.",
    controls=(
        Slider("zoom", "zoom", default=1, choices=chain_pictures.ZOOMS),
        Slider("drift", "drift", -4.0, 4.0, 0.0, 0.1),
        Choice("process", "process", ("Brownian motion", "random walk")),
    ),
    surprise="A thousand times nearer, Brownian motion looks the same and its drift is gone. A walk shows its steps.",
    surprise_at={"zoom": 1000},
    definition=(prob.BrownianMotion, prob.RandomWalk),
)
def diffuse(zoom: int, drift: float, process: str) -> View:
    """Paths of a process near the start, at a zoom."""
    end, smooth = 1 / zoom, process == "Brownian motion"
    times, paths = chain_pictures.brownian_paths() if smooth else chain_pictures.walk_paths(drift)
    paths = paths + drift * times if smooth else paths
    near = times <= end * (1 + 1e-9)
    times, paths = times[near], paths[:, near]
    last = paths[:, -1] - drift * times[-1]
    spread = float(last.square().mean().sqrt() / times[-1].sqrt())
    picture = Picture(f"Thirty paths of {process} up to time {end:g}; they end {spread:.2f} √t wide.")
    chain_pictures.draw_paths(picture, times, paths, drift)
    inside = float(((paths - drift * times).abs() <= 2 * times.sqrt() + 1e-12).double().mean())
    return View(
        picture,
        [
            Number("spread at the end", spread, "√t"),
            Number("within the band", inside),
            Number("drift at the end", abs(drift) * math.sqrt(end), "√t"),
        ],
        reached=zoom >= 100 and smooth and 0.6 < spread < 1.5,
        code=diffuse_code(zoom, drift, smooth),
    )


@app.function
def diffuse_code(zoom: int, drift: float, smooth: bool) -> str:
    """The lines that print the spread of the paths."""
    if smooth:
        return (
            "import torch\n"
            "from quoin.prob import BrownianMotion\n"
            f"near = [torch.linspace(0, 1 / zoom, 201, dtype=torch.float64) for zoom in {chain_pictures.ZOOMS}]\n"
            "times = torch.cat(near).unique()\n"
            "paths = BrownianMotion().sample_paths(times, 30, generator=torch.Generator().manual_seed(0))[..., 0]\n"
            f"at = int((times <= {1 / zoom!r} * (1 + 1e-9)).sum()) - 1\n"
            "print(float(paths[:, at].square().mean().sqrt() / times[at].sqrt()))"
        )
    return (
        "import math, torch\n"
        "from quoin.prob import RandomWalk\n"
        f"walk = RandomWalk(0.5 + {drift!r} / 100)\n"
        "paths = walk.sample_paths(2499, 30, generator=torch.Generator().manual_seed(0)) / 50\n"
        f"n = max(1, round(2500 / {zoom}))\n"
        f"print(float((paths[:, n - 1] - {drift!r} * n / 2500).square().mean().sqrt() / math.sqrt(n / 2500)))"
    )


@app.cell
def _():
    play(diffuse)
    return


@app.function
@exhibit(
    "Yours: the letters of a text",
    ids="D5.1-5",
    intro="Your text as a chain of its letters: the eight most frequent, from row to column.",
    controls=(
        Text("text", "text", "in the beginning the earth was without form, and void; and darkness was there", 2000, 4),
    ),
    definition=entropy_rate,
    yours=True,
)
def your_letters(text: str) -> View:
    """A chain of at most eight letters, its matrix, and what the next letter costs."""
    names, chain = letter_chain(text)
    alone = float(entropy(chain.initial, base=2))
    rate = float(entropy_rate(chain, base=2))
    picture = Picture(f"Letters {' '.join(names)}: {alone:.2f} bits alone, {rate:.2f} given the letter before.")
    axes = picture.axes((0, 1), (0, 1), box=(60, 14, 500, 370), bare=True)
    axes.cells(chain.transition, most=1.0, numbers=True, rows=names, columns=names)
    walked = chain.sample_paths(39, 1, generator=torch.Generator().manual_seed(0))[0]
    return View(
        picture,
        [Number("given the letter before", rate, "bits"), Number("a letter alone", alone, "bits")],
        note=f"The chain writes: {''.join(names[state] for state in walked.tolist())}",
    )


@app.cell
def _():
    play(your_letters)
    return


@app.function
@exhibit(
    "Yours: a series and its hidden states",
    ids="D5.1-10",
    intro="The first column of numbers of your CSV file, and k hidden states found by Baum and Welch.",
    controls=(File("file", "CSV file", (".csv",)), Slider("k", "hidden states k", 2, 5, 2, 1)),
    definition=prob.hmm_posterior_definition,
    yours=True,
)
def your_series(file: bytes | None, k: int) -> View:
    """A series coloured by the states of a fitted hidden Markov model."""
    name, series = (
        "an example",
        two_state_model(0.9).sample(200, generator=torch.Generator().manual_seed(1)).output[0, :, 0],
    )
    if file is not None:
        (name,), values = read_table(file).first_numbers(1)
        series = values[:400, 0].double()
    if float(series.std()) == 0:
        raise UserError("expected a series that changes, got one number throughout; choose another file")
    found = hidden_states(tuple(series.tolist()), k)
    picture = Picture(f"{len(series)} values of {name} with {k} hidden states.")
    chain_pictures.draw_series(picture, series, found.path, found.means)
    return View(
        picture,
        [
            Number("ln P a value", found.log_probs[-1] / len(series), "nats"),
            Number("before fitting", found.log_probs[0] / len(series), "nats"),
            Number("steps of Baum and Welch", len(found.log_probs) - 1),
        ],
        note=f"{name}: {len(series)} rows (400 at most). A file is not in the link.",
    )


@app.cell
def _():
    play(your_series)
    return


@app.cell
def _():
    rest("chains")
    return


if __name__ == "__main__":
    app.run()
