"""Products of tensors: tensor product, entry by entry, dot, and stacks of matrices; each as its equation and at speed.

Sums over indices in general are in einsum.py.
"""

import functools
import itertools

import torch
from jaxtyping import Num
from torch import Tensor

from quoin.errors import UserError
from quoin.tensor.entries import check_same_dtype
from quoin.tensor.shapes import check_shapes

__all__ = ["bmm", "bmm_definition", "dot", "hadamard", "pure_tensor", "tensor_product", "tensor_product_definition"]


def tensor_product_definition(S: Num[Tensor, "..."], T: Num[Tensor, "..."]) -> Num[Tensor, "..."]:
    """(S ⊗ T)_(i.., j..) = S_(i..) T_(j..): every entry of the one times every entry of the other, so orders add.

    Notes: D1.2-10.
    """
    check_same_dtype(S, T)
    indices = itertools.product(itertools.product(*map(range, S.shape)), itertools.product(*map(range, T.shape)))
    entries = [S[i] * T[j] for i, j in indices]
    shape = (*S.shape, *T.shape)
    return torch.stack(entries).reshape(shape) if entries else S.new_zeros(shape)


def tensor_product(*tensors: Num[Tensor, "..."]) -> Num[Tensor, "..."]:
    """`tensor_product_definition` of two or more tensors, from left to right, each as one outer product.

    >>> tensor_product(torch.tensor([1, 2]), torch.tensor([1, 10, 100]))
    tensor([[  1,  10, 100],
            [  2,  20, 200]])

    Notes: D1.2-10.
    """
    if not tensors:
        raise UserError("expected at least one tensor to multiply, got none; give one or more")
    check_same_dtype(*tensors)
    return functools.reduce(lambda S, T: S.reshape(*S.shape, *[1] * T.ndim) * T, tensors)


def pure_tensor(*vectors: Num[Tensor, "_d"]) -> Num[Tensor, "..."]:
    """The pure tensor v1 ⊗ ... ⊗ vn, with an axis for each vector.

    Notes: D1.2-12.
    """
    for index, vector in enumerate(vectors, 1):
        if vector.ndim != 1:
            raise UserError(
                f"expected vectors, got argument {index} of shape {tuple(vector.shape)}; use tensor_product for tensors"
            )
    return tensor_product(*vectors)


def hadamard(A: Num[Tensor, "*shape"], B: Num[Tensor, "*shape"]) -> Num[Tensor, "*shape"]:
    """A ⊙ B, entry by entry: (A ⊙ B)_ij = A_ij B_ij, for two tensors of one shape.

    Notes: Z2.L.
    """
    check_shapes("..., ...", A=A, B=B)
    check_same_dtype(A, B)
    return A * B


def dot(x: Num[Tensor, "*batch n"], y: Num[Tensor, "*batch n"]) -> Num[Tensor, "*batch"]:
    """x · y = sum_i x_i y_i along the last axis.

    Notes: Z2.L.
    """
    check_shapes("... n, ... n", x=x, y=y)
    check_same_dtype(x, y)
    return (x * y).sum(dim=-1)


def bmm_definition(query: Num[Tensor, "n a b"], key: Num[Tensor, "n b c"]) -> Num[Tensor, "n a c"]:
    """[Q_1 K_1, ..., Q_n K_n]: the matrices of two stacks multiplied pair by pair.

    Notes: Z11.19.
    """
    check_shapes("n a b, n b c", query=query, key=key)
    check_same_dtype(query, key)
    if len(query) == 0:
        return query.new_zeros(0, query.shape[1], key.shape[2])
    return torch.stack([Q @ K for Q, K in zip(query, key, strict=True)])


def bmm(query: Num[Tensor, "n a b"], key: Num[Tensor, "n b c"]) -> Num[Tensor, "n a c"]:
    """`bmm_definition` as one call of torch's batched kernel.

    Notes: Z11.19.
    """
    check_shapes("n a b, n b c", query=query, key=key)
    check_same_dtype(query, key)
    return torch.bmm(query, key)
