"""Tensors: order, sums over indices, tensor products, pure tensors and rank."""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import normal
from quoin.notes.claims.rounding import gap, max, randint, roundings
from quoin.tensor import (
    bmm,
    bmm_definition,
    cp_rank,
    cp_tensor,
    einsum,
    einsum_definition,
    einsum_multiplications,
    hadamard,
    is_pure,
    matrix_rank,
    order,
    pairwise_multiplications,
    pure_tensor,
    tensor_product,
    tensor_product_definition,
    unfolding_ranks,
)

CASES = 20
ROUNDING = roundings(64)
ROUNDING_SOURCE = "64 float64 roundings, for sums of at most 25 products"


def sizes(generator: torch.Generator, count: int) -> list[int]:
    return [randint(1, 5, generator) for _ in range(count)]


def apart(found: Float[Tensor, "..."], expected: Float[Tensor, "..."]) -> float:
    """`gap`, and infinite where the shapes differ: broadcasting would hide it."""
    return gap(found, expected) if found.shape == expected.shape else math.inf


@claim("D1.2-2", "a scalar has order 0, a vector order 1 and a matrix order 2, whatever their sizes")
def orders_of_the_familiar(generator: torch.Generator) -> Evidence:
    wrong = 0
    for _ in range(CASES):
        m, n = sizes(generator, 2)
        wrong += sum(
            order(normal(*shape, generator=generator)) != expected for expected, shape in enumerate([(), (m,), (m, n)])
        )
        wrong += (
            order(tensor_product(normal(m, generator=generator), normal(m, n, generator=generator))) != 3
        )  # and orders add
    return Evidence("tensors of another order", wrong, 0, "exact", 4 * CASES, "==")


def einsum_evidence(
    specs: Sequence[str],
    shapes: Callable[..., Sequence[tuple[int, ...]]],
    expected: Callable,
    generator: torch.Generator,
) -> Evidence:
    """Both forms of einsum under every spelling against `expected`, on tensors of random sizes."""
    worst, cases = 0.0, 0
    for _ in range(CASES):
        operands = [normal(*shape, generator=generator) for shape in shapes(*sizes(generator, 4))]
        for spec in specs:
            for form in (einsum_definition, einsum):
                worst = max(worst, apart(form(spec, *operands), expected(*operands)))
                cases += 1
    return Evidence(f"largest |einsum {specs[0]!r} - its meaning|", worst, ROUNDING, ROUNDING_SOURCE, cases)


@claim("D1.2-4", "A_ij v_j = (Av)_i")
def matrix_times_vector(generator: torch.Generator) -> Evidence:
    def rows(A: Tensor, v: Tensor) -> Tensor:
        return torch.tensor(
            [math.fsum(a * b for a, b in zip(row, v.tolist())) for row in A.tolist()], dtype=torch.float64
        )

    return einsum_evidence(["ij,j", "ij,j->i"], lambda i, j, k, m: [(i, j), (j,)], rows, generator)


@claim("D1.2-5", "A_ik B_kj = (AB)_ij")
def matrix_times_matrix(generator: torch.Generator) -> Evidence:
    return einsum_evidence(["ik,kj", "ik,kj->ij"], lambda i, j, k, m: [(i, k), (k, j)], torch.matmul, generator)


@claim("D1.2-6", "A_ii = Tr A")
def repeated_index_is_the_trace(generator: torch.Generator) -> Evidence:
    def trace(A: Tensor) -> Tensor:
        return torch.tensor(math.fsum(A[i, i] for i in range(len(A))), dtype=torch.float64)

    return einsum_evidence(["ii", "ii->"], lambda i, j, k, m: [(i, i)], trace, generator)


@claim("D1.2-7", "A_ik B_jk = (ABᵀ)_ij")
def product_with_the_transposed(generator: torch.Generator) -> Evidence:
    return einsum_evidence(
        ["ik,jk", "ik,jk->ij"], lambda i, j, k, m: [(i, k), (j, k)], lambda A, B: A @ B.mT, generator
    )


@claim("D1.2-8", "A_ikm B_kmj sums over both k and m and leaves a matrix with indices i, j")
def double_contraction(generator: torch.Generator) -> Evidence:
    def loops(A: Tensor, B: Tensor) -> Tensor:
        total = torch.zeros(len(A), B.shape[-1], dtype=torch.float64)
        for k in range(A.shape[1]):
            for m in range(A.shape[2]):
                total += A[:, k, m].unsqueeze(1) * B[k, m]
        return total

    return einsum_evidence(["ikm,kmj", "ikm,kmj->ij"], lambda i, j, k, m: [(i, k, m), (k, m, j)], loops, generator)


