"""What language models and translators can be asked: a text, a sentence; of several runs side by side, one through all
of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch

from quoin.errors import UserError
from quoin.generate import TokenSampler, greedy_token
from quoin.lab.parts.controls import Slider, Step, Text
from quoin.lab.parts.exhibit import Exhibit, Number, View
from quoin.lab.parts.open_runs import run_names
from quoin.lab.parts.picture import Picture
from quoin.lab.parts.run_data import test_sources, test_text
from quoin.lab.parts.run_exhibit import run_exhibit
from quoin.losses import cross_entropy
from quoin.runs import Run
from quoin.runs.inspect_text import token_names

__all__ = ["language_exhibits", "translation_exhibits", "typed_sentence", "typed_text"]

Answer = TypeVar("Answer")
MOST_TOKENS = 400
NAMED = 45  # tokens that stand under their bars
LINE, LINES = 62, 13  # characters of a line of generated text, and lines that are shown


def language_exhibits(runs: Sequence[Run]) -> list[Exhibit]:
    """What a text costs under each run, and how each goes on."""
    given = typed_text(runs[0])
    names = run_names([run.path for run in runs])

    def next_token(text: str) -> View:
        read, problems = _each(runs, lambda run: _read(run, text))
        if len(runs) == 1:
            return _next_of_one(runs[0], text, *read[0][1])
        picture = Picture(f"Bits of each token of {text!r} under {len(read)} models.", height=150 * len(read) + 40)
        for number, (run, (words, bits, probs)) in enumerate(read):
            title = f"{names[runs.index(run)]}: {float(bits.sum()) / len(text):.3g} bits per character"
            _bits(picture, title, words, bits, (50, 30 + 150 * number, 350, 96))
            _next(picture, run, probs, (456, 30 + 150 * number, 176, 96), 5)
        return View(picture, note="; ".join(problems))

    def goes_on(text: str, temperature: float, top_p: float, length: int) -> View:
        said, problems = _each(runs, lambda run: _generated(run, text, temperature, top_p, length))
        picture = Picture(f"It goes on: {'; '.join(more for _, more in said)}", height=0)
        top = 24
        for run, more in said:
            if len(runs) > 1:
                picture.text(10, top, names[runs.index(run)], role="faint")
                top += 22
            for line in _wrapped(text + more, LINE)[: LINES if len(runs) == 1 else 4]:
                picture.text(10, top, line, size=16)
                top += 21
            top += 12
        picture.height = max(top, 120)
        return View(picture, [Number("tokens", length)], note="; ".join(problems))

    heat = Slider("temperature", "temperature (0: the most probable)", 0.0, 2.0, 0.8)
    nucleus = Slider("top_p", "nucleus (top-p)", 0.05, 1.0, 0.9)
    step = Step("length", "8 tokens more", 200, 40, by=8)
    intro = "Step a few tokens, then change how they are sampled: the random numbers stay the same."
    return [
        run_exhibit(next_token, "What comes next?", "Type: each token costs bits.", (given,), runs),
        run_exhibit(goes_on, "How does it go on?", intro, (given, heat, nucleus, step), runs),
    ]


def _each(runs: Sequence[Run], ask: Callable[[Run], Answer]) -> tuple[list[tuple[Run, Answer]], list[str]]:
    """What each run answers, and what is wrong for those that cannot read it: of one alone, that is the error."""
    found, problems = [], []
    for run in runs:
        try:
            found.append((run, ask(run)))
        except UserError as error:  # a character that one run knows another may not
            if len(runs) == 1:
                raise
            problems.append(f"{run.path.name} cannot read it: {error}")
    return found, problems


def _generated(run: Run, text: str, temperature: float, top_p: float, length: int) -> str:
    trained: Any = run.trained
    sampler = TokenSampler(temperature or 1.0, top_p=top_p, generator=trained.generator(0))
    choose = sampler if temperature > 0 else greedy_token
    return trained.generate(text, max_tokens=length, choose=choose) if length else ""


def _next_of_one(run: Run, text: str, words: list[str], bits: torch.Tensor, probs: torch.Tensor) -> View:
    picture = Picture(f"Bits of each token of {text!r}, and the most probable next ones.", height=450)
    _bits(picture, "", words, bits, (50, 12, 580, 200))
    _next(picture, run, probs, (50, 276, 580, 130), 10)
    whole = float(bits.sum())
    return View(picture, [Number("bits per character", whole / len(text)), Number("all bits", whole)])


@torch.no_grad()
def _read(run: Run, text: str) -> tuple[list[str], torch.Tensor, torch.Tensor]:
    """The tokens of a text, the bits that each costs, and the distribution of the token after them."""
    trained: Any = run.trained
    tokens = trained.tokenizer.encode(text)
    if not 1 <= len(tokens) <= MOST_TOKENS:
        raise UserError(f"expected a text of 1 to {MOST_TOKENS} tokens, got {len(tokens)}; change it")
    model, first = trained.token_model(), trained.encode_prompt("")[0]
    logits, _ = model.decode_step(model.init_cache(1, len(tokens) + 1), torch.cat([first, tokens])[None])
    bits = cross_entropy(logits[0, :-1].double(), tokens) / math.log(2)
    return token_names(trained.tokenizer, tokens), bits, logits[0, -1].double().softmax(-1)


def _bits(
    picture: Picture, title: str, words: list[str], bits: torch.Tensor, box: tuple[float, float, float, float]
) -> None:
    most = max(float(bits.max()), 1.0)
    axes = picture.axes((-0.5, len(words) - 0.5), (0, most), y_label="bits", x_ticks=False, box=box, title=title)
    # Names stand where they have room: a character needs some 8 units of the sheet.
    named = max(map(len, words)) * 8 <= box[2] / len(words)
    labels = [f"{word}: {float(cost):.2f} bits" for word, cost in zip(words, bits)]
    axes.bars(bits, "model", names=words if named and len(words) <= NAMED else [], labels=labels)


def _next(picture: Picture, run: Run, probs: torch.Tensor, box: tuple[float, float, float, float], most: int) -> None:
    trained: Any = run.trained
    best = probs.topk(min(most, len(probs)))
    names = [name[:8] for name in token_names(trained.tokenizer, best.indices)]
    axes = picture.axes((-0.5, len(names) - 0.5), (0, 1), y_label="probability", x_ticks=False, box=box,
                        title="what comes next")  # fmt: skip
    axes.bars(best.values, "hidden", names=names)


def _wrapped(text: str, width: int) -> list[str]:
    return [line[at : at + width] for line in text.splitlines() for at in range(0, max(len(line), 1), width)]


def typed_text(run: Run) -> Text:
    """A text to type; at first the beginning of the run's own test text, whose characters it knows."""
    return Text("text", "your text", test_text(run), most=1000, rows=3)


