# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""Language models: bets on the next character. Area 10 of the notes."""

import marimo

app = marimo.App(width="full", app_title="Language models · Quoin lab")

with app.setup:
    import math

    import torch

    from quoin.data import load_text
    from quoin.errors import UserError
    from quoin.generate import TokenSampler, beam_search, temperature_softmax, top_p_filter
    from quoin.info import entropy
    from quoin.inspect import contraction_bound, gradients_through_time
    from quoin.lab.parts import (
        Choice,
        File,
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
    from quoin.lab.parts import language_reading as reading
    from quoin.lab.parts.claim_forms import form_of
    from quoin.lab.parts.model_lines import trim_lines
    from quoin.lab.parts.smoothed_counts import MOST_ORDER as SMOOTHED_ORDER
    from quoin.lab.parts.smoothed_counts import draw_smoothed, smoothed_counts
    from quoin.lab.parts.text_models import LSTM, NGRAM, TRANSFORMER
    from quoin.lab.parts.text_pictures import (
        draw_beams,
        draw_characters,
        draw_gradients,
        draw_next,
        draw_orders,
        draw_trimmed,
    )
    from quoin.losses import token_nll_definition
    from quoin.metrics import perplexity
    from quoin.models import kneser_ney_ngram, laplace_bigram, laplace_trigram, laplace_unigram
    from quoin.notes.claims.translation import the_end_is_a_factor

    NAMES: tuple[str, ...] = ("n-gram", "LSTM", "Transformer")
    GROWN, LONGEST_WORD, MOST_ORDER, MOST_SYMBOLS = 60, 14, 8, 7


@app.cell
def _():
    head("language")
    return


@app.function
@exhibit(
    "What comes next?",
    ids="Z9.1 Z9.2 Z9.3 Z9.7 Z9.8 Z9.9 Z9.10",
    intro="Type. The bluer a character, the more bits it costs; below, what three models expect next.",
    controls=(
        Text("text", "text", "The value of the object is a string.", most=120),
        Choice("model", "bits of the", NAMES, "n-gram"),
    ),
    surprise="Away from the manuals that they read all three pay about four bits. At home counting beats the networks.",
    surprise_at={"text": "Dear Anna, see you at five. Love, Bob"},
    definition=token_nll_definition,
    needs={"ngram": NGRAM, "lstm": LSTM, "transformer": TRANSFORMER},
)
def what_comes_next(text: str, model: str, ngram, lstm, transformer) -> View:
    """Bits of every character under one model, and the next character under three."""
    runs = dict(zip(NAMES, (ngram, lstm, transformer)))
    readings = {name: reading.read_text(run, text) for name, run in runs.items()}
    picture = Picture(f"{readings[model].mean:.2f} bits per character under the {model}; the next one under three.")
    picture.text(12, 22, f"bits under the {model}: pale is cheap, blue is dear", role="faint", size=13)
    bottom = draw_characters(picture, text, readings[model].bits.tolist())
    for number, (name, each) in enumerate(readings.items()):
        box = (40 + 206 * number, bottom + 40, 160, 330 - bottom)
        letters = runs[name].trained.tokenizer.characters
        draw_next(picture, box, name, each.logits.softmax(dim=-1), letters)
    home = ", ".join(f"{name} {run.metrics['test_bits_per_character']:.2f}" for name, run in runs.items())
    return View(
        picture,
        [Number(f"bits per character, {name}", each.mean) for name, each in readings.items()],
        reached=min(each.mean for each in readings.values()) > 3.3,
        note=f"At home, on held-out text: {home} bits per character.",
        code=(
            "from quoin.lab.parts.language_reading import read_text\n"
            "from quoin.lab.parts.text_models import NGRAM\n"
            f"print(read_text(NGRAM.open(), {text!r}).mean)"
        ),
    )


@app.cell
def _():
    play(what_comes_next)
    return


@app.function
@exhibit(
    "Smoothing",
    ids="Z9.4 Z9.5 Z9.6 Z9.6c ZE20",
    intro="Counts become probabilities of the next letter; ε pseudo-counts come from single letters. Drag the order.",
    controls=(
        Handle("order", "order n", (2.0, 0.0), (1.0, 0.0), (float(SMOOTHED_ORDER), 0.0), whole=True),
        Text("text", "text", "abacabadabcaab", most=60),
        Slider("epsilon", "ε", default=0.5, choices=(0.0, 0.01, 0.1, 0.5, 1.0, 5.0, 100.0)),
        Switch("printed", "as printed: tokens counted"),
    ),
    surprise="The last letter has one successor fewer. Count tokens, as printed, and its row sums to 0.778.",
    surprise_at={"printed": True},
    definition=(laplace_unigram, laplace_bigram, laplace_trigram),
)
def smoothing(order: tuple[float, float], text: str, epsilon: float, printed: bool) -> View:
    """Counts of letters, pairs or triples in a small text, and the smoothed probabilities."""
    if len(text) < 3 or len(set(text)) > MOST_SYMBOLS:
        got = f"{len(text)} with {len(set(text))} different"
        raise UserError(f"expected 3 characters or more, at most {MOST_SYMBOLS} different, got {got}; change the text")
    n = round(order[0])
    found = smoothed_counts(text, n, epsilon, printed)
    total, context = float(found.table[found.last].sum()), found.contexts[found.last]
    row = f"the row of “{context}”" if context else "the row"
    wrong = printed and n > 1  # without a context there is nothing to miscount
    picture = Picture(f"Order {n} of {len(found.letters)} letters, smoothed by {epsilon:g}; {row} sums to {total:.3f}.")
    draw_smoothed(picture, found, n, "printed" if wrong else "model")
    return View(
        picture,
        [
            Number(f"sum of {row}", total, printed=wrong),
            Number("perplexity of the text read backwards", float(perplexity(found.backwards)), printed=wrong),
        ],
        reached=total < 0.999,
        note="A single letter has no context: its printed form is right."
        if printed and n == 1
        else "With ε = 0 what never occurred costs infinitely many bits: one zero, and perplexity is infinite.",
        code=(
            "from quoin.lab.parts.smoothed_counts import smoothed_counts\n"
            f"found = smoothed_counts({text!r}, {n}, {epsilon!r}, {printed!r})\n"
            "print(float(found.table[found.last].sum()))"
        ),
    )


@app.cell
def _():
    play(smoothing)
    return


@app.function
@exhibit(
    "Trim the bet",
    ids="M14",
    intro="The Transformer's next character: heat or cool the bet, drag the cut of top-k, step on.",
    controls=(
        Handle("top_k", "top-k", (16.0, 0.0), (1.0, 0.0), (16.0, 0.0), whole=True),
        Slider("temperature", "temperature", 0.0, 2.0, 0.8, step=0.05),
        Slider("top_p", "top-p", 0.05, 1.0, 1.0, step=0.05),
        Step("characters", "Step", most=GROWN, default=GROWN),
    ),
    surprise="At temperature 0 it takes the most probable character every time, and loops.",
    surprise_at={"temperature": 0.0},
    definition=(TokenSampler, temperature_softmax, top_p_filter),
    needs={"run": TRANSFORMER},
)
def trim_the_bet(top_k: tuple[float, float], temperature: float, top_p: float, characters: int, run) -> View:
    """The distribution of the next character, cut and refilled, and the text that grows from it."""
    letters, prompt = run.trained.tokenizer.characters, "The "
    k = round(top_k[0]) if round(top_k[0]) < 16 else len(letters)  # at the right end nothing is cut
    text = prompt + reading.continue_text(run, prompt, temperature, k, top_p, GROWN)[:characters]
    logits = reading.read_text(run, text).logits
    # temperature 0 is greedy: all of the bet on the most probable one
    trimmed = TokenSampler(temperature or 1.0, k if temperature else 1, top_p).probs(logits)
    picture = Picture(f"“{text}”; {int((trimmed > 0).sum())} characters may come next.")
    draw_trimmed(picture, logits.softmax(dim=-1), trimmed, letters, top_k[0])
    draw_characters(picture, text, reading.read_text(run, text).bits.tolist(), top=306)
    loop = reading.repeats(text)
    return View(
        picture,
        [
            Number("entropy of the trimmed bet", float(entropy(trimmed, base=2)), "bits"),
            Number("characters left", float((trimmed > 0).sum())),
            Number("repeated at the end", f"{loop} characters" if loop else "nothing"),
        ],
        reached=loop > 0,
        code=trim_lines(text, temperature or 1.0, k if temperature else 1, top_p),
    )


@app.cell
def _():
    play(trim_the_bet)
    return


@app.function
@exhibit(
    "Beams as a tree",
    ids="M13 M14 Z10",
    intro="The n-gram model looks for the most probable next word; a space ends it. Keep more beams.",
    controls=(
        Text("prompt", "text so far", "The ", most=60),
        Slider("num_beams", "beams", 1, 8, 1, step=1),
        Slider("length_penalty", "length penalty", 0.0, 2.0, 0.0, step=0.1),
    ),
    surprise="The greedy word is not the most probable one: its first letters were, and that was a dead end.",
    surprise_at={"num_beams": 8},
    definition=beam_search,
    needs={"run": NGRAM},
)
def beams_as_a_tree(prompt: str, num_beams: int, length_penalty: float, run) -> View:
    """All beams of a search for the next word, and what became of them."""
    levels = reading.beam_levels(run, prompt, num_beams, length_penalty, LONGEST_WORD)
    greedy = reading.beam_levels(run, prompt, 1, 0.0, LONGEST_WORD)[-1]
    letters, best = run.trained.tokenizer.characters, levels[-1]
    word = run.trained.tokenizer.decode(best.tokens[0, 0, : int(best.lengths[0, 0])])
    log_prob, greedy_log_prob = float(best.log_probs[0, 0]), float(greedy.log_probs[0, 0])
    picture = Picture(f"After “{prompt}” {num_beams} beams find “{word}”, of log-probability {log_prob:.2f}.")
    draw_beams(picture, levels, letters.__getitem__)
    return View(
        picture,
        [
            Number("log-probability of the best", log_prob, "nats"),
            Number("of the greedy word", greedy_log_prob, "nats"),
        ],
        reached=log_prob > greedy_log_prob + 1e-3,
        note=f"The best word: “{word.strip()}”.",
        code=(
            "from quoin.lab.parts.language_reading import beam_levels\n"
            "from quoin.lab.parts.text_models import NGRAM\n"
            f"levels = beam_levels(NGRAM.open(), {prompt!r}, {num_beams}, {length_penalty!r}, {LONGEST_WORD})\n"
            "print(float(levels[-1].log_probs[0, 0]))"
        ),
    )


@app.cell
def _():
    play(beams_as_a_tree)
    return


@app.function
@exhibit(
    "Does it sum to one?",
    ids="M14c ME6",
    intro="A model of two words, equally probable, and an end. Add up the probabilities of all sentences.",
    controls=(
        Slider("end", "probability of the end", 0.1, 0.9, 0.3, step=0.05),
        Slider("longest", "longest sentence", 1, 40, 30, step=1, unit="words"),
        Switch("printed", "as printed: no factor for the end"),
    ),
    surprise="Without the end as a factor all sentences together have 3.33: one over the probability of the end.",
    surprise_at={"printed": True},
    definition=(form_of(the_end_is_a_factor, False), form_of(the_end_is_a_factor, True)),
)
def does_it_sum_to_one(end: float, longest: int, printed: bool) -> View:
    """The probabilities of all sentences of each length, and their sum up to a length."""
    form = form_of(the_end_is_a_factor, printed)
    word, last = math.log((1 - end) / 2), math.log(end)
    steps = [torch.tensor([word] * length + [last], dtype=torch.float64) for length in range(longest + 1)]
    masses = torch.stack([2**length * form(each, length).exp() for length, each in enumerate(steps)])
    total, most = float(masses.sum()), max(1.05, 1.1 * float(masses.sum()))
    role = "printed" if printed else "model"
    picture = Picture(f"Sentences of up to {longest} words have the probability {total:.3g} together.")
    axes = picture.axes((-1, longest + 1), (0, most), x_label="words", y_label="probability")
    axes.bars(masses, role, width=0.7)
    axes.line(range(longest + 1), masses.cumsum(0), role, label="together")
    axes.line([-1, longest + 1], [1, 1], "faint", dashed=True, width=1.5, label="1")
    axes.text(longest, total, "together", role, anchor="end", dy=-8)
    name = "printed" if printed else "right"
    return View(
        picture,
        [Number("all sentences together", total, printed=printed), Number("the empty sentence", float(masses[0]))],
        reached=total > 1.001,
        code=(
            "import math, torch\n"
            "from quoin.notes.claims.translation import the_end_is_a_factor\n"
            f"word, end, total = math.log((1 - {end!r}) / 2), math.log({end!r}), 0.0\n"
            f"for length in range({longest + 1}):\n"
            "    steps = torch.tensor([word] * length + [end], dtype=torch.float64)\n"
            f"    total += 2**length * float(the_end_is_a_factor.{name}(steps, length).exp())\n"
            "print(total)"
        ),
    )


@app.cell
def _():
    play(does_it_sum_to_one)
    return


@app.function
@exhibit(
    "How far back?",
    ids="Z9.0 D1.1-27 D1.1-27c",
    intro="A recurrent network learns from what lies back only as far as the gradient reaches.",
    controls=(
        Slider("norm", "norm of the recurrent weights", 0.5, 1.5, 1.0, step=0.05),
        Switch("lstm", "an LSTM that starts open, beside it"),
    ),
    surprise="0.8 a step leaves two millionths after 60. An LSTM whose forget gate starts open keeps it.",
    surprise_at={"norm": 0.8},
    definition=(gradients_through_time, contraction_bound),
)
def how_far_back(norm: float, lstm: bool) -> View:
    """The norm of the derivative of a state by earlier ones, under its bound."""
    norms = reading.gradient_norms_by_lag(norm, False)
    bound = contraction_bound(reading.open_recurrence(norm, False).weight_hh, 60)
    opened = reading.gradient_norms_by_lag(norm, True) if lstm else None
    picture = Picture(f"Norm {norm:g}: a gradient of {norms[-1]:.2g} after 60 steps, at most {bound[-1]:.2g}.")
    draw_gradients(picture, norms, bound, opened)
    ends = {"bound": bound, "gradient": norms} | ({} if opened is None else {"LSTM": opened})
    return View(
        picture,
        [Number(f"{name} after 60 steps", float(each[-1])) for name, each in ends.items()],
        reached=float(norms[-1]) < 1e-5,
        code=(
            "import torch\n"
            "from quoin.inspect import contraction_bound\n"
            f"weight = {norm!r} * torch.eye(16, dtype=torch.float64)\n"
            "print(float(contraction_bound(weight, 60)[-1]))"
        ),
    )


@app.cell
def _():
    play(how_far_back)
    return


@app.function
@exhibit(
    "Yours: a text of your own",
    intro="An n-gram model of your text: it counts nine tenths and is judged on the last.",
    controls=(
        File("file", "a text of yours", (".txt", ".md"), 20_000),
        Slider("order", "order n", 1, MOST_ORDER, 4, step=1),
    ),
    definition=kneser_ney_ngram,
    yours=True,
)
def your_text(file: bytes | None, order: int) -> View:
    """Bits per character by order, and a sample."""
    text = reading.own_text(file) if file is not None else load_text("topics").content[:20_000]
    bits = reading.bits_by_order(text, MOST_ORDER)
    picture = Picture(f"Order {order}: {bits[order - 1][1]:.2f} bits per character on the held-out tenth.")
    draw_orders(picture, bits, order, reading.sample_text(text, order, MOST_ORDER, 119))
    return View(
        picture,
        [Number("held out, bits a character", bits[order - 1][1]), Number("counted", bits[order - 1][0])],
        note=f"{'Our example' if file is None else 'Your text'}: {len(text):,} characters, {len(set(text))} different.",
    )


@app.cell
def _():
    play(your_text)
    return


@app.cell
def _():
    rest("language")
    return


if __name__ == "__main__":
    app.run()
