"""Norms, geometry, matrices and eigenvalues: values from mathematics and numpy, mistakes by their words."""

import functools
import itertools
import math

import numpy
import pytest
import torch

from quoin.errors import UserError
from quoin.tensor import (
    angle,
    cosine_similarity,
    det,
    eigendecomposition,
    frobenius_norm,
    gershgorin_discs,
    growth_rates,
    hyperplane_distance,
    hyperplane_side,
    inverse,
    is_norm,
    manhattan_distance,
    matrix_rank,
    norm,
    norm_definition,
    power_iteration,
    project,
    symmetric_eigendecomposition,
)
from seeds import seeded

FORMS = [norm, norm_definition]
JORDAN = torch.tensor([[1.0, 1.0], [0.0, 1.0]], dtype=torch.float64)


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=seeded(seed), dtype=torch.float64)


# ---- norms ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("p", [1, 1.5, 2, 3, 10, math.inf])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_norms_agree_with_numpy(form, p, axis):
    x = normal(4, 5)
    expected = numpy.linalg.norm(x.numpy(), ord=p, axis=axis)
    torch.testing.assert_close(form(x, p, axis), torch.as_tensor(expected), rtol=1e-13, atol=0)


def test_the_classic_triangle():
    x = torch.tensor([3.0, -4.0])
    assert [float(norm(x, p)) for p in (1, 2, math.inf)] == [7, 5, 4]
    assert manhattan_distance(torch.tensor([1.0, 2.0]), torch.tensor([4.0, -2.0])) == 7
    assert frobenius_norm(torch.tensor([[1.0, -1.0], [1.0, 1.0]])) == 2
    assert frobenius_norm(torch.ones(7, 2, 2)).tolist() == [2.0] * 7


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("p", [1.5, 2, 3, 100])
def test_norm_neither_overflows_nor_vanishes(dtype, p):
    for size in (torch.finfo(dtype).max / 8, torch.finfo(dtype).tiny):
        x = torch.full((4,), size, dtype=dtype, requires_grad=True)
        length = norm(x, p)
        torch.testing.assert_close(length, torch.tensor(size * 4 ** (1 / p), dtype=dtype), rtol=1e-5, atol=0)
        (slope,) = torch.autograd.grad(length, x)
        torch.testing.assert_close(slope, torch.full((4,), 4 ** (1 / p - 1), dtype=dtype), rtol=1e-5, atol=0)


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, math.inf])
def test_norm_where_it_is_awkward(p):
    zero = torch.zeros(3, requires_grad=True)
    (slope,) = torch.autograd.grad(norm(zero, p), zero)
    assert slope.tolist() == [0, 0, 0]
    assert norm(torch.tensor([1.0, math.inf]), p) == math.inf
    assert norm(torch.tensor([1.0, math.nan]), p).isnan()
    for form in FORMS:
        assert form(torch.zeros(2, 0), p).tolist() == [0, 0]
        assert form(torch.zeros(0, 3), p).shape == (0,)


def test_norm_refuses_what_is_none():
    for form in FORMS:
        for p in (0.999, 0.5, 0, -1, math.nan, -math.inf):
            with pytest.raises(UserError, match=f"p >= 1 .or inf., got {p}"):
                form(torch.ones(2), p)
        with pytest.raises(UserError, match=r"float dtype, got torch.int64; convert it with x.double"):
            form(torch.tensor([1, 2]))
        with pytest.raises(UserError, match="at least 1 axis"):
            form(torch.tensor(1.0))
    with pytest.raises(UserError, match="axis n of y to be 3 as in x, got 2"):
        manhattan_distance(torch.ones(3), torch.ones(2))


