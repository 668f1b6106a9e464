"""A U-Net filled from Hugging Face's `UNet2DModel`, and one of these from ours: the same layers, some of which lie
there in pieces."""

import re
from typing import Any

from jaxtyping import Shaped
from torch import Tensor

from quoin.models.pretrained import Weights, WeightSource, foreign_weights, load_converted, stacked
from quoin.models.unet import UNet

__all__ = ["diffusers_unet_config", "diffusers_unet_weights", "load_diffusers_unet"]

_WHOLE = {"enter": "conv_in", "norm": "conv_norm_out", "leave": "conv_out", "time.0": "time_embedding.linear_1"}
_WHOLE |= {"time.2": "time_embedding.linear_2", "classes": "class_embedding"}
_SIDES = {"down": "down_blocks", "up": "up_blocks"}
_RESIZE = {"down": "downsamplers.0.conv", "up": "upsamplers.0.conv"}


def load_diffusers_unet(model: UNet, weights: Weights) -> None:
    """Fill a U-Net from the `state_dict` of a `UNet2DModel` of the same sizes, or from a safetensors file of one.

    That one has `DownBlock2D` and `UpBlock2D`, at the smallest size `AttnDownBlock2D` and `AttnUpBlock2D`, and else its
    defaults; with classes its `num_class_embeds` counts the label that stands for none.
    """
    load_converted(model, weights, lambda name: _source(model, name))


def diffusers_unet_weights(model: UNet) -> dict[str, Shaped[Tensor, "..."]]:
    """The weights of a U-Net as `UNet2DModel` names them: what `load_diffusers_unet` reads."""
    return foreign_weights(model, lambda name: _source(model, name))


def diffusers_unet_config(model: UNet) -> dict[str, Any]:
    """The config.json of the `UNet2DModel` of the same sizes."""
    first, *_ = levels = list(model.down)
    channels = [level.out_channels[0] for level in levels]
    attend: Any = next(iter(model.middle)).attentions[0]
    down, up = ([f"{side}Block2D"] * (len(channels) - 1) + [f"Attn{side}Block2D"] for side in ("Down", "Up"))
    return {
        "_class_name": "UNet2DModel",
        "sample_size": list(model.image_shape[1:]),
        "in_channels": model.image_shape[0],
        "out_channels": model.image_shape[0],
        "block_out_channels": channels,
        "layers_per_block": len(first.blocks),
        "down_block_types": down,
        "up_block_types": up[::-1],
        "attention_head_dim": attend.attend.head_dim,
        "norm_num_groups": model.norm.num_groups,
        "num_class_embeds": model.num_classes + 1 if model.num_classes else None,  # the last stands for none
    }


def _source(model: UNet, name: str) -> WeightSource:
    part, kind = name.rsplit(".", 1)
    if part == "condition_proj":
        return stacked(*(f"{block}.time_emb_proj.{kind}" for block in _blocks(model)), rows=model.out_channels)
    if name == "time.0.weight":
        return WeightSource(("time_embedding.linear_1.weight",), _waves_in_turn, _cosines_first)
    if part in _WHOLE:
        return WeightSource((f"{_WHOLE[part]}.{kind}",))
    side, number, rest = re.fullmatch(r"(down|middle|up)\.(\d+)\.(.+)", part).groups()  # pyright: ignore[reportOptionalMemberAccess]
    if rest == "resize":
        return WeightSource((f"{_SIDES[side]}.{number}.{_RESIZE[side]}.{kind}",))
    group, index, layer = rest.split(".", 2)
    home = f"mid_block.{{}}.{number}" if side == "middle" else f"{_SIDES[side]}.{number}.{{}}.{index}"
    if group == "blocks":
        return WeightSource((f"{home.format('resnets')}.{layer.replace('shortcut', 'conv_shortcut')}.{kind}",))
    home = home.format("attentions")
    if layer == "attend.in_proj.linear":
        return stacked(*(f"{home}.to_{letter}.{kind}" for letter in "qkv"))
    return WeightSource((f"{home}.{'group_norm' if layer == 'norm' else 'to_out.0'}.{kind}",))


def _blocks(model: UNet) -> list[str]:
    """Their names of our blocks, in the order of their time projections."""
    sides = {"down": model.down, "up": model.up}
    named = {
        side: [f"{_SIDES[side]}.{i}.resnets.{j}" for i, level in enumerate(levels) for j in range(len(level.blocks))]
        for side, levels in sides.items()
    }
    return [*named["down"], *(f"mid_block.resnets.{i}" for i in range(len(model.middle))), *named["up"]]


def _waves_in_turn(weight: Tensor) -> Tensor:  # (o, d) -> (o, d)
    """There all cosines come first and then all sines; here each sine is followed by its cosine."""
    return weight.unflatten(1, (2, -1)).flip(1).mT.flatten(1)


def _cosines_first(weight: Tensor) -> tuple[Tensor, ...]:  # (o, d) -> (o, d)
    """Undoes `_waves_in_turn`."""
    return (weight.unflatten(1, (-1, 2)).mT.flip(1).flatten(1),)
