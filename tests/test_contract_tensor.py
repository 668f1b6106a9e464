"""The contract of the tensor family: each definition equals its fast form, torch's or ours, in value and gradient."""

import math
from functools import partial

import pytest
import torch

from quoin.tensor import (
    bmm,
    bmm_definition,
    cosine_similarity,
    cosine_similarity_definition,
    cp_tensor,
    cp_tensor_definition,
    det,
    det_definition,
    einsum,
    einsum_definition,
    logsumexp,
    norm,
    norm_definition,
    softmax,
    tensor_product,
    tensor_product_definition,
)

PAIRS = {
    "softmax": (softmax, torch.softmax),
    "logsumexp": (logsumexp, torch.logsumexp),
}


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", PAIRS)
def test_definition_agrees_with_torch(name, dtype, seed):
    definition, fast = PAIRS[name]
    generator = torch.Generator().manual_seed(seed)
    shape = torch.randint(1, 6, (1 + seed % 4,), generator=generator).tolist()
    axis = seed % len(shape) - (seed % 2) * len(shape)  # from the front and from the back
    x = (5 * torch.randn(shape, generator=generator, dtype=dtype)).requires_grad_()
    with torch.no_grad():
        x.flatten()[0] = x.flatten()[-1]  # a tie for the maximum now and then
    ours, theirs = definition(x, axis), fast(x, axis)
    torch.testing.assert_close(ours, theirs)
    upstream = torch.randn(ours.shape, generator=generator, dtype=dtype)
    torch.testing.assert_close(torch.autograd.grad(ours, x, upstream), torch.autograd.grad(theirs, x, upstream))


@pytest.mark.parametrize("name", PAIRS)
def test_gradients_agree_with_finite_differences(name):
    x = torch.tensor([[0.3, -1.2, 2.0], [1.0, 1.0, -4.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda value: PAIRS[name][0](value, 1), x)


# ---- pairs of a definition and a fast form of ours --------------------------------------------------------------

# name -> (definition, fast form, shapes of the arguments); sizes are small, as a definition loops over entries
OURS = {
    **{
        f"einsum {spec}": (partial(einsum_definition, spec), partial(einsum, spec), shapes)
        for spec, shapes in {
            "ij,j": [(2, 3), (3,)],
            "ba": [(2, 3)],  # no arrow: alphabetical, so the transpose
            "ii": [(3, 3)],
            "ii->i": [(3, 3)],
            "ik,kj": [(2, 4), (4, 3)],
            "ik,jk->ji": [(2, 4), (3, 4)],
            "ikl,klj": [(2, 2, 3), (2, 3, 2)],
            "bik,bkj->bij": [(2, 2, 3), (2, 3, 2)],
            "bik,bkj->ij": [(2, 2, 3), (2, 3, 2)],
            "i,i,i->i": [(3,), (3,), (3,)],
            "ij,jk,kl->il": [(2, 3), (3, 2), (2, 2)],
            "aB,Bc->ca": [(2, 3), (3, 2)],
            ",i->i": [(), (3,)],
            "i->": [(4,)],
            "ij,k->": [(2, 2), (3,)],
            "...ij,...jk->...ik": [(2, 2, 3), (2, 3, 2)],
            "...i,i": [(2, 2, 3), (3,)],
            "i...,j->...j": [(2, 3), (2,)],
            "...i->i": [(2, 2, 3)],
        }.items()
    },
    "tensor_product": (tensor_product_definition, tensor_product, [(2, 3), (2, 2)]),
    "tensor_product of a scalar": (tensor_product_definition, tensor_product, [(), (2, 2)]),
    "bmm": (bmm_definition, bmm, [(3, 2, 4), (3, 4, 2)]),
    **{f"norm {p} along {axis}": (partial(norm_definition, p=p, dim=axis), partial(norm, p=p, dim=axis), [(3, 4)])
       for p in (1, 1.5, 2, 3, 7, math.inf) for axis in (0, -1)},
    "cosine_similarity": (cosine_similarity_definition, cosine_similarity, [(3, 4), (3, 4)]),
    "det": (det_definition, det, [(4, 4)]),
    "cp_tensor": (cp_tensor_definition, cp_tensor, [(2, 3), (3, 3), (2, 3)]),
    "cp_tensor of a vector": (cp_tensor_definition, cp_tensor, [(4, 2)]),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", OURS)
def test_definition_agrees_with_the_fast_form(name, dtype, seed):
    definition, fast, shapes = OURS[name]
    generator = torch.Generator().manual_seed(seed)
    arguments = [torch.randn(shape, generator=generator, dtype=dtype, requires_grad=True) for shape in shapes]
    ours, theirs = definition(*arguments), fast(*arguments)
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 1e-12, "atol": 1e-12}
    torch.testing.assert_close(ours, theirs, **tolerance)
    upstream = torch.randn(ours.shape, generator=generator, dtype=dtype)
    slow_slopes = torch.autograd.grad(ours, arguments, upstream)
    torch.testing.assert_close(slow_slopes, torch.autograd.grad(theirs, arguments, upstream), **tolerance)


@pytest.mark.parametrize("name", ["det", "cosine_similarity", "norm 3 along 0", "norm inf along -1", "cp_tensor"])
def test_the_fast_form_agrees_with_finite_differences(name):
    _, fast, shapes = OURS[name]
    generator = torch.Generator().manual_seed(0)
    arguments = [torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True) for shape in shapes]
    assert torch.autograd.gradcheck(fast, arguments)
