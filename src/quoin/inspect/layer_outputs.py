"""A layer by its name, and its output, whatever the model overwrites afterwards."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import Tensor, nn

from quoin.errors import Mistake, nearest, shown

__all__ = ["capture_outputs", "find_layer", "layer_output"]


def find_layer(model: nn.Module, path: str) -> nn.Module:
    """The module of this name in the model, or a Mistake with the nearest name."""
    layers = {name: module for name, module in model.named_modules() if name}
    if path not in layers:
        hint = nearest(path, layers)
        hint = hint if "did you mean" in hint or len(layers) <= 8 else f"its {len(layers)} modules run from {next(iter(layers))!r} on"
        raise Mistake(f"expected the name of a layer of {type(model).__name__}, came {shown(path)}: {hint}")
    return layers[path]


@contextmanager
def capture_outputs(model: nn.Module, paths: Sequence[str]) -> Iterator[dict[str, Tensor]]:
    """Within, a call of one of these layers leaves its output under the layer's name; the last call counts if there are several."""
    found: dict[str, Tensor] = {}

    def hook(path: str):
        def keep(module: nn.Module, inputs: object, output: object) -> Tensor:
            if not isinstance(output, Tensor):
                kind = type(output).__name__
                raise Mistake(f"expected a layer that puts out a tensor, came {shown(path)} with a {kind}; choose one inside it")
            found[path] = output
            return output.clone()  # goes on through the model: what comes after may write over it, and the one kept here stays

        return keep

    handles = [find_layer(model, path).register_forward_hook(hook(path)) for path in paths]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()
    if silent := [path for path in paths if path not in found]:
        raise Mistake(f"expected a layer that the model calls, came {shown(silent[0])}, which it does not; choose one that it does")


def layer_output(model: nn.Module, x: Tensor, path: str) -> Tensor:
    """What the layer puts out when the model is called with `x`, in the graph."""
    with capture_outputs(model, [path]) as found:
        model(x)
    return found[path]
