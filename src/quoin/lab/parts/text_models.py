"""The trained models of texts that several pages share, and how one of them aligns a date with its translation."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.data import BOS, EOS, SpecialTokenTokenizer
from quoin.errors import UserError
from quoin.lab.parts.trained import TrainedModel
from quoin.layers import ExactAttention
from quoin.tasks.translation import longest, translate

if TYPE_CHECKING:
    from quoin.runs import Run

__all__ = ["DATES", "LSTM", "NGRAM", "TRANSFORMER", "Alignment", "align", "queries_and_keys"]

DATES = TrainedModel("translate-dates", {"epochs": 3}, seconds=25)
NGRAM = TrainedModel("ngram", {}, seconds=6)
TRANSFORMER = TrainedModel(
    "transformer-lm", {"embed_dim": 64, "num_heads": 4, "num_layers": 2, "epochs": 5}, seconds=30
)
LSTM = TrainedModel("lstm-lm", {"epochs": 3}, seconds=28)


class Alignment(NamedTuple):
    """A sentence and its translation, token by token."""

    source: list[str]
    target: list[str]
    weights: Float[Tensor, "target source"]  # of the attention before each token of the target
    probabilities: Float[Tensor, " target"]  # of each token of the target, given those before it


@functools.lru_cache(maxsize=32)  # the same sentence is asked for again with every other token that is looked at
@torch.no_grad()
def align(run: Run, sentence: str) -> Alignment:
    """The translation of a sentence by a run of `translate-dates`, and where its decoder attended."""
    if not sentence.strip():
        raise UserError("expected a sentence to translate, got an empty one; type one")
    info, model = run.data_info, cast(Any, run.model)
    source = info.source_tokenizer.encode(sentence)[None]
    lengths = torch.tensor([source.shape[1]])
    found = translate(model, source, lengths, num_beams=1, max_tokens=longest(info)).tokens[0]
    read = torch.cat([torch.tensor([BOS]), found[:-1]])[None]
    decoder = model.decoder
    step = decoder.decode_step(decoder.init_cache(model.encode(source, lengths)), read)
    probabilities = step.logits[0].softmax(dim=-1).gather(1, found[:, None])[:, 0]
    return Alignment(
        _names(info.source_tokenizer, source[0]), _names(info.target_tokenizer, found), step.weights[0], probabilities
    )


def _names(tokenizer: SpecialTokenTokenizer, tokens: Tensor) -> list[str]:
    named = ["EOS" if token == EOS else tokenizer.decode([token]) for token in tokens.tolist()]
    return ["␣" if name == " " else name for name in named]


@functools.lru_cache(maxsize=8)
@torch.no_grad()
def queries_and_keys(run: Run, text: str) -> tuple[Float[Tensor, "heads seq dim"], Float[Tensor, "heads seq dim"]]:
    """What the heads of all layers of a Transformer compare on a text, after its rotary embedding."""
    found: list[tuple[Tensor, Tensor]] = []
    hooks = [
        module.register_forward_pre_hook(lambda module, given: found.append((given[0][0], given[1][0])))
        for module in run.model.modules()
        if isinstance(module, ExactAttention)
    ]
    trained: Any = run.trained
    try:
        run.model.eval()(trained.tokenizer.encode(text)[None])
    finally:
        for hook in hooks:
            hook.remove()
    return torch.cat([query for query, _ in found]), torch.cat([key for _, key in found])
