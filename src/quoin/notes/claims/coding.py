"""Codes: entropy bounds them all, Shannon's and Huffman's are within a bit of it, and the wrong distribution costs the
KL."""

import math
from collections.abc import Callable
from fractions import Fraction

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin.info import (
    PrefixCode,
    StaticModel,
    arithmetic_decode,
    arithmetic_encode,
    canonical_code,
    distribution_cross_entropy,
    huffman_code,
    kl_divergence,
    kraft_sum,
    shannon_code,
    shannon_lengths,
)
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.rounding import max, min, randint, roundings

CASES = 60
MESSAGE = 4000
# An arithmetic coder rounds the whole message to a byte and each symbol's probability to one in 2^24;
# integer frequencies add 2^-32 a symbol.
CODER_SLACK = 8 + MESSAGE * 2e-7


def random_distribution(generator: torch.Generator, *, impossible: bool = True) -> Float[Tensor, "n"]:
    """From nearly even to very uneven, on 1 to 12 symbols, some impossible; one time in four all probabilities are
    powers of two."""
    size = randint(1, 12, generator)
    if randint(0, 3, generator) == 0:
        distribution = torch.tensor([2.0**-length for length in random_lengths(size, generator)], dtype=torch.float64)
    else:
        distribution = torch.rand(size, generator=generator, dtype=torch.float64) ** randint(0, 8, generator) + 1e-6
    if impossible and randint(0, 2, generator) == 0:
        distribution = torch.cat([distribution, distribution.new_zeros(randint(1, 3, generator))])
        distribution = distribution[torch.randperm(len(distribution), generator=generator)]
    return distribution / distribution.sum()


def random_lengths(size: int, generator: torch.Generator) -> list[int]:
    """The depths of the leaves of a random tree: split a leaf until there are `size`."""
    lengths = [0]
    while len(lengths) < size:
        leaf = lengths.pop(randint(0, len(lengths) - 1, generator))
        lengths += [leaf + 1, leaf + 1]
    return lengths


def bits(p: Float[Tensor, "n"], q: Float[Tensor, "n"]) -> float:
    """-sum_i p_i log2 q_i: the entropy in bits if both are the same."""
    return float(distribution_cross_entropy(p, q, base=2))


def kl_bits(p: Float[Tensor, "n"], q: Float[Tensor, "n"]) -> float:
    return float(kl_divergence(p, q, base=2))


def mean_length(code: PrefixCode, distribution: Float[Tensor, "n"]) -> float:
    return float(code.expected_length(distribution))


