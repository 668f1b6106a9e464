"""The distribution of a translation: a softmax for each next word, their product with EOS, and attention to the
source."""

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.generate import beam_search, greedy_search, sample_tokens
from quoin.layers import gru_cell_definition, lstm_cell_definition, recurrent_weights
from quoin.models import (
    BahdanauDecoder,
    RecurrentEncoder,
    RNNDecoder,
    Seq2Seq,
    bahdanau_decoder_definition,
    next_token_log_probs,
    translation_log_prob,
)
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.rounding import distance, gap, max, randint, roundings
from quoin.tensor import sequence_mask

BOS, EOS = 0, 1  # special tokens of the targets here, BOS and EOS; the words follow
KINDS = (nn.GRU, nn.LSTM, nn.RNN)
ROUNDING, SOURCE = roundings(512), "512 float64 roundings"


def small_model(
    generator: torch.Generator, words: int, kind: type = nn.GRU, *, attends: bool = True, sharp: float = 3.0
) -> Seq2Seq:
    """A random model in float64 of this many target words; `sharp` scores make its distributions far from uniform."""
    encoder = RecurrentEncoder(kind, 5, 3, 4, generator=generator)
    sizes = (kind, 2 + words, 3, 4)
    decoder = (
        BahdanauDecoder(*sizes, encoder.memory_dim, num_suppressed=1, generator=generator)
        if attends
        else RNNDecoder(*sizes, num_suppressed=1, generator=generator)
    )
    model = Seq2Seq(encoder, decoder).double().eval()
    with torch.no_grad():
        decoder.lm_head.weight.mul_(sharp)
        decoder.lm_head.bias.copy_(torch.randn(decoder.lm_head.bias.shape, generator=generator, dtype=torch.float64))
    return model


def sources(generator: torch.Generator, batch: int = 1) -> Int[Tensor, "batch n"]:
    return torch.randint(5, (batch, randint(1, 5, generator)), generator=generator)


def all_targets(words: int, longest: int) -> tuple[Int[Tensor, "sentences steps"], Int[Tensor, "sentences"]]:
    """Every sentence of at most `longest` words with its end, padded, and the lengths with the end."""
    found = [each for length in range(longest + 1) for each in product(range(2, 2 + words), repeat=length)]
    rows = torch.tensor([[*each, *[EOS] * (longest + 1 - len(each))] for each in found])
    return rows, torch.tensor([len(each) + 1 for each in found])


