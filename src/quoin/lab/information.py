# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""Information and coding: lengths that no code beats, the price of a wrong belief. Area 16 of the notes."""

import marimo

app = marimo.App(width="full", app_title="Information and coding · Quoin lab")

with app.setup:
    import math

    import torch

    from quoin.info import (
        StaticModel,
        arithmetic_encode_definition,
        arithmetic_interval,
        context_mixing_encode,
        convert_base,
        entropy,
        huffman_code,
        kraft_sum,
        mutual_information,
        mutual_information_definition,
        self_information,
        shannon_code,
    )
    from quoin.lab.catalog import PAGES
    from quoin.lab.parts import (
        Choice,
        DragPoints,
        File,
        Handle,
        Number,
        Paint,
        Picture,
        Step,
        Switch,
        Text,
        View,
        digits,
        exhibit,
        head,
        play,
        printed_choice,
        rest,
    )
    from quoin.lab.parts.bumps import GRID, TWO_BUMPS, descended_bump, normal_bars
    from quoin.lab.parts.claim_forms import form_of
    from quoin.lab.parts.code_pictures import (
        draw_bumps,
        draw_density_entropies,
        draw_intervals,
        draw_joint,
        draw_overlap,
        draw_strips,
        draw_tree,
        draw_weights,
    )
    from quoin.lab.parts.coded_text import WAYS, coded_sizes, coded_text, letter_distribution
    from quoin.lab.parts.densities import as_density, with_a_point_hole
    from quoin.notes.claims.coding import shannon_length_bound
    from quoin.notes.claims.information import (
        cross_entropy_in_nats_and_bits,
        entropy_in_nats_and_bits,
        mutual_information_is_a_mean,
    )
    from quoin.notes.claims.relative_entropy import zeros_in_a_divergence
    from quoin.prob import kl_divergence_definition

    SYMBOLS, FIBONACCI = "abcdefgh", (1, 1, 2, 3, 5, 8, 13, 21)


@app.cell
def _():
    head("information")
    return


@app.function
@exhibit(
    "Halve it",
    ids="Z13.7 Z13.11 M16 M20 M21 M21h ME1 ME2",
    intro="Drag the bars. Huffman joins the two rarest again and again; a word is the way to its leaf.",
    controls=(
        DragPoints("weights", "bars", tuple(enumerate((*FIBONACCI[:-1], 8))), (0, 0.1), (7, 32), 8, 8),
        Choice("code", "code", ("Huffman", "Shannon")),
        Switch("printed", "as printed: nats = 1.44 bits; bound by the item's number"),
    ),
    surprise="Near Fibonacci's weights (1 1 2 3 5 8 13 21) Huffman's rarest word is longer than −log₂ p + 1. "
    "Shannon's never is; Huffman's mean is the least all the same.",
    surprise_at={"weights": [[place, weight] for place, weight in enumerate(FIBONACCI)]},
    definition=(huffman_code, shannon_code),
)
def halve_it(weights: list[tuple[float, ...]], code: str, printed: bool) -> View:
    """The tree of a code for eight symbols whose weights the reader drags."""
    heights = torch.tensor([weight for _, weight in weights], dtype=torch.float64)
    p = heights / heights.sum()
    words = (huffman_code if code == "Huffman" else shannon_code)(p)
    bits, mean = entropy(p, base=2), float(words.expected_length(p))
    allowed = form_of(shannon_length_bound, printed)(p)
    lengths = [length or 0 for length in words.lengths]
    over = [length > most + 1e-9 for length, most in zip(lengths, allowed)]
    picture = Picture(
        f"{code}'s code of eight symbols: H = {float(bits):.3f} bits, mean length {mean:.3f}; words "
        + ", ".join(f"{name} {word}" for name, word in zip(SYMBOLS, words.codewords)),
        height=488,
    )
    draw_weights(picture, weights, SYMBOLS)
    role = "printed" if printed else "model"
    notes = [
        (f"{length} {'>' if high else '≤'} {digits(most)}", "change" if high else role)
        for length, most, high in zip(lengths, allowed, over)
    ]
    draw_tree(picture, words, SYMBOLS, notes, (46, 172, 584, 222))
    bound = "1 − log₂ of the item's number" if printed else "1 − log₂ p"
    below = f"length against {bound}; Kraft sum {float(kraft_sum(words.lengths)):.3g}"
    picture.text(338, 465, below, anchor="middle", role="faint", size=13)
    form = form_of(entropy_in_nats_and_bits, printed)
    return View(
        picture,
        [
            Number("mean length", mean, "bits"),
            Number("entropy", float(bits), "bits"),
            Number("entropy", float(form(bits)), "nats", printed=printed),
        ],
        reached=code == "Huffman" and not printed and any(over),
        code=(
            "import torch\n"
            f"from quoin.info import {code.lower()}_code\n"
            f"weights = torch.tensor({heights.tolist()!r}, dtype=torch.float64)\n"
            "p = weights / weights.sum()\n"
            f"print(float({code.lower()}_code(p).expected_length(p)))"
        ),
    )


