"""What is inside a trained language model as it reads a text: its layers, and the attention of every head."""

from typing import TYPE_CHECKING

import torch
from jaxtyping import Int
from torch import Tensor

from quoin import inspect
from quoin.data import Tokenizer
from quoin.errors import UserError, format_value
from quoin.inspect.layer_outputs import find_layer
from quoin.models import num_parameters
from quoin.plot import Panel
from quoin.runs.inspect_run import Inspection, missing_maps
from quoin.tasks.attention_panels import ATTENTION_CAPTION

if TYPE_CHECKING:
    from quoin.runs.kinds.language_modeling import TrainedLanguageModel

__all__ = ["inspect_text"]

_SHOWN = 60  # letters of the text in a heading
_SIGNS = {" ": "␣", "\n": "↵", "\t": "⇥"}  # what would not be seen


def inspect_text(trained: "TrainedLanguageModel", text: str, *, layer: str | None = None) -> Inspection:
    """The layers of the model, and the weights of all its attentions, or of those in this layer, for a text."""
    model, where = trained.model, trained.run.path
    if not inspect.has_attention(model):
        withheld = missing_maps(model)
        raise UserError(
            f"expected a language model with attention, got {where} of {trained.run.recipe_name}, which has none to "
            f"show{': ' + withheld[0] if withheld else ''}; choose a run of transformer-lm"
        )
    if layer is not None:
        find_layer(model, layer)
    tokens = trained.tokenizer.encode(text).to(trained.device)
    most = trained.window
    if not len(tokens) or (most is not None and len(tokens) > most):
        got = f"{len(tokens)}" if text else "an empty text"
        raise UserError(f"expected a text of 1 to {most} tokens for {where}, got {got}; change --text")
    model.eval()
    found = inspect.attention_maps(model, tokens[None], tokens=token_names(trained.tokenizer, tokens))
    chosen = [each for each in found if layer is None or _is_inside(each.layer, layer)]
    if not chosen:
        names = ", ".join(dict.fromkeys(each.layer for each in found))
        raise UserError(f"expected a layer with attention, got {format_value(layer)}; choose from {names}")
    short = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    panel = Panel(f"Attention of “{' '.join(short.split())}”", inspect.plot_attention_maps(chosen), ATTENTION_CAPTION)
    with torch.no_grad():
        layers = inspect.layer_summary(model, tokens[None])
    return Inspection(layers, num_parameters(model), [panel], [])


def token_names(tokenizer: Tokenizer, tokens: Int[Tensor, "seq"]) -> list[str]:
    """Each token as it is read, with signs for what would not be seen."""
    pieces = [tokenizer.decode([token]) for token in tokens.tolist()]
    return ["".join(_SIGNS.get(letter, letter) for letter in piece) for piece in pieces]


def _is_inside(one: str, other: str) -> bool:
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")
