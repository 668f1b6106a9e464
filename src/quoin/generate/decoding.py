"""Tokens one after another from a trained model, for many sequences side by side: each is chosen, then read.

A model is anything with `decode_step`, and a cache with `select`, as language models and decoders of translations have
them. On CUDA the step of a model that has static caches is captured once and replayed (static_steps.py), with the same
tokens. Beams are in beam.py, ways to choose in choosing.py.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError, format_value
from quoin.generate.choosing import TokenSampler, greedy_token
from quoin.generate.static_decoder import TokenSteps
from quoin.generate.static_steps import can_step_statically, static_steps
from quoin.tensor.eval_mode import eval_mode
from quoin.tensor.labels import as_indices

__all__ = [
    "Generated",
    "TokenCache",
    "TokenPredictor",
    "TokenStep",
    "generate_tokens",
    "greedy_search",
    "sample_tokens",
    "stream_tokens",
]

Choose = Callable[[Tensor], Tensor]  # logits (batch, vocab) -> tokens (batch,)


@runtime_checkable
class TokenCache(Protocol):
    """The cache of a model for each sequence of a batch."""

    def select(self, indices: Int[Tensor, "rows"]) -> Any:
        """The cache of these sequences, in this order; one may come twice, or not at all."""
        ...


@runtime_checkable
class TokenPredictor(Protocol):
    """A model that reads tokens and predicts the next."""

    def decode_step(self, cache: Any, tokens: Int[Tensor, "batch new"]) -> tuple[Float[Tensor, "batch new vocab"], Any]:
        """Read new tokens; the logits of the token after each, and the cache after them."""
        ...


@shown
class TokenStep(NamedTuple):
    """One more token of each sequence."""

    tokens: Int[Tensor, "batch"]  # `eos_token_id` again where a sequence has ended before
    log_probs: Float[Tensor, "batch"]  # the model's own ln P of it, 0 where a sequence has ended before
    ended: Bool[Tensor, "batch"]  # whether the sequence has ended, with this token or before


@shown
class Generated(NamedTuple):
    """Sequences as they were generated, without the prompt."""

    tokens: Int[Tensor, "batch seq"]  # behind its end a sequence is filled with `eos_token_id`
    lengths: Int[Tensor, "batch"]  # with the end
    # ln P of all its tokens given the prompt, by the model as it is: no temperature, nothing cut
    log_probs: Float[Tensor, "batch"]
    ended: Bool[Tensor, "batch"]  # False where the maximum length was reached first


def stream_tokens(
    model: TokenPredictor,
    cache: TokenCache,
    prompt: Int[Tensor, "batch seq"],
    choose: Choose,
    *,
    max_tokens: int,
    eos_token_id: int | None = None,
) -> Iterator[TokenStep]:
    """A token for each sequence of `prompt`, then the next, until all have ended with `eos_token_id` or there
    are `max_tokens` of them.

    Args:
        cache: One that has not read the prompt yet, as the model's `init_cache` gives it.
        choose: From logits (batch, vocab) to tokens (batch,), such as `greedy_token` or a `TokenSampler`.
        eos_token_id: The token that ends a sequence; with None all go on to `max_tokens`.
    """
    steps = _token_steps(model, cache, prompt, choose, max_tokens, eos_token_id)
    for some in steps:
        for tokens, log_probs, ended in zip(*(each.unbind(dim=1) for each in some), strict=True):
            yield TokenStep(tokens, log_probs, ended)


def generate_tokens(
    model: TokenPredictor,
    cache: TokenCache,
    prompt: Int[Tensor, "batch seq"],
    choose: Choose,
    *,
    max_tokens: int,
    eos_token_id: int | None = None,
) -> Generated:
    """What `stream_tokens` gives, put together.

    Args:
        cache: One that has not read the prompt yet, as the model's `init_cache` gives it.
        choose: From logits (batch, vocab) to tokens (batch,), such as `greedy_token` or a `TokenSampler`.
        max_tokens: The most tokens generated for a sequence, the prompt not counted.
        eos_token_id: The token that ends a sequence; with None all go on to `max_tokens`.

    Notes: M14.
    """
    steps = list(_token_steps(model, cache, prompt, choose, max_tokens, eos_token_id))
    tokens, log_probs, ended = (torch.cat(each, dim=1) for each in zip(*steps, strict=True))
    before = torch.nn.functional.pad(ended[:, :-1], (1, 0))
    return Generated(tokens, (~before).sum(dim=1), log_probs.sum(dim=1), ended[:, -1])


def greedy_search(
    model: TokenPredictor,
    cache: TokenCache,
    prompt: Int[Tensor, "batch seq"],
    *,
    max_tokens: int,
    eos_token_id: int | None = None,
) -> Generated:
    """The most probable next token each time: y_{t+1} = argmax_i P(i | y_1 .. y_t).

    Each step is best, the whole need not be: that is what `beam_search` looks for.

    Args:
        cache: One that has not read the prompt yet, as the model's `init_cache` gives it.
        max_tokens: The most tokens generated for a sequence, the prompt not counted.
        eos_token_id: The token that ends a sequence; with None all go on to `max_tokens`.

    Notes: M14.
    """
    return generate_tokens(model, cache, prompt, greedy_token, max_tokens=max_tokens, eos_token_id=eos_token_id)


def sample_tokens(
    model: TokenPredictor,
    cache: TokenCache,
    prompt: Int[Tensor, "batch seq"],
    *,
    max_tokens: int,
    eos_token_id: int | None = None,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    generator: torch.Generator | None = None,
) -> Generated:
    """Each next token sampled from its distribution given those before; by default the sequences are samples of the
    model's own distribution.

    Args:
        cache: One that has not read the prompt yet, as the model's `init_cache` gives it.
        max_tokens: The most tokens generated for a sequence, the prompt not counted.
        eos_token_id: The token that ends a sequence; with None all go on to `max_tokens`.
        temperature: Above 0: less than 1 sharpens the distribution, more flattens it.
        top_k: Only this many most probable tokens are sampled from; None keeps all.
        top_p: Only the fewest most probable tokens that together have this probability are sampled from; 1 keeps all.

    Notes: M14.
    """
    choose = TokenSampler(temperature, top_k, top_p, generator)
    return generate_tokens(model, cache, prompt, choose, max_tokens=max_tokens, eos_token_id=eos_token_id)


def _token_steps(
    model: TokenPredictor,
    cache: TokenCache,
    prompt: Int[Tensor, "batch seq"],
    choose: Choose,
    max_tokens: int,
    eos_token_id: int | None,
) -> Iterator[TokenSteps]:
    """Tokens as they come: on CUDA some at a time by a captured step, where the model has one, else one by one."""
    check_request(prompt, max_tokens)
    prompt = as_indices(prompt, "prompt")
    with eval_mode(model):
        with torch.inference_mode():  # a sixth quicker than no_grad where a model is small
            logits, cache = model.decode_step(cache, prompt)
        if eos_token_id is not None:
            check_eos_token_id(eos_token_id, logits.shape[-1])
        steps = None
        if logits.is_cuda and can_step_statically(model, cache, max_tokens):
            steps = static_steps(model, cache, prompt, logits, choose, max_tokens=max_tokens, eos_token_id=eos_token_id)
        if steps is None:
            steps = _one_by_one(model, cache, logits, choose, max_tokens, eos_token_id)
        yield from steps


def _one_by_one(
    model: TokenPredictor, cache: Any, logits: Tensor, choose: Choose, max_tokens: int, eos_token_id: int | None
) -> Iterator[TokenSteps]:
    ended = torch.zeros(len(logits), dtype=torch.bool, device=logits.device)
    for left in reversed(range(max_tokens)):
        with torch.inference_mode():
            last = logits[:, -1]
            chosen = choose(last)
        tokens = chosen.clone()  # what leaves is made outside: nothing made inside could be trained on
        log_probs = last.log_softmax(dim=-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
        if eos_token_id is not None:
            tokens, log_probs = tokens.masked_fill(ended, eos_token_id), log_probs.masked_fill(ended, 0)
            ended = ended | (tokens == eos_token_id)
        new = tokens.unsqueeze(-1)
        yield TokenSteps(new, log_probs.unsqueeze(-1), ended.unsqueeze(-1))
        if not left or (eos_token_id is not None and bool(ended.all())):
            return
        with torch.inference_mode():
            logits, cache = model.decode_step(cache, new)


def check_request(prompt: Int[Tensor, "batch seq"], max_tokens: int) -> None:
    if max_tokens < 1:
        raise UserError(f"expected a maximum of 1 token or more, got {format_value(max_tokens)}: raise it")
    if prompt.ndim != 2 or 0 in prompt.shape or prompt.is_floating_point():
        got = f"{prompt.dtype} of shape {tuple(prompt.shape)}"
        raise UserError(
            f"expected a prompt of token ids (sequences, tokens), a token or more each, got {got}: begin with one"
        )


def check_eos_token_id(eos_token_id: int, vocab_size: int) -> None:
    if not 0 <= eos_token_id < vocab_size:
        raise UserError(
            f"expected an eos_token_id from 0 to {vocab_size - 1}, got {format_value(eos_token_id)}: a model never "
            "predicts another"
        )