@pytest.mark.parametrize(
    ("f", "broken"),
    [
        (lambda x: norm(x).square(), "f(a x) = |a| f(x)"),
        (lambda x: x.abs().pow(0.5).sum().square(), "f(x + y) <= f(x) + f(y)"),
        (lambda x: (x[0] - x[1]).abs(), "f(x) > 0 for x ≠ 0"),
        (lambda x: x[:-1].abs().sum(), "f(x) > 0 for x ≠ 0"),
        (lambda x: torch.tensor(0.0), "f(x) > 0 for x ≠ 0"),
        (lambda x: norm(x) + 1, "f(0) = 0"),
        (lambda x: norm(x) if bool((x >= 0).all()) else 2 * norm(x), "f(a x) = |a| f(x)"),
        (lambda x: norm(x) * math.nan if norm(x) > 0 else norm(x), "f is a finite number"),
    ],
)
def test_is_norm_finds_a_true_counterexample(f, broken):
    found = is_norm(f, 3, generator=seeded(0))
    assert not found
    assert found.broken == broken
    vectors = found.counterexample
    if broken == "f(a x) = |a| f(x)":
        assert abs(f(vectors[0] * vectors[1]) - abs(vectors[0]) * f(vectors[1])) > 1e-9 * f(vectors[1])
    elif broken == "f(x + y) <= f(x) + f(y)":
        assert f(vectors[0] + vectors[1]) > f(vectors[0]) + f(vectors[1])
    elif broken == "f(x) > 0 for x ≠ 0":
        assert bool(vectors[0].any())
        assert f(vectors[0]) <= 0


def test_is_norm_passes_norms():
    A = normal(4, 3)
    for f in (norm, lambda x: norm(x, 1.0001), lambda x: norm(A @ x), lambda x: norm(x, 1) + 3 * norm(x, math.inf)):
        for seed in range(3):
            assert is_norm(f, 3, generator=seeded(seed))
    assert is_norm(torch.abs, 1, generator=seeded(0))
    with pytest.raises(UserError, match="at least 1, got 0"):
        is_norm(norm, 0, generator=seeded(0))
    with pytest.raises(UserError, match=r"one number from f, got shape \(3,\)"):
        is_norm(torch.abs, 3, generator=seeded(0))


# ---- geometry ---------------------------------------------------------------------------------------------------


def test_angles():
    x = torch.tensor([1.0, 0.0], dtype=torch.float64)
    for degrees in (1e-9, 1, 60, 90, 120, 180):
        turn = math.radians(degrees)
        y = 7 * torch.tensor([math.cos(turn), math.sin(turn)], dtype=torch.float64)
        assert float(angle(x, y)) == pytest.approx(turn, rel=1e-12)
        assert float(cosine_similarity(x, y)) == pytest.approx(math.cos(turn), abs=1e-15)
    assert float(cosine_similarity(1e200 * x, 1e200 * x)) == 1
    tilted = torch.full((7,), 0.1, dtype=torch.float64)
    assert float(cosine_similarity(tilted, tilted)) <= 1  # an arccosine may follow
    peer = torch.nn.functional.cosine_similarity(normal(5, 3), normal(5, 3, seed=1), dim=-1)
    torch.testing.assert_close(cosine_similarity(normal(5, 3), normal(5, 3, seed=1)), peer)


