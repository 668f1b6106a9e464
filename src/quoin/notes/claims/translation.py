"""The law of a translation: each next word by a softmax, the whole as a product with its end, and a decoder that looks back."""

import math
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from quoin.generate import beam_search, greedy, sampled
from quoin.layers import gru_cell_definition, lstm_cell_definition, recurrent_weights
from quoin.models import (
    BahdanauDecoder,
    PlainDecoder,
    RecurrentEncoder,
    Seq2Seq,
    bahdanau_decoder_definition,
    step_log_probs,
    translation_log_prob,
)
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.rounding import gap, randint, roundings
from quoin.tensor import valid_mask

BEGIN, END = 0, 1  # marks of the targets here; the words follow
KINDS = (nn.GRU, nn.LSTM, nn.RNN)
ROUNDING, SOURCE = roundings(512), "512 float64 roundings"


def small_model(generator: torch.Generator, words: int, kind: type = nn.GRU, *, looks: bool = True, sharp: float = 3.0) -> Seq2Seq:
    """A random model in float64 of this many target words; `sharp` scores make its laws far from uniform."""
    encoder = RecurrentEncoder(kind, 5, 3, 4, generator=generator)
    sizes = (kind, 2 + words, 3, 4)
    decoder = (
        BahdanauDecoder(*sizes, encoder.width, silent=1, generator=generator)
        if looks
        else PlainDecoder(*sizes, silent=1, generator=generator)
    )
    model = Seq2Seq(encoder, decoder).double().eval()
    with torch.no_grad():
        decoder.scores.weight.mul_(sharp)
        decoder.scores.bias.copy_(torch.randn(decoder.scores.bias.shape, generator=generator, dtype=torch.float64))
    return model


def sources(generator: torch.Generator, batch: int = 1) -> Tensor:
    return torch.randint(5, (batch, randint(1, 5, generator)), generator=generator)


def all_targets(words: int, longest: int) -> tuple[Tensor, Tensor]:
    """Every sentence of at most `longest` words with its end, padded, and the lengths with the end."""
    found = [each for length in range(longest + 1) for each in product(range(2, 2 + words), repeat=length)]
    rows = torch.tensor([[*each, *[END] * (longest + 1 - len(each))] for each in found])
    return rows, torch.tensor([len(each) + 1 for each in found])