def typed_sentence(run: Run) -> Text:
    """A sentence to type; at first one of the run's own test sentences."""
    return Text("sentence", "your sentence", next(iter(test_sources(run)), "")[:100], most=100)


def translation_exhibits(runs: Sequence[Run]) -> list[Exhibit]:
    """A sentence through each run, by greedy or beam search."""
    names = run_names([run.path for run in runs])

    def translate(sentence: str, num_beams: int) -> View:
        said, problems = _each(runs, lambda run: _translated(run, sentence, num_beams))
        picture = Picture(f"{sentence} becomes {'; '.join(text for _, text in said)}.", height=80 + 60 * len(said))
        picture.text(20, 40, sentence, role="hand", size=22)
        for number, (run, text) in enumerate(said):
            if len(runs) > 1:
                picture.text(20, 76 + 60 * number, names[runs.index(run)], role="faint")
            picture.text(20, 102 + 60 * number, f"→ {text}", role="model", size=22)
        numbers = [Number("characters", len(said[0][1]))] if len(runs) == 1 else []
        return View(picture, numbers, note="; ".join(problems))

    beams = Slider("num_beams", "number of beams (1: greedy)", 1, 8, 1, step=1)
    intro = "Type a sentence of the kind it learnt."
    return [run_exhibit(translate, "How does it translate?", intro, (typed_sentence(runs[0]), beams), runs)]


def _translated(run: Run, sentence: str, num_beams: int) -> str:
    trained: Any = run.trained
    found = trained.predict([sentence], num_beams=num_beams)[0]
    return found.text if found.ended else f"{found.text} … (cut: it has no end)"
