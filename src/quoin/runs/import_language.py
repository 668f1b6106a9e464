"""Language models of Hugging Face's form as runs of `transformer-lm`: GPT-2, Llama, and GPT-NeoX as we export it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Shaped
from torch import Tensor

from quoin.data import TextInfo, Tokenizer, text_info
from quoin.data.tokenizer_json import read_tokenizer_json
from quoin.errors import UserError, format_value
from quoin.models import TransformerLanguageModel, num_parameters
from quoin.models.gpt2 import gpt2_from_config, load_gpt2_weights
from quoin.models.gpt_neox import gpt_neox_from_config, load_gpt_neox_weights
from quoin.models.hf_config import ConfigReader
from quoin.models.language_layout import LanguageLayout, language_layout
from quoin.models.llama import llama_from_config, load_llama_weights
from quoin.models.pretrained import read_json
from quoin.runs.catalog import find_recipe
from quoin.runs.import_weights import ImportedModel, ImportRequest
from quoin.runs.kinds import LANGUAGE_MODELING
from quoin.tasks.text_data import corpus, recorded_tokenizer
from quoin.tasks.transformer_lm import ACTIVATIONS

__all__ = ["from_folder"]

RECIPE = "transformer-lm"


class _Family(NamedTuple):
    build: Callable[[Mapping[str, Any]], TransformerLanguageModel]
    load: Callable[[TransformerLanguageModel, Mapping[str, Tensor]], None]
    context: tuple[str, int]  # the name of the context length in config.json, and its default


FAMILIES = {
    "gpt2": _Family(gpt2_from_config, load_gpt2_weights, ("n_positions", 1024)),
    "gpt_neox": _Family(gpt_neox_from_config, load_gpt_neox_weights, ("max_position_embeddings", 2048)),
    "llama": _Family(llama_from_config, load_llama_weights, ("max_position_embeddings", 2048)),
}


def from_folder(
    config: Mapping[str, Any], weights: Mapping[str, Shaped[Tensor, "..."]], folder: Path, request: ImportRequest
) -> ImportedModel:
    """The model of a folder, whose config and weights are read already."""
    if request.class_names is not None or request.image_size or request.image_mean or request.image_std:
        raise UserError(
            f"--class-names and --image-... are of image classifiers, but {format_value(str(folder))} holds a "
            "language model: leave them out"
        )
    name = config["model_type"]
    family, recipe = FAMILIES[name], find_recipe(RECIPE)
    with torch.device("meta"):  # for its layout alone
        layout = language_layout(family.build(config))
    context_length = ConfigReader(config, name).count(*family.context)
    options: Any = recipe.options(**_options(layout, context_length), data=request.data)  # pyright: ignore
    tokenizer = _tokenizer(folder, layout.vocab_size)
    data_info = _data_info(options, tokenizer)
    model: Any = recipe.model(options, data_info)
    family.load(model, weights)
    saved = {"weights": model.state_dict()}
    return ImportedModel(recipe, options, LANGUAGE_MODELING, data_info, saved, num_parameters(model), name)


def _options(layout: LanguageLayout, context_length: int) -> dict[str, Any]:
    """The options of the recipe that rebuild a model of this layout."""
    is_llama = layout.is_gated
    return {
        "embed_dim": layout.embed_dim,
        "num_heads": layout.num_heads,
        "num_layers": layout.num_layers,
        "hidden_dim": layout.hidden_dim,
        "block": "llama" if is_llama else "gpt",
        "num_kv_heads": layout.num_kv_heads if is_llama else 0,
        "activation": next(name for name, each in ACTIVATIONS.items() if each is layout.activation),
        "norm_eps": layout.norm_eps,
        "tie_embeddings": layout.tie_embeddings,
        "position_embedding": "learned" if layout.positions == "learned" else "rotary",
        "rope_theta": layout.rope_base or 10000.0,
        "context_length": context_length,
    }


def _tokenizer(folder: Path, vocab_size: int) -> Tokenizer:
    path = folder / "tokenizer.json"
    if not path.exists():
        raise UserError(
            f"expected a tokenizer.json in {format_value(str(folder))}, got none: copy it there; transformers writes "
            "it with AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)"
        )
    try:
        return read_tokenizer_json(read_json(path), vocab_size)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def _data_info(options: Any, tokenizer: Tokenizer) -> TextInfo:
    if not options.data:
        return TextInfo(source="", fingerprint="", num_tokens=0, num_characters=0, tokenizer_json=tokenizer.as_json())
    with recorded_tokenizer(tokenizer):
        return text_info(corpus(options))
