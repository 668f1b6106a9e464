"""Information of tables: units, entropy and its bounds, mutual information, and the steps that proofs about them
take."""

import math
from collections.abc import Callable, Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.info import (
    conditional_entropy,
    convert_base,
    distribution_cross_entropy,
    entropy,
    joint_entropy,
    kl_divergence,
    mutual_information,
    mutual_information_definition,
    pmi,
    self_information,
)
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.distances import random_distributions
from quoin.notes.claims.rounding import excess, gap, max, randint, roundings
from quoin.tensor import logsumexp

ROUNDS, BATCH = 20, 50
CASES = ROUNDS * BATCH
ONE_BY_ONE = 200
FEW = "64 float64 roundings"


def random_joints(generator: torch.Generator) -> Iterator[Float[Tensor, "batch n m"]]:
    """Batches of joint tables, some pairs in them impossible."""
    for _ in range(ROUNDS):
        n, m = randint(1, 5, generator), randint(1, 5, generator)
        weights = torch.rand(BATCH, n, m, generator=generator, dtype=torch.float64)
        weights = weights * (torch.rand(weights.shape, generator=generator) < 0.7)
        weights[:, 0, 0] += 0.01
        yield weights / weights.sum(dim=(-2, -1), keepdim=True)


def pinsker(p: Float[Tensor, "*#batch n"], q: Float[Tensor, "*#batch n"]) -> Float[Tensor, "*#batch"]:
    """½‖p - q‖₁², below which D(p ‖ q) never lies: so it is zero at p = q only."""
    return (p - q).abs().sum(dim=-1).square() / 2


def word_lengths(generator: torch.Generator) -> Float[Tensor, "n"]:
    """The lengths of a complete binary code: a distribution 2^-length whose surprises are whole bits, counted and not
    computed."""
    lengths = [0]
    for _ in range(randint(1, 7, generator)):
        grown = lengths.pop(randint(0, len(lengths) - 1, generator)) + 1
        lengths += [grown, grown]
    return torch.tensor(lengths, dtype=torch.float64)


# ---- units ------------------------------------------------------------------------------------------------------


@claim("M16c", "256 values alike carry 8 bits, one byte, and a nat is 1/ln 2 = 1.4427 bits")
def a_byte_has_eight_bits(generator: torch.Generator) -> Evidence:
    even = torch.full((256,), 1 / 256, dtype=torch.float64)
    nat = float(convert_base(torch.ones((), dtype=torch.float64), 2))
    off = max(abs(float(entropy(even, base=2)) - 8), abs(float(self_information(even[0], base=2)) - 8))
    off = max(
        off, abs(2**nat - math.e), 0.0 if round(nat, 4) == 1.4427 else math.inf
    )  # 2 to the number of bits in a nat is e
    return Evidence("largest |bits - 8| and |2^(bits in a nat) - e|", off, roundings(64), FEW, 3)


def bits_in_nats(bits: Float[Tensor, ""]) -> Float[Tensor, ""]:
    return math.log(2) * bits


def bits_over_ln_2(bits: Float[Tensor, ""]) -> Float[Tensor, ""]:
    return bits / math.log(2)


