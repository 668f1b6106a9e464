"""How costs grow: what a bound from some size on says, what several sizes do, and the five growths met most,
counted."""

import itertools
import math

import torch

from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.rounding import max, randint, roundings
from quoin.tensor import (
    LinkedList,
    array_access,
    binary_search,
    bubble_sort,
    einsum_multiplications,
    fit_complexity,
    growth_constant,
    linked_list_access,
    merge_sort,
)

CASES = 50
SIZES = (*range(1, 18), 31, 32, 33, 100, 255, 256, 257)
DOUBLING = [2**k for k in range(4, 10)]


@claim(
    "D4-1",
    "a polynomial of degree p is O(nᵖ), with C falling to its leading coefficient as n₀ grows, and O of no lower power",
)
def polynomials_grow_by_their_degree(generator: torch.Generator) -> Evidence:
    """From n₀ on, cost / nᵖ falls in n, so that C is its value at n₀; against nᵖ⁻¹ the least C doubles whenever the
    sizes do."""
    worst = 0.0
    for _ in range(CASES):
        degree = randint(1, 4, generator)
        coefficients = (0.1 + torch.rand(degree + 1, generator=generator, dtype=torch.float64)).tolist()
        sizes = [2.0**k for k in range(30)]
        costs = [math.fsum(a * n**i for i, a in enumerate(coefficients)) for n in sizes]
        constants = [growth_constant(sizes, costs, lambda n, p=degree: n**p, start=n0) for n0 in sizes]
        worst = max(worst, *(abs(C / (cost / n**degree) - 1) for C, n, cost in zip(constants, sizes, costs)))
        # The leading coefficient is 0.1 or more, the four others at most 1.1: at n they add at most its 44/n.
        worst = max(worst, abs(constants[-1] / coefficients[-1] - 1) - 44 / sizes[-1])
        lower = [
            growth_constant(sizes[:k], costs[:k], lambda n, p=degree: n ** (p - 1), start=2.0**20) for k in (25, 26)
        ]
        worst = max(worst, abs(lower[1] / lower[0] - 2) - 2 * 44 / sizes[24])
    return Evidence("how far constants are from where algebra puts them", worst, roundings(16), "16 roundings", CASES)