def sum_what_the_output_lacks(spec: str, *operands: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    return einsum(spec, *operands)


def sum_what_repeats(spec: str, *operands: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    return einsum(spec.split("->")[0], *operands)


@claim(
    "DE14",
    "einsum sums over the indices that the output lacks; a batch index repeats and stays",
    right=sum_what_the_output_lacks,
    printed=sum_what_repeats,
)
def batch_index_is_not_summed(form: Callable[..., Tensor], generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        b, i, k, j = (randint(2, 5, generator) for _ in range(4))
        left, right = normal(b, i, k, generator=generator), normal(b, k, j, generator=generator)
        expected = torch.stack([A @ B for A, B in zip(left, right)])
        worst = max(worst, apart(form("bik,bkj->bij", left, right), expected))
        worst = max(worst, apart(form("bik,bik->bi", left, left), left.square().sum(dim=-1)))
    return Evidence("largest |form - product of each pair|", worst, ROUNDING, ROUNDING_SOURCE, 2 * CASES)


@claim(
    "ZE26",
    "batch matrix multiplication takes matrix products of the pairs, not products of entries",
    right=bmm,
    printed=hadamard,
)
def bmm_multiplies_matrices(form: Callable[[Tensor, Tensor], Tensor], generator: torch.Generator) -> Evidence:
    return bmm_evidence(form, generator)


@claim("Z11.19", "BMM(Q, K) is [Q_1 K_1, ..., Q_n K_n], which einsum writes nab,nbc->nac")
def bmm_is_a_stack_of_products(generator: torch.Generator) -> Evidence:
    return max((bmm_evidence(form, generator) for form in (bmm, bmm_definition)), key=lambda evidence: evidence.value)


def bmm_evidence(form: Callable[[Tensor, Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        n, a, b, c = sizes(generator, 4)
        query, key = normal(n, a, b, generator=generator), normal(n, b, c, generator=generator)
        worst = max(worst, apart(form(query, key), einsum_definition("nab,nbc->nac", query, key)))
    return Evidence("largest |BMM - einsum nab,nbc->nac|", worst, ROUNDING, ROUNDING_SOURCE, CASES)


@claim("D1.2-11", "(R⊗S)⊗T = R⊗(S⊗T), while T⊗S is S⊗T with its axes exchanged and in general another tensor")
def tensor_product_associates_and_does_not_commute(generator: torch.Generator) -> Evidence:
    wrong = 0
    for _ in range(CASES):
        # Whole numbers below 2^17 multiply without rounding, three of them too: equality to the last bit.
        R, S, T = ((1000 * normal(*sizes(generator, count), generator=generator)).round() for count in (1, 2, 2))
        for product in (tensor_product, tensor_product_definition):
            wrong += not torch.equal(product(product(R, S), T), product(R, product(S, T)))
            wrong += not torch.equal(product(T, S), product(S, T).movedim((0, 1), (2, 3)))
        x, y = normal(2, 3, generator=generator)  # two vectors not parallel: x⊗y ≠ y⊗x, though of one shape
        wrong += torch.equal(tensor_product(x, y), tensor_product(y, x))
    return Evidence("cases that break an identity", wrong, 0, "exact: whole numbers do not round", 5 * CASES, "==")


def random_factors(generator: torch.Generator, *, some_zero: bool) -> list[Float[Tensor, "_"]]:
    vectors = [normal(randint(2, 4, generator), generator=generator) for _ in range(randint(2, 4, generator))]
    if some_zero:
        vectors[randint(0, len(vectors) - 1, generator)].zero_()
    return vectors


def one_unless_zero(vectors: Sequence[Float[Tensor, "_"]]) -> int:
    return int(all(bool(vector.any()) for vector in vectors))


def always_one(vectors: Sequence[Float[Tensor, "_"]]) -> int:
    return 1


@claim("D1.2-14", "v1⊗...⊗vn has rank 1 if no factor is zero: every unfolding has rank 1")
def nonzero_pure_tensors_have_rank_one(generator: torch.Generator) -> Evidence:
    wrong = 0
    for _ in range(CASES):
        T = pure_tensor(*random_factors(generator, some_zero=False))
        bounds = cp_rank(T, num_init=2, generator=generator)
        wrong += not is_pure(T) or set(unfolding_ranks(T)) != {1} or (bounds.lower, bounds.upper) != (1, 1)
        wrong += is_pure(T + pure_tensor(*random_like(T, generator)))  # the sum of two is pure with probability 0
    return Evidence(
        "tensors of another rank", wrong, 0, "exact but for singular values of rounding size", 2 * CASES, "=="
    )


def random_like(T: Float[Tensor, "..."], generator: torch.Generator) -> list[Float[Tensor, "_"]]:
    return [normal(size, generator=generator) for size in T.shape]


@claim(
    "DE13",
    "only non-zero pure tensors have rank one; with a factor zero the rank is 0",
    right=one_unless_zero,
    printed=always_one,
)
def zero_pure_tensors_have_rank_zero(form: Callable[[Sequence[Tensor]], int], generator: torch.Generator) -> Evidence:
    wrong = 0
    for case in range(CASES):
        vectors = random_factors(generator, some_zero=case % 2 == 0)
        T = pure_tensor(*vectors)
        bounds = cp_rank(T, num_init=2, generator=generator)
        wrong += not is_pure(T) or {bounds.lower, bounds.upper, *unfolding_ranks(T)} != {form(vectors)}
    return Evidence(
        "pure tensors of another rank", wrong, 0, "exact but for singular values of rounding size", CASES, "=="
    )


@claim("D1.2-15", "rank is not order: the n×n identity has order 2 and rank n")
def identity_has_order_two_and_rank_n(generator: torch.Generator) -> Evidence:
    wrong = 0
    for n in range(1, 9):
        identity = torch.eye(n, dtype=torch.float64)
        bounds = cp_rank(identity, generator=generator)
        wrong += (order(identity), int(matrix_rank(identity)), bounds.lower, bounds.upper) != (2, n, n, n)
    return Evidence("identities of another order or rank", wrong, 0, "exact", 8, "==")


def slanted(generator: torch.Generator, size: int, rank: int) -> Float[Tensor, "{size} {rank}"]:
    """`rank` independent columns, not quite orthogonal."""
    return torch.linalg.qr(normal(size, size, generator=generator))[0][:, :rank] + 0.1 * normal(
        size, rank, generator=generator
    ).clamp(-1, 1)


@claim(
    "D1.2-13",
    "r pure tensors with independent vectors along each axis sum to rank r, in order 2 the rank of a matrix",
    not_shown="the rank of a general tensor, which is hard to compute: only tensors built to have a known one",
)
def rank_of_known_tensors(generator: torch.Generator) -> Evidence:
    wrong = 0
    for case in range(CASES):
        rank = randint(1, 3, generator)
        T = cp_tensor(*(slanted(generator, randint(3, 5, generator), rank) for _ in range(2 + case % 2)))
        bounds = cp_rank(T, generator=generator)
        wrong += (bounds.lower, bounds.upper) != (rank, rank) or gap(bounds.decomposition.tensor(), T) > 1e-9
        wrong += T.ndim == 2 and int(matrix_rank(T)) != rank
    source = "exact: an unfolding is a product of two matrices of rank r"
    return Evidence("tensors whose rank is not found", wrong, 0, source, CASES, "==")


@claim(
    "D1.2-13",
    "e1e1e2 + e1e2e1 + e2e1e1 is a limit of sums of two pure tensors, yet its rank of 3 is not mistaken for 2",
)
def limit_of_rank_two_is_not_certified(generator: torch.Generator) -> Evidence:
    e1, e2 = torch.eye(2, dtype=torch.float64)
    T = pure_tensor(e1, e1, e2) + pure_tensor(e1, e2, e1) + pure_tensor(e2, e1, e1)
    mistaken = 0
    for dtype in (torch.float64, torch.float32):
        # The rank is invariant under a change of basis along an axis.
        bases = [torch.linalg.qr(normal(2, 2, generator=generator))[0] for _ in range(3)]
        bounds = cp_rank(einsum("abc,ia,jb,kc->ijk", T, *bases).to(dtype), generator=generator)
        mistaken += (bounds.lower, bounds.upper) != (3, 3)
    near = 1e-6  # and two pure tensors, a million times as large, come as near as that
    e3 = e1 + near * e2
    approach = (pure_tensor(e3, e3, e3) - pure_tensor(e1, e1, e1)) / near
    value = mistaken if gap(approach, T) < 2 * near else math.nan
    return Evidence("tensors not found to have rank 3", value, 0, "exact: the rank is 3, the border rank 2", 2, "==")


@claim(
    "D1.2-3", "the order of contraction sets the cost: A(Bv) takes jk + ij multiplications where (AB)v takes ijk + ik"
)
def order_of_contraction_changes_the_cost(generator: torch.Generator) -> Evidence:
    wrong = 0
    for _ in range(CASES):
        i, j, k = (randint(2, 9, generator) for _ in range(3))
        found = pairwise_multiplications("ij,jk,k->i", (i, j), (j, k), (k,))
        left, right = i * j * k + i * k, j * k + i * j
        wrong += (found.multiplications, found.tree) != (right, (0, (1, 2))) or right >= left
        wrong += einsum_multiplications("ij,jk->ik", (i, j), (j, k)) != i * j * k
    return Evidence("counts unlike the closed form", wrong, 0, "exact: ijk + ik against jk + ij", 2 * CASES, "==")