def test_projection():
    x = torch.tensor([3.0, 4.0, 5.0])
    assert project(x, torch.tensor([0.0, 2.0, 0.0])).tolist() == [0, 4, 0]
    plane = torch.tensor([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
    torch.testing.assert_close(project(torch.stack([x, -x]), plane), torch.tensor([[3.0, 4, 0], [-3, -4, 0]]))
    dependent = torch.tensor([[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    torch.testing.assert_close(project(x, dependent), torch.tensor([3.0, 0, 0]))
    assert project(x, torch.zeros(3)).tolist() == [0, 0, 0]
    A = normal(5, 3)
    nearest = A @ torch.linalg.lstsq(A, normal(5, 1, seed=1)).solution
    torch.testing.assert_close(project(normal(5, seed=1), A), nearest.squeeze())
    assert torch.autograd.gradcheck(project, (normal(5, seed=1).requires_grad_(), A.requires_grad_()))


def test_sides_of_a_hyperplane():
    points = torch.tensor([[2.0, 0.0], [0.0, 0.0], [1.0, 5.0]])
    normal_vector = torch.tensor([3.0, 0.0])
    assert hyperplane_side(points, normal_vector, -3.0).tolist() == [1, -1, 0]
    assert hyperplane_distance(points, normal_vector, -3.0).tolist() == [1, -1, 0]


def test_geometry_refuses_what_has_no_direction():
    with pytest.raises(UserError, match=r"y without zero vectors, got one in shape \(2, 3\)"):
        cosine_similarity(torch.ones(2, 3), torch.tensor([[1.0, 0, 0], [0, 0, 0]]))
    with pytest.raises(UserError, match=r"offset with 0 axes, got shape \(2,\)"):
        hyperplane_side(torch.ones(2, 3), torch.ones(3), torch.ones(2))
    with pytest.raises(UserError, match="normal without zero"):
        hyperplane_side(torch.ones(3), torch.zeros(3))
    with pytest.raises(UserError, match="axis n of onto to be 3 as in x, got 2"):
        project(torch.ones(3), torch.ones(2))
    with pytest.raises(UserError, match="axis n of y to be 3 as in x, got 2"):
        angle(torch.ones(3), torch.ones(2))
    with pytest.raises(UserError, match=r"finite entries of onto, got nan at \(0, 0\)"):
        project(torch.ones(1), torch.tensor([math.nan]))


# ---- matrices ---------------------------------------------------------------------------------------------------


def test_determinants():
    assert float(det(torch.tensor([[2.0, 1.0], [4.0, 5.0]]))) == pytest.approx(6)
    nodes = [1.0, 2.0, 4.0, 7.0]
    vandermonde = torch.tensor([[x**k for k in range(4)] for x in nodes], dtype=torch.float64)
    expected = math.prod(nodes[j] - nodes[i] for i in range(4) for j in range(i + 1, 4))
    assert float(det(vandermonde)) == pytest.approx(expected, rel=1e-12)
    assert float(det(torch.zeros(0, 0))) == 1
    with pytest.raises(UserError, match="axis n of A"):
        det(torch.zeros(2, 3))
    with pytest.raises(UserError, match=r"got torch.int64"):
        det(torch.eye(2).long())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(2, 2), (7, 3), (20, 30)])
def test_matrix_rank_of_products(dtype, shape):
    for rank in range(min(shape) + 1):
        A = (normal(shape[0], rank, seed=rank) @ normal(rank, shape[1], seed=rank + 1)).to(dtype)
        assert int(matrix_rank(A)) == rank
    assert matrix_rank(torch.stack([torch.eye(3), torch.zeros(3, 3)])).tolist() == [3, 0]
    assert int(matrix_rank(torch.zeros(0, 3))) == 0


def test_inverse():
    A = normal(3, 4, 4)
    torch.testing.assert_close(inverse(A), torch.linalg.inv(A))
    assert torch.autograd.gradcheck(inverse, A.requires_grad_())
    assert inverse(torch.zeros(0, 0)).shape == (0, 0)


@pytest.mark.parametrize(
    ("A", "rank"),
    [
        ([[1.0, 2.0], [2.0, 4.0]], 1),
        (
            [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]],
            2,
        ),  # elimination leaves a pivot of rounding and torch inverts it
        ([[0.0]], 0),
        ([[1.0, 0.0], [0.0, 1e-20]], 1),
    ],
)
def test_a_singular_matrix_has_no_inverse(A, rank):
    for dtype in (torch.float32, torch.float64):
        with pytest.raises(UserError, match=f"invertible matrix, got shape .* with rank {rank} "):
            inverse(torch.tensor(A, dtype=dtype))


def test_matrices_refuse_what_is_not_finite():
    A = torch.eye(2)
    A[1, 0] = math.nan
    iterate = functools.partial(power_iteration, generator=seeded(0))
    for call in (inverse, matrix_rank, eigendecomposition, symmetric_eigendecomposition, gershgorin_discs, iterate):
        with pytest.raises(UserError, match=r"finite entries of A, got nan at \(1, 0\)"):
            call(A)


# ---- eigenvalues ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_eigendecomposition_rebuilds_the_matrix(dtype):
    turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=dtype)  # eigenvalues ±i
    assert sorted(eigendecomposition(turn).values.imag.tolist()) == pytest.approx([-1, 1])
    for A in (turn, normal(5, 5).to(dtype), torch.eye(3, dtype=dtype), normal(4, 3, 3).to(dtype)):
        values, vectors = eigendecomposition(A)
        rebuilt = vectors @ torch.diag_embed(values) @ torch.linalg.inv(vectors)
        torch.testing.assert_close(rebuilt.real.to(dtype), A, rtol=1e-4, atol=1e-5 if dtype == torch.float32 else 1e-12)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_what_is_not_diagonalisable_is_refused(size):
    block = torch.eye(size, dtype=torch.float64) + torch.diag(torch.ones(size - 1, dtype=torch.float64), 1)
    bases = [normal(size, size, seed=seed) for seed in range(20)]
    for A in [JORDAN, block, block.mT, *(W @ block @ torch.linalg.inv(W) for W in bases)]:
        with pytest.raises(UserError, match="expected a diagonalisable matrix"):
            eigendecomposition(A)


def test_repeated_eigenvalues_alone_are_no_fault():
    for seed in range(20):
        W = normal(4, 4, seed=seed)
        A = W @ torch.tensor([1.0, 1, 2, 2], dtype=torch.float64).diag() @ torch.linalg.inv(W)
        if torch.linalg.cond(W) < 100:
            assert sorted(eigendecomposition(A).values.real.tolist()) == pytest.approx([1, 1, 2, 2], abs=1e-9)


def test_symmetric_eigendecomposition():
    values, vectors = symmetric_eigendecomposition(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
    assert values.tolist() == pytest.approx([1, 3])
    torch.testing.assert_close(vectors.mT @ vectors, torch.eye(2))
    with pytest.raises(UserError, match=r"symmetric matrix, got one with \|A - Aᵀ\| up to 1.0e\+00"):
        symmetric_eigendecomposition(JORDAN)
    assert symmetric_eigendecomposition(torch.zeros(0, 0)).values.shape == (0,)


def test_gershgorin_discs():
    discs = gershgorin_discs(torch.tensor([[10.0, -1.0, 2.0], [0.5, -3.0, 0.0], [0.0, 0.0, 1.0]]))
    assert (discs.centers.tolist(), discs.radii.tolist()) == ([10, -3, 1], [3, 0.5, 0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_power_iteration(dtype):
    A = torch.tensor([[2.0, 1.0], [1.0, -4.0]], dtype=dtype)
    found = power_iteration(A, generator=seeded(0))
    assert float(found.value) == pytest.approx(-1 - math.sqrt(10), rel=1e-5)
    torch.testing.assert_close(A @ found.vector, found.value * found.vector, rtol=1e-4, atol=1e-5)
    assert float(power_iteration(torch.zeros(2, 2, dtype=dtype), generator=seeded(0)).value) == 0
    assert float(power_iteration(torch.tensor([[0.0, 1.0], [0.0, 0.0]], dtype=dtype), generator=seeded(0)).value) == 0


def test_power_iteration_that_cannot_settle_says_so():
    for A in (torch.tensor([[0.0, -1.0], [1.0, 0.0]]), torch.diag(torch.tensor([1.0, -1.0])), JORDAN):
        with pytest.raises(UserError, match="one eigenvalue above all others"):
            power_iteration(A, max_iter=300, generator=seeded(0))
    with pytest.raises(UserError, match="at least one row"):
        power_iteration(torch.zeros(0, 0), generator=seeded(0))
    with pytest.raises(UserError, match="2 axes"):
        power_iteration(torch.zeros(2, 2, 2), generator=seeded(0))


def test_growth_of_powers():
    A, v = normal(4, 4), normal(4, seed=1)
    plain = [float(torch.linalg.vector_norm(torch.linalg.matrix_power(A, k) @ v)) for k in range(6)]
    expected = [after / before for before, after in itertools.pairwise(plain)]
    assert growth_rates(A, v, 5).tolist() == pytest.approx(expected, rel=1e-12)
    assert growth_rates(100 * torch.eye(2), torch.ones(2), 400)[-1] == pytest.approx(100)  # 100^400 is no float
    assert growth_rates(torch.tensor([[0.0, 1.0], [0.0, 0.0]]), torch.tensor([0.0, 1.0]), 3).tolist() == [1, 0, 0]
    assert growth_rates(A, v, 0).shape == (0,)
