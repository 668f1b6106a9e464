"""Dense networks between frameworks: what TensorFlow/Keras, JAX/Flax and PyTorch store differs by a transpose.

A dense layer travels as a pair of numpy arrays, the kernel (in_features, out_features) and the bias (out_features,):
the layout of Keras' `get_weights()` and of Flax. PyTorch keeps the matrix of A x + b, (out_features, in_features).
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from quoin.errors import UserError

__all__ = ["export_dense", "import_dense"]


def export_dense(
    model: nn.Module,
) -> list[tuple[np.ndarray, np.ndarray]]:  # (in_features, out_features), (out_features,)
    """The kernel and bias of each `torch.nn.Linear` of `model`, in the order of `modules()`, as copies.

    Notes: D0-1.
    """
    return [(layer.weight.detach().cpu().numpy().T.copy(), _bias(layer)) for layer in _linears(model)]


def import_dense(
    model: nn.Module, layers: Sequence[tuple[np.ndarray, np.ndarray]]
) -> None:  # (in_features, out_features), (out_features,)
    """Set the weights of each `torch.nn.Linear` of `model` from kernels and biases: the inverse of `export_dense`.

    Args:
        layers: For each the kernel (in_features, out_features), as in Keras, and the bias (out_features,).

    Notes: D0-1.
    """
    linears = _linears(model)
    if len(layers) != len(linears):
        raise UserError(
            f"expected a kernel and a bias for each of {len(linears)} dense layers, got {len(layers)}; build equal "
            "models"
        )
    for number, (layer, (kernel, bias)) in enumerate(zip(linears, layers), start=1):
        expected = ((layer.in_features, layer.out_features), (layer.out_features,))
        if (kernel.shape, bias.shape) != expected:
            raise UserError(
                f"expected a kernel (in_features, out_features) and a bias of shapes {expected[0]} and {expected[1]} "
                f"for dense layer {number}, "
                f"got {kernel.shape} and {bias.shape}; transpose the kernel or build equal models"
            )
    with torch.no_grad():  # only now: a mistake in the last layer must not leave the first ones changed
        for layer, (kernel, bias) in zip(linears, layers):
            layer.weight.copy_(torch.from_numpy(np.array(kernel.T)))
            layer.bias.copy_(torch.from_numpy(np.array(bias)))


def _linears(model: nn.Module) -> list[nn.Linear]:
    found = [module for module in model.modules() if isinstance(module, nn.Linear)]
    if any(isinstance(layer, nn.LazyLinear) for layer in found):
        raise UserError("expected linear layers of known sizes, got a lazy one; send one batch through the model first")
    if any(layer.bias is None for layer in found):
        raise UserError("expected linear layers with a bias, got one without; build them with bias=True")
    return found


def _bias(layer: nn.Linear) -> np.ndarray:
    return layer.bias.detach().cpu().numpy().copy()