@claim(
    "Z13.11",
    "no prefix code has a mean length below the entropy in bits; with probabilities 2^-length a code reaches it",
    not_shown="infinite alphabets, and codes that are not prefix codes",
)
def entropy_bounds_every_prefix_code(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        distribution = random_distribution(generator, impossible=False)
        lengths = random_lengths(len(distribution), generator)
        loose = [length + randint(0, 2, generator) for length in lengths]
        for code in (
            canonical_code(lengths),
            canonical_code(loose),
            huffman_code(distribution),
            shannon_code(distribution),
        ):
            worst = max(worst, bits(distribution, distribution) - mean_length(code, distribution))
        dyadic = torch.tensor([2.0**-length for length in lengths], dtype=torch.float64)
        for code in (canonical_code(lengths), huffman_code(dyadic), shannon_code(dyadic)):
            worst = max(worst, abs(bits(dyadic, dyadic) - mean_length(code, dyadic)))
    return Evidence(
        "largest H - mean length, and gap at powers of two, in bits",
        worst,
        roundings(64),
        "64 float64 roundings",
        7 * CASES,
    )


@claim("M20", "common items get the shorter codewords, and Shannon's and Huffman's mean lengths lie in [H₂, H₂ + 1)")
def mean_length_is_within_a_bit_of_entropy(generator: torch.Generator) -> Evidence:
    breaches = 0
    for _ in range(CASES):
        distribution = random_distribution(generator)
        entropy = bits(distribution, distribution)
        for code in (shannon_code(distribution), huffman_code(distribution)):
            breaches += not entropy - roundings(64) <= mean_length(code, distribution) < entropy + 1
            held = [(float(p), length) for p, length in zip(distribution, code.lengths) if length is not None]
            breaches += len(held) != int((distribution > 0).sum())
            breaches += sum(p > q and longer > shorter for p, longer in held for q, shorter in held)
    return Evidence(
        "distributions outside [H, H + 1), or pairs with the commoner symbol longer",
        breaches,
        0,
        "exact: a count",
        2 * CASES,
        "==",
    )


@claim(
    "M21",
    "lengths ⌈-log₂ Q(y)⌉ lie in [-log₂ Q(y), -log₂ Q(y) + 1) and satisfy Kraft, so a prefix code has them and decodes",
)
def shannon_code_exists(generator: torch.Generator) -> Evidence:
    breaches = 0
    for _ in range(CASES):
        distribution = random_distribution(generator)
        lengths = shannon_lengths(distribution)
        pairs = [(Fraction(q), length) for q, length in zip(distribution.tolist(), lengths) if length is not None]
        breaches += sum(not q / 2 < Fraction(1, 2**length) <= q for q, length in pairs)
        breaches += kraft_sum(lengths) > 1
        code = shannon_code(distribution)
        message = torch.multinomial(distribution, 50, replacement=True, generator=generator)
        breaches += code.lengths != tuple(lengths)
        breaches += not torch.equal(code.decode(code.encode(message), len(message)), message)
    return Evidence(
        "lengths out of bounds, Kraft sums above 1, messages not read back",
        breaches,
        0,
        "exact: rationals",
        CASES,
        "==",
    )


def from_probability(distribution: Float[Tensor, "n"]) -> list[float]:
    return [-math.log2(q) + 1 for q in distribution.tolist()]


def from_item(distribution: Float[Tensor, "n"]) -> list[float]:
    return [-math.log2(y) + 1 for y in range(1, len(distribution) + 1)]


@claim(
    "ME2",
    "a Shannon codeword has at most -log₂ Q(y) + 1 bits, by y's probability",
    right=from_probability,
    printed=from_item,
)
def shannon_length_bound(form: Callable[[Tensor], list[float]], generator: torch.Generator) -> Evidence:
    worst, example = -math.inf, ""
    for _ in range(CASES):
        distribution = random_distribution(generator, impossible=False)
        for y, (length, most) in enumerate(zip(shannon_code(distribution).lengths, form(distribution)), start=1):
            assert length is not None
            if length - most > worst:
                worst = length - most
                example = (
                    f"item {y} of {len(distribution)} with Q = {float(distribution[y - 1]):.3g} has {length} "
                    f"bits, the bound is {most:.3g}"
                )
    return Evidence(
        "largest length - bound", worst, roundings(16), "16 float64 roundings", CASES, counterexample=example
    )


def complete_lengths(size: int, depth: int = 0) -> set[tuple[int, ...]]:
    """The sorted leaf depths of every binary tree with `size` leaves whose root lies at `depth`."""
    if size == 1:
        return {(depth,)}
    halves = (
        (complete_lengths(left, depth + 1), complete_lengths(size - left, depth + 1))
        for left in range(1, size // 2 + 1)
    )
    return {tuple(sorted(a + b)) for first, second in halves for a in first for b in second}


@claim(
    "M21h",
    "no tree of codewords has a smaller mean length than Huffman's, all trees tried",
    not_shown="alphabets larger than those whose trees can all be tried",
)
def huffman_is_optimal(generator: torch.Generator) -> Evidence:
    worst, trees = 0.0, {size: complete_lengths(size) for size in range(1, 9)}
    for _ in range(CASES):
        size = randint(1, 8, generator)
        distribution = torch.rand(size, generator=generator, dtype=torch.float64) ** randint(0, 8, generator) + 1e-6
        distribution = distribution / distribution.sum()
        ordered = sorted(distribution.tolist(), reverse=True)
        least = min(math.fsum(p * length for p, length in zip(ordered, lengths)) for lengths in trees[size])
        worst = max(worst, abs(mean_length(huffman_code(distribution), distribution) - least))
    return Evidence(
        "largest |Huffman's mean length - least of all trees|", worst, roundings(64), "64 float64 roundings", CASES
    )


@claim(
    "M21h",
    "a single Huffman codeword may exceed -log₂ Q + 1: with Fibonacci weights it does, where Shannon's never does",
)
def huffman_breaks_the_bound_of_a_symbol(generator: torch.Generator) -> Evidence:
    least, sizes = math.inf, range(8, 31)
    for size in sizes:
        weights = [1, 1]
        while len(weights) < size:
            weights.append(weights[-1] + weights[-2])
        distribution = torch.tensor(weights, dtype=torch.float64)[torch.randperm(size, generator=generator)]
        distribution = distribution / distribution.sum()
        rare = int(distribution.argmin())
        bound = -math.log2(float(distribution[rare])) + 1
        huffman, shannon = huffman_code(distribution).lengths[rare], shannon_code(distribution).lengths[rare]
        assert huffman is not None
        assert shannon is not None
        least = min(least, huffman - bound if shannon <= bound else -math.inf)
    # The rarest of n lies n - 1 deep, and the weights sum to F(n + 2) - 1; the excess is least for 8 symbols, of sum
    # 54.
    source = "7 - log₂ 54 - 1, exactly, for 8 symbols; more for more"
    return Evidence(
        "least length - (-log₂ Q + 1) of the rarest symbol", least, 6 - math.log2(54) - 1e-9, source, len(sizes), ">="
    )


def message_of(
    distribution: Float[Tensor, "n"], generator: torch.Generator
) -> tuple[Int[Tensor, "length"], Float[Tensor, "n"]]:
    """A message sampled from `distribution`, and the distribution that it follows exactly: its own frequencies."""
    message = torch.multinomial(distribution, MESSAGE, replacement=True, generator=generator)
    return message, torch.bincount(message, minlength=len(distribution)).double() / MESSAGE


def two_distributions(generator: torch.Generator) -> tuple[Float[Tensor, "n"], Float[Tensor, "n"]]:
    p = random_distribution(generator)
    q = torch.rand(len(p), generator=generator, dtype=torch.float64) + 0.01
    return p, q / q.sum()


@claim(
    "D1.4-8",
    "D(P‖Q) is the mean excess of length: exact for ideal lengths, and H + D ≤ E_P ⌈-log₂ Q⌉ < H + D + 1 for Shannon's",
)
def kl_is_the_extra_length(generator: torch.Generator) -> Evidence:
    worst, breaches = 0.0, 0
    for _ in range(CASES):
        p, q = two_distributions(generator)
        divergence, entropy = kl_bits(p, q), bits(p, p)
        possible = p > 0
        extra = (
            p[possible] * (p[possible].log2() - q[possible].log2())
        ).sum()  # the difference of the surprises, symbol by symbol
        worst = max(worst, abs(divergence - float(extra)))
        length = mean_length(shannon_code(q), p)
        breaches += not entropy + divergence - roundings(64) <= length < entropy + divergence + 1
        certain = torch.cat([q, q.new_zeros(1)])
        breaches += (
            mean_length(shannon_code(certain), certain.flip(0)) != math.inf
        )  # no codeword for what q calls impossible
    value = worst if breaches == 0 else math.inf
    return Evidence(
        "largest |D - mean extra surprise|; infinite if a bound breaks",
        value,
        roundings(64),
        "64 float64 roundings",
        CASES,
    )


@claim(
    "D1.4-8",
    "coded arithmetically, P's messages take D(P‖Q) bits a symbol more with Q's distribution than with P's own",
)
def arithmetic_code_wastes_the_divergence(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 6
    for _ in range(cases):
        p, q = two_distributions(generator)
        message, p = message_of(p, generator)
        ours, theirs = (
            8 * len(arithmetic_encode(message.tolist(), StaticModel(distribution))) for distribution in (p, q)
        )
        worst = max(worst, abs(theirs - ours - MESSAGE * kl_bits(p, q)))
    source = "two messages, 8 bits each and 2e-7 a symbol: the coder's rounding"
    return Evidence(f"largest |extra bits - n D| of {MESSAGE} symbols", worst, 2 * CODER_SLACK, source, cases)


@claim(
    "D1.4-13",
    "-Σ p log₂ q bits a symbol is what P's messages take in a code for Q, up to the rounding of a message to bytes",
)
def cross_entropy_is_the_coded_length(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 6
    for _ in range(cases):
        p, q = two_distributions(generator)
        message, p = message_of(p, generator)
        data = arithmetic_encode(message.tolist(), StaticModel(q))
        worst = max(worst, abs(8 * len(data) - MESSAGE * bits(p, q)))
        lengths = random_lengths(len(p), generator)
        ideal = torch.tensor([2.0**-length for length in lengths], dtype=torch.float64)
        for code in (huffman_code(ideal), shannon_code(ideal)):
            sent = code.encode(message)
            # The last byte is filled with up to seven zeros.
            worst = max(worst, abs(8 * len(sent) - MESSAGE * bits(p, ideal)))
            worst = worst if torch.equal(code.decode(sent, MESSAGE), message) else math.inf
        worst = worst if arithmetic_decode(data, StaticModel(q), MESSAGE) == message.tolist() else math.inf
    source = "8 bits a message and 2e-7 a symbol: the coder's rounding"
    return Evidence(f"largest |bits - n CE| of {MESSAGE} symbols", worst, CODER_SLACK, source, 3 * cases)
