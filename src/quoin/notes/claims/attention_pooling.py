"""Attention as pooling: cones, hulls, tables and means; lookups by a vector; why attention is no dense layer."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from quoin.layers import (
    argmax_weights,
    attention_pooling,
    dense_definition,
    dot_score,
    gaussian_score,
    gaussian_score_definition,
    linear_lookup,
    pool_values,
    scaled_dot_score,
    soft_lookup,
    softmax_weights,
    tanh,
    uniform_weights,
)
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import normal
from quoin.notes.claims.rounding import gap, max, min, randint, roundings
from quoin.tensor import one_hot

CASES = 40
ROUNDING, ROUNDING_SOURCE = roundings(256), "256 float64 roundings, for sums of at most 100 terms"


def random_store(generator: torch.Generator) -> tuple[Float[Tensor, "n d"], Float[Tensor, "m d"], Float[Tensor, "m v"]]:
    """Queries, keys and values of random sizes."""
    n, m, d, v = randint(1, 6, generator), randint(1, 9, generator), randint(1, 8, generator), randint(1, 5, generator)
    return normal(n, d, generator=generator), normal(m, d, generator=generator), normal(m, v, generator=generator)


def exponentials(
    scores: Float[Tensor, "*batch n m"], mask: Bool[Tensor, "*batch n m"] | None
) -> Float[Tensor, "*batch n m"]:
    """Non-negative weights of any sum."""
    return scores.exp()


def cone_normals(angles: Float[Tensor, "m"]) -> Float[Tensor, "3 2"]:
    """For rays within less than 180 degrees: inward normals of the two outer ones, between which the cone lies, and the
    ray midway.

    A vector is in the cone exactly if its product with all three is at least 0; where there is one ray, the third is
    needed.
    """
    low, high = angles.min(), angles.max()
    ways = torch.stack([low + math.pi / 2, high - math.pi / 2, (low + high) / 2])
    return torch.stack([ways.cos(), ways.sin()], dim=-1)


@claim("Z11.2", "with weights of at least 0 the output lies in the convex cone of the values")
def nonnegative_weights_stay_in_the_cone(generator: torch.Generator) -> Evidence:
    lowest, left = 0.0, 0
    for _ in range(CASES):
        query, key, _ = random_store(generator)
        angles = 2 * torch.rand(
            len(key), generator=generator, dtype=torch.float64
        )  # radians: a cone, not yet a half-plane
        values = torch.stack([angles.cos(), angles.sin()], dim=-1) * normal(len(key), 1, generator=generator).abs()
        sides = cone_normals(angles)
        pooled = attention_pooling(query, key, values, dot_score, exponentials)
        lowest = min(lowest, float(((pooled.output @ sides.mT) / pooled.weights.sum(dim=-1, keepdim=True)).min()))
        left += bool((pool_values(normal(50, len(key), generator=generator), values) @ sides.mT < -1e-6).any())
    # Weights of both signs leave the cone: were they to stay, the test would see nothing.
    return Evidence(
        "least product with a normal of the cone, per unit of weight",
        lowest if left == CASES else -math.inf,
        -ROUNDING,
        f"exact but for rounding; signed weights leave it in all {CASES} cases",
        CASES,
        ">=",
    )


@claim(
    "Z11.3",
    "with weights of at least 0 that sum to 1 the output lies in the convex hull: never beyond the values in any "
    "direction",
)
def softmax_weights_stay_in_the_hull(generator: torch.Generator) -> Evidence:
    beyond, left = 0.0, 0
    for _ in range(CASES):
        query, key, value = random_store(generator)
        # A point is in the hull of finitely many values exactly if no direction has it beyond all of them: many
        # directions are tried.
        directions = torch.cat(
            [normal(200, value.shape[1], generator=generator), torch.eye(value.shape[1], dtype=torch.float64)]
        )
        support = (value @ directions.mT).amax(dim=0)
        for weigh in (softmax_weights, argmax_weights, uniform_weights):
            output = attention_pooling(query, key, value, scaled_dot_score, weigh).output
            beyond = max(beyond, float(((output @ directions.mT - support) / support.abs().clamp(min=1)).max()))
        unbounded = attention_pooling(3 * query, key, 2 + value.abs(), dot_score, exponentials).output
        left += bool((unbounded > (2 + value.abs()).amax(dim=0)).any())
    return Evidence(
        "farthest beyond all values in a direction, relative",
        beyond if left else math.inf,
        ROUNDING,
        f"{ROUNDING_SOURCE}; weights of another sum left the hull {left} times",
        3 * CASES,
    )


@claim("Z11.4", "with one weight 1 and the others 0 attention answers the value of that key, like a table")
def one_weight_is_a_table_query(generator: torch.Generator) -> Evidence:
    wrong = 0
    for _ in range(CASES):
        _, key, value = random_store(generator)
        asked = torch.randint(len(key), (5,), generator=generator)
        answer = attention_pooling(
            key[asked], key, value, gaussian_score_definition, argmax_weights
        )  # the nearest key is itself
        given = pool_values(one_hot(asked, len(key), dtype=torch.float64), value)
        wrong += int((answer.output != value[asked]).sum()) + int((given != value[asked]).sum())
        wrong += int((answer.weights != one_hot(asked, len(key), dtype=torch.float64)).sum())
    return Evidence("entries that are not the asked value's", wrong, 0, "exact: 1 times v plus zeros", 10 * CASES, "==")


@claim("Z11.5", "with equal weights 1/m attention is the mean of the values, whatever is asked")
def equal_weights_are_average_pooling(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        query, key, value = random_store(generator)
        mean = torch.tensor([[math.fsum(column) / len(value) for column in value.T.tolist()]], dtype=torch.float64)
        output = attention_pooling(query, key, value, dot_score, uniform_weights).output
        same = attention_pooling(
            0 * query, key, value, dot_score, softmax_weights
        ).output  # equal scores are equal weights
        worst = max(worst, gap(output, mean.expand_as(output)), gap(same, mean.expand_as(same)))
    return Evidence("largest |output - mean|", worst, ROUNDING, ROUNDING_SOURCE, 2 * CASES)


@claim(
    "D1.1-26",
    "a dense layer's gradients at different inputs all have one direction for each output; those of attention do not",
)
def attention_is_no_dense_layer(generator: torch.Generator) -> Evidence:
    def second_direction(
        function, width: int
    ) -> float:  # second singular value over the first, the least of all outputs
        points = [normal(width, generator=generator) for _ in range(6)]
        gradients = torch.stack(
            [torch.autograd.functional.jacobian(function, x) for x in points]
        )  # (points, outputs, width)
        values = torch.linalg.svdvals(gradients.movedim(1, 0))
        return float((values[:, 1] / values[:, 0]).min())

    least, most = math.inf, 0.0
    for _ in range(10):
        weight, bias, tokens, width = normal(4, 6, generator=generator), normal(4, generator=generator), 3, 2

        def attend(x: Tensor, tokens: int = tokens, width: int = width) -> Tensor:
            rows = x.reshape(tokens, width)
            return attention_pooling(rows, rows, rows, scaled_dot_score, softmax_weights).output.flatten()

        most = max(
            most, second_direction(lambda x, weight=weight, bias=bias: dense_definition(x, weight, bias, tanh), 6)
        )
        least = min(least, second_direction(attend, tokens * width))
    dense_has_one = most <= 1e-12
    return Evidence(
        "least second direction of attention's gradients, of the first",
        least if dense_has_one else -math.inf,
        1e-3,
        f"chosen: far above rounding; the dense layer's is {most:.0e}",
        10,
        ">=",
    )


@claim(
    "D2.2-2",
    "asked by e3 the lookup answers v3, by e3 + 2 e5 it answers v3 + 2 v5, and it is linear in query and values",
)
def lookup_is_bilinear(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for case in range(CASES):
        m, copies = (
            randint(5, 9, generator),
            1 + 39 * (case % 2),
        )  # one query's products are summed in another order than those of many
        key, value, other = (
            torch.eye(m, dtype=torch.float64),
            normal(m, 3, generator=generator),
            normal(m, 3, generator=generator),
        )

        def lookup(query: Tensor, value: Tensor, key: Tensor = key, copies: int = copies) -> Tensor:
            return linear_lookup(query.expand(copies, -1), key, value)

        third, fifth, p, q = key[2], key[4], normal(m, generator=generator), normal(m, generator=generator)
        a, b = normal(2, generator=generator).tolist()
        if not bool((lookup(third, value) == value[2]).all()):
            worst = math.inf  # no rounding: once 1 times v, else zeros
        for found, expected in (
            (lookup(third + 2 * fifth, value), value[2] + 2 * value[4]),
            (lookup(-7 * third, value), -7 * value[2]),  # a coefficient may be negative, or beyond 1
            (lookup(a * p + b * q, value), a * lookup(p, value) + b * lookup(q, value)),
            (lookup(q, a * value + b * other), a * lookup(q, value) + b * lookup(q, other)),
        ):
            worst = max(worst, gap(found, expected))
    return Evidence("largest |lookup - bilinear form|", worst, ROUNDING, ROUNDING_SOURCE, 5 * CASES)


@claim(
    "D2.2-3",
    "softmax keeps the lookup's coefficients in [0, 1] with sum 1; the query λe_i tends to v_i within 2(m - "
    "1)e^(-λ) max|v|",
)
def soft_lookup_hardens(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        m = randint(2, 9, generator)
        key, value = torch.eye(m, dtype=torch.float64), normal(m, 3, generator=generator)
        weights = soft_lookup(normal(4, m, generator=generator), key, key)  # the values e_i show the coefficients
        worst = (
            math.inf
            if weights.min() < 0 or weights.max() > 1
            else max(worst, gap(weights.sum(dim=-1), torch.ones(4)) / ROUNDING)
        )
        for sharpness in (1.0, 5.0, 20.0, 800.0):
            index = randint(0, m - 1, generator)
            error = float((soft_lookup(sharpness * key[index : index + 1], key, value) - value[index]).abs().max())
            # All weights but one are e^-λ / (1 + (m - 1) e^-λ), and each pulls by |v_j - v_i| <= 2 max|v|.
            bound = 2 * (m - 1) * math.exp(-sharpness) * float(value.abs().max()) + ROUNDING
            worst = max(worst, error / bound)
    return Evidence("largest error over its bound", worst, 1.0, "bound of the softmax's tail, and rounding", 5 * CASES)


@claim("Z11.12", "the Gaussian score is an inner product less two half squares: -½‖q-k‖² = qᵀk - ½‖k‖² - ½‖q‖²")
def gaussian_score_expands(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        query, key, _ = random_store(generator)
        expanded = dot_score(query, key) - key.square().sum(dim=-1) / 2 - query.square().sum(dim=-1, keepdim=True) / 2
        distances = (
            -torch.cdist(query, key, compute_mode="donot_use_mm_for_euclid_dist").square() / 2
        )  # a peer's distances
        for score in (gaussian_score_definition, gaussian_score):
            worst = max(worst, gap(score(query, key), expanded), gap(score(query, key), distances))
    return Evidence("largest |-½‖q-k‖² - expansion|, relative", worst, ROUNDING, ROUNDING_SOURCE, 2 * CASES)


@claim(
    "Z11.13",
    "softmax over the keys does not feel -½‖q‖²; with keys of one length only qᵀk is left, with others it is not",
)
def the_query_norm_cancels(generator: torch.Generator) -> Evidence:
    worst, different = 0.0, 0
    for _ in range(CASES):
        n, m, d = randint(1, 6, generator), randint(2, 9, generator), randint(2, 8, generator)
        query, key = normal(n, d, generator=generator), normal(m, d, generator=generator)
        weights = softmax_weights(gaussian_score(query, key))
        worst = max(worst, gap(weights, softmax_weights(dot_score(query, key) - key.square().sum(dim=-1) / 2)))
        different += gap(weights, softmax_weights(dot_score(query, key))) > 1e-3
        level = 2 * key / torch.linalg.vector_norm(key, dim=-1, keepdim=True)
        worst = max(worst, gap(softmax_weights(gaussian_score(query, level)), softmax_weights(dot_score(query, level))))
    return Evidence(
        "largest difference of the weights",
        worst if different > CASES / 2 else math.inf,
        ROUNDING,
        f"{ROUNDING_SOURCE}; keys of many lengths differ in {different} of {CASES} cases",
        2 * CASES,
    )
