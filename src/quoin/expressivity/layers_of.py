"""A ReLU network as its list of affine maps, the form in which everything in this package reads it.

Any module will do that is a chain of Linear and ReLU, however it is nested. The order is read from the modules and then
held against what the module computes, so that a network with a branch in its forward pass is an error and not misread.
"""

import torch
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.layers import Affine, collapse

__all__ = ["affine_layers", "relu_network"]

_PROBES = 32


def affine_layers(net: nn.Module) -> list[Affine]:
    """The maps of x -> A_L relu(... relu(A_1 x + b_1) ...) + b_L, in float64: a ReLU stands between them and none after
    the last.

    Linear maps with nothing between them become one, and a ReLU at either end gets an identity beyond it.

    Args:
        net: Linear and ReLU in a row; Identity, Flatten and, in evaluation mode, Dropout may stand between them.

    >>> [tuple(each.weight.shape) for each in affine_layers(nn.Sequential(nn.Linear(2, 5), nn.ReLU(), nn.Linear(5, 1)))]
    [(5, 2), (1, 5)]
    """
    chain = [leaf for leaf in _leaves(net) if not _passes(leaf)]
    for leaf in chain:
        if not isinstance(leaf, (nn.Linear, nn.ReLU)):
            raise UserError(
                f"expected a chain of Linear and ReLU, got {type(leaf).__name__}; exact pieces need ReLU, so "
                "change the layer"
            )
    linears = [leaf for leaf in chain if isinstance(leaf, nn.Linear)]
    if not linears:
        raise UserError("expected a network with at least one Linear, got one with none; put Linear and ReLU in a row")
    groups: list[list[Affine]] = [[]]
    for leaf in chain:
        if isinstance(leaf, nn.Linear):
            groups[-1].append(_affine(leaf))
        else:
            groups.append([])
    if not groups[0]:
        groups[0] = [_identity(linears[0].in_features)]
    if not groups[-1]:
        groups[-1] = [_identity(linears[-1].out_features)]
    layers = [collapse([each.weight for each in group], [each.bias for each in group]) for group in groups if group]
    if not all(each.weight.isfinite().all() and each.bias.isfinite().all() for each in layers):
        raise UserError(
            "expected finite weights, got a network with inf or NaN; go back to a checkpoint before it diverged"
        )
    _check_is_chain(net, layers)
    return layers


def relu_network(layers: list[Affine]) -> nn.Sequential:
    """The network of these affine maps with ReLU between them, in their dtype: `affine_layers` backwards."""
    modules: list[nn.Module] = []
    for weight, bias in layers:
        linear = nn.Linear(weight.shape[1], weight.shape[0], dtype=weight.dtype)
        with torch.no_grad():
            linear.weight.copy_(weight)
            linear.bias.copy_(bias)
        modules += [linear, nn.ReLU()]
    return nn.Sequential(*modules[:-1])


def _leaves(net: nn.Module) -> list[nn.Module]:
    # Through children, not modules(): a layer that occurs twice in a chain counts at both.
    children = [child for child in net._modules.values() if child is not None]
    return [leaf for child in children for leaf in _leaves(child)] if children else [net]


def _passes(leaf: nn.Module) -> bool:
    return isinstance(leaf, (nn.Identity, nn.Flatten)) or (isinstance(leaf, nn.Dropout) and not leaf.training)


def _affine(linear: nn.Linear) -> Affine:
    weight = linear.weight.detach().to("cpu", torch.float64)
    bias = (
        torch.zeros(len(weight), dtype=torch.float64)
        if linear.bias is None
        else linear.bias.detach().to("cpu", torch.float64)
    )
    return Affine(weight, bias)


def _identity(size: int) -> Affine:
    return Affine(torch.eye(size, dtype=torch.float64), torch.zeros(size, dtype=torch.float64))


def _check_is_chain(net: nn.Module, layers: list[Affine]) -> None:
    parameter = next(net.parameters())
    x: Tensor = 2 * torch.randn(
        _PROBES, layers[0].weight.shape[1], generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    with torch.no_grad():
        try:
            given = net(x.to(parameter.device, parameter.dtype)).to("cpu", torch.float64)
        except RuntimeError as error:
            raise UserError(
                f"expected a chain of Linear and ReLU on batches of vectors, got one that fails: {_one_line(error)}"
            ) from error
        magnitude = x.abs()  # what rounding can grow to: the same pass with every sign made positive
        for index, (weight, bias) in enumerate(layers):
            x, magnitude = x @ weight.T + bias, magnitude @ weight.T.abs() + bias.abs()
            x = x.relu() if index < len(layers) - 1 else x
    units = sum(each.weight.shape[1] + 2 for each in layers)
    if given.shape != x.shape or ((given - x).abs() > units * torch.finfo(parameter.dtype).eps * magnitude).any():
        raise UserError(
            "expected a module that applies its Linear and ReLU layers in their order, got another function; write "
            "it as a chain"
        )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:80]
