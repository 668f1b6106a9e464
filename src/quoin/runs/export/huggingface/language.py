"""Language models for `AutoModelForCausalLM`: GPT-2, GPT-NeoX or Llama, whichever has the run's layout; recurrent ones
with code of their own."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from quoin.data import keyed_generator
from quoin.data.tokenizer_json import tokenizer_json
from quoin.errors import UserError
from quoin.models import RecurrentLanguageModel, TransformerLanguageModel
from quoin.models.gpt2 import ACTIVATIONS, gpt2_config, gpt2_weights
from quoin.models.gpt_neox import gpt_neox_config, gpt_neox_weights
from quoin.models.language_layout import LanguageLayout, language_layout
from quoin.models.llama import llama_config, llama_weights
from quoin.runs.export.huggingface.files import write_json, write_weights
from quoin.runs.export.huggingface.model_card import write_model_card
from quoin.runs.export.huggingface.opening import is_there, not_compared, own_code_aside, quiet
from quoin.runs.export.huggingface.own_code import TRUST
from quoin.runs.export.huggingface.recurrent import write_recurrent
from quoin.runs.export.own_text import own_test_tokens
from quoin.runs.export.written import CannotExportError, Difference, Written, largest_difference
from quoin.runs.run import Run

__all__ = ["write_language"]

SHAPES = ((2, 7), (3, 40))  # rows and tokens to compare at; no more tokens than the context holds
_LOAD = """
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("."{trust})
model = AutoModelForCausalLM.from_pretrained("."{trust})
inputs = tokenizer({prompt!r}, return_tensors="pt")
outputs = model.generate(**inputs, max_new_tokens={count}, do_sample=True, pad_token_id=0)
print(tokenizer.decode(outputs[0]))
"""


class _Family(NamedTuple):
    """How one of their models is written."""

    config: Callable[[LanguageLayout, int], dict[str, Any]]
    weights: Callable[[TransformerLanguageModel, int], dict[str, Shaped[Tensor, "..."]]]
    note: str = ""


def write_language(run: Run, folder: Path) -> Written:
    """Write the folder of a language model and compare its logits."""
    trained: Any = run.trained
    model, context_length = trained.model, trained.window
    own = isinstance(model, RecurrentLanguageModel)
    files, notes = (write_recurrent(model, folder), [TRUST]) if own else _write_transformer(run, folder)
    files += [
        write_json(folder / "tokenizer.json", tokenizer_json(trained.tokenizer)),
        write_json(folder / "tokenizer_config.json", _tokenizer_config(context_length)),
    ]
    if context_length is not None:
        notes.append(f"it was trained on contexts of {context_length} tokens: longer ones are nothing that it knows")
    prompt = _prompt(trained)
    code = _LOAD.format(
        prompt=trained.tokenizer.decode(prompt),
        count=max(1, min(40, (context_length or 99) - len(prompt))),
        trust=", trust_remote_code=True" if own else "",
    )
    files.append(
        write_model_card(run, folder, code=code, library="transformers", pipeline_tag="text-generation", notes=notes)
    )
    if not is_there("transformers"):
        return Written(tuple(files), (), (*notes, not_compared("transformers")))
    differences: list[Difference] = []
    for found in _compare(run, folder, own=own):
        if isinstance(found, Difference):
            differences.append(found)
        else:
            notes.append(found)
    return Written(tuple(files), tuple(differences), tuple(notes))


def _write_transformer(run: Run, folder: Path) -> tuple[list[Path], list[str]]:
    """Its config and weights, and what there is to tell of them."""
    trained: Any = run.trained
    layout, family = _family(run, trained.model)
    config = family.config(layout, trained.window) | {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    files = [
        write_json(folder / "config.json", config | {"dtype": "float32"}),
        write_weights(folder / "model.safetensors", family.weights(trained.model, trained.window)),
    ]
    return files, [family.note.format(trained.window)] if family.note else []


def _prompt(trained: Any) -> Int[Tensor, "seq"]:
    """The tokens of a prompt that the vocabulary knows and the context holds."""
    try:
        found = trained.encode_prompt("The ")[0]
    except UserError:  # letters that the text has not
        found = trained.encode_prompt("")[0]
    return found[: max(1, (trained.window or 99) - 1)].cpu()


def _family(run: Run, model: Any) -> tuple[LanguageLayout, _Family]:
    try:
        if not isinstance(model, TransformerLanguageModel):
            raise UserError(f"expected a Transformer, got {type(model).__name__}")
        layout = language_layout(model)
        if layout.activation not in ACTIVATIONS.values():
            raise UserError("expected an activation that has a name there, got another")
    except UserError as error:
        raise _cannot(run, str(error)) from error
    is_gpt = layout.norm == "layer" and layout.has_bias and not layout.is_gated
    match layout.positions:
        case "learned" if is_gpt:
            return layout, _Family(gpt2_config, gpt2_weights)
        case "sinusoidal" if is_gpt:
            note = "sinusoidal positions are written as a table of the first {}, which GPT-2 would have learnt"
            return layout, _Family(gpt2_config, gpt2_weights, note)
        case "rotary" if is_gpt and layout.num_kv_heads == layout.num_heads:
            return layout, _Family(gpt_neox_config, lambda model, _: gpt_neox_weights(model))
        case "half-split rotary" if layout.norm == "rms" and layout.is_gated and not layout.has_bias:
            return layout, _Family(llama_config, lambda model, _: llama_weights(model))
    raise _cannot(run, f"{layout.positions} positions with {layout.norm} norms have no class there")


def _cannot(run: Run, why: str) -> CannotExportError:
    return CannotExportError(
        f"Hugging Face has no counterpart of the model of {run.path} ({why}); it has the forms onnx, torch and "
        "safetensors: choose one with --to"
    )


def _tokenizer_config(context_length: int | None) -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,  # our texts have no token between two words that is not theirs
        **({} if context_length is None else {"model_max_length": context_length}),
    }


@torch.no_grad()
def _compare(run: Run, folder: Path, *, own: bool) -> Iterator[Difference | str]:
    trained: Any = run.trained
    with quiet(), own_code_aside():
        from transformers import AutoModelForCausalLM, AutoTokenizer

        theirs: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, trust_remote_code=own).eval()
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, trust_remote_code=own)
    generator = keyed_generator("export", 0)
    for rows, length in SHAPES:
        tokens = torch.randint(
            trained.data_info.vocab_size, (rows, min(length, trained.window or length)), generator=generator
        )
        words = f"random tokens, batch {rows}, length {tokens.shape[1]}"
        yield Difference(words, largest_difference(trained.model(tokens), theirs(tokens).logits))
    try:
        tokens = _real_tokens(run)
    except (UserError, OSError) as error:
        yield f"compared on random tokens alone, for its own text is not at hand: {error}"
        return
    words = f"its test text, batch {len(tokens)}, length {tokens.shape[1]}"
    yield Difference(words, largest_difference(trained.model(tokens), theirs(tokens).logits))
    text = trained.tokenizer.decode(tokens[0])
    ours = trained.tokenizer.encode(text)
    with quiet():
        read = torch.tensor(tokenizer(text)["input_ids"], dtype=torch.int64)
    yield Difference("tokens of its test text", 0.0 if ours.equal(read) else float("inf"))


def _real_tokens(run: Run) -> Int[Tensor, "rows seq"]:
    tokens, trained = own_test_tokens(run), run.trained
    length = min(SHAPES[1][1], trained.window or len(tokens), len(tokens))  # type: ignore[attr-defined]
    return tokens[: len(tokens) // length * length].unflatten(0, (-1, length))[:4]
