"""What trained language models say of a text, character by character: the bits they pay, what they expect next, how
they go on, and the beams of a search. All of it is kept for the next move of a hand."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.data import CharTokenizer, keyed_generator
from quoin.errors import UserError
from quoin.generate import Beams, TokenSampler, beam_search, greedy_token, sample_tokens
from quoin.inspect import gradients_through_time
from quoin.layers import RecurrentWeights, lstm_cell_definition, recurrent_weights, rnn_cell_definition
from quoin.losses import cross_entropy
from quoin.metrics import bits_per_character
from quoin.models import NgramModel, kneser_ney_ngram, ngram_counts

if TYPE_CHECKING:
    from quoin.runs import Run

__all__ = [
    "Reading",
    "beam_levels",
    "bits_by_order",
    "continue_text",
    "gradient_norms_by_lag",
    "open_recurrence",
    "own_text",
    "read_text",
    "repeats",
    "sample_text",
]

HIDDEN, INPUTS, LAGS = 16, 8, 60
OPEN = 4.0  # the bias of an open forget gate: sigmoid(4) = 0.98


class Reading(NamedTuple):
    """A text as a model reads it."""

    bits: Float[Tensor, " character"]  # what each character costs, given those before it
    logits: Float[Tensor, " vocab"]  # of the character after the last

    @property
    def mean(self) -> float:
        return float(bits_per_character(self.bits.sum() * math.log(2), len(self.bits)))


@functools.lru_cache(maxsize=256)
@torch.no_grad()
def read_text(run: Run, text: str) -> Reading:
    """The text as a trained language model reads it, after the beginning of a line."""
    if not text:
        raise UserError("expected a text, got none; type some")
    trained: Any = run.trained
    tokens, begin = trained.tokenizer.encode(text), trained.encode_prompt("")[0]
    model = trained.token_model()
    read = torch.cat([begin, tokens])[None]
    logits = model.decode_step(model.init_cache(1, read.shape[1] + 1), read)[0][0]
    return Reading(cross_entropy(logits[:-1].double(), tokens) / math.log(2), logits[-1].double())


@functools.lru_cache(maxsize=64)
def continue_text(run: Run, prompt: str, temperature: float, top_k: int, top_p: float, count: int) -> str:
    """So many characters after `prompt`: sampled, with the same random numbers every time; the most probable at
    temperature 0."""
    trained: Any = run.trained
    sampler = TokenSampler(temperature or 1.0, top_k, top_p, trained.generator(0))
    choose = sampler if temperature > 0 else greedy_token
    return trained.tokenizer.decode([token for token, _ in trained.stream(prompt, choose, count)])


def repeats(text: str, least: int = 5) -> int:
    """The length of the shortest piece, of `least` characters or more, that the text ends with twice; 0 if there is
    none.

    >>> repeats("so it is a string is a string "), repeats("so it is a string")
    (12, 0)
    """
    for length in range(least, len(text) // 2 + 1):
        if text[-length:] == text[-2 * length : -length]:
            return length
    return 0


@functools.lru_cache(maxsize=64)
def beam_levels(run: Run, prompt: str, num_beams: int, length_penalty: float, most: int) -> tuple[Beams, ...]:
    """The beams after 1, 2, ... characters, up to `most`, of a search for the next word: a space ends it."""
    trained: Any = run.trained
    model, tokens, space = trained.token_model(), trained.encode_prompt(prompt), int(trained.tokenizer.encode(" ")[0])
    return tuple(
        beam_search(
            model,
            model.init_cache(1, tokens.shape[1] + count),
            tokens,
            num_beams=num_beams,
            max_tokens=count,
            eos_token_id=space,
            length_penalty=length_penalty,
        )
        for count in range(1, most + 1)
    )


@torch.no_grad()
def open_recurrence(norm: float, lstm: bool) -> RecurrentWeights:
    """A plain cell whose weights on the state turn it and multiply its length by `norm`, or an LSTM of such weights
    whose forget gate is open."""
    generator = keyed_generator("recurrence")
    module = (nn.LSTM if lstm else nn.RNN)(INPUTS, HIDDEN, dtype=torch.float64)
    for name, weight in module.named_parameters():
        if name.startswith("weight_hh"):
            for gate in weight.split(HIDDEN):
                square = torch.randn(HIDDEN, HIDDEN, generator=generator, dtype=torch.float64)
                gate.copy_(norm * torch.linalg.qr(square)[0])
        elif name.startswith("weight"):
            nn.init.normal_(weight, std=0.3, generator=generator)
        else:
            nn.init.zeros_(weight)
            if lstm and name.startswith("bias_hh"):
                weight[HIDDEN : 2 * HIDDEN] = OPEN
    return recurrent_weights(module.requires_grad_(False))[0][0]


@functools.lru_cache(maxsize=64)
def gradient_norms_by_lag(norm: float, lstm: bool) -> Float[Tensor, " lag"]:
    """‖∂h_T/∂h_(T-lag)‖ for the lags 1 to 60, on small random inputs."""
    inputs = 0.05 * torch.randn(LAGS, INPUTS, generator=keyed_generator("inputs"), dtype=torch.float64)
    begin = torch.zeros(HIDDEN, dtype=torch.float64)
    cell, state = (lstm_cell_definition, [begin, begin]) if lstm else (rnn_cell_definition, [begin])
    return gradients_through_time(cell, inputs, state, open_recurrence(norm, lstm)).norms


@functools.lru_cache(maxsize=8)
def _own_models(text: str, most: int) -> tuple[CharTokenizer, tuple[NgramModel, ...]]:
    tokenizer = CharTokenizer.fit(text)
    tokens = tokenizer.encode(text)
    begin = tokens[: _held_out(text)]
    vocab_size = len(tokenizer.characters)
    orders = range(1, most + 1)
    return tokenizer, tuple(kneser_ney_ngram(ngram_counts(begin, vocab_size, order)) for order in orders)


def _held_out(text: str) -> int:
    return max(1, len(text) * 9 // 10)


@functools.lru_cache(maxsize=8)
def bits_by_order(text: str, most: int) -> tuple[tuple[float, float], ...]:
    """Bits per character of n-gram models of order 1 to `most` that counted the first nine tenths of the text: on
    those, and on the last tenth, which they never saw."""
    tokenizer, models = _own_models(text, most)
    tokens, split = tokenizer.encode(text)[None], _held_out(text)
    found = []
    for model in models:
        bits = -model.token_log_probs(tokens)[0] / math.log(2)
        found.append((float(bits[:split].mean()), float(bits[split:].mean())))
    return tuple(found)


@functools.lru_cache(maxsize=32)
def sample_text(text: str, order: int, most: int, count: int) -> str:
    """So many characters of the n-gram model of this order, which begin as the text does."""
    tokenizer, models = _own_models(text, most)
    prompt, model = tokenizer.encode(text[:1])[None], models[order - 1]
    found = sample_tokens(
        model, model.init_cache(1), prompt, max_tokens=count, generator=keyed_generator("own text", order)
    )
    return text[0] + tokenizer.decode(found.tokens[0].tolist())


def own_text(file: bytes) -> str:
    """The text in a file of the reader's; one line where it is none."""
    try:
        text = file.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise UserError("expected a text in UTF-8, got other bytes; save it as UTF-8") from None
    if len(text) < 100:
        raise UserError(f"expected a text of 100 characters or more, got {len(text)}; choose a longer one")
    return text