@app.cell
def _():
    play(halve_it)
    return


@app.function
@exhibit(
    "Your text, four ways",
    ids="M17 D1.4-13 ME3",
    intro="Type. Each character is as wide as the bits it takes. Try aaaaaaab.",
    controls=(
        Text("text", "text", "abracadabra", 48),
        Switch("printed", "as printed: nats = 1.44 bits"),
    ),
    surprise="Huffman pays a whole bit even for what is nearly certain. An arithmetic code pays its surprise, "
    "a fifth of a bit.",
    surprise_at={"text": "aaaaaaab"},
    definition=(arithmetic_encode_definition,),
)
def four_ways(text: str, printed: bool) -> View:
    """A text by bytes, by Huffman's code, by an arithmetic code, and by context mixing."""
    found = coded_text(shown := text or "a")
    each = {way: sum(found.bits[way]) / len(shown) for way in WAYS}
    _, distribution = letter_distribution(shown)
    nats = form_of(cross_entropy_in_nats_and_bits, printed)(entropy(distribution, base=2))
    picture = Picture(
        f"{len(shown)} characters: " + "; ".join(f"{way} {found.sent[way]} bits sent" for way in WAYS) + "."
    )
    totals = {way: f"{digits(each[way])} bits a character, {found.sent[way]} bits sent" for way in WAYS}
    draw_strips(picture, shown, found.bits, totals, ("faint", "model", "model", "hidden"))
    return View(
        picture,
        [
            Number("arithmetic", each["arithmetic"], "bits each"),
            Number("Huffman", each["Huffman"], "bits each"),
            Number("arithmetic", float(nats), "nats each", printed=printed),
        ],
        reached=each["arithmetic"] < 0.999 and found.sent["arithmetic"] < found.sent["Huffman"],
        code=(
            "import torch\n"
            "from quoin.info import entropy\n"
            f"text = {shown!r}\n"
            "counts = torch.tensor([text.count(letter) for letter in set(text)], dtype=torch.float64)\n"
            "print(float(entropy(counts / counts.sum(), base=2)))"
        ),
        note=("All four were decoded back." if found.read_back else "A code was NOT read back.")
        + " The letters' frequencies are not counted; context mixing needs none and learns as it goes.",
    )


@app.cell
def _():
    play(four_ways)
    return


@app.function
@exhibit(
    "Into the interval",
    ids="M20 Z13.6 D1.4-8",
    intro="Step through the letters: each narrows the interval to its own part.",
    controls=(Text("text", "message", "abacab", 12), Step("step", "step", 12)),
    surprise="The width is the message's probability, so −log₂ of it is what the message costs.",
    surprise_at={"step": 6},
    definition=(arithmetic_interval, arithmetic_encode_definition),
)
def into_the_interval(text: str, step: int) -> View:
    """The interval of a message, letter by letter, and the bits of a number inside of it."""
    message = text or "a"
    letters, distribution = letter_distribution(message)
    taken = [letters.index(letter) for letter in message][:step]
    low, width = arithmetic_interval(taken, StaticModel(distribution))
    word = arithmetic_encode_definition(taken, StaticModel(distribution))
    bits = float(self_information(torch.tensor(float(width), dtype=torch.float64), base=2))
    first = max(0, len(taken) - 5)
    picture = Picture(
        f"After {message[:step]!r} it is [{float(low):.5f}, {float(low + width):.5f}); {len(word)} bits name it.",
        height=330,
    )
    draw_intervals(picture, [distribution.tolist()] * (len(taken) - first + 1), taken[first:], letters, first + 1)
    return View(
        picture,
        [
            Number("width", float(width)),
            Number("−log₂ of the width", bits, "bits"),
            Number("bits that name it", f"0.{word}" if word else "none needed"),
        ],
        reached=len(taken) >= 3 and abs(float(width / math.prod(map(float, distribution[taken]))) - 1) < 1e-6,
        code=(
            "import torch\n"
            "from quoin.info import StaticModel, arithmetic_interval\n"
            f"p = torch.tensor({distribution.tolist()!r}, dtype=torch.float64)  # of {''.join(letters)!r}\n"
            f"print(float(arithmetic_interval({taken!r}, StaticModel(p)).width))"
        ),
        note=f"from {float(low):.6f} up to {float(low + width):.6f}; letters by their frequency in the message",
        steps=len(message),
    )