@claim(
    "D4-1",
    "on a doubly logarithmic scale C nᵃ is a straight line: its slope is the exponent, and doubling n multiplies "
    "the cost by 2ᵃ",
)
def slopes_are_exponents(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        constant, exponent = (3 * torch.rand(2, generator=generator, dtype=torch.float64)).tolist()
        sizes = [randint(1, 50, generator) * 2.0**k for k in range(randint(3, 12, generator))]
        distribution = fit_complexity(sizes, [(0.1 + constant) * n**exponent for n in sizes])
        worst = max(
            worst,
            abs(distribution.exponent - exponent),
            abs(distribution(10.0) / ((0.1 + constant) * 10**exponent) - 1),
            *distribution.standard_errors,
        )
    return Evidence(
        "largest error of exponent, prediction or residual",
        worst,
        roundings(2048),
        "2048 roundings of logarithms",
        CASES,
    )


@claim(
    "D4-2",
    "exact attention multiplies O(n² d) times and attention by M features O(n M d) times: an exponent for every size",
)
def attention_costs_by_each_size(generator: torch.Generator) -> Evidence:
    """Counted from the shapes: scores and weighted values; or keys with values once, and queries with their sums."""
    exact, split = [], []
    for _ in range(CASES):
        n, M, d = (randint(1, 500, generator) for _ in range(3))
        scores = einsum_multiplications("nd,md->nm", (n, d), (n, d)) + einsum_multiplications(
            "nm,md->nd", (n, n), (n, d)
        )
        sums = einsum_multiplications("nk,nd->kd", (n, M), (n, d)) + einsum_multiplications("nk,kd->nd", (n, M), (M, d))
        exact.append(((n, d), scores))
        split.append(((n, M, d), sums))
    distributions = [fit_complexity(*zip(*runs)) for runs in (exact, split)]
    off = [
        abs(got - true)
        for distribution, truth in zip(distributions, ((2, 1), (1, 1, 1)))
        for got, true in zip(distribution.exponents, truth)
    ]
    sizes, costs = zip(*split)
    constants = [growth_constant(sizes, costs, lambda n, M, d: n * M * d, start=start) for start in (1, 50)]
    worst = max(*off, *(abs(constant - 2) for constant in constants))
    return Evidence(
        "largest error of an exponent, or of C = 2", worst, roundings(2048), "2048 roundings of logarithms", 2 * CASES
    )


@claim("D4-3", "array access is O(1): one read, wherever the entry lies and however many there are")
def array_access_is_constant(generator: torch.Generator) -> Evidence:
    reads = {array_access(range(n), index).operations for n in SIZES for index in range(n)}
    return Evidence("most reads of an access", max(reads), 1, "exact, at every index", sum(SIZES), "==")


@claim("D4-3", "binary search is O(log n): at worst it reads ⌊log₂ n⌋ + 1 entries, among values that are there or not")
def binary_search_is_logarithmic(generator: torch.Generator) -> Evidence:
    wrong = cases = 0
    for n in SIZES:
        array = list(range(0, 2 * n, 2))  # odd values and both ends are missing
        found = [binary_search(array, value) for value in range(-1, 2 * n)]
        right = all(each.output == (None if value % 2 else value // 2) for value, each in zip(range(-1, 2 * n), found))
        wrong += not right or max(each.operations for each in found) != math.floor(math.log2(n)) + 1
        cases += len(found)
    return Evidence(
        "lengths at which the search errs or its worst case is another", wrong, 0, "exact, at every value", cases, "=="
    )


@claim("D4-3", "access to a linked list is O(n): the last entry takes n links, the middle one half of them")
def linked_list_access_is_linear(generator: torch.Generator) -> Evidence:
    wrong = 0
    for n in SIZES:
        chain = LinkedList.from_values(range(n))
        found = [linked_list_access(chain, index) for index in range(n)]
        wrong += [tuple(each) for each in found] != [(index, index + 1) for index in range(n)]
        wrong += max(each.operations for each in found) != n
    return Evidence(
        "lengths at which an entry or its links are wrong", wrong, 0, "exact, at every index", sum(SIZES), "=="
    )


@claim(
    "D4-3", "merge sort is O(n log n): n⌈log₂ n⌉ - 2^⌈log₂ n⌉ + 1 comparisons at worst, and some order takes as many"
)
def merge_sort_is_linearithmic(generator: torch.Generator) -> Evidence:
    wrong = cases = 0
    for n in SIZES:
        power = math.ceil(math.log2(n))
        most = n * power - 2**power + 1
        orders = (
            [torch.randperm(n, generator=generator).tolist() for _ in range(20)]
            if n > 6
            else itertools.permutations(range(n))
        )
        found = [merge_sort(order) for order in (*orders, interleaved(list(range(n))))]
        wrong += (
            any(each.output != list(range(n)) or each.operations > most for each in found)
            or found[-1].operations != most
        )
        cases += len(found)
    return Evidence("lengths at which the order errs or the worst case is another", wrong, 0, "exact", cases, "==")


def interleaved(ordered: list) -> list:
    """The order that costs merge sort most: in every merge the halves take turns, so that it ends only at the last
    pair."""
    if len(ordered) < 2:
        return ordered
    return interleaved(ordered[1::2]) + interleaved(ordered[::2])


@claim(
    "D4-3",
    "bubble sort is O(n²) at worst: n(n - 1)/2 comparisons, which a falling order takes; a rising one takes n - 1",
)
def bubble_sort_is_quadratic(generator: torch.Generator) -> Evidence:
    wrong = cases = 0
    for n in SIZES:
        rising = list(range(n))
        orders = (
            [torch.randperm(n, generator=generator).tolist() for _ in range(3)]
            if n > 6
            else itertools.permutations(rising)
        )
        found = [bubble_sort(order) for order in (*orders, rising, rising[::-1])]
        wrong += any(each.output != rising or each.operations > n * (n - 1) // 2 for each in found)
        wrong += [each.operations for each in found[-2:]] != [n - 1, n * (n - 1) // 2]
        cases += len(found)
    return Evidence("lengths at which the order errs or a count is another", wrong, 0, "exact", cases, "==")


@claim(("D4-3", "D4-1"), "counted at n = 16 ... 512, worst costs rise by the powers 0, below ½, 1, below 1½ and 2 of n")
def powers_of_the_five(generator: torch.Generator) -> Evidence:
    """Worst counts are 1, k + 1, n, (k - 1)n + 1 and n(n - 1)/2 at n = 2ᵏ; fitted, the logarithms show as small
    powers."""
    worst = {
        "array access": lambda n: array_access(range(n), n - 1),
        "binary search": lambda n: binary_search(range(n), n),
        "linked list": lambda n: linked_list_access(LinkedList.from_values(range(n)), n - 1),
        "merge sort": lambda n: merge_sort(interleaved(list(range(n)))),
        "bubble sort": lambda n: bubble_sort(range(n, 0, -1)),
    }
    ranges = ((0, 0), (0.1, 0.5), (1, 1), (1.1, 1.5), (2, 2.03))
    outside = 0.0
    for count, (low, high) in zip(worst.values(), ranges, strict=True):
        exponent = fit_complexity(DOUBLING, [count(n).operations for n in DOUBLING]).exponent
        outside = max(outside, low - exponent, exponent - high)
    return Evidence(
        "how far an exponent is outside its range",
        outside,
        roundings(256),
        "256 roundings of logarithms",
        5 * len(DOUBLING),
    )
