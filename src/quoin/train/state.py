"""A training state as files: tensors on one side, JSON on the other, and back to the same tree.

A state is a tree of dicts, lists and tuples over tensors, numbers, strings, booleans and None. Tensors that are one
tensor (tied weights) are stored once and come back as one. Nothing here can name code, so nothing read back can run
any.
"""

import math
from typing import Any

import torch
from jaxtyping import Shaped, UInt8
from torch import Tensor

from quoin.train.tensor_file import is_sharded

__all__ = ["flatten_state", "generator_states", "load_generator_states", "storage_id", "unflatten_state"]

Json = Any
Tree = Any

_TAGS = ("$tensor", "$float", "$tuple", "$dict")


def flatten_state(tree: Tree) -> tuple[Json, dict[str, Shaped[Tensor, "..."]]]:
    """Split a state into a JSON skeleton and named tensors: those of the state themselves, not copies.

    >>> skeleton, tensors = flatten_state({"weight": torch.ones(2), "betas": (0.9, 0.999)})
    >>> skeleton
    {'weight': {'$tensor': 'weight'}, 'betas': {'$tuple': [0.9, 0.999]}}
    >>> sorted(tensors)
    ['weight']
    """
    tensors: dict[str, Tensor] = {}
    names: dict[tuple, str] = {}

    def walk(node: Tree, path: str) -> Json:
        if isinstance(node, Tensor):
            storage = storage_id(node)
            if node.numel() == 0 or storage not in names:
                name = path
                while name in tensors:  # {"a.b": x, "a": {"b": y}} and {0: x, "0": y} spell two paths alike
                    name += "'"
                names[storage] = name
                tensors[name] = node.detach()
            return {"$tensor": names[storage]}
        if isinstance(node, dict):
            if all(isinstance(key, str) for key in node) and not any(mark in node for mark in _TAGS):
                return {key: walk(value, f"{path}.{key}" if path else key) for key, value in node.items()}
            return {"$dict": [[walk(key, f"{path}#"), walk(value, f"{path}.{key}")] for key, value in node.items()]}
        if isinstance(node, tuple):
            return {"$tuple": [walk(item, f"{path}.{index}") for index, item in enumerate(node)]}
        if isinstance(node, list):
            return [walk(item, f"{path}.{index}") for index, item in enumerate(node)]
        if isinstance(node, float) and not math.isfinite(node):
            return {"$float": repr(node)}
        if node is None or isinstance(node, (bool, int, float, str)):
            return node
        raise TypeError(
            f"a state holds tensors, numbers, strings, lists, tuples and dicts; {path or 'it'} is a "
            f"{type(node).__name__}"
        )

    return walk(tree, ""), tensors


def unflatten_state(skeleton: Json, tensors: dict[str, Shaped[Tensor, "..."]]) -> Tree:
    """The inverse of `flatten_state`; equal references give one and the same tensor."""
    if isinstance(skeleton, list):
        return [unflatten_state(item, tensors) for item in skeleton]
    if not isinstance(skeleton, dict):
        return skeleton
    if len(skeleton) == 1:
        ((mark, content),) = skeleton.items()
        if mark == "$tensor":
            return tensors[content]
        if mark == "$float":
            return float(content)
        if mark == "$tuple":
            return tuple(unflatten_state(item, tensors) for item in content)
        if mark == "$dict":
            return {unflatten_state(key, tensors): unflatten_state(value, tensors) for key, value in content}
    return {key: unflatten_state(value, tensors) for key, value in skeleton.items()}


def storage_id(tensor: Shaped[Tensor, "..."]) -> tuple:
    """What two names of one tensor (tied weights) have in common; empty ones share an address without being one."""
    if is_sharded(tensor):
        # Of some processes the part is empty and has no address, and all must find the same tensors tied.
        part: Any = tensor.to_local()  # pyright: ignore[reportAttributeAccessIssue]
        return part.untyped_storage()._cdata, part.storage_offset(), tensor.dtype, tuple(tensor.shape), tensor.stride()
    return tensor.device, tensor.dtype, tensor.data_ptr(), tuple(tensor.shape), tensor.stride()


def generator_states() -> dict[str, UInt8[Tensor, "_bytes"]]:
    """Where torch's own generators stand: dropout and its kin sample from these."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_initialized():  # asking would start up a GPU that a run on the CPU does not touch
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def load_generator_states(states: dict[str, UInt8[Tensor, "_bytes"]]) -> None:
    torch.set_rng_state(states["cpu"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])