@claim("M13", "the law of the next word is a softmax of scores over the words and the end, the same read at once and word by word")
def next_word_is_a_softmax(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 12
    for case in range(cases):
        words = randint(1, 6, generator)
        model = small_model(generator, words, KINDS[case % 3], looks=case % 2 == 0)
        source = sources(generator, 3)
        target = torch.randint(1, 2 + words, (3, randint(1, 6, generator)), generator=generator)
        read = torch.cat([torch.full_like(target[:, :1], BEGIN), target], dim=1)
        with torch.no_grad():
            law = step_log_probs(model, source, read).exp()
            worst = max(worst, gap(law.sum(dim=-1), torch.ones(read.shape, dtype=torch.float64)), float(law[..., BEGIN].max()))
            state = model.start(model.encode(source))
            for place in range(read.shape[1]):
                scores, state = model.step(state, read[:, place : place + 1])
                weights = scores[:, 0, 1:].exp()  # the formula itself, over V_y and the end
                worst = max(worst, gap(law[:, place, 1:], weights / weights.sum(dim=-1, keepdim=True)))
    return Evidence("largest error of the law, or of its sum", worst, ROUNDING, SOURCE, cases)


@claim("M14", "the chance of a translation is the product of those of its words and its end, and so often it is drawn")
def product_of_steps(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 10
    for case in range(cases):
        words = randint(1, 4, generator)
        model = small_model(generator, words, KINDS[case % 3], looks=case % 2 == 0)
        source = sources(generator)
        rows, lengths = all_targets(words, 2)
        with torch.no_grad():
            together = translation_log_prob(model, source.expand(len(rows), -1), rows, begin=BEGIN, target_lengths=lengths)
            for row, length, found in zip(rows, lengths.tolist(), together):
                state, last, said = model.start(model.encode(source)), BEGIN, 1.0
                for word in row[:length].tolist():
                    scores, state = model.step(state, torch.tensor([[last]]))
                    said, last = said * float(scores[0, 0].softmax(dim=-1)[word]), word
                worst = max(worst, abs(float(found.exp()) - said) / ROUNDING)
    model, draws = small_model(generator, 2, sharp=1.0), 4000
    rows, lengths = all_targets(2, 2)
    source = torch.tensor([[0, 3, 1]])
    with torch.no_grad():
        chances = translation_log_prob(model, source.expand(len(rows), -1), rows, begin=BEGIN, target_lengths=lengths).exp()
    many = source.expand(draws, -1)
    found = sampled(model, model.start(model.encode(many)), torch.full((draws, 1), BEGIN), max_tokens=4, end=END, generator=generator)
    for row, length, chance in zip(rows, lengths.tolist(), chances.tolist()):
        share = float((found.tokens[:, :length] == row[:length]).all(dim=1).double().mean())
        worst = max(worst, abs(share - chance) / (6 * math.sqrt(chance * (1 - chance) / draws) + 12 / draws))
    return Evidence("largest error over its bound", worst, 1.0, f"{SOURCE}; Bernstein's bound for what is drawn", cases + len(rows))


def with_the_end(steps: Tensor, length: int) -> Tensor:
    """All factors, the last being that of the end."""
    return steps[: length + 1].sum()


def without_the_end(steps: Tensor, length: int) -> Tensor:
    """As many factors as there are words."""
    return steps[:length].sum()


def mass(form, model: Seq2Seq, source: Tensor, words: int, longest: int) -> tuple[float, float]:
    """The chances of all sentences up to a length by `form`, added up, and the chance that none of them is said."""
    rows, lengths = all_targets(words, longest)
    read = torch.cat([torch.full_like(rows[:, :1], BEGIN), rows[:, :-1]], dim=1)
    with torch.no_grad():
        laws = step_log_probs(model, source.expand(len(rows), -1), read)
    steps = laws.gather(-1, rows.unsqueeze(-1)).squeeze(-1)
    total = sum(float(form(each, length - 1).exp()) for each, length in zip(steps, lengths.tolist()))
    full = lengths == longest + 1
    goes_on = (1 - laws[full, longest, END].exp()) * steps[full, :longest].sum(dim=1).exp()
    return total, float(goes_on.sum())


def _check_mass(form, generator: torch.Generator) -> Evidence:
    worst, said, cases = 0.0, "", 8
    for case in range(cases):
        words, longest = randint(1, 3, generator), randint(0, 4, generator)
        model = small_model(generator, words, KINDS[case % 3], looks=case % 2 == 0)
        total, rest = mass(form, model, sources(generator), words, longest)
        if abs(total + rest - 1) > worst:
            worst, said = abs(total + rest - 1), f"{words} words, up to {longest} of them: {total:.4g} and {rest:.4g} for the longer ones"
    model = small_model(generator, 2)  # two words of chance 0.35 and the end of 0.3, whatever came before
    decoder: Any = model.decoder
    with torch.no_grad():
        decoder.scores.weight.zero_()
        decoder.scores.bias.copy_(torch.tensor([0.3, 0.35, 0.35], dtype=torch.float64).log())
    total, rest = mass(form, model, sources(generator), 2, 7)
    worst = max(worst, abs(total - (1 - 0.7**8)), abs(rest - 0.7**8))
    if total > 1:
        said = f"two words of chance 0.35, end 0.3: the sentences of at most 7 words have {total:.4g} together, all of them 3.333"
    return Evidence("largest |mass of all sentences - 1|", worst, ROUNDING, SOURCE, cases + 1, counterexample=said)


@claim("M14c", "with the end as a factor the chances of all translations sum to one, up to what never ends, which vanishes geometrically")
def normalised(generator: torch.Generator) -> Evidence:
    worst = _check_mass(with_the_end, generator).value / ROUNDING
    for _ in range(3):  # the end is sure to come: its chance is bounded from below
        model = small_model(generator, 2, sharp=0.5)
        decoder: Any = model.decoder
        with torch.no_grad():  # |scores| <= |W| |(s, c)| + |b|, and all entries of s and c lie in [-1, 1]
            reach = float((decoder.scores.weight.abs().sum(dim=1) + decoder.scores.bias.abs()).max())
        least = math.exp(-reach) / (math.exp(-reach) + 2 * math.exp(reach))
        for longest in (1, 3, 6):
            _, rest = mass(with_the_end, model, torch.tensor([[1, 2]]), 2, longest)
            worst = max(worst, rest / (1 - least) ** (longest + 1))
    return Evidence("largest error, or share that never ends, over its bound", worst, 1.0, f"{SOURCE}; the least chance of an end", 18)


@claim(
    "ME6",
    "the product has a factor for the end: without it the chances of all translations add up to more than one",
    right=with_the_end,
    printed=without_the_end,
)
def the_end_is_a_factor(form, generator: torch.Generator) -> Evidence:
    return _check_mass(form, generator)


@claim("Z11.23", "before each word the decoder pools the source by additive attention of its last state, its keys projected once")
def looks_before_each_word(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 10
    for case in range(cases):
        kind, cell = ((nn.GRU, gru_cell_definition), (nn.LSTM, lstm_cell_definition))[case % 2]
        model = small_model(generator, 4, kind)
        decoder: Any = model.decoder
        source = torch.randint(5, (3, 6), generator=generator)
        lengths = torch.tensor([6, randint(1, 6, generator), 1])
        target = torch.randint(6, (3, randint(1, 5, generator)), generator=generator)
        with torch.no_grad():
            read = model.encode(source, lengths)
            found = decoder.step(decoder.start(read), target)
            score = decoder.attention.score
            right = bahdanau_decoder_definition(
                decoder.codes(target),
                read.memory,
                tuple(each[0] for each in read.state.tensors),
                score.query_weight,
                score.key_weight,
                score.output_weight,
                cell,
                recurrent_weights(decoder.cell)[0][0],
                valid_mask(lengths, 6).unsqueeze(1),
            )
            logits = torch.cat([right.output, right.contexts], dim=-1) @ decoder.scores.weight.mT + decoder.scores.bias
            unseen = ~valid_mask(lengths, 6).unsqueeze(1).expand_as(found.weights)
            worst = max(worst, gap(found.logits[..., 1:], logits), gap(found.weights, right.weights))
            worst = max(worst, gap(found.weights.sum(dim=-1), torch.ones(target.shape, dtype=torch.float64)))
            worst = math.inf if (found.weights[unseen] != 0).any() else worst
            state = decoder.start(read)
            score.key_weight.fill_(math.nan)  # the keys are projected: nothing that follows may need this any more
            worst = max(worst, gap(decoder.step(state, target).logits[..., 1:], found.logits[..., 1:]))
    return Evidence("largest difference from the definition", worst, ROUNDING, SOURCE, cases)


class Lured:
    """After word 2, of chance 0.5, all is open; after word 3, of 0.4, the end is sure: the likeliest sentence begins with the other."""

    laws = torch.tensor([[0, 0.1, 0.5, 0.4], [0, 1, 0, 0], [0, 0.3, 0.35, 0.35], [0, 1, 0, 0]], dtype=torch.float64)

    def select(self, rows: Tensor) -> "Lured":
        return self  # what comes next depends on the last word alone

    def step(self, state: "Lured", tokens: Tensor) -> tuple[Tensor, "Lured"]:
        return self.laws[tokens].log(), self


@claim("Z10", "a beam as wide as there are sentences finds the likeliest of all, which going greedily can miss")
def wide_beams_miss_nothing(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 16
    for case in range(cases):
        words, longest = randint(2, 3, generator), 3
        model = small_model(generator, words, KINDS[case % 3], looks=case % 2 == 0)
        source = sources(generator)
        rows, lengths = all_targets(words, longest - 1)
        with torch.no_grad():
            chances = translation_log_prob(model, source.expand(len(rows), -1), rows, begin=BEGIN, target_lengths=lengths)
        prompt = torch.tensor([[BEGIN]])
        state = model.start(model.encode(source))
        found = beam_search(model, state, prompt, width=(words + 1) ** longest, max_tokens=longest, end=END)
        ended = found.ended[0] & found.log_probs[0].isfinite()
        best = int(ended.nonzero()[0])
        length = int(found.lengths[0, best])
        worst = max(worst, abs(float(found.log_probs[0, best] - chances.max())), float(int(ended.sum()) != len(rows)))
        likeliest = rows[chances.argmax(), : int(lengths[chances.argmax()])]
        worst = worst if found.tokens[0, best, :length].tolist() == likeliest.tolist() else math.inf
    lured, prompt = Lured(), torch.tensor([[BEGIN]])
    went = greedy(lured, lured, prompt, max_tokens=3, end=END)
    wide = beam_search(lured, lured, prompt, width=2, max_tokens=3, end=END)
    if went.tokens[0, 0] != 2 or wide.tokens[0, 0].tolist()[:2] != [3, END] or not went.log_probs[0] < math.log(0.4) - 0.1:
        worst = math.inf
    worst = max(worst, abs(float(wide.log_probs[0, 0]) - math.log(0.4)))
    return Evidence("largest difference from the best by enumeration", worst, 10 * ROUNDING, SOURCE, cases + 1)