@claim(
    "M13",
    "the distribution of the next word is a softmax of scores over the words and the end, the same read at once "
    "and word by word",
)
def next_word_is_a_softmax(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 12
    for case in range(cases):
        words = randint(1, 6, generator)
        model = small_model(generator, words, KINDS[case % 3], attends=case % 2 == 0)
        source = sources(generator, 3)
        target = torch.randint(1, 2 + words, (3, randint(1, 6, generator)), generator=generator)
        read = torch.cat([torch.full_like(target[:, :1], BOS), target], dim=1)
        with torch.no_grad():
            distribution = next_token_log_probs(model, source, read).exp()
            worst = max(
                worst,
                gap(distribution.sum(dim=-1), torch.ones(read.shape, dtype=torch.float64)),
                float(distribution[..., BOS].max()),
            )
            state = model.init_cache(model.encode(source))
            for position in range(read.shape[1]):
                scores, state = model.decode_step(state, read[:, position : position + 1])
                weights = scores[:, 0, 1:].exp()  # the formula itself, over V_y and the end
                worst = max(worst, gap(distribution[:, position, 1:], weights / weights.sum(dim=-1, keepdim=True)))
    return Evidence("largest error of the distribution, or of its sum", worst, ROUNDING, SOURCE, cases)


@claim(
    "M14",
    "the probability of a translation is the product of those of its words and its end, and so often it is sampled",
)
def product_of_steps(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 10
    for case in range(cases):
        words = randint(1, 4, generator)
        model = small_model(generator, words, KINDS[case % 3], attends=case % 2 == 0)
        source = sources(generator)
        rows, lengths = all_targets(words, 2)
        with torch.no_grad():
            together = translation_log_prob(
                model, source.expand(len(rows), -1), rows, bos_token_id=BOS, target_lengths=lengths
            )
            for row, length, found in zip(rows, lengths.tolist(), together):
                state, last, by_steps = model.init_cache(model.encode(source)), BOS, 1.0
                for word in row[:length].tolist():
                    scores, state = model.decode_step(state, torch.tensor([[last]]))
                    by_steps, last = by_steps * float(scores[0, 0].softmax(dim=-1)[word]), word
                worst = max(worst, abs(float(found.exp()) - by_steps) / ROUNDING)
    model, num_samples = small_model(generator, 2, sharp=1.0), 4000
    rows, lengths = all_targets(2, 2)
    source = torch.tensor([[0, 3, 1]])
    with torch.no_grad():
        probs = translation_log_prob(
            model, source.expand(len(rows), -1), rows, bos_token_id=BOS, target_lengths=lengths
        ).exp()
    many = source.expand(num_samples, -1)
    found = sample_tokens(
        model,
        model.init_cache(model.encode(many)),
        torch.full((num_samples, 1), BOS),
        max_tokens=4,
        eos_token_id=EOS,
        generator=generator,
    )
    for row, length, probability in zip(rows, lengths.tolist(), probs.tolist()):
        fraction = float((found.tokens[:, :length] == row[:length]).all(dim=1).double().mean())
        worst = max(
            worst,
            abs(fraction - probability)
            / (6 * math.sqrt(probability * (1 - probability) / num_samples) + 12 / num_samples),
        )
    return Evidence(
        "largest error over its bound", worst, 1.0, f"{SOURCE}; Bernstein's bound for the samples", cases + len(rows)
    )


def with_the_end(steps: Float[Tensor, "n"], length: int) -> Float[Tensor, ""]:
    """All factors, the last being that of the end."""
    return steps[: length + 1].sum()


def without_the_end(steps: Float[Tensor, "n"], length: int) -> Float[Tensor, ""]:
    """As many factors as there are words."""
    return steps[:length].sum()


def mass(
    form: Callable[[Tensor, int], Tensor], model: Seq2Seq, source: Int[Tensor, "1 n"], words: int, longest: int
) -> tuple[float, float]:
    """The probabilities of all sentences up to a length by `form`, added up, and the probability that none of them is
    sampled."""
    rows, lengths = all_targets(words, longest)
    read = torch.cat([torch.full_like(rows[:, :1], BOS), rows[:, :-1]], dim=1)
    with torch.no_grad():
        distributions = next_token_log_probs(model, source.expand(len(rows), -1), read)
    steps = distributions.gather(-1, rows.unsqueeze(-1)).squeeze(-1)
    total = sum(float(form(each, length - 1).exp()) for each, length in zip(steps, lengths.tolist()))
    full = lengths == longest + 1
    goes_on = (1 - distributions[full, longest, EOS].exp()) * steps[full, :longest].sum(dim=1).exp()
    return total, float(goes_on.sum())


def _check_mass(form: Callable[[Tensor, int], Tensor], generator: torch.Generator) -> Evidence:
    worst, message, cases = 0.0, "", 8
    for case in range(cases):
        words, longest = randint(1, 3, generator), randint(0, 4, generator)
        model = small_model(generator, words, KINDS[case % 3], attends=case % 2 == 0)
        total, rest = mass(form, model, sources(generator), words, longest)
        off = distance(total + rest, 1)
        if off > worst:
            worst, message = (
                off,
                f"{words} words, up to {longest} of them: {total:.4g}, longer ones {rest:.4g}",
            )
    model = small_model(generator, 2)  # two words of probability 0.35 and the end of 0.3, whatever precedes
    decoder: Any = model.decoder
    with torch.no_grad():
        decoder.lm_head.weight.zero_()
        decoder.lm_head.bias.copy_(torch.tensor([0.3, 0.35, 0.35], dtype=torch.float64).log())
    total, rest = mass(form, model, sources(generator), 2, 7)
    worst = max(worst, abs(total - (1 - 0.7**8)), abs(rest - 0.7**8))
    if total > 1:
        message = (
            f"two words of probability 0.35, end 0.3: the sentences of at most 7 words have {total:.4g} "
            "together, all of them 3.333"
        )
    return Evidence("largest |mass of all sentences - 1|", worst, ROUNDING, SOURCE, cases + 1, counterexample=message)


@claim(
    "M14c",
    "with the end as a factor the probabilities of all translations sum to one, up to what never ends, which "
    "vanishes geometrically",
    not_shown="the limit: lengths as far as they are summed",
)
def normalised(generator: torch.Generator) -> Evidence:
    worst = _check_mass(with_the_end, generator).value / ROUNDING
    for _ in range(3):  # the end is sure to come: its probability is bounded from below
        model = small_model(generator, 2, sharp=0.5)
        decoder: Any = model.decoder
        with torch.no_grad():  # |scores| <= |W| |(s, c)| + |b|, and all entries of s and c lie in [-1, 1]
            max_logit = float((decoder.lm_head.weight.abs().sum(dim=1) + decoder.lm_head.bias.abs()).max())
        least = math.exp(-max_logit) / (math.exp(-max_logit) + 2 * math.exp(max_logit))
        for longest in (1, 3, 6):
            _, rest = mass(with_the_end, model, torch.tensor([[1, 2]]), 2, longest)
            worst = max(worst, rest / (1 - least) ** (longest + 1))
    return Evidence(
        "largest error, or fraction that never ends, over its bound",
        worst,
        1.0,
        f"{SOURCE}; the least probability of an end",
        18,
    )


@claim(
    "ME6",
    "the product has a factor for the end: without it the probabilities of all translations add up to more than one",
    right=with_the_end,
    printed=without_the_end,
)
def the_end_is_a_factor(form: Callable[[Tensor, int], Tensor], generator: torch.Generator) -> Evidence:
    return _check_mass(form, generator)


@claim(
    "Z11.23",
    "before each word the decoder pools the source by additive attention of its last state, its keys projected once",
)
def attends_before_each_word(generator: torch.Generator) -> Evidence:
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
            found = decoder.decode_step(decoder.init_cache(read), target)
            score = decoder.attention.score
            right = bahdanau_decoder_definition(
                decoder.token_embedding(target),
                read.memory,
                tuple(each[0] for each in read.state.tensors),
                score.query_weight,
                score.key_weight,
                score.output_weight,
                cell,
                recurrent_weights(decoder.cell)[0][0],
                sequence_mask(lengths, 6).unsqueeze(1),
            )
            logits = (
                torch.cat([right.output, right.contexts], dim=-1) @ decoder.lm_head.weight.mT + decoder.lm_head.bias
            )
            unseen = ~sequence_mask(lengths, 6).unsqueeze(1).expand_as(found.weights)
            worst = max(worst, gap(found.logits[..., 1:], logits), gap(found.weights, right.weights))
            worst = max(worst, gap(found.weights.sum(dim=-1), torch.ones(target.shape, dtype=torch.float64)))
            worst = math.inf if (found.weights[unseen] != 0).any() else worst
            state = decoder.init_cache(read)
            score.key_weight.fill_(math.nan)  # the keys are projected: nothing that follows may need this any more
            worst = max(worst, gap(decoder.decode_step(state, target).logits[..., 1:], found.logits[..., 1:]))
    return Evidence("largest difference from the definition", worst, ROUNDING, SOURCE, cases)


class GreedyTrap:
    """After word 2, of probability 0.5, all is open; after word 3, of 0.4, EOS is sure: greedy search misses the
    best."""

    distributions = torch.tensor(
        [[0, 0.1, 0.5, 0.4], [0, 1, 0, 0], [0, 0.3, 0.35, 0.35], [0, 1, 0, 0]], dtype=torch.float64
    )

    def select(self, indices: Int[Tensor, "..."]) -> "GreedyTrap":
        return self  # what comes next depends on the last word alone

    def decode_step(
        self, cache: "GreedyTrap", tokens: Int[Tensor, "b n"]
    ) -> tuple[Float[Tensor, "b n 4"], "GreedyTrap"]:
        return self.distributions[tokens].log(), self


@claim("Z10", "a beam as wide as the number of sentences finds the most probable of all, which greedy search can miss")
def wide_beams_miss_nothing(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 16
    for case in range(cases):
        words, longest = randint(2, 3, generator), 3
        model = small_model(generator, words, KINDS[case % 3], attends=case % 2 == 0)
        source = sources(generator)
        rows, lengths = all_targets(words, longest - 1)
        with torch.no_grad():
            probs = translation_log_prob(
                model, source.expand(len(rows), -1), rows, bos_token_id=BOS, target_lengths=lengths
            )
        prompt = torch.tensor([[BOS]])
        state = model.init_cache(model.encode(source))
        found = beam_search(
            model, state, prompt, num_beams=(words + 1) ** longest, max_tokens=longest, eos_token_id=EOS
        )
        ended = found.ended[0] & found.log_probs[0].isfinite()
        best = int(ended.nonzero()[0])
        length = int(found.lengths[0, best])
        worst = max(worst, abs(float(found.log_probs[0, best] - probs.max())), float(int(ended.sum()) != len(rows)))
        most_probable = rows[probs.argmax(), : int(lengths[probs.argmax()])]
        worst = worst if found.tokens[0, best, :length].tolist() == most_probable.tolist() else math.inf
    trap, prompt = GreedyTrap(), torch.tensor([[BOS]])
    went = greedy_search(trap, trap, prompt, max_tokens=3, eos_token_id=EOS)
    wide = beam_search(trap, trap, prompt, num_beams=2, max_tokens=3, eos_token_id=EOS)
    if (
        went.tokens[0, 0] != 2
        or wide.tokens[0, 0].tolist()[:2] != [3, EOS]
        or not went.log_probs[0] < math.log(0.4) - 0.1
    ):
        worst = math.inf
    worst = max(worst, abs(float(wide.log_probs[0, 0]) - math.log(0.4)))
    return Evidence("largest difference from the best by enumeration", worst, 10 * ROUNDING, SOURCE, cases + 1)
