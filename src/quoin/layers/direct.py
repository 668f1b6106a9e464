"""Torch's small layers without the price of being modules: for one token, finding and calling a layer takes as long as its work.

What decoding is made of is declared with `part` and called by `direct`; nothing else changes, in training least of all.
"""

from typing import Any

import torch
from torch import Tensor, nn

__all__: list[str] = []


def direct(module: nn.Module, x: Tensor) -> Tensor:
    """module(x), where no gradient is asked for by its function alone.

    A module with hooks is called as ever, and so is one compiled; a class of its own, as parametrised and adapted layers have, keeps
    its own forward.
    """
    if torch.is_grad_enabled() or module._forward_hooks or module._forward_pre_hooks or module._compiled_call_impl:
        return module(x)
    kind, parameters = type(module), module._parameters
    if kind is nn.Linear:
        return nn.functional.linear(x, parameters["weight"], parameters["bias"])  # pyright: ignore[reportArgumentType]
    if kind is nn.LayerNorm:
        shape, eps = module.normalized_shape, module.eps
        return torch.layer_norm(x, shape, parameters["weight"], parameters["bias"], eps)  # pyright: ignore[reportArgumentType]
    if kind is nn.Embedding and module.max_norm is None:
        return torch.embedding(parameters["weight"], x)  # pyright: ignore[reportArgumentType]
    if kind is nn.Dropout and not module.training:
        return x
    return module.forward(x)


def part() -> Any:
    """Declares a submodule in its class, `norm: nn.Module = part()`, so that it is found at once.

    A module looks for its submodules only when Python has found no attribute of that name, which takes six times as long.
    """
    return _Part()


class _Part:
    """Has no __set__: what a module is given under this name it keeps where it always does."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, module: nn.Module | None, owner: type | None = None) -> Any:
        if module is None:
            return self
        try:
            return module._modules[self.name]
        except KeyError:
            raise AttributeError(f"{type(module).__name__} has no {self.name}") from None
