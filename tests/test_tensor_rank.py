"""Pure tensors, CP decompositions and rank bounds, on tensors whose rank mathematics knows."""

import pytest
import torch
from torch import Tensor

from quoin.errors import Mistake
from quoin.tensor import CP, cp_decompose, cp_rank, cp_tensor, cp_tensor_definition, is_pure, pure, unfolding_ranks

E1, E2 = torch.eye(2, dtype=torch.float64)
BORDER = pure(E1, E1, E2) + pure(E1, E2, E1) + pure(E2, E1, E1)  # rank 3, a limit of rank 2


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def complex_multiplication() -> Tensor:
    """(a + bi)(c + di) as a tensor: rank 3 over the reals (Gauss's three products), with unfoldings of rank 2."""
    return pure(E1, E1, E1) - pure(E2, E2, E1) + pure(E1, E2, E2) + pure(E2, E1, E2)


def two_by_two_products() -> Tensor:
    """The product of 2 x 2 matrices as a tensor: rank 7 (Strassen; Winograd), with unfoldings of rank 4."""
    T = torch.zeros(4, 4, 4, dtype=torch.float64)
    for i in range(2):
        for j in range(2):
            for k in range(2):
                T[2 * i + j, 2 * j + k, 2 * k + i] = 1
    return T


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 4), (2, 2, 2, 2, 2, 2), (1, 1, 1)])
def test_pure_tensors_are_pure(shape, dtype):
    for seed in range(5):
        vectors = [normal(size, seed=seed * 10 + k).to(dtype) for k, size in enumerate(shape)]
        assert is_pure(pure(*vectors))
        assert unfolding_ranks(pure(*vectors)) == (1,) * len(shape)
        vectors[seed % len(shape)].zero_()
        assert is_pure(pure(*vectors))
        assert unfolding_ranks(pure(*vectors)) == (0,) * len(shape)


def test_what_is_not_pure():
    assert not is_pure(torch.eye(2))
    assert not is_pure(BORDER)
    # One unfolding of rank 1 is not enough: a vector times the identity.
    T = torch.stack([torch.eye(2), 2 * torch.eye(2)])
    assert unfolding_ranks(T) == (1, 2, 2)
    assert not is_pure(T)
    nearly = pure(E1, E1) + 1e-6 * pure(E2, E2)
    assert not is_pure(nearly)
    assert is_pure(nearly, tolerance=1e-3)


@pytest.mark.parametrize("shape", [(1, 5), (4, 4), (6, 3)])
def test_in_order_two_rank_is_matrix_rank(shape):
    for rank in range(min(shape) + 1):
        A = normal(shape[0], rank, seed=rank) @ normal(rank, shape[1], seed=rank + 1)
        bounds = cp_rank(A)
        assert (bounds.lower, bounds.upper, bounds.decided) == (rank, rank, True)
        torch.testing.assert_close(bounds.decomposition.tensor(), A)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("shape", "rank"), [((3, 4, 5), 1), ((3, 4, 5), 3), ((4, 4, 4), 4), ((3, 2, 3, 2), 3), ((2, 2, 2, 2), 2)])
def test_sums_of_independent_pure_tensors(shape, rank, dtype):
    T = cp_tensor(*(normal(size, rank, seed=k).to(dtype) for k, size in enumerate(shape)))
    bounds = cp_rank(T)
    assert (bounds.lower, bounds.upper) == (rank, rank), str(bounds)
    assert bounds.decomposition.factors[0].dtype == dtype
    tolerance = 1e-4 if dtype == torch.float32 else 1e-9
    torch.testing.assert_close(cp_tensor_definition(*bounds.decomposition.factors), T, rtol=tolerance, atol=tolerance)


