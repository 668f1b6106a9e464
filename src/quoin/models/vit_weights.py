"""Trained weights of Vision Transformers under the names of torchvision, Hugging Face transformers and timm, and ours
under those of Hugging Face."""

import re
from collections.abc import Mapping
from typing import NamedTuple

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.nn import functional

from quoin.errors import UserError
from quoin.models.pretrained import Weights, WeightSource, foreign_weights, load_converted, read_safetensors, stacked
from quoin.models.vit import ViT
from quoin.tensor import as_floating

__all__ = ["huggingface_vit_weights", "load_pretrained_vit", "resize_position_embedding"]


class _Names(NamedTuple):
    """What a library calls the parts of a ViT; `{}` is the number of a block, `*` weight or bias."""

    class_token: str
    position: str
    patches: str
    block: str
    norm1: str
    in_proj: tuple[str, ...]  # one name, or those of queries, keys and values
    out_proj: str
    norm2: str
    up_proj: str
    down_proj: str
    norm: str
    head: str


_TORCHVISION = _Names(
    "class_token", "encoder.pos_embedding", "conv_proj", "encoder.layers.encoder_layer_{}.", "ln_1",
    ("self_attention.in_proj_*",), "self_attention.out_proj", "ln_2", "mlp.0", "mlp.3", "encoder.ln", "heads.head",
)  # fmt: skip
_HUGGING_FACE = _Names(
    "embeddings.cls_token", "embeddings.position_embeddings", "embeddings.patch_embeddings.projection",
    "encoder.layer.{}.", "layernorm_before",
    ("attention.attention.query.*", "attention.attention.key.*", "attention.attention.value.*"),
    "attention.output.dense", "layernorm_after", "intermediate.dense", "output.dense", "layernorm", "classifier",
)  # fmt: skip
_TRANSFORMERS_5 = _HUGGING_FACE._replace(  # as transformers names them in memory from version 5 on
    block="layers.{}.", in_proj=("attention.q_proj.*", "attention.k_proj.*", "attention.v_proj.*"),
    out_proj="attention.o_proj", up_proj="mlp.fc1", down_proj="mlp.fc2",
)  # fmt: skip
_TIMM = _Names(
    "cls_token", "pos_embed", "patch_embed.proj", "blocks.{}.", "norm1",
    ("attn.qkv.*",), "attn.proj", "norm2", "mlp.fc1", "mlp.fc2", "norm", "head",
)  # fmt: skip


def load_pretrained_vit(model: ViT, weights: Weights) -> None:
    """Fill a `ViT` with a class token from a `state_dict` of torchvision, Hugging Face or timm, given as such or as a
    safetensors path.

    For images of another size than the weights were trained on, the position embeddings are resized.
    """
    if model.class_token is None:
        raise UserError("expected a ViT with a class token, as published weights have, got one without; make it so")
    state = weights if isinstance(weights, Mapping) else read_safetensors(weights)
    state = {_without_prefix(name): tensor for name, tensor in state.items() if "pooler." not in name}
    names = next((each for each in (_HUGGING_FACE, _TIMM) if each.class_token in state), _TORCHVISION)
    if names is _HUGGING_FACE and "layers.0.attention.q_proj.weight" in state:
        names = _TRANSFORMERS_5
    heads = [each.head for each in (_TORCHVISION, _HUGGING_FACE, _TIMM) if f"{each.head}.weight" in state]
    names = names._replace(head=heads[0]) if heads else names
    load_converted(model, state, lambda name: _source(name, names, model.grid))


def huggingface_vit_weights(model: ViT) -> dict[str, Shaped[Tensor, "..."]]:
    """The weights of a `ViT` with a class token as `ViTForImageClassification` keeps them in files: what
    `load_pretrained_vit` reads."""
    found = foreign_weights(model, lambda name: _source(name, _HUGGING_FACE, model.grid))
    return {name if name.startswith("classifier.") else f"vit.{name}": tensor for name, tensor in found.items()}


def _without_prefix(name: str) -> str:
    """A foreign name without its model's, and with torchvision's newer names of the feed-forward network."""
    name = re.sub(r"^(vit|deit)\.", "", name)
    return re.sub(r"\.mlp\.linear_([12])\.", lambda at: f".mlp.{3 * int(at[1]) - 3}.", name)


def _source(name: str, names: _Names, grid: tuple[int, int]) -> WeightSource:
    if name == "class_token":
        return WeightSource((names.class_token,))
    if name == "position_embedding.weight":
        return WeightSource(
            (names.position,),
            lambda found: resize_position_embedding(found.squeeze(0), grid),
            lambda ours: (ours.unsqueeze(0),),
        )
    stem, _, part = name.rpartition(".")
    if found := re.fullmatch(r"encoder\.blocks\.(\d+)\.(.*)", stem):
        block, inside = names.block.format(found[1]), found[2]
        if inside == "attention.in_proj.linear":
            return _joined([block + each.replace("*", part) for each in names.in_proj])
        return WeightSource((f"{block}{_inside(inside, names)}.{part}",))
    return WeightSource((f"{_outside(stem, names)}.{part}",))


def _joined(names: list[str]) -> WeightSource:
    return WeightSource((names[0],)) if len(names) == 1 else stacked(*names)


def _inside(own: str, names: _Names) -> str:
    return {
        "attention.out_proj": names.out_proj,
        "attention_connection.norm": names.norm1,
        "feed_forward_connection.norm": names.norm2,
        "feed_forward.up_proj": names.up_proj,
        "feed_forward.down_proj": names.down_proj,
    }[own]


def _outside(own: str, names: _Names) -> str:
    return {"patches.convolution": names.patches, "encoder.norm": names.norm, "head": names.head}[own]


def resize_position_embedding(
    weight: Float[Tensor, "positions embed"], grid: tuple[int, int]
) -> Float[Tensor, "new_positions embed"]:
    """Position embeddings of a square grid of patches, after that of the class token, for another grid: bicubic
    interpolation of each feature.

    >>> resize_position_embedding(torch.ones(1 + 14 * 14, 8), (2, 3)).shape
    torch.Size([7, 8])
    """
    side = round((len(weight) - 1) ** 0.5)
    if side * side + 1 != len(weight):
        raise UserError(
            f"expected position embeddings of a class token and a square of patches, got {len(weight)}; they are "
            "another model's"
        )
    if (side, side) == grid:
        return weight
    weight = as_floating(weight)
    resized = weight[1:].T.reshape(1, -1, side, side)
    # One axis at a time: both at once, torch 2.13 on the CPU repeats the first row wherever the new width is 1.
    for size in ((grid[0], side), grid):
        resized = functional.interpolate(resized, size=size, mode="bicubic", align_corners=False, antialias=True)
    return torch.cat([weight[:1], resized.flatten(2)[0].T])