@claim(
    "ME1",
    "H₂ = H / ln 2: entropy in nats is 0.693 times that in bits, not 1.44 times",
    right=bits_in_nats,
    printed=bits_over_ln_2,
)
def entropy_in_nats_and_bits(form: Callable[[Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(ONE_BY_ONE):
        lengths = word_lengths(generator)
        distribution = 2**-lengths
        worst = max(
            worst,
            gap(entropy(distribution), form((distribution * lengths).sum())),
            gap(entropy(distribution, base=2), (distribution * lengths).sum()),
        )
    return Evidence("largest |H - form(mean length)|", worst, roundings(64), FEW, ONE_BY_ONE)


@claim(
    "ME3",
    "H(P, Q) in nats is 0.693 times the bits that Q's code takes for P, not 1.44",
    right=bits_in_nats,
    printed=bits_over_ln_2,
)
def cross_entropy_in_nats_and_bits(form: Callable[[Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(ONE_BY_ONE):
        lengths = word_lengths(generator)
        p = torch.randn(len(lengths), generator=generator, dtype=torch.float64).softmax(-1)
        bits = (p * lengths).sum()
        worst = max(
            worst,
            gap(distribution_cross_entropy(p, 2**-lengths), form(bits)),
            gap(distribution_cross_entropy(p, 2**-lengths, base=2), bits),
        )
    return Evidence("largest |H(P, Q) - form(mean length)|", worst, roundings(64), FEW, ONE_BY_ONE)


def entropy_in_bits(distribution: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    return entropy(distribution, base=2)


def entropy_as_written(distribution: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    return -(distribution * distribution.log()).sum(dim=-1)


@claim("ZE37", "an entropy in bits needs log₂, and 0 log 0 = 0", right=entropy_in_bits, printed=entropy_as_written)
def entropy_counts_bits(form: Callable[[Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(ONE_BY_ONE):
        lengths = word_lengths(generator)
        distribution = 2**-lengths
        for given in (distribution, torch.cat([distribution, torch.zeros(1, dtype=torch.float64)])):
            worst = max(worst, gap(form(given), (distribution * lengths).sum()))
    return Evidence("largest |entropy - mean length in bits|", worst, roundings(64), FEW, 2 * ONE_BY_ONE)


# ---- entropy ----------------------------------------------------------------------------------------------------


@claim("Z13.12", "an entropy over k classes is at most log k, which the uniform distribution reaches and no other")
def uniform_has_most_entropy(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(ROUNDS):
        p = random_distributions(BATCH, generator)
        k = p.shape[-1]
        even = torch.full((k,), 1 / k, dtype=torch.float64)
        below = math.log(k) - entropy(p)
        worst = max(worst, excess(pinsker(p, even), below), abs(float(entropy(even)) - math.log(k)))
    return Evidence("largest ½‖p - uniform‖₁² - (log k - H(p)), |H(uniform) - log k|", worst, roundings(64), FEW, CASES)


@claim(
    "Z13.10",
    "Gibbs: the mean surprise under P is least with P's own probabilities: H(P) ≤ -E_P log q, equal iff P = Q",
    not_shown="infinite alphabets: tables",
)
def gibbs_inequality(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(ROUNDS):
        p, q = random_distributions(2 * BATCH, generator).chunk(2)
        above = distribution_cross_entropy(p, q) - entropy(p)
        worst = max(worst, excess(pinsker(p, q), above), gap(distribution_cross_entropy(p, p), entropy(p)))
    return Evidence("largest ½‖p - q‖₁² - (CE - H), |CE(p, p) - H(p)|", worst, roundings(64), FEW, CASES)


@claim(
    "Z13.15", "for tables max(H(X), H(Y)) ≤ H(X, Y) ≤ H(X) + H(Y), reached where Y = X and where they are independent"
)
def joint_entropy_lies_between(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for joint in random_joints(generator):
        x, y = joint.sum(dim=-1), joint.sum(dim=-2)
        both = joint_entropy(joint)
        worst = max(worst, excess(torch.maximum(entropy(x), entropy(y)), both), excess(both, entropy(x) + entropy(y)))
        worst = max(worst, gap(joint_entropy(torch.diag_embed(x)), entropy(x)))
        worst = max(worst, gap(joint_entropy(x.unsqueeze(-1) * y.unsqueeze(-2)), entropy(x) + entropy(y)))
    return Evidence(
        "largest violation of a bound, or distance from one at its extreme", worst, roundings(64), FEW, CASES
    )


@claim("Z13.17", "chain rule: H(Y | X) = H(X, Y) - H(X), which is also the mean over x of the entropy of row x")
def entropies_chain(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for joint in random_joints(generator):
        x = joint.sum(dim=-1)
        worst = max(worst, gap(conditional_entropy(joint), joint_entropy(joint) - entropy(x)))
        rows = torch.where((x == 0).unsqueeze(-1), 1 / joint.shape[-1], joint / x.unsqueeze(-1).clamp_min(1e-300))
        worst = max(worst, gap(conditional_entropy(joint), (x * entropy(rows)).sum(dim=-1)))
    return Evidence("largest difference of the three", worst, roundings(64), FEW, CASES)


# ---- mutual information -----------------------------------------------------------------------------------------


@claim(
    "Z13.19", "I(X, Y) is symmetric, never negative, 0 iff X and Y are independent, and for tables H(X) if Y relabels X"
)
def mutual_information_properties(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for joint in random_joints(generator):
        x, y = joint.sum(dim=-1), joint.sum(dim=-2)
        product = x.unsqueeze(-1) * y.unsqueeze(-2)
        information = mutual_information(joint)
        worst = max(
            worst, gap(information, mutual_information(joint.mT)), gap(mutual_information(product), torch.zeros(()))
        )
        worst = max(worst, excess(pinsker(joint.flatten(-2), product.flatten(-2)), information))
        relabelled = torch.diag_embed(x)[..., torch.randperm(x.shape[-1], generator=generator)]
        worst = max(worst, gap(mutual_information(relabelled), entropy(x)))
    return Evidence("largest violation of one of the four", worst, roundings(64), FEW, CASES)


def mean_under_the_joint(joint: Float[Tensor, "*batch n m"]) -> Float[Tensor, "*batch"]:
    return (joint * torch.where(joint == 0, 0, pmi(joint))).sum(dim=(-2, -1))


def mean_under_the_product(joint: Float[Tensor, "*batch n m"]) -> Float[Tensor, "*batch"]:
    product = joint.sum(dim=-1, keepdim=True) * joint.sum(dim=-2, keepdim=True)
    return (product * joint * torch.where(joint == 0, 0, pmi(joint))).sum(dim=(-2, -1))


@claim(
    "ZE33",
    "mutual information is the mean of log p(x, y) / (p(x) p(y)) under the joint distribution, not of p log(...) "
    "under the product",
    right=mean_under_the_joint,
    printed=mean_under_the_product,
)
def mutual_information_is_a_mean(form: Callable[[Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst = 0.0
    for joint in random_joints(generator):
        by_entropies = entropy(joint.sum(dim=-1)) + entropy(joint.sum(dim=-2)) - joint_entropy(joint)
        for information in (form(joint), mutual_information(joint), mutual_information_definition(joint)):
            worst = max(worst, gap(information, by_entropies))
    return Evidence("largest |I - (H(X) + H(Y) - H(X, Y))|", worst, roundings(64), FEW, CASES)


@claim("Z13.25", "I(X, Y) = D(P_XY ‖ P_X P_Y) = E_Y D(P_X|Y ‖ P_X) = E_X D(P_Y|X ‖ P_Y)")
def mutual_information_is_a_divergence(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for joint in random_joints(generator):
        x, y = joint.sum(dim=-1, keepdim=True), joint.sum(dim=-2, keepdim=True)
        ways = [
            kl_divergence(joint.flatten(-2), (x * y).flatten(-2)),
            mean_divergence(joint),
            mean_divergence(joint.mT),
        ]
        worst = max(worst, *(gap(mutual_information(joint), way) for way in ways))
    return Evidence("largest |I - a divergence|", worst, roundings(64), FEW, CASES)


def mean_divergence(joint: Float[Tensor, "*batch n m"]) -> Float[Tensor, "*batch"]:
    """E_X D(P_Y|X || P_Y); a row that never happens counts nothing, whichever distribution it is given."""
    x, y = joint.sum(dim=-1, keepdim=True), joint.sum(dim=-2, keepdim=True).expand_as(joint)
    rows = torch.where(x == 0, y, joint / torch.where(x == 0, 1, x))
    return (x.squeeze(-1) * kl_divergence(rows, y)).sum(dim=-1)


# ---- steps of proofs --------------------------------------------------------------------------------------------


@claim(
    "M26",
    "Jensen: for an upward-curving f the mean of f is at least f at the mean, and equal where nothing varies",
    not_shown="all convex functions and all distributions: those tried",
)
def mean_of_a_convex_function(generator: torch.Generator) -> Evidence:
    curves = [
        lambda points: -entropy(points),
        lambda points: kl_divergence(points, torch.full_like(points, 1 / points.shape[-1])),
        lambda points: self_information(points[..., 0]),
        logsumexp,
    ]
    worst = 0.0
    for _ in range(ROUNDS):
        points = random_distributions(BATCH, generator, positive=True)  # points on which all four are defined
        weights = torch.randn(BATCH, generator=generator, dtype=torch.float64).softmax(-1)
        middle = weights @ points
        for f in curves:
            worst = max(worst, excess(f(middle), weights @ f(points)))
            worst = max(worst, gap(f(middle), weights @ f(middle.expand_as(points))))
    return Evidence(
        "largest f(E x) - E f(x), |difference| where x is constant", worst, roundings(64), FEW, ROUNDS * len(curves)
    )


@claim("M28", "E ln ∏ A_i = Σ E ln A_i for A_i > 0, however the factors are grouped")
def logs_regroup(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(ONE_BY_ONE):
        p, *factors = random_distributions(4, generator, positive=True)
        # A product of distributions is Z times a distribution, so its mean log is -(cross-entropy) + ln Z.
        a, b, c = factors
        products = [a * b * c, a * b, b * c]
        whole, left, right = (-distribution_cross_entropy(p, each / each.sum()) + each.sum().log() for each in products)
        alone = [-distribution_cross_entropy(p, each) for each in factors]
        worst = max(
            worst, gap(whole, alone[0] + alone[1] + alone[2]), gap(whole, left + alone[2]), gap(whole, alone[0] + right)
        )
        worst = max(worst, gap(kl_divergence(p, a), -entropy(p) - alone[0]))  # ln(p / a), taken apart
    return Evidence("largest difference of two groupings", worst, roundings(128), "128 float64 roundings", ONE_BY_ONE)
