"""Pure tensors, CP decompositions and rank bounds, on tensors whose rank mathematics knows."""

import pytest
import torch
from torch import Tensor

from quoin.errors import UserError
from quoin.tensor import (
    CP,
    cp_decompose,
    cp_rank,
    cp_tensor,
    cp_tensor_definition,
    hyperdeterminant,
    is_pure,
    pure_tensor,
    unfolding_ranks,
)
from seeds import seeded

E1, E2 = torch.eye(2, dtype=torch.float64)
BORDER = pure_tensor(E1, E1, E2) + pure_tensor(E1, E2, E1) + pure_tensor(E2, E1, E1)  # rank 3, a limit of rank 2


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=seeded(seed), dtype=torch.float64)


def complex_multiplication() -> Tensor:
    """(a + bi)(c + di) as a tensor: rank 3 over the reals (Gauss's three products), with unfoldings of rank 2."""
    return pure_tensor(E1, E1, E1) - pure_tensor(E2, E2, E1) + pure_tensor(E1, E2, E2) + pure_tensor(E2, E1, E2)


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
        assert is_pure(pure_tensor(*vectors))
        assert unfolding_ranks(pure_tensor(*vectors)) == (1,) * len(shape)
        vectors[seed % len(shape)].zero_()
        assert is_pure(pure_tensor(*vectors))
        assert unfolding_ranks(pure_tensor(*vectors)) == (0,) * len(shape)


def test_what_is_not_pure():
    assert not is_pure(torch.eye(2))
    assert not is_pure(BORDER)
    # One unfolding of rank 1 is not enough: a vector times the identity.
    T = torch.stack([torch.eye(2), 2 * torch.eye(2)])
    assert unfolding_ranks(T) == (1, 2, 2)
    assert not is_pure(T)
    nearly = pure_tensor(E1, E1) + 1e-6 * pure_tensor(E2, E2)
    assert not is_pure(nearly)
    assert is_pure(nearly, tol=1e-3)


@pytest.mark.parametrize("shape", [(1, 5), (4, 4), (6, 3)])
def test_in_order_two_rank_is_matrix_rank(shape):
    for rank in range(min(shape) + 1):
        A = normal(shape[0], rank, seed=rank) @ normal(rank, shape[1], seed=rank + 1)
        bounds = cp_rank(A, generator=seeded(0))
        assert (bounds.lower, bounds.upper, bounds.is_tight) == (rank, rank, True)
        torch.testing.assert_close(bounds.decomposition.tensor(), A)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("shape", "rank"), [((3, 4, 5), 1), ((3, 4, 5), 3), ((4, 4, 4), 4), ((3, 2, 3, 2), 3), ((2, 2, 2, 2), 2)]
)
def test_sums_of_independent_pure_tensors(shape, rank, dtype):
    T = cp_tensor(*(normal(size, rank, seed=k).to(dtype) for k, size in enumerate(shape)))
    bounds = cp_rank(T, generator=seeded(0))
    assert (bounds.lower, bounds.upper) == (rank, rank), str(bounds)
    assert bounds.decomposition.factors[0].dtype == dtype
    tolerance = 1e-4 if dtype == torch.float32 else 1e-9
    torch.testing.assert_close(cp_tensor_definition(*bounds.decomposition.factors), T, rtol=tolerance, atol=tolerance)


