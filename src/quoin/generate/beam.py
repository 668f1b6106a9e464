"""Beam search: of all sequences begun, keep the few most probable and go on from each."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError, format_value
from quoin.generate.decoding import TokenCache, TokenPredictor, check_eos_token_id, check_request
from quoin.tensor.eval_mode import eval_mode
from quoin.tensor.labels import as_indices

__all__ = ["Beams", "beam_search"]


@shown
class Beams(NamedTuple):
    """The sequences that were left in the end, the best of each prompt first, without the prompt."""

    tokens: Int[Tensor, "batch beams seq"]  # behind its end a sequence is filled with `eos_token_id`
    lengths: Int[Tensor, "batch beams"]  # with the end
    # ln P of all its tokens given the prompt; -inf where there were fewer sequences than the beam is wide
    log_probs: Float[Tensor, "batch beams"]
    scores: Float[Tensor, "batch beams"]  # what they were ranked by
    ended: Bool[Tensor, "batch beams"]  # False where the maximum length was reached first


@torch.no_grad()
def beam_search(
    model: TokenPredictor,
    cache: TokenCache,
    prompt: Int[Tensor, "batch seq"],
    *,
    num_beams: int,
    max_tokens: int,
    eos_token_id: int | None = None,
    length_penalty: float = 0.0,
) -> Beams:
    """The sequences of largest ln P(y) / |y|^α that `num_beams` beams meet, |y| counting the end and α being
    `length_penalty`.

    With α = 0 a sequence is ranked by its probability, so that short ones win; α = 1 goes by the mean of a token. What
    has ended keeps its place until better ones push it out. One beam is greedy search; as many as there are sequences
    miss none.

    Args:
        cache: One that has not read the prompt yet, as the model's `init_cache` gives it.
        max_tokens: The most tokens generated for a sequence, the prompt not counted.
        eos_token_id: The token that ends a sequence; with None all go on to `max_tokens`.

    Notes: M14, Z10.
    """
    check_request(prompt, max_tokens)
    prompt = as_indices(prompt, "prompt")
    if num_beams < 1:
        raise UserError(f"expected num_beams of 1 or more, got {format_value(num_beams)}: raise it")
    if not 0 <= length_penalty < float("inf"):
        raise UserError(
            f"expected a length penalty of 0 or more, got {format_value(length_penalty)}: 0 ranks by probability, "
            "1 by its mean a token"
        )
    with eval_mode(model):
        return _search(model, cache, prompt, num_beams, max_tokens, eos_token_id, length_penalty)


def _search(
    model: TokenPredictor,
    cache: TokenCache,
    prompt: Tensor,
    num_beams: int,
    max_tokens: int,
    eos_token_id: int | None,
    length_penalty: float,
) -> Beams:
    batch, device = len(prompt), prompt.device
    first_rows = torch.arange(batch, device=device).unsqueeze(-1)  # of the cache, (b, beams)
    logits, cache = model.decode_step(cache, prompt)
    tokens = torch.empty(batch, 1, 0, dtype=torch.long, device=device)
    log_probs = torch.zeros(batch, 1, dtype=logits.dtype, device=device)
    lengths = torch.zeros(batch, 1, dtype=torch.long, device=device)
    ended = torch.zeros(batch, 1, dtype=torch.bool, device=device)
    while True:
        following = logits[:, -1].log_softmax(dim=-1).unflatten(0, log_probs.shape)  # (b, beams, v)
        if eos_token_id is not None:  # what has ended goes on in one way only, as it is
            check_eos_token_id(eos_token_id, following.shape[-1])
            stay = torch.full_like(following[0, 0], -torch.inf)
            stay[eos_token_id] = 0
            following = torch.where(ended.unsqueeze(-1), stay, following)
        longer = lengths + ~ended
        totals = log_probs.unsqueeze(-1) + following
        ranks = totals / longer.unsqueeze(-1).to(totals.dtype) ** length_penalty
        vocab_size = totals.shape[-1]
        scores, indices = ranks.flatten(1).topk(min(num_beams, ranks.shape[1] * vocab_size), dim=-1)
        parents, next_tokens = indices // vocab_size, indices % vocab_size
        log_probs = totals.flatten(1).gather(-1, indices)
        tokens = torch.cat(
            [tokens.gather(1, parents.unsqueeze(-1).expand(-1, -1, tokens.shape[-1])), next_tokens.unsqueeze(-1)],
            dim=-1,
        )
        lengths, ended = longer.gather(1, parents), ended.gather(1, parents)
        if eos_token_id is not None:
            ended = ended | (next_tokens == eos_token_id)
        dead = log_probs == -torch.inf  # a place for which there was no sequence
        if tokens.shape[-1] == max_tokens or bool((ended | dead).all()):
            return Beams(tokens, lengths, log_probs, scores, ended)
        logits, cache = model.decode_step(
            cache.select(first_rows.gather(1, parents).flatten()), next_tokens.flatten().unsqueeze(-1)
        )
        first_rows = torch.arange(parents.numel(), device=device).view_as(parents)
