"""Beam search: of all sequences begun, keep the few most likely and go on from each.

b prompts, w width of the beam, v tokens of the vocabulary
"""

from typing import NamedTuple

import torch
from torch import Tensor

from quoin.errors import Mistake, shown
from quoin.generate.decoding import TokenModel, TokenState, check_end, check_request
from quoin.tensor.eval_mode import eval_mode
from quoin.tensor.labels import as_indices

__all__ = ["Beams", "beam_search"]


class Beams(NamedTuple):
    """The sequences that were left in the end, the best of each prompt first, without the prompt."""

    tokens: Tensor  # (b, w, T); behind its end a sequence is filled with `end`
    lengths: Tensor  # (b, w), with the end
    log_probs: Tensor  # (b, w), ln P of all its tokens given the prompt; -inf where there were fewer sequences than the beam is wide
    scores: Tensor  # (b, w), what they were ranked by
    ended: Tensor  # (b, w), False where the maximum length was reached first


@torch.no_grad()
def beam_search(
    model: TokenModel,
    state: TokenState,
    prompt: Tensor,
    *,
    width: int,
    max_tokens: int,
    end: int | None = None,
    length_penalty: float = 0.0,
) -> Beams:
    """The sequences of largest ln P(y) / |y|^α that a beam of this width meets, |y| counting the end and α being `length_penalty`.

    With α = 0 a sequence is as good as it is likely, so that short ones win; α = 1 goes by the mean of a token. What has ended keeps
    its place until better ones push it out. A beam of width 1 goes greedily; one as wide as there are sequences misses none.

    Notes: M14, Z10.
    """
    check_request(prompt, max_tokens)
    prompt = as_indices(prompt, "prompt")
    if width < 1:
        raise Mistake(f"expected a beam of width 1 or more, got {shown(width)}: raise it")
    if not 0 <= length_penalty < float("inf"):
        raise Mistake(f"expected a length penalty of 0 or more, got {shown(length_penalty)}: 0 ranks by probability, 1 by its mean a token")
    with eval_mode(model):
        return _search(model, state, prompt, width, max_tokens, end, length_penalty)


def _search(
    model: TokenModel, state: TokenState, prompt: Tensor, width: int, max_tokens: int, end: int | None, length_penalty: float
) -> Beams:
    batch, device = len(prompt), prompt.device
    first_rows = torch.arange(batch, device=device).unsqueeze(-1)  # of the state, (b, beams)
    logits, state = model.step(state, prompt)
    tokens = torch.empty(batch, 1, 0, dtype=torch.long, device=device)
    log_probs = torch.zeros(batch, 1, dtype=logits.dtype, device=device)
    lengths = torch.zeros(batch, 1, dtype=torch.long, device=device)
    ended = torch.zeros(batch, 1, dtype=torch.bool, device=device)
    while True:
        following = logits[:, -1].log_softmax(dim=-1).unflatten(0, log_probs.shape)  # (b, beams, v)
        if end is not None:  # what has ended goes on in one way only, as it is
            check_end(end, following.shape[-1])
            stay = torch.full_like(following[0, 0], -torch.inf)
            stay[end] = 0
            following = torch.where(ended.unsqueeze(-1), stay, following)
        longer = lengths + ~ended
        totals = log_probs.unsqueeze(-1) + following
        ranks = totals / longer.unsqueeze(-1).to(totals.dtype) ** length_penalty
        vocabulary = totals.shape[-1]
        scores, places = ranks.flatten(1).topk(min(width, ranks.shape[1] * vocabulary), dim=-1)
        parents, said = places // vocabulary, places % vocabulary
        log_probs = totals.flatten(1).gather(-1, places)
        tokens = torch.cat([tokens.gather(1, parents.unsqueeze(-1).expand(-1, -1, tokens.shape[-1])), said.unsqueeze(-1)], dim=-1)
        lengths, ended = longer.gather(1, parents), ended.gather(1, parents)
        if end is not None:
            ended = ended | (said == end)
        dead = log_probs == -torch.inf  # a place for which there was no sequence
        if tokens.shape[-1] == max_tokens or bool((ended | dead).all()):
            return Beams(tokens, lengths, log_probs, scores, ended)
        logits, state = model.step(state.select(first_rows.gather(1, parents).flatten()), said.flatten().unsqueeze(-1))
        first_rows = torch.arange(parents.numel(), device=device).view_as(parents)
