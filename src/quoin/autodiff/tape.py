"""A small reverse mode to read: variables that record how they were made, and one loop that sends adjoints back.

The rules of the operations are the table in rules.py. Methods bear torch's names, so a function of `Var`s is mostly a
function of tensors too, and `if`, `for` and `while` need nothing special: what is recorded is what ran. The fast form
is torch.autograd.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from quoin.autodiff.rules import RULES
from quoin.display import short, shown, table
from quoin.errors import UserError, format_value

__all__ = ["Var", "backward", "concatenate", "past"]

_count = itertools.count()


@shown
class Var:
    """A value, and the operation and the variables that made it.

    Args:
        value: A float tensor, or numbers for one of the default dtype.
        op: Which of `RULES` made it; empty for a leaf.
        inputs: The variables that it was made from.
        settings: Arguments of the operation that are no variables, such as an axis.

    >>> x = Var(3.0)
    >>> y = x * x + x
    >>> backward(y)[x]
    Var(7., add)

    Notes: Z2.6.
    """

    def __init__(self, value: Any, op: str = "", inputs: tuple["Var", ...] = (), settings: tuple = ()):
        made = (
            torch.as_tensor(value)
            if isinstance(value, Tensor)
            else torch.tensor(value, dtype=torch.get_default_dtype())
        )
        if not made.is_floating_point():
            raise UserError(f"expected floats for a variable, got {made.dtype}; convert them with .double()")
        self.value, self.op, self.inputs, self.settings = made.detach(), op, inputs, settings
        self.born = next(_count)  # later than its inputs: the order of births is an order of the graph

    # ---- operators
    def __add__(self, other: Any) -> "Var":
        return _pair("add", self, other)

    def __sub__(self, other: Any) -> "Var":
        return _pair("sub", self, other)

    def __mul__(self, other: Any) -> "Var":
        return _pair("mul", self, other)

    def __truediv__(self, other: Any) -> "Var":
        return _pair("div", self, other)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: Any) -> "Var":
        return _pair("sub", other, self)

    def __rtruediv__(self, other: Any) -> "Var":
        return _pair("div", other, self)

    def __neg__(self) -> "Var":
        return _apply("neg", self)

    def __pow__(self, exponent: float) -> "Var":
        if not isinstance(exponent, (int, float)):
            raise UserError(
                f"expected a plain number as an exponent, got {format_value(exponent)}; write (y * x.log()).exp() "
                "for x ** y"
            )
        return _apply("pow", self, settings=(exponent,))

    def __matmul__(self, other: "Var | Tensor") -> "Var":
        left, right = self, _like(other, self)
        if not left.ndim or not right.ndim or left.shape[-1] != right.shape[-min(2, right.ndim)]:
            sides = f"{tuple(left.shape)} @ {tuple(right.shape)}"
            raise UserError(
                f"expected the last axis of the left to be the rows of the right, got {sides}; transpose one"
            )
        rows, columns = left.ndim == 1, right.ndim == 1  # a vector is a matrix of one row, or of one column
        left = left.reshape((1, *left.shape)) if rows else left
        right = right.reshape((*right.shape, 1)) if columns else right
        batch = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        product = _apply("matmul", left.expand((*batch, *left.shape[-2:])), right.expand((*batch, *right.shape[-2:])))
        kept = [size for dim, size in enumerate(product.shape[-2:]) if not (rows, columns)[dim]]
        return product.reshape((*batch, *kept))

    def __getitem__(self, index: Any) -> "Var":
        return _apply("take", self, settings=(index,))

    def __gt__(self, other: Any) -> Tensor:
        return self.value > _like(other, self).value

    def __lt__(self, other: Any) -> Tensor:
        return self.value < _like(other, self).value

    def __float__(self) -> float:
        return float(self.value)

    # ---- functions of each number
    def exp(self) -> "Var":
        return _apply("exp", self)

    def log(self) -> "Var":
        return _apply("log", self)

    def sin(self) -> "Var":
        return _apply("sin", self)

    def cos(self) -> "Var":
        return _apply("cos", self)

    def sqrt(self) -> "Var":
        return _apply("sqrt", self)

    def tanh(self) -> "Var":
        return _apply("tanh", self)

    def sigmoid(self) -> "Var":
        return _apply("sigmoid", self)

    def relu(self) -> "Var":
        return _apply("relu", self)

    def abs(self) -> "Var":
        return _apply("abs", self)

    def sign(self) -> "Var":
        return _apply("sign", self)

    # ---- axes
    @property
    def shape(self) -> torch.Size:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return self.value.ndim

    @property
    def mT(self) -> "Var":  # noqa: N802 - torch's name
        return _apply("mT", self)

    def sum(self, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> "Var":
        given = range(self.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
        dims = tuple(dim % self.ndim for dim in given)
        summed = _apply("sum", self, settings=(dims,))
        return summed if keepdim else summed.reshape([size for dim, size in enumerate(self.shape) if dim not in dims])

    def mean(self, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> "Var":
        summed = self.sum(dim, keepdim)
        return summed / (self.value.numel() / max(1, summed.value.numel()))

    def reshape(self, shape: Sequence[int]) -> "Var":
        return self if tuple(shape) == self.shape else _apply("reshape", self, settings=(tuple(shape),))

    def expand(self, shape: Sequence[int]) -> "Var":
        return self if tuple(shape) == self.shape else _apply("expand", self, settings=(tuple(shape),))

    def sum_to(self, shape: Sequence[int]) -> "Var":
        """What undoes `expand` from `shape` on the way back: the sum over every copy."""
        new = self.ndim - len(shape)
        copied = [dim for dim in range(self.ndim) if dim < new or (shape[dim - new] == 1 and self.shape[dim] != 1)]
        return self.sum(copied, keepdim=True).reshape(shape) if copied else self

    def put(self, shape: Sequence[int], index: Any) -> "Var":
        """What undoes `[index]` of a tensor of `shape` on the way back: zeros, and these numbers added at `index`."""
        return _apply("put", self, settings=(torch.Size(shape), index))

    def detach(self) -> "Var":
        """The same value with no past: adjoints stop here."""
        return Var(self.value)

    def __repr__(self) -> str:
        made = f", {self.op}" if self.op else ""
        return f"Var({short(self.value).removeprefix('tensor(').removesuffix(')')}{made})"

    def _repr_html_(self) -> str:
        from quoin.autodiff.picture import MOST_PICTURED, plot_tape

        made = past(self)
        if len(made) <= MOST_PICTURED:
            return plot_tape(self).figure_html(f"a variable and the {len(made) - 1} it was made from")
        return table(("op", "value"), [(each.op or "leaf", short(each.value)) for each in made], caption=repr(self))


def concatenate(variables: Sequence[Var], dim: int = 0) -> Var:
    """Variables end to end along an axis."""
    if not variables:
        raise UserError("expected one or more variables to concatenate, got none; give a list")
    return _apply("concatenate", *variables, settings=(dim % variables[0].ndim,))


def backward(output: Var, adjoint: Var | None = None) -> dict[Var, Var]:
    """The adjoint ∂output/∂v of every variable v that output was made from: last made, first served.

    An adjoint is a variable made by the rules from others, so it can be sent through `backward` again for a second
    derivative.

    Args:
        adjoint: Of the output's shape; 1 unless given, for an output of one number.

    >>> x = Var(2.0)
    >>> derivative = backward(x**3)[x]
    >>> derivative, backward(derivative)[x]
    (Var(12., mul), Var(12., mul))

    Notes: Z2.6.
    """
    if adjoint is None and output.value.numel() != 1:
        raise UserError(
            f"expected an output of one number, got shape {tuple(output.shape)}; sum it, or give its adjoint"
        )
    adjoint = Var(torch.ones_like(output.value)) if adjoint is None else adjoint
    if adjoint.shape != output.shape:
        raise UserError(f"expected an adjoint of shape {tuple(output.shape)}, got {tuple(adjoint.shape)}; reshape it")
    adjoints = {output: adjoint}
    for variable in past(output):
        if variable.op:
            rule, g = RULES[variable.op], adjoints[variable]
            for source, contribution in zip(
                variable.inputs, rule.adjoints(g, variable, *variable.inputs, *variable.settings), strict=True
            ):
                adjoints[source] = adjoints[source] + contribution if source in adjoints else contribution
    return adjoints


def past(output: Var) -> list[Var]:
    """`output` and all it was made from, each before its inputs."""
    found, todo = {output}, [output]
    while todo:
        for source in todo.pop().inputs:
            if source not in found:
                found.add(source)
                todo.append(source)
    return sorted(found, key=lambda variable: -variable.born)


def _apply(op: str, *inputs: Var, settings: tuple = ()) -> Var:
    return Var(RULES[op].value(*(each.value for each in inputs), *settings), op, inputs, settings)


def _pair(op: str, left: Any, right: Any) -> Var:
    """An operation on two, broadcast to one shape first."""
    left = _like(left, right) if not isinstance(left, Var) else left
    right = _like(right, left)
    try:
        shape = torch.broadcast_shapes(left.shape, right.shape)
    except RuntimeError as error:
        got = f"{tuple(left.shape)} and {tuple(right.shape)}"
        raise UserError(
            f"expected shapes that broadcast for {op}, got {got}; make their last axes equal or 1"
        ) from error
    return _apply(op, left.expand(shape), right.expand(shape))


def _like(value: Any, other: Var) -> Var:
    """A plain number or tensor as a constant of the other's type."""
    return (
        value
        if isinstance(value, Var)
        else Var(torch.as_tensor(value, dtype=other.value.dtype, device=other.value.device))
    )