@app.cell
def _():
    play(into_the_interval)
    return


@app.function
@exhibit(
    "Two ways to be wrong",
    ids="M23 M24 Z13.21 Z13.22 Z13.23 Z13.24 DE66 ZE35",
    intro="Drag Q, or let it descend. Drag the hole under a bump: there Q is 0.",
    controls=(
        Handle("q", "Q: middle and width", (1.2, 1.4), (-5.0, 0.4), (5.0, 4.0)),
        Handle("hole", "hole", (6.6, 0.0), (-6.6, 0.0), (6.6, 0.0)),
        Choice("way", "descend on", ("KL(Q‖P)", "KL(P‖Q)")),
        Step("steps", "descend", 40, by=2, interval=120),
        printed_choice({"DE66": "0 log(0/0) = 0 alone", "ZE35": "∞ where q = 0 at one point"}),
    ),
    surprise="KL(Q‖P) picks a side, KL(P‖Q) covers both. A hole in Q makes KL(P‖Q) infinite, the other stays finite.",
    surprise_at={"steps": 40},
    definition=kl_divergence_definition,
)
def two_ways(q: tuple[float, float], hole: tuple[float, float], way: str, steps: int, printed: str) -> View:
    """One bump for two, by either order of the divergence."""
    mean, std = descended_bump(*q, steps, way == "KL(P‖Q)")
    bars = torch.where((GRID - hole[0]).abs() < 0.25, 0.0, normal_bars(mean, std))
    bars = bars / bars.sum()
    form = form_of(zeros_in_a_divergence, printed == "DE66")
    covering, picking = (float(convert_base(form(*pair), 2)) for pair in ((TWO_BUMPS, bars), (bars, TWO_BUMPS)))
    inside = float(TWO_BUMPS[(GRID - mean).abs() <= 2 * std].sum())
    picture = Picture(
        f"Q around {mean:.2f} with deviation {std:.2f}: KL(P‖Q) = {digits(covering)}, KL(Q‖P) = {digits(picking)} bits."
    )
    sizes = draw_bumps(picture, TWO_BUMPS, bars)
    sizes.line([mean - std, mean + std], [std, std], "model", width=1.5)
    sizes.arrow((mean, std), descended_bump(*q, steps + 3, way == "KL(P‖Q)"), "change", label=f"descent on {way}")
    sizes.line([q[0], mean], [q[1], std], "change", width=1, dashed=True)
    sizes.handle("q", *q, label="Q: middle and width")
    sizes.handle("hole", *hole, label="hole", along="x")
    sizes.text(min(hole[0], 6.2), 0, "hole", "hand", anchor="middle", dy=-12)
    last, note = Number("P within Q's ±2σ", inside), ""
    if printed == "ZE35":
        found = with_a_point_hole(mean, std, hole[0])
        last = Number("infinite, by the rule", "yes" if found.infinite_printed else "no", printed=True)
        note = f"As densities, with q = 0 at the hole's middle alone: KL(P‖Q) = {digits(found.kl)} bits."
    return View(
        picture,
        [
            Number("KL(P‖Q)", covering, "bits", printed=printed == "DE66"),
            Number("KL(Q‖P)", picking, "bits", printed=printed == "DE66"),
            last,
        ],
        note=note,
        reached=steps > 0 and inside < 0.6,
        code=(
            "import torch\n"
            "from quoin.info import kl_divergence\n"
            f"p = torch.tensor({[float(f'{each:.4g}') for each in TWO_BUMPS.tolist()]!r}, dtype=torch.float64)\n"
            f"q = torch.tensor({[float(f'{each:.4g}') for each in bars.tolist()]!r}, dtype=torch.float64)\n"
            "print(float(kl_divergence(p / p.sum(), q / q.sum(), base=2)))"
        ),
    )


