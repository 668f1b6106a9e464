"""A model in evaluation mode for as long as it is only asked, and afterwards as it was."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

__all__ = ["eval_mode"]


@contextmanager
def eval_mode(model: object) -> Iterator[None]:
    """Within, the model is in evaluation mode and its activations keep their input; after, every module is as it was
    before.

    What is no `nn.Module`, such as a function, has no modes and stays as it is.
    """
    modules = list(model.modules()) if isinstance(model, nn.Module) else []
    training = [module for module in modules if module.training]
    inplace = [module for module in modules if getattr(module, "inplace", False) is True]
    try:
        for module in training:
            module.training = False
        for module in inplace:
            module.inplace = False  # pyright: ignore[reportArgumentType]
        yield
    finally:
        for module in training:
            module.training = True
        for module in inplace:
            module.inplace = True  # pyright: ignore[reportArgumentType]