def test_every_grouping_of_axes_bounds_from_below():
    # Axes {1, 2} against {3, 4} are tied as an identity of size 4; each axis alone shows rank 2 only.
    T = torch.eye(4, dtype=torch.float64).reshape(2, 2, 2, 2)
    assert unfolding_ranks(T) == (2, 2, 2, 2)
    bounds = cp_rank(T, generator=seeded(0))
    assert (bounds.lower, bounds.upper) == (4, 4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seed", range(3))
def test_a_limit_of_rank_two_is_not_called_rank_two(seed, dtype):
    bases = [normal(2, 2, seed=seed * 3 + k) for k in range(3)] if seed else [torch.eye(2, dtype=torch.float64)] * 3
    T = torch.einsum("abc,ia,jb,kc->ijk", BORDER, *bases).to(dtype)
    near = cp_decompose(T, 2, generator=seeded(seed), max_iter=300)
    assert near.residual < 1e-3  # it comes near
    assert near.component_norm > 5  # by cancelling
    assert not near.is_exact  # and is not believed
    bounds = cp_rank(T, generator=seeded(seed))
    assert (bounds.lower, bounds.upper, bounds.is_tight) == (3, 3, True)
    assert bounds.decomposition.is_exact
    assert str(bounds).startswith("rank 3 (at least 3 by its hyperdeterminant; at most 3 by ")


def test_a_sequence_to_the_limit_is_never_believed():
    for power in range(1, 9):
        near = 10.0**-power
        for factors in (
            [torch.stack([E1 + near * E2, E1], 1)] * 2 + [torch.stack([E1 + near * E2, -E1], 1) / near],
            [torch.stack([E1 + near * E2, E1 - near * E2], 1)] * 2
            + [torch.stack([E1 + near * E2, near * E2 - E1], 1) / near / 2],
        ):
            total = torch.linalg.vector_norm(BORDER)
            residual = torch.linalg.vector_norm(cp_tensor(*factors) - BORDER) / total
            size = max(
                float(torch.linalg.vector_norm(pure_tensor(*(f[:, i] for f in factors))) / total) for i in range(2)
            )
            for tolerance in (1e-10, 1e-5):
                assert not CP(tuple(factors), float(residual), size, tolerance).is_exact


@pytest.mark.parametrize(("tensor", "lower", "rank"), [(complex_multiplication, 3, 3), (two_by_two_products, 4, 7)])
def test_famous_tensors_are_bounded_on_the_right_side(tensor, lower, rank):
    bounds = cp_rank(tensor(), generator=seeded(0))
    assert bounds.lower == lower
    assert bounds.upper >= rank  # fewer would overturn a theorem
    assert bounds.upper == rank  # and the search finds Gauss's three and Strassen's seven
    torch.testing.assert_close(bounds.decomposition.tensor(), tensor())


def test_zero_vectors_and_scales():
    zero = cp_rank(torch.zeros(2, 3, 4), generator=seeded(0))
    assert (zero.lower, zero.upper, zero.decomposition.rank) == (0, 0, 0)
    assert zero.decomposition.tensor().tolist() == torch.zeros(2, 3, 4).tolist()
    assert (cp_rank(torch.ones(5), generator=seeded(0)).lower, cp_rank(torch.ones(5), generator=seeded(0)).upper) == (
        1,
        1,
    )
    for scale in (1e-100, 1e100):
        bounds = cp_rank(
            scale * cp_tensor(normal(3, 2), normal(3, 2, seed=1), normal(3, 2, seed=2)), generator=seeded(0)
        )
        assert (bounds.lower, bounds.upper) == (2, 2)
    assert cp_decompose(torch.zeros(2, 2), 1, generator=seeded(0)).residual == 0


def test_decompositions_depend_on_the_seed_alone():
    T = normal(3, 3, 3)
    one, two = cp_decompose(T, 2, generator=seeded(4)), cp_decompose(T, 2, generator=seeded(4))
    assert all(torch.equal(a, b) for a, b in zip(one.factors, two.factors))
    assert one.residual > 0.01  # a generic tensor of these sizes has rank 5


def test_a_matrix_approximated_below_its_rank_is_the_truncated_svd():
    A = normal(4, 5)
    values = torch.linalg.svdvals(A)
    expected = values[2:].square().sum().sqrt() / values.square().sum().sqrt()  # Eckart and Young
    assert cp_decompose(A, 2, generator=seeded(0)).residual == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.parametrize(
    ("T", "words"),
    [
        (torch.tensor(1.0), "order at least 1"),
        (torch.zeros(2, 0), "order at least 1 with entries"),
        (torch.ones(2, 2).long(), "float dtype, got torch.int64"),
        (torch.ones(2, 2) * 1j, "take its real part"),
        (torch.tensor([[1.0, torch.nan]]), r"got nan at \(0, 1\)"),
    ],
)
def test_bad_tensors(T, words):
    for call in (
        lambda T: cp_rank(T, generator=seeded(0)),
        is_pure,
        unfolding_ranks,
        lambda T: cp_decompose(T, 1, generator=seeded(0)),
    ):
        with pytest.raises(UserError, match=words):
            call(T)


def test_bad_ranks_and_factors():
    with pytest.raises(UserError, match="at least 1, got 0, 10 and 100"):
        cp_decompose(torch.ones(2, 2), 0, generator=seeded(0))
    for form in (cp_tensor, cp_tensor_definition):
        with pytest.raises(UserError, match=r"of one r, got shapes \[\(2, 3\), \(2, 4\)\]"):
            form(torch.ones(2, 3), torch.ones(2, 4))


# ---- 2 x 2 x 2: the eight orbits of de Silva and Lim, "Tensor rank and the ill-posedness ...", table 7.1


ORBITS = {  # a representative, its rank over the reals, the sign of Cayley's hyperdeterminant
    "D0": (0 * BORDER, 0, 0),
    "D1": (pure_tensor(E1, E1, E1), 1, 0),
    "D2": (pure_tensor(E1, E1, E1) + pure_tensor(E2, E2, E1), 2, 0),
    "D2'": (pure_tensor(E1, E1, E1) + pure_tensor(E1, E2, E2), 2, 0),
    "D2''": (pure_tensor(E1, E1, E1) + pure_tensor(E2, E1, E2), 2, 0),
    "G2": (pure_tensor(E1, E1, E1) + pure_tensor(E2, E2, E2), 2, 1),
    "D3": (pure_tensor(E1, E1, E2) + pure_tensor(E1, E2, E1) + pure_tensor(E2, E1, E1), 3, 0),
    "G3": (
        pure_tensor(E1, E1, E1) - pure_tensor(E1, E2, E2) + pure_tensor(E2, E1, E2) + pure_tensor(E2, E2, E1),
        3,
        -1,
    ),
}


def cayley_definition(a: Tensor) -> Tensor:
    """Cayley's polynomial of degree four in the eight entries, as he printed it in 1845."""
    squares = a[0, 0, 0] * a[1, 1, 1], a[0, 0, 1] * a[1, 1, 0], a[0, 1, 0] * a[1, 0, 1], a[1, 0, 0] * a[0, 1, 1]
    pairs = sum(squares[i] * squares[j] for i in range(4) for j in range(i))
    fours = a[0, 0, 0] * a[0, 1, 1] * a[1, 0, 1] * a[1, 1, 0] + a[0, 0, 1] * a[0, 1, 0] * a[1, 0, 0] * a[1, 1, 1]
    return sum(each**2 for each in squares) - 2 * pairs + 4 * fours


def changed(T: Tensor, seed: int, shape=(2, 2, 2)) -> Tensor:
    """T in random bases of moderate condition: orthogonal, stretched by up to ten, orthogonal again; set into `shape`
    where larger."""
    bases = []
    for axis, size in enumerate(shape):
        left, right = (torch.linalg.qr(normal(n, n, seed=100 * seed + 10 * axis + n)).Q for n in (size, 2))
        stretch = 10 ** (
            2 * torch.rand(2, generator=torch.Generator().manual_seed(seed + axis), dtype=torch.float64) - 1
        )
        bases.append(left[:, :2] @ stretch.diag() @ right)
    return torch.einsum("abc,ia,jb,kc->ijk", T, *bases)


def test_the_hyperdeterminant_is_cayleys_and_scales_as_it_should():
    for seed in range(20):
        T, (L, M, N) = normal(2, 2, 2, seed=seed), normal(3, 2, 2, seed=seed + 100)
        torch.testing.assert_close(hyperdeterminant(T), cayley_definition(T), rtol=1e-10, atol=1e-12)
        moved = torch.einsum("abc,ia,jb,kc->ijk", T, L, M, N)
        factor = (torch.linalg.det(L) * torch.linalg.det(M) * torch.linalg.det(N)) ** 2
        torch.testing.assert_close(hyperdeterminant(moved), factor * hyperdeterminant(T), rtol=1e-9, atol=1e-9)
        for axes in [(1, 0, 2), (2, 1, 0), (1, 2, 0)]:
            torch.testing.assert_close(hyperdeterminant(T.permute(axes)), hyperdeterminant(T))
    assert hyperdeterminant(normal(5, 2, 2, 2)).shape == (5,)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("orbit", ORBITS)
def test_every_orbit_of_two_by_two_by_two_is_decided(orbit, dtype):
    representative, rank, sign = ORBITS[orbit]
    assert float(hyperdeterminant(representative).sign()) == sign
    for seed in range(25):
        T = (changed(representative, seed) if seed else representative).to(dtype) * 10.0 ** (seed % 5 - 2)
        bounds = cp_rank(T, num_init=2, generator=seeded(0))
        assert (bounds.lower, bounds.upper) == (rank, rank), (seed, str(bounds))
        assert bounds.decomposition.rank == rank
        size = float(T.abs().max())
        torch.testing.assert_close(
            bounds.decomposition.tensor(), T, rtol=0, atol=size * (1e-3 if dtype == torch.float32 else 1e-9)
        )


@pytest.mark.parametrize("orbit", ["D2", "G2", "D3", "G3"])
def test_a_tensor_of_any_shape_with_that_core_is_decided(orbit):
    representative, rank, _ = ORBITS[orbit]
    for seed in range(5):
        T = changed(representative, seed, shape=(3, 2, 5))
        bounds = cp_rank(T, num_init=2, generator=seeded(0))
        assert (bounds.lower, bounds.upper) == (rank, rank), str(bounds)
        torch.testing.assert_close(bounds.decomposition.tensor(), T, rtol=0, atol=1e-9 * float(T.abs().max()))


def test_random_two_by_two_by_two_tensors_are_of_rank_two_or_three_by_the_sign():
    ranks = []
    for seed in range(40):
        T = normal(2, 2, 2, seed=seed)
        bounds = cp_rank(T, generator=seeded(0))
        assert bounds.lower == bounds.upper == (2 if cayley_definition(T) > 0 else 3)
        torch.testing.assert_close(bounds.decomposition.tensor(), T, rtol=0, atol=1e-9)
        ranks.append(bounds.lower)
    assert set(ranks) == {2, 3}  # both have positive measure