def test_every_grouping_of_axes_bounds_from_below():
    # Axes {1, 2} against {3, 4} are tied as an identity of size 4; each axis alone shows rank 2 only.
    T = torch.eye(4, dtype=torch.float64).reshape(2, 2, 2, 2)
    assert unfolding_ranks(T) == (2, 2, 2, 2)
    bounds = cp_rank(T)
    assert (bounds.lower, bounds.upper) == (4, 4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seed", range(3))
def test_a_limit_of_rank_two_is_not_called_rank_two(seed, dtype):
    bases = [normal(2, 2, seed=seed * 3 + k) for k in range(3)] if seed else [torch.eye(2, dtype=torch.float64)] * 3
    T = torch.einsum("abc,ia,jb,kc->ijk", BORDER, *bases).to(dtype)
    near = cp_decompose(T, 2, seed=seed, sweeps=300)
    assert near.residual < 1e-3  # it comes near
    assert near.size > 5  # by cancelling
    assert not near.adds_up  # and is not believed
    bounds = cp_rank(T, seed=seed)
    assert (bounds.lower, bounds.upper, bounds.decided) == (2, 3, False)
    assert bounds.decomposition.adds_up
    assert str(bounds).startswith("rank from 2 to 3 (at least 2 by its unfoldings; at most 3 by ")


def test_a_sequence_to_the_limit_is_never_believed():
    for power in range(1, 9):
        near = 10.0**-power
        for factors in (
            [torch.stack([E1 + near * E2, E1], 1)] * 2 + [torch.stack([E1 + near * E2, -E1], 1) / near],
            [torch.stack([E1 + near * E2, E1 - near * E2], 1)] * 2 + [torch.stack([E1 + near * E2, near * E2 - E1], 1) / near / 2],
        ):
            total = torch.linalg.vector_norm(BORDER)
            residual = torch.linalg.vector_norm(cp_tensor(*factors) - BORDER) / total
            size = max(float(torch.linalg.vector_norm(pure(*(f[:, i] for f in factors))) / total) for i in range(2))
            for tolerance in (1e-10, 1e-5):
                assert not CP(tuple(factors), float(residual), size, tolerance).adds_up


@pytest.mark.parametrize(("tensor", "lower", "rank"), [(complex_multiplication, 2, 3), (two_by_two_products, 4, 7)])
def test_famous_tensors_are_bounded_on_the_right_side(tensor, lower, rank):
    bounds = cp_rank(tensor())
    assert bounds.lower == lower
    assert bounds.upper >= rank  # fewer would overturn a theorem
    assert bounds.upper == rank  # and the search finds Gauss's three and Strassen's seven
    torch.testing.assert_close(bounds.decomposition.tensor(), tensor())


def test_zero_vectors_and_scales():
    zero = cp_rank(torch.zeros(2, 3, 4))
    assert (zero.lower, zero.upper, zero.decomposition.rank) == (0, 0, 0)
    assert zero.decomposition.tensor().tolist() == torch.zeros(2, 3, 4).tolist()
    assert (cp_rank(torch.ones(5)).lower, cp_rank(torch.ones(5)).upper) == (1, 1)
    for scale in (1e-100, 1e100):
        bounds = cp_rank(scale * cp_tensor(normal(3, 2), normal(3, 2, seed=1), normal(3, 2, seed=2)))
        assert (bounds.lower, bounds.upper) == (2, 2)
    assert cp_decompose(torch.zeros(2, 2), 1).residual == 0


def test_decompositions_depend_on_the_seed_alone():
    T = normal(3, 3, 3)
    one, two = cp_decompose(T, 2, seed=4), cp_decompose(T, 2, seed=4)
    assert all(torch.equal(a, b) for a, b in zip(one.factors, two.factors))
    assert one.residual > 0.01  # a generic tensor of these sizes has rank 5


def test_a_matrix_approximated_below_its_rank_is_the_truncated_svd():
    A = normal(4, 5)
    values = torch.linalg.svdvals(A)
    expected = values[2:].square().sum().sqrt() / values.square().sum().sqrt()  # Eckart and Young
    assert cp_decompose(A, 2).residual == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.parametrize(
    ("T", "words"),
    [
        (torch.tensor(1.0), "order at least 1"),
        (torch.zeros(2, 0), "order at least 1 with entries"),
        (torch.ones(2, 2).long(), "float dtype, came torch.int64"),
        (torch.ones(2, 2) * 1j, "take its real part"),
        (torch.tensor([[1.0, torch.nan]]), r"came nan at \(0, 1\)"),
    ],
)
def test_bad_tensors(T, words):
    for call in (cp_rank, is_pure, unfolding_ranks, lambda T: cp_decompose(T, 1)):
        with pytest.raises(Mistake, match=words):
            call(T)


def test_bad_ranks_and_factors():
    with pytest.raises(Mistake, match="at least 1, came 0, 10 and 100"):
        cp_decompose(torch.ones(2, 2), 0)
    for form in (cp_tensor, cp_tensor_definition):
        with pytest.raises(Mistake, match=r"of one r, came shapes \[\(2, 3\), \(2, 4\)\]"):
            form(torch.ones(2, 3), torch.ones(2, 4))
