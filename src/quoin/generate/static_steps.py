"""Tokens by static steps, from prompt to end, and the decoders that are kept for the next text.

A model takes part if it offers `static_start` and `init_static_cache`, as quoin.models' Transformers and recurrent
models do. What a graph holds of a model are addresses, so a decoder is kept only as long as the model's tensors are
where they were.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.generate.choosing import TokenSampler
from quoin.generate.static_decoder import FIRST_LIMIT, StaticDecoder, TokenSteps, can_capture

__all__ = ["can_step_statically", "static_steps"]

# The last decoder of each model; one that is in use is taken out, so that two texts at a time never share buffers.
_KEPT: "WeakKeyDictionary[nn.Module, tuple[tuple, StaticDecoder]]" = WeakKeyDictionary()
_REFUSED: "WeakKeyDictionary[nn.Module, str]" = WeakKeyDictionary()  # models whose step could not be captured


def can_step_statically(model: Any, cache: Any, max_tokens: int) -> bool:
    """Whether `static_steps` serves: the model offers them, nothing listens to its layers, and the cache has memory for
    all tokens."""
    start = model.static_start(cache) if hasattr(model, "static_start") else None
    if start is None or not isinstance(start.model, nn.Module) or start.model in _REFUSED:
        return False
    if torch.is_autocast_enabled("cuda"):  # weights that it has cast it frees when it ends
        return False
    # A replay calls no hook: neither those that inspect nor those that gather weights shared out over processes.
    if any(module._forward_hooks or module._forward_pre_hooks for module in start.model.modules()):
        return False
    return start.tokens_left is None or start.tokens_left >= max_tokens - 1 or hasattr(model, "full_cache")


def static_steps(
    model: Any,
    cache: Any,
    prompt: Int[Tensor, "batch seq"],
    logits: Float[Tensor, "batch seq vocab"],
    choose: Callable[[Tensor], Tensor],
    *,
    max_tokens: int,
    eos_token_id: int | None = None,
    capture: bool = True,
    first_limit: int = FIRST_LIMIT,
) -> Iterator[TokenSteps] | None:
    """Tokens after a prompt, some at a time, until all sequences have ended or there are `max_tokens` of them; None if
    the model has no static caches, or its step cannot be captured.

    Args:
        cache: One that has read the prompt.
        logits: What the model predicts behind each token of the prompt.
        capture: Whether to replay CUDA graphs; False takes the same steps one kernel at a time, on any device.
        first_limit: Positions that attention works on at first.
    """
    start = model.static_start(cache)
    ahead = max_tokens - 1 if start.tokens_left is None else min(max_tokens - 1, start.tokens_left)
    capacity = start.seq_len + ahead
    key = (*_settings(choose), eos_token_id, capture, first_limit, logits.shape[0], logits.dtype, logits.device)
    key += _addresses(start.model)
    kept_key, decoder = _KEPT.pop(start.model, (None, None))
    if decoder is None or kept_key != key or decoder.capacity < capacity:
        decoder = StaticDecoder(start.model, logits, capacity, choose, eos_token_id, first_limit=first_limit)
    if not decoder.supported:
        return None
    if capture and not _captured(decoder, start, ahead, model):
        return None
    return _steps(model, start, decoder, key, prompt, logits, choose, max_tokens)


def _steps(
    model: Any,
    start: Any,
    decoder: StaticDecoder,
    key: tuple,
    prompt: Tensor,
    logits: Tensor,
    choose: Callable[[Tensor], Tensor],
    max_tokens: int,
) -> Iterator[TokenSteps]:
    read, left, fit = [prompt], max_tokens, start.tokens_left  # tokens to be said, and those that can be read
    with _same_draws(choose, decoder), _put_back(start.model, key, decoder):
        decoder.begin(start.cache, start.seq_len, logits)
        left -= 1
        while True:
            steps = min(left, decoder.free_slots, left if fit is None else fit)
            decoder.advance(start.model, steps)
            left, fit = left - steps, None if fit is None else fit - steps
            if left and decoder.free_slots and fit == 0:  # the window is full: the token last chosen is not in it
                chosen = torch.cat([*read, decoder.steps.tokens[: decoder.slots_used].T], dim=1)
                with torch.inference_mode():
                    logits, cache = model.decode_step(model.full_cache(chosen[:, :-1]), chosen[:, -1:])
                renewed = model.static_start(cache)
                decoder.begin(renewed.cache, renewed.seq_len, logits, fresh=False)
                left, fit = left - 1, renewed.tokens_left
                continue
            found = decoder.collect()
            if decoder.eos_token_id is not None:
                going = int((~found.ended.all(dim=0)).sum())  # the one place where the host waits
                if going < found.tokens.shape[1]:
                    yield TokenSteps(*(each[:, : going + 1] for each in found))
                    return
            yield found
            if not left:
                return
            read.append(found.tokens)


def _captured(decoder: StaticDecoder, start: Any, ahead: int, model: Any) -> bool:
    """Whether there are graphs for all positions to come, made now where they lack."""
    first = 0 if hasattr(model, "full_cache") else start.seq_len
    try:
        if ahead:
            decoder.capture(start.model, decoder.limits(first, start.seq_len + ahead - 1))
    except RuntimeError as error:  # something in it asks for the host, such as a part of a user's own
        reason = str(error).strip().split("\n")[0]
        _REFUSED[start.model] = reason
        warnings.warn(f"decoding without a CUDA graph, which could not be captured: {reason}", stacklevel=4)
        return False
    return True


@contextmanager
def _same_draws(choose: Callable[[Tensor], Tensor], decoder: StaticDecoder) -> Iterator[None]:
    """Within, the decoder's generator goes on where the caller's stands; after, the caller's where it has come to."""
    if not isinstance(choose, TokenSampler) or decoder.generator is None:
        yield
        return
    generator = choose.generator
    if generator is None:
        device = decoder.token.device
        generator = (
            torch.cuda.default_generators[device.index or 0] if device.type == "cuda" else torch.default_generator
        )
    decoder.generator.set_state(generator.get_state())
    try:
        yield
    finally:
        generator.set_state(decoder.generator.get_state())


@contextmanager
def _put_back(model: nn.Module, key: tuple, decoder: StaticDecoder) -> Iterator[None]:
    try:
        yield
    finally:
        if can_capture(decoder.choose):  # another way to choose may hold the model, which would then never be freed
            _KEPT[model] = key, decoder


def _settings(choose: Callable[[Tensor], Tensor]) -> tuple:
    if isinstance(choose, TokenSampler):
        return (type(choose), choose.temperature, choose.top_k, choose.top_p)
    return (choose,)


def _addresses(model: nn.Module) -> tuple:
    tensors = (*model.parameters(), *model.buffers())
    return tuple((each.data_ptr(), each.dtype, each.shape) for each in tensors)
