"""A folder as Hugging Face's `save_pretrained` writes it: `config.json` read with care, and all tensors of its
safetensors files.

Which tensor of ours each is, the family's file says: gpt2.py, llama.py.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from jaxtyping import Shaped
from torch import Tensor

from quoin.errors import UserError, did_you_mean, format_value
from quoin.models.language_transformer import TransformerLanguageModel
from quoin.models.pretrained import Weights, WeightSource, load_converted, read_json, read_safetensors

__all__ = ["ConfigReader", "language_source", "load_language_weights", "own_parts", "read_folder"]

WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"
HEAD = "lm_head.weight"

Choice = TypeVar("Choice")


class ConfigReader:
    """The values of a `config.json`, each asked for by name, kind and its default where the file has none."""

    def __init__(self, values: Mapping[str, Any], family: str) -> None:
        self.values, self.family = values, family
        got = values.get("model_type", family)
        if got != family:
            raise UserError(
                f"expected the config of a {family} model, got model_type {format_value(got)}; give the folder of "
                f"a {family} model"
            )

    def count(self, name: str, default: int | None = None) -> int:
        """A whole number from 1 on."""
        value = self.values.get(name)
        value = default if value is None else value
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self.error(name, "a whole number from 1 on", value)
        return value

    def positive(self, name: str, default: float) -> float:
        value = self.values.get(name, default)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < float("inf"):
            raise self.error(name, "a positive number", value)
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        value = self.values.get(name, default)
        if not isinstance(value, bool):
            raise self.error(name, "true or false", value)
        return value

    def choice(self, name: str, choices: Mapping[str, Choice], default: str) -> Choice:
        """What the name that is found stands for."""
        value = self.values.get(name, default)
        if value not in choices:
            raise UserError(
                f"expected an {name} that this library has, got {format_value(value)}; "
                f"{did_you_mean(str(value), choices)}"
            )
        return choices[value]

    def error(self, name: str, expected: str, got: object) -> UserError:
        return UserError(
            f"expected {expected} as {name} in the config of a {self.family} model, got {format_value(got)}; "
            "restore config.json"
        )


def read_folder(folder: str | Path) -> tuple[dict[str, Any], dict[str, Shaped[Tensor, "..."]]]:
    """The config and all tensors, from one file or from the shards that an index lists."""
    folder = Path(folder)
    config = read_json(folder / "config.json")
    if (folder / WHOLE).exists() or not (folder / INDEX).exists():
        return config, read_safetensors(folder / WHOLE)
    weight_map = read_json(folder / INDEX).get("weight_map")
    if not isinstance(weight_map, dict) or not all(
        isinstance(name, str) and Path(name).name == name for name in weight_map.values()
    ):
        raise UserError(
            f"expected a weight_map of file names in {folder / INDEX}, got something else; restore the file"
        )
    tensors: dict[str, Tensor] = {}
    for shard in sorted(set(weight_map.values())):
        tensors |= read_safetensors(folder / shard)
    return config, tensors


def own_parts(name: str) -> tuple[str, str]:
    """A tensor's name in a `TransformerLanguageModel`, as the number of its block (or nothing) and what it is there.

    >>> own_parts("transformer.blocks.3.attention.out_proj.weight"), own_parts("token_embedding.weight")
    (('3', 'attention.out_proj.weight'), ('', 'token_embedding.weight'))
    """
    if not name.startswith("transformer.blocks."):
        return "", name
    block, _, rest = name.removeprefix("transformer.blocks.").partition(".")
    return block, rest


def language_source(
    inside: Mapping[str, WeightSource],
    outside: Mapping[str, WeightSource],
    *,
    lead: str,
    block: str,
    head: str = HEAD,
) -> Callable[[str], WeightSource]:
    """Where each tensor of a `TransformerLanguageModel` is kept, by two tables: `inside` a block, under the foreign
    name `block`.number, and `outside` of all. `lead` stands before all foreign names but the head's."""

    def source(name: str) -> WeightSource:
        if name == "lm_head.weight":
            return WeightSource((head,))
        number, part = own_parts(name)
        found = (inside if number else outside).get(part)
        if found is None:
            raise UserError(
                f"expected a model of this layout's modules, got one with {format_value(name)}; build it with this "
                "file's functions"
            )
        return found._replace(
            names=tuple(f"{lead}{block}.{number}.{each}" if number else lead + each for each in found.names)
        )

    return source


def load_language_weights(
    model: TransformerLanguageModel,
    weights: Weights,
    inside: Mapping[str, WeightSource],
    outside: Mapping[str, WeightSource],
    *,
    prefix: str,
    block: str,
    forget: tuple[str, ...],
    head: str = HEAD,
) -> None:
    """Fill `model` by the tables of `language_source`.

    `prefix` may stand before all foreign names but the head's. Names that end on one of `forget` hold no weights.
    """
    state = dict(weights) if isinstance(weights, Mapping) else read_safetensors(weights)
    state = {name: tensor for name, tensor in state.items() if not name.endswith(forget)}
    lead = prefix if any(name.startswith(prefix) for name in state) else ""
    embedding_name = lead + outside["token_embedding.weight"].names[0]
    if (
        model.lm_head is None
        and head in state
        and embedding_name in state
        and not state.pop(head).equal(state[embedding_name])
    ):
        raise UserError(
            f"expected {head} to be the token embeddings, as the model ties them, got another; build it with "
            "tie_embeddings=False"
        )
    load_converted(model, state, language_source(inside, outside, lead=lead, block=block, head=head))
