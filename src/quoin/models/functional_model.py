"""A neural network as a function of its parameters: theta, a vector of p numbers, goes in, and the function f_theta
comes out."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call

from quoin.errors import UserError
from quoin.tensor import check_shapes

__all__ = ["functional_model", "num_parameters", "parameter_vector"]


def num_parameters(model: nn.Module) -> int:
    """The dimension p of theta; parameters that two layers share count once.

    Notes: D1-0.
    """
    return sum(parameter.numel() for parameter in _parameters(model).values())


def parameter_vector(model: nn.Module) -> Float[Tensor, "parameters"]:
    """theta: a copy of all parameters laid end to end, in the order of `model.parameters()`.

    Notes: D1-0.
    """
    pieces = [parameter.detach().reshape(-1) for parameter in _parameters(model).values()]
    return torch.cat(pieces) if pieces else torch.empty(0)


def functional_model(model: nn.Module, theta: Float[Tensor, "parameters"]) -> Callable[[Tensor], Tensor]:
    """f_theta: the function that `model` computes with the parameters theta; the model itself stays as it is.

    Gradients with respect to theta are those of the parameters, laid end to end.

    >>> model = nn.Linear(2, 1)
    >>> f = functional_model(model, torch.tensor([2.0, 3.0, 1.0]))
    >>> f(torch.tensor([10.0, 100.0]))
    tensor([321.])

    Notes: D1-0.
    """
    check_shapes("p", theta=theta)
    parameters = _parameters(model)
    sizes = [parameter.numel() for parameter in parameters.values()]
    if len(theta) != sum(sizes):
        raise UserError(
            f"expected a vector of the model's {sum(sizes)} parameters, got {len(theta)} numbers; see "
            "num_parameters(model)"
        )
    if not theta.is_floating_point():
        raise UserError(f"expected parameters of a float type, got {theta.dtype}; convert them with .float()")
    pieces = torch.split(theta, sizes)
    named = {name: piece.reshape(like.shape) for (name, like), piece in zip(parameters.items(), pieces, strict=True)}
    return lambda x: functional_call(model, named, (x,))


def _parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    found = dict(model.named_parameters())
    if any(isinstance(parameter, nn.UninitializedParameter) for parameter in found.values()):
        raise UserError("expected parameters of known shapes, got lazy ones; send one batch through the model first")
    return found
