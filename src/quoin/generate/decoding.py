"""Tokens one after another from a trained model, for many sequences side by side: each is chosen, then read.

A model is anything with `step`, and a state with `select`, as language models and decoders of translations have them. Beams are in
beam.py, ways to choose in choosing.py.   b sequences, n tokens of the prompt, v tokens of the vocabulary
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from quoin.errors import Mistake, shown
from quoin.generate.choosing import Sampling, likeliest
from quoin.tensor.eval_mode import eval_mode
from quoin.tensor.labels import as_indices

__all__ = ["Chosen", "Generated", "TokenModel", "TokenState", "decode", "greedy", "sampled", "stream"]

Choose = Callable[[Tensor], Tensor]  # (b, v) logits -> (b,) tokens


class TokenState(Protocol):
    """What a model remembers of each sequence of a batch."""

    def select(self, rows: Tensor) -> Any:
        """The state of these sequences, in this order; one may come twice, or not at all."""
        ...


class TokenModel(Protocol):
    """A model that reads tokens and scores what comes next."""

    def step(self, state: Any, tokens: Tensor) -> tuple[Tensor, Any]:  # (b, new) -> (b, new, v)
        """Read new tokens; the logits of the token after each, and the state behind them."""
        ...


class Chosen(NamedTuple):
    """One more token of each sequence."""

    tokens: Tensor  # (b,); `end` again where a sequence has ended before
    log_probs: Tensor  # (b,), the model's own ln P of it, 0 where a sequence has ended before
    ended: Tensor  # (b,), whether the sequence has ended, with this token or before


class Generated(NamedTuple):
    """Sequences as they were generated, without the prompt."""

    tokens: Tensor  # (b, T); behind its end a sequence is filled with `end`
    lengths: Tensor  # (b,), with the end
    log_probs: Tensor  # (b,), ln P of all its tokens given the prompt, by the model as it is: no temperature, nothing cut
    ended: Tensor  # (b,), False where the maximum length was reached first


def stream(
    model: TokenModel, state: TokenState, prompt: Tensor, choose: Choose, *, max_tokens: int, end: int | None = None
) -> Iterator[Chosen]:
    """A token for each sequence of (b, n) `prompt`, then the next, until all have said `end` or there are `max_tokens` of them.

    `state` has not read the prompt yet. A model that says no end goes on to the maximum.
    """
    check_request(prompt, max_tokens)
    prompt = as_indices(prompt, "prompt")
    with eval_mode(model):
        ended = torch.zeros(len(prompt), dtype=torch.bool, device=prompt.device)
        new = prompt
        for _ in range(max_tokens):
            with torch.inference_mode():  # a sixth quicker than no_grad where a model is small
                logits, state = model.step(state, new)
                last = logits[:, -1]
                chosen = choose(last)
            tokens = chosen.clone()  # what leaves is made outside: nothing made inside could be trained on
            log_probs = last.log_softmax(dim=-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
            if end is not None:
                check_end(end, logits.shape[-1])
                tokens, log_probs = tokens.masked_fill(ended, end), log_probs.masked_fill(ended, 0)
                ended = ended | (tokens == end)
            yield Chosen(tokens, log_probs, ended)
            if end is not None and bool(ended.all()):
                return
            new = tokens.unsqueeze(-1)


def decode(model: TokenModel, state: TokenState, prompt: Tensor, choose: Choose, *, max_tokens: int, end: int | None = None) -> Generated:
    """What `stream` gives, put together.

    Notes: M14.
    """
    steps = list(stream(model, state, prompt, choose, max_tokens=max_tokens, end=end))
    tokens = torch.stack([step.tokens for step in steps], dim=1)
    before = torch.stack([torch.zeros_like(steps[0].ended), *(step.ended for step in steps[:-1])], dim=1)
    log_probs = torch.stack([step.log_probs for step in steps], dim=1).sum(dim=1)
    return Generated(tokens, (~before).sum(dim=1), log_probs, steps[-1].ended)


def greedy(model: TokenModel, state: TokenState, prompt: Tensor, *, max_tokens: int, end: int | None = None) -> Generated:
    """The likeliest next token each time: y_{t+1} = argmax_i P(i | y_1 .. y_t).

    Each step is best, the whole need not be: that is what `beam_search` looks for.

    Notes: M14.
    """
    return decode(model, state, prompt, likeliest, max_tokens=max_tokens, end=end)


def sampled(
    model: TokenModel,
    state: TokenState,
    prompt: Tensor,
    *,
    max_tokens: int,
    end: int | None = None,
    temperature: float = 1.0,
    top_k: int | None = None,
    nucleus: float = 1.0,
    generator: torch.Generator | None = None,
) -> Generated:
    """Each next token drawn from its law given those before; as they stand, the options draw sequences from the model's own law.

    Notes: M14.
    """
    choose = Sampling(temperature, top_k, nucleus, generator)
    return decode(model, state, prompt, choose, max_tokens=max_tokens, end=end)


def check_request(prompt: Tensor, max_tokens: int) -> None:
    if max_tokens < 1:
        raise Mistake(f"expected a maximum of 1 token or more, got {shown(max_tokens)}: raise it")
    if prompt.ndim != 2 or 0 in prompt.shape or prompt.is_floating_point():
        came = f"{prompt.dtype} of shape {tuple(prompt.shape)}"
        raise Mistake(f"expected a prompt of token numbers (sequences, tokens), a token or more each, got {came}: begin with one")


def check_end(end: int, vocabulary_size: int) -> None:
    if not 0 <= end < vocabulary_size:
        raise Mistake(f"expected an end among the tokens 0 to {vocabulary_size - 1}, got {shown(end)}: a model never says another")
