"""A layer by its name, and its output, whatever the model overwrites afterwards."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from jaxtyping import Shaped
from torch import Tensor, nn

from quoin.errors import UserError, did_you_mean, format_value

__all__ = ["capture_outputs", "find_layer", "layer_output"]


def find_layer(model: nn.Module, layer: str) -> nn.Module:
    """The module of this name in the model, or a UserError with the nearest name."""
    layers = {name: module for name, module in model.named_modules() if name}
    if layer not in layers:
        hint = did_you_mean(layer, layers)
        hint = (
            hint
            if "did you mean" in hint or len(layers) <= 8
            else f"its {len(layers)} modules run from {next(iter(layers))!r} on"
        )
        raise UserError(f"expected the name of a layer of {type(model).__name__}, got {format_value(layer)}: {hint}")
    return layers[layer]


@contextmanager
def capture_outputs(model: nn.Module, layers: Sequence[str]) -> Iterator[dict[str, Shaped[Tensor, "..."]]]:
    """Within, a call of one of these layers leaves its output under the layer's name; the last call counts if there are
    several."""
    found: dict[str, Tensor] = {}

    def hook(layer: str):
        def keep(module: nn.Module, inputs: object, output: object) -> Tensor:
            if not isinstance(output, Tensor):
                kind = type(output).__name__
                raise UserError(
                    f"expected a layer that puts out a tensor, got {format_value(layer)} with a {kind}; choose one "
                    "inside it"
                )
            found[layer] = output
            return (
                output.clone()
            )  # goes on through the model: what comes after may write over it, and the one kept here stays

        return keep

    handles = [find_layer(model, layer).register_forward_hook(hook(layer)) for layer in layers]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()
    if uncalled := [layer for layer in layers if layer not in found]:
        raise UserError(
            f"expected a layer that the model calls, got {format_value(uncalled[0])}, which it does not; "
            "choose one that it does"
        )


def layer_output(model: nn.Module, x: Shaped[Tensor, "..."], layer: str) -> Shaped[Tensor, "..."]:
    """What the layer puts out when the model is called with `x`, in the graph."""
    with capture_outputs(model, [layer]) as found:
        model(x)
    return found[layer]
