"""Language models: logits of a whole text without cache, and a step with its state, which generate.py loops over."""

from typing import Any

import torch
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.generate import greedy_token
from quoin.layers import ExactAttention
from quoin.layers.attention.feature_map import LinearAttentionCache
from quoin.models import NgramModel, RecurrentLanguageModel, TransformerLanguageModel
from quoin.runs.export.exportable import (
    BATCH,
    Axis,
    Exportable,
    ExportInput,
    ExportPart,
    LoopCheck,
    Opener,
    ScriptCheck,
    draw_tokens,
)
from quoin.runs.export.own_text import own_test_tokens
from quoin.runs.export.parts.language_steps import NgramStep, RecurrentStep, State, SumsStep, TransformerStep
from quoin.runs.export.written import CannotExportError
from quoin.runs.kinds.language_modeling import TrainedLanguageModel
from quoin.runs.run import Run

__all__ = ["language_parts"]

LENGTH = Axis("length", traced=6, tried=(3, 11))
NEW = Axis("new", traced=3, tried=(1, 4))
SEEN = Axis("seen", traced=5, tried=(2, 9), least=0)
CHUNK = 3  # tokens that are read at once, so that the last are fewer
REAL_TOKENS = 64
FEW_TOKENS = 24  # of a script, where a window is too long to be filled

_Step = TransformerStep | SumsStep | RecurrentStep | NgramStep


def language_parts(run: Run) -> Exportable:
    """The parts of a language model, of whatever kind."""
    trained = run.trained
    assert isinstance(trained, TrainedLanguageModel)
    model, tokenizer = trained.model, trained.tokenizer
    if isinstance(model, TransformerLanguageModel) and not _has_step(model):
        told: dict[str, Any] = {
            "vocabulary": tokenizer.as_json(),
            "vocab_size": tokenizer.vocab_size,
            "window": trained.window,
        }
        note = (
            "its attention has no cache: the graph reads whole texts, and generate.py, which needs one, is not written"
        )
        return Exportable((_whole_part(run, trained),), told, notes=(note,))
    step, state, takes_many, takes_position = _step_of(model, trained.window)
    parts = [_step_part(trained, step, state, takes_many, takes_position)]
    if isinstance(model, TransformerLanguageModel):
        parts = [_whole_part(run, trained), *parts]
    window = trained.window
    told = {
        "vocabulary": tokenizer.as_json(),
        "vocab_size": tokenizer.vocab_size,
        "generation": {
            "window": window,
            "stride": None if window is None else -(-window // 2),
            "takes_many": takes_many,
            "takes_position": takes_position,
            "first_tokens": trained.encode_prompt("")[0].tolist(),
            "state": [each.as_json() for each in state],
        },
    }
    loop = _loop_check(run, trained, state, takes_many, takes_position)
    return Exportable(tuple(parts), told, {"generate.py": "generate"}, (_greedy_check(trained),), (loop,))


def _is_exact(model: TransformerLanguageModel) -> bool:
    return all(isinstance(block.attention.inner_attention, ExactAttention) for block in model.transformer.blocks)


def _has_step(model: TransformerLanguageModel) -> bool:
    """Whether what was read is keys and values, or sums of constant size; one's own attention reads all of it again."""
    return _is_exact(model) or all(isinstance(each, LinearAttentionCache) for each in model.init_cache(1, 1).blocks)


def _step_of(model: nn.Module, window: int | None) -> tuple[_Step, list[State], bool, bool]:
    """The step, its state before the first token, and whether it takes many tokens at once and their position."""
    if isinstance(model, RecurrentLanguageModel):
        module = RecurrentStep(model)
        return module, module.state(), False, False
    if isinstance(model, NgramModel):
        module = NgramStep(model)
        return module, module.state(), False, False
    if not isinstance(model, TransformerLanguageModel):
        raise CannotExportError(
            f"expected a recurrent, Transformer or n-gram language model, got {type(model).__name__}, which has no "
            "step to export: give --to safetensors"
        )
    if _is_exact(model):
        # What is read and what is new must fit the window together.
        module = TransformerStep(model, SEEN if window is None else SEEN.up_to(max(0, window - max(NEW.tried))))
        return module, module.state(), True, False
    module = SumsStep(model, window)
    return module, module.state(), False, True


def _whole_part(run: Run, trained: TrainedLanguageModel) -> ExportPart:
    """Tokens to the logits after each, with no cache."""
    axis = LENGTH.up_to(trained.window)

    def real() -> tuple[Tensor, ...]:
        return (_own_tokens(run, trained),)

    tokens = ExportInput("tokens", (BATCH, axis), draw_tokens(trained.tokenizer.vocab_size), "token numbers")
    return ExportPart("model", _Logits(trained.model), (tokens,), ("logits",), real=real)


class _Logits(nn.Module):
    """A language model that is given tokens alone."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor) -> Tensor:
        return self.model(tokens)


def _step_part(
    trained: TrainedLanguageModel, step: _Step, state: list[State], takes_many: bool, takes_position: bool
) -> ExportPart:
    draw = draw_tokens(trained.tokenizer.vocab_size)
    inputs = [ExportInput("tokens", (BATCH, NEW if takes_many else 1), draw, "token numbers")]
    if takes_position:
        inputs.append(ExportInput("position", (1,), lambda size, generator: torch.full(size, 3), "of the new token"))
    inputs += [ExportInput(each.name, each.axes, each.draw, "what was read before") for each in state]
    outputs = ("logits", *(f"next_{each.name}" for each in state))
    return ExportPart("step", step, tuple(inputs), outputs, step.by_its_own_code)


def _loop_check(
    run: Run, trained: TrainedLanguageModel, state: list[State], takes_many: bool, takes_position: bool
) -> LoopCheck:
    """The step from the first token to the last gives the logits that the run gives to the whole text."""
    size = CHUNK if takes_many else 1

    def loop(opener: Opener, tokens: Tensor) -> tuple[Tensor, ...]:
        step, found = opener("step"), []
        after = [each.before(tokens.shape[0]) for each in state]
        for at in range(0, tokens.shape[1], size):
            position = [torch.tensor([at])] if takes_position else []
            logits, *after = step(tokens[:, at : at + size].contiguous(), *position, *after)
            found.append(logits)
        return (torch.cat(found, dim=1),)

    tokens = ExportInput("tokens", (BATCH, LENGTH.up_to(trained.window)), draw_tokens(trained.tokenizer.vocab_size))
    whole = lambda tokens: (trained.model(tokens),)  # noqa: E731
    return LoopCheck("step by step", (tokens,), loop, whole, lambda: (_own_tokens(run, trained),))


def _own_tokens(run: Run, trained: TrainedLanguageModel) -> Tensor:
    return own_test_tokens(run)[: min(REAL_TOKENS, trained.window or REAL_TOKENS)][None]


def _greedy_check(trained: TrainedLanguageModel) -> ScriptCheck:
    """generate.py at temperature 0 gives the text of the run's own greedy decoding, past the end of a small window."""
    prompt = _prompt(trained)
    window = trained.window
    count = window + 8 if window is not None and window <= 128 else FEW_TOKENS

    def expected() -> str:
        return prompt + trained.generate(prompt, max_tokens=count, choose=greedy_token)

    return ScriptCheck("generate.py", (prompt, "--max-tokens", str(count), "--temperature", "0"), expected)


def _prompt(trained: TrainedLanguageModel) -> str:
    """A beginning that is safe on a command line: plain letters that the vocabulary has."""
    for text in ("the ", "a", "0", ""):
        try:
            trained.tokenizer.encode(text)
        except UserError:
            continue
        return text
    return ""
