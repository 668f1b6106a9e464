"""Layers called without the price of a module call: for one token, finding and calling a layer takes as long as its
work.

Only decode steps are written with it; a forward pass calls its layers as every PyTorch module does.
"""

from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from quoin.layers.feed_forward import FeedForward
from quoin.layers.onednn import Linear

__all__: list[str] = []


def submodules(owner: nn.Module, *names: str) -> list[Any]:
    """These attributes, taken from where `nn.Module` keeps its submodules: an attribute takes many times as long to
    find."""
    found = owner._modules
    return [found[name] if name in found else getattr(owner, name) for name in names]


def fast_call(module: nn.Module | None, x: Shaped[Tensor, "..."]) -> Float[Tensor, "..."]:
    """module(x); where no gradient is asked for, by the layer's function alone.

    A module with hooks is called as ever, and so is one compiled; a class of its own, as parametrised and adapted
    layers have, keeps its own forward.
    """
    assert module is not None
    if torch.is_grad_enabled() or module._forward_hooks or module._forward_pre_hooks or module._compiled_call_impl:
        return module(x)
    kind, parameters = type(module), module._parameters
    if kind is nn.Linear or kind is Linear:  # for one token, the latter is the former
        return nn.functional.linear(x, parameters["weight"], parameters["bias"])  # pyright: ignore[reportArgumentType]
    if kind is nn.LayerNorm:
        shape, eps = module.normalized_shape, module.eps
        return torch.layer_norm(x, shape, parameters["weight"], parameters["bias"], eps)  # pyright: ignore[reportArgumentType]
    if kind is nn.Dropout and not module.training:
        return x
    if kind is FeedForward:
        up_proj, activation, down_proj = submodules(module, "up_proj", "activation", "down_proj")
        return fast_call(down_proj, activation(fast_call(up_proj, x)))
    if kind is nn.Embedding and module.max_norm is None:
        return torch.embedding(parameters["weight"], x)  # pyright: ignore[reportArgumentType]
    return module.forward(x)
