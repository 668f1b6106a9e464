"""A folder as Hugging Face's `save_pretrained` writes it: `config.json` read with care, and all tensors of its safetensors files.

Which tensor of ours each is, the family's file says: gpt2.py, llama.py.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor

from quoin.errors import Mistake, nearest, shown
from quoin.models.foreign import Origin, Weights, load_converted, read_json, read_safetensors
from quoin.models.language_transformer import LanguageTransformer

__all__ = ["ConfigReader", "load_language_weights", "own_parts", "read_folder"]

WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"
HEAD = "lm_head.weight"

Choice = TypeVar("Choice")


class ConfigReader:
    """The values of a `config.json`, each asked for by name, kind and what it is where the file is silent."""

    def __init__(self, values: Mapping[str, Any], family: str) -> None:
        self.values, self.family = values, family
        came = values.get("model_type", family)
        if came != family:
            raise Mistake(f"expected the config of a {family} model, came model_type {shown(came)}; give the folder of a {family} model")

    def count(self, name: str, default: int | None = None) -> int:
        """A whole number from 1 on."""
        value = self.values.get(name)
        value = default if value is None else value
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self.refused(name, "a whole number from 1 on", value)
        return value

    def positive(self, name: str, default: float) -> float:
        value = self.values.get(name, default)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < float("inf"):
            raise self.refused(name, "a positive number", value)
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        value = self.values.get(name, default)
        if not isinstance(value, bool):
            raise self.refused(name, "true or false", value)
        return value

    def choice(self, name: str, choices: Mapping[str, Choice], default: str) -> Choice:
        """What the name that is found stands for."""
        value = self.values.get(name, default)
        if value not in choices:
            raise Mistake(f"expected an {name} that this library has, came {shown(value)}; {nearest(str(value), choices)}")
        return choices[value]

    def refused(self, name: str, expected: str, came: object) -> Mistake:
        return Mistake(f"expected {expected} as {name} in the config of a {self.family} model, came {shown(came)}; restore config.json")


def read_folder(folder: str | Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The config and all tensors, from one file or from the shards that an index lists."""
    folder = Path(folder)
    config = read_json(folder / "config.json")
    if (folder / WHOLE).exists() or not (folder / INDEX).exists():
        return config, read_safetensors(folder / WHOLE)
    places = read_json(folder / INDEX).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(name, str) and Path(name).name == name for name in places.values()):
        raise Mistake(f"expected a weight_map of file names in {folder / INDEX}, came something else; restore the file")
    tensors: dict[str, Tensor] = {}
    for shard in sorted(set(places.values())):
        tensors |= read_safetensors(folder / shard)
    return config, tensors


def own_parts(name: str) -> tuple[str, str]:
    """A tensor's name in a `LanguageTransformer`, as the number of its block (or nothing) and what it is there.

    >>> own_parts("stack.blocks.3.attention.f_o.weight"), own_parts("codes.weight")
    (('3', 'attention.f_o.weight'), ('', 'codes.weight'))
    """
    if not name.startswith("stack.blocks."):
        return "", name
    block, _, rest = name.removeprefix("stack.blocks.").partition(".")
    return block, rest


def load_language_weights(
    model: LanguageTransformer,
    weights: Weights,
    inside: Mapping[str, Origin],
    outside: Mapping[str, Origin],
    *,
    prefix: str,
    block: str,
    forget: tuple[str, ...],
) -> None:
    """Fill `model` by two tables: `inside` a block, under the foreign name `block`.number, and `outside` of all.

    `prefix` may stand before all foreign names but the head's. Names that end on one of `forget` hold no weights.
    """
    state = dict(weights) if isinstance(weights, Mapping) else read_safetensors(weights)
    state = {name: tensor for name, tensor in state.items() if not name.endswith(forget)}
    lead = prefix if any(name.startswith(prefix) for name in state) else ""
    codes = lead + outside["codes.weight"].names[0]
    if model.scores is None and HEAD in state and codes in state and not state.pop(HEAD).equal(state[codes]):
        raise Mistake(f"expected {HEAD} to be the codes of the tokens, as the model ties them, came another; build it with tied=False")

    def origin(name: str) -> Origin:
        if name == "scores.weight":
            return Origin((HEAD,))
        number, part = own_parts(name)
        found = (inside if number else outside).get(part)
        if found is None:
            raise Mistake(f"expected a model of this layout's parts, came one with {shown(name)}; build it with this file's functions")
        return found._replace(names=tuple(f"{lead}{block}.{number}.{each}" if number else lead + each for each in found.names))

    load_converted(model, state, origin)
