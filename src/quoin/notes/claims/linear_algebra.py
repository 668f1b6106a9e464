"""Norms, the geometry of vectors, and eigenvalues."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import normal
from quoin.notes.claims.rounding import gap, max, randint, roundings
from quoin.tensor import (
    angle,
    cosine_similarity,
    det,
    dot,
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

CASES = 30
EXPONENTS = (1, 1.5, 2, 3, 7, math.inf)
ROUNDING = roundings(64)
ROUNDING_SOURCE = "64 float64 roundings, for vectors of at most 8 entries"


def rotation(generator: torch.Generator, n: int) -> Float[Tensor, "n n"]:
    return torch.linalg.qr(normal(n, n, generator=generator))[0]


@claim(
    "Z2.1",
    "every p-norm is homogeneous, obeys the triangle inequality and vanishes at zero only; what is no norm is caught",
    not_shown="every vector and every p: random vectors of a few sizes and orders",
)
def norm_axioms(generator: torch.Generator) -> Evidence:
    norms = [lambda x, p=p, form=form: form(x, p) for p in EXPONENTS for form in (norm, norm_definition)]
    others = [
        lambda x: norm(x).square(),  # not homogeneous
        lambda x: (x != 0).sum(),  # nor is a count
        lambda x: x.abs().sqrt().sum().square(),  # no triangle inequality
        lambda x: (x[0] - x[-1]).abs(),  # zero on the diagonal
        lambda x: x.sum(),  # negative
        lambda x: norm(x) + 1,  # one at zero
    ]
    wrong = 0
    for dim in (2, 5):
        wrong += sum(not is_norm(f, dim, generator=generator) for f in norms)
        wrong += sum(bool(is_norm(f, dim, generator=generator)) for f in others)
    return Evidence(
        "functions misjudged", wrong, 0, "Minkowski for the norms, a counterexample for the others", 36, "=="
    )


def at_most(left: Float[Tensor, "*batch"], right: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    return (left - right).clamp_min(0)


def equal(left: Float[Tensor, "*batch"], right: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    return (left - right).abs()


@claim(
    "ZE1",
    "the triangle inequality is no equality: ‖x + y‖ is at most ‖x‖ + ‖y‖, not equal to it",
    right=at_most,
    printed=equal,
)
def triangle_inequality_is_no_equality(
    form: Callable[[Tensor, Tensor], Tensor], generator: torch.Generator
) -> Evidence:
    x, y = normal(2, 1000, 4, generator=generator)
    x[0], y[0] = torch.eye(4, dtype=torch.float64)[:2]
    worst = max(
        float((form(norm(x + y, p), norm(x, p) + norm(y, p)) / (norm(x, p) + norm(y, p))).max()) for p in EXPONENTS
    )
    return Evidence(
        "largest violation of the inequality, relative",
        worst,
        roundings(16),
        "16 float64 roundings",
        1000 * len(EXPONENTS),
    )


def without_moduli(x: Float[Tensor, "n"], p: float) -> Float[Tensor, ""]:
    return x.pow(p).sum().pow(1 / p)


@claim("ZE2", "the p-norm sums |x_i|^p; without the moduli signs cancel", right=norm, printed=without_moduli)
def p_norm_takes_moduli(form: Callable[[Tensor, float], Tensor], generator: torch.Generator) -> Evidence:
    worst = gap(form(torch.tensor([-1.0, 1.0], dtype=torch.float64), 1), torch.tensor(2.0))
    for _ in range(CASES):
        x = normal(randint(1, 8, generator), generator=generator)
        for p in (1, 2, 3, 4.5):
            expected = math.fsum(abs(value) ** p for value in x.tolist()) ** (1 / p)
            worst = max(worst, gap(form(x, p), torch.tensor(expected, dtype=torch.float64)))
    return Evidence("largest |form - (Σ|x_i|^p)^(1/p)|", worst, ROUNDING, ROUNDING_SOURCE, 4 * CASES + 1)


def norm_takes(p: float) -> bool:
    try:
        norm(torch.ones(2, dtype=torch.float64), p)
    except UserError:
        return False
    return True


def any_positive(p: float) -> bool:
    return p > 0


@claim("ZE3", "(Σ|x_i|^p)^(1/p) is a norm for p >= 1 and for no smaller p", right=norm_takes, printed=any_positive)
def p_is_at_least_one(form: Callable[[float], bool], generator: torch.Generator) -> Evidence:
    exponents = (0.25, 0.5, 0.9, 1.0, 1.5, 2.0, 3.0, 7.0)
    misjudged = 0
    for p in exponents:
        test = is_norm(
            lambda x, p=p: x.abs().pow(p).sum().pow(1 / p), dim=randint(2, 5, generator), generator=generator
        )
        misjudged += form(p) != bool(test)
    limit = norm(normal(5, 100, generator=generator), math.inf)
    misjudged += form(math.inf) != bool(limit.isfinite().all())
    return Evidence(
        "exponents misjudged", misjudged, 0, "e1 and e2 for p < 1, Minkowski for p >= 1", len(exponents) + 1, "=="
    )


@claim("Z2.5", "p = 1 gives the sum of moduli and p = 2 the hypotenuse; the distance ‖x - y‖_1 walks along the axes")
def one_and_two_are_p_norms(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        x, y = normal(2, randint(1, 8, generator), generator=generator)
        expected = torch.tensor([math.fsum(map(abs, x.tolist())), math.hypot(*x.tolist())], dtype=torch.float64)
        walked = torch.tensor(math.fsum(abs(a - b) for a, b in zip(x.tolist(), y.tolist())), dtype=torch.float64)
        for form in (norm, norm_definition):
            worst = max(worst, gap(torch.stack([form(x, 1), form(x, 2)]), expected))
        worst = max(worst, gap(manhattan_distance(x, y), walked))
    return Evidence("largest |p-norm - l1, l2|", worst, ROUNDING, ROUNDING_SOURCE, 5 * CASES)


@claim(
    "Z2.4",
    "as p grows ‖x‖_p falls to the largest modulus, within a factor n^(1/p)",
    not_shown="the limit itself: finite p, with the bound n^(1/p) that forces it",
)
def p_norm_tends_to_the_maximum(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        x = normal(randint(1, 8, generator), generator=generator)
        largest = norm(x, math.inf)
        if not torch.equal(largest, max(x.abs())):
            worst = math.inf
        for p in (1, 2, 10, 100, 10_000):
            worst = max(worst, float(norm(x, p) / (largest * len(x) ** (1 / p))) - 1, float(largest / norm(x, p)) - 1)
    return Evidence(
        "largest violation of max <= ‖x‖_p <= n^(1/p) max, relative", worst, ROUNDING, ROUNDING_SOURCE, 5 * CASES
    )


@claim("Z2.L", "the Frobenius norm is the root of the trace of AᵀA, and does not feel rotations")
def frobenius_is_the_root_of_a_trace(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        A = normal(randint(1, 6, generator), randint(1, 6, generator), generator=generator)
        worst = max(
            worst,
            gap(frobenius_norm(A), (A.mT @ A).trace().sqrt()),
            gap(frobenius_norm(rotation(generator, len(A)) @ A), frobenius_norm(A)),
        )
    return Evidence("largest |‖A‖_F - sqrt Tr AᵀA|, |‖RA‖_F - ‖A‖_F|", worst, ROUNDING, ROUNDING_SOURCE, 2 * CASES)


@claim("Z13.1", "the angle of two vectors is left alone by rotations and positive factors, and x · y = ‖x‖ ‖y‖ cos θ")
def angles_are_invariant(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        n = randint(2, 8, generator)
        x, y = normal(2, n, generator=generator)
        R = rotation(generator, n)
        worst = max(
            worst,
            gap(angle(R @ x, 3 * R @ y), angle(x, y)),
            gap(cosine_similarity(x, y).acos().cos(), angle(x, y).cos()),
        )
        worst = max(worst, gap(dot(x, y), norm(x) * norm(y) * angle(x, y).cos()))
    return Evidence("largest change of the angle, and |x·y - ‖x‖‖y‖cos θ|", worst, ROUNDING, ROUNDING_SOURCE, 3 * CASES)


@claim("Z13.1", "what a projection leaves over is orthogonal to its span, and projecting twice changes nothing")
def projection_is_orthogonal(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        n = randint(2, 8, generator)
        A = rotation(generator, n)[:, : randint(1, n, generator)] * (
            1 + torch.rand(1, generator=generator, dtype=torch.float64)
        )
        A = torch.cat([A, A[:, :1]], dim=1)  # a column twice: the span does not mind
        x = normal(n, generator=generator)
        shadow = project(x, A)
        worst = max(worst, gap(A.mT @ (x - shadow), torch.zeros(A.shape[1])), gap(project(shadow, A), shadow))
        w, b = normal(n, generator=generator), float(normal(generator=generator))
        foot = x - hyperplane_distance(x, w, b) * w / norm(w)
        worst = max(worst, gap(hyperplane_distance(foot, w, b), torch.zeros(())))
        # Going further by the same again is the mirror image, on the other side.
        worst = worst if hyperplane_side(2 * foot - x, w, b) == -hyperplane_side(x, w, b) else math.inf
    source = "512 float64 roundings, for at most 8 columns of length at most 2"
    return Evidence("largest |Aᵀ(x - Px)|, |PPx - Px|, distance of the foot", worst, roundings(512), source, 4 * CASES)


@claim("Z13.1", "det AB = det A det B; the determinant is 0 exactly where the rank falls short and no inverse exists")
def determinant_rank_and_inverse(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        n = randint(1, 6, generator)
        A, B = (
            rotation(generator, n) * (1 + torch.rand(n, generator=generator, dtype=torch.float64)) for _ in range(2)
        )
        worst = max(worst, gap(det(A @ B), det(A) * det(B)), gap(A @ inverse(A), torch.eye(n, dtype=torch.float64)))
        A[:, -1] = A[:, :-1].sum(dim=1)  # now the columns depend on each other
        worst = max(worst, gap(det(A), torch.zeros(())))
        try:
            inverse(A)
            worst = math.inf
        except UserError:
            worst = worst if int(matrix_rank(A)) == n - 1 else math.inf
    source = "1024 float64 roundings, relative, for n <= 6 and condition at most 2"
    return Evidence(
        "largest |det AB - det A det B|, |AA⁻¹ - I|, |det| of a singular A", worst, roundings(1024), source, 3 * CASES
    )


@claim(
    "Z13.2",
    "A = WΛW⁻¹ where A is diagonalisable, A = QΛQᵀ with Q orthogonal where it is symmetric; [[1, 1], [0, 1]] is "
    "refused",
)
def eigendecompositions(generator: torch.Generator) -> Evidence:
    worst, refused = 0.0, 0
    for _ in range(CASES):
        n = randint(2, 6, generator)
        W = rotation(generator, n) + 0.1 * rotation(generator, n)  # condition at most 1.1/0.9
        values = torch.arange(1.0, n + 1, dtype=torch.float64)
        A = W @ values.diag() @ inverse(W)
        found = eigendecomposition(A)
        rebuilt = found.vectors @ found.values.diag() @ torch.linalg.inv(found.vectors)
        worst = max(worst, gap(rebuilt.real, A), gap(rebuilt.imag, torch.zeros_like(A)))
        worst = max(worst, gap(found.values.real.sort().values, values))
        S = A + A.mT
        symmetric = symmetric_eigendecomposition(S)
        worst = max(worst, gap(symmetric.vectors @ symmetric.values.diag() @ symmetric.vectors.mT, S))
        worst = max(worst, gap(symmetric.vectors.mT @ symmetric.vectors, torch.eye(n, dtype=torch.float64)))
        block = values.diag()
        block[:2, :2] = torch.tensor([[1.0, 1.0], [0.0, 1.0]])
        try:
            eigendecomposition(W @ block @ inverse(W))
        except UserError:
            refused += 1
    value = worst if refused == CASES else math.inf
    source = "1024 float64 roundings, for n <= 6 and condition at most 1.3"
    return Evidence(
        "largest |A - WΛW⁻¹|, |A - QΛQᵀ|, |QᵀQ - I|; every Jordan block refused",
        value,
        roundings(1024),
        source,
        5 * CASES,
    )


@claim("Z13.2", "every eigenvalue lies in a Gershgorin disc")
def eigenvalues_lie_in_the_discs(generator: torch.Generator) -> Evidence:
    worst = -math.inf
    for _ in range(10 * CASES):
        n = randint(1, 6, generator)
        A = normal(n, n, generator=generator) + torch.diag(5 * normal(n, generator=generator))
        discs = gershgorin_discs(A)
        outside = (torch.linalg.eigvals(A).unsqueeze(-1) - discs.centers).abs() - discs.radii
        worst = max(worst, float(outside.amin(dim=-1).max()))
    return Evidence(
        "farthest of an eigenvalue outside all discs", worst, 1e-6, "rounding of a nearly double eigenvalue", 10 * CASES
    )


@claim("Z13.2", "power iteration finds the eigenvalue of largest modulus, and A^k v grows by that factor a step")
def power_iteration_finds_the_largest(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        n = randint(2, 6, generator)
        Q = rotation(generator, n)
        values = torch.linspace(-1, 1, n, dtype=torch.float64)
        values[0] = -2 - torch.rand((), generator=generator, dtype=torch.float64)
        A = Q @ values.diag() @ Q.mT
        found = power_iteration(A, generator=generator)
        worst = max(worst, gap(found.value, values[0]), 1 - abs(float(dot(found.vector, Q[:, 0]))))
        worst = max(worst, gap(growth_rates(A, Q.sum(dim=1), 60)[-1], values[0].abs()))
    # 2^-60 is below the rounding, and a residual of 100 roundings of ‖A‖ <= 6 moves an eigenvalue by no more.
    return Evidence(
        "largest error of value, vector and growth", worst, roundings(1024), "1024 float64 roundings", 3 * CASES
    )


@claim("Z13.2", "without one eigenvalue above all others power iteration does not converge, and reports it")
def power_iteration_needs_one_dominant_eigenvalue(generator: torch.Generator) -> Evidence:
    claimed = 0
    for _ in range(CASES):
        theta = 0.3 + 2.5 * float(torch.rand((), generator=generator, dtype=torch.float64))
        rotation_matrix = torch.tensor(
            [[math.cos(theta), -math.sin(theta)], [math.sin(theta), math.cos(theta)]], dtype=torch.float64
        )
        mirror = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)  # eigenvalues 1 and -1
        for A in (rotation_matrix, mirror):
            try:
                power_iteration(A, max_iter=200, generator=generator)
                claimed += 1
            except UserError:
                pass
    return Evidence(
        "matrices for which it claimed success", claimed, 0, "exact: rotations and reflections", 2 * CASES, "=="
    )