@app.cell
def _():
    play(two_ways)
    return


@app.function
@exhibit(
    "What do they share?",
    ids="Z13.14 Z13.15 Z13.16 Z13.17 Z13.18 Z13.19 Z13.20 Z13.25 ZE33 ZE32",
    intro="Click cells to give a pair (x, y) more weight, or none. The bars overlap by what X and Y share.",
    controls=(
        Paint("table", "joint table", 3, 3, 5, (4, 1, 0, 1, 3, 1, 0, 1, 4)),
        printed_choice({"ZE33": "p log(...) averaged under p(x) p(y)", "ZE32": "H(X) ≤ H(X, Y) for densities too"}),
    ),
    surprise="The printed expectation gives about a tenth: it weights each pair twice.",
    surprise_at={"printed": "ZE33"},
    definition=(mutual_information_definition, mutual_information),
)
def what_do_they_share(table: list[int], printed: str) -> View:
    """Entropies of a joint table of three times three."""
    weights = torch.tensor(table, dtype=torch.float64).reshape(3, 3)
    weights = weights if weights.sum() else torch.ones_like(weights)
    joint = weights / weights.sum()
    h_x, h_y = float(entropy(joint.sum(dim=1), base=2)), float(entropy(joint.sum(dim=0), base=2))
    right = float(mutual_information(joint, base=2))
    shared = float(convert_base(form_of(mutual_information_is_a_mean, printed == "ZE33")(joint), 2))
    picture = Picture(f"A joint table: H(X) = {h_x:.3f}, H(Y) = {h_y:.3f}, shared {right:.3f} bits.")
    draw_joint(picture, table, joint)
    second, note = Number("by the expectation", shared, "bits", printed=printed == "ZE33"), ""
    if printed == "ZE32":
        found = as_density(tuple(map(tuple, joint.tolist())))
        draw_density_entropies(picture, *found[:3])
        second = Number("h(X, Y) below max(h(X), h(Y)) by", found.breach_printed, "bits", printed=True)
        note = "The table as a density: each cell's probability, evenly over its ninth of the unit square. "
    else:
        draw_overlap(picture, h_x, h_y, right, shared if printed == "ZE33" else None)
    return View(
        picture,
        [Number("I(X; Y)", right, "bits"), second, Number("H(X, Y)", h_x + h_y - right, "bits")],
        reached=right > 0.05 and shared < 0.15 * right,
        code=(
            "import torch\n"
            "from quoin.info import mutual_information\n"
            f"weights = torch.tensor({weights.tolist()!r}, dtype=torch.float64)\n"
            "print(float(mutual_information(weights / weights.sum(), base=2)))"
        ),
        note=note + ("" if any(table) else "An empty table counts as an even one."),
    )


@app.cell
def _():
    play(what_do_they_share)
    return


@app.function
@exhibit(
    "Yours: a file, squeezed",
    ids="M17",
    intro="A file of at most 20 kB, beside zlib and xz. Until then: the first sentences of this lab's pages.",
    controls=(File("file", "file", (".txt", ".csv", ".md", ".py", ".json"), 20_000),),
    definition=context_mixing_encode,
    yours=True,
)
def your_file(file: bytes | None) -> View:
    """A file's size as it is, by its letters' entropy, by zlib, by xz and by context mixing."""
    sizes = coded_sizes(content := file or " ".join(page.sentence for page in PAGES.values()).encode()[:300])
    picture = Picture("; ".join(f"{name} {size:.0f} bytes" for name, size in sizes.items()), height=320)
    axes = picture.axes((-0.6, 4.6), (0, 1.1 * len(content)), box=(60, 14, 570, 260), x_ticks=False, y_label="bytes")
    axes.bars(sizes.values(), "model", names=list(sizes))
    return View(
        picture,
        [
            Number("context mixing", 8 * sizes["context mixing"] / len(content), "bits a byte"),
            Number("zlib", 8 * sizes["zlib"] / len(content), "bits a byte"),
            Number("xz", 8 * sizes["xz"] / len(content), "bits a byte"),
        ],
        note=f"{len(content):,} bytes. A file is not in the link and does not leave this computer.",
    )


@app.cell
def _():
    play(your_file)
    return


@app.cell
def _():
    rest("information")
    return


if __name__ == "__main__":
    app.run()
