"""Cases for `quoin.info`: see tests/dtypes.py. `sure` cases have distributions of zeros and ones, which integers can
write down."""

import torch
from torch.distributions import MultivariateNormal, Normal

from quoin.info import (
    AdaptiveModel,
    StaticModel,
    arithmetic_decode,
    arithmetic_encode,
    arithmetic_encode_definition,
    arithmetic_interval,
    canonical_code,
    conditional_cross_entropy,
    conditional_differential_entropy,
    conditional_entropy,
    convert_base,
    decode_pixels,
    density_ratio,
    differential_entropy,
    differential_entropy_definition,
    distribution_cross_entropy,
    encode_interleaved,
    encode_pixels,
    entropy,
    entropy_rate,
    fisher_information,
    fisher_information_definition,
    hmm_entropy_rate_bounds,
    huffman_code,
    huffman_lengths,
    integer_frequencies,
    is_absolutely_continuous,
    joint_entropy,
    kl_by_truncation,
    kl_divergence,
    knn_entropy,
    knn_kl_divergence,
    ksg_mutual_information,
    miller_madow_entropy,
    miller_madow_mutual_information,
    model_fingerprint,
    mutual_information,
    mutual_information_definition,
    mutual_information_of_density,
    plug_in_entropy,
    plug_in_mutual_information,
    pmi,
    prefix_encode_definition,
    radon_nikodym,
    range_decode,
    range_encode,
    self_information,
    shannon_code,
    shannon_lengths,
    stream_frequencies,
)
from quoin.prob import CategoricalEmission, HiddenMarkovModel, MarkovChain

P, Q = [0.25, 0.5, 0.25], [0.5, 0.25, 0.25]
SURE = [0, 1, 0]
STEP, SURE_STEP = [[0.5, 0.5, 0], [0.25, 0.5, 0.25], [0, 0.5, 0.5]], [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
TABLE, SURE_TABLE = [[0.25, 0.125, 0.125], [0.25, 0.25, 0]], [[0, 1, 0], [0, 0, 0]]
COUNTS, PAIRS = [100, 3, 100, 90], [[100, 3], [90, 100]]
SAMPLE = [[0, 100], [3, 90], [200, 1], [7, 20], [50, 60], [11, 120]]
OTHERS = [[1, 99], [20, 120], [3, 7], [40, 2], [90, 80], [60, 33]]


def f64(numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def _both(name, call, part, sure):
    """`call` of the numbers `part`, and of the distributions of zeros and ones `sure`."""
    return {name: lambda x: call(*map(x, part)), f"{name} sure": lambda x: call(*map(x, sure))}


def _of_distribution(name, call):
    return _both(name, call, (P,), (SURE,))


def _of_pair(name, call):
    return _both(name, call, (P, Q), (SURE, SURE))


def _of_table(name, call):
    return _both(name, call, (TABLE,), (SURE_TABLE,))


def _of_distributions(name, call):
    """Two of torch's distributions with parameters of the dtype; 20 squared, and 100 from 30, leave the small
    integers."""
    return {name: lambda x: call(Normal(x(30), x(20)), Normal(x(100), x(17)))}


def _normal(x):
    return MultivariateNormal(x([3, 100]), x([[4, 0], [0, 9]]))


def _hidden(start, step):
    return HiddenMarkovModel(MarkovChain(start, step), CategoricalEmission(step))


def _bytes(data):
    return list(data)


def _pixel_distributions(known):
    return lambda place: f64([P] * len(known))


class _Streams:
    """A distribution for each of so many streams, whatever the symbols before."""

    def __init__(self, distributions):
        self._distributions = distributions

    def frequencies(self):
        return stream_frequencies(self._distributions).numpy()

    def update(self, symbols):
        pass


def _softmax(theta):
    return theta.softmax(dim=0)


CASES = {
    "self_information": lambda x: self_information(x([0.25, 0.5, 1])),
    "self_information sure": lambda x: self_information(x([0, 1, 1])),
    **_of_distribution("entropy", entropy),
    "entropy distribution": lambda x: entropy(Normal(x(30), x(20))),
    **_of_table("joint_entropy", joint_entropy),
    **_of_table("conditional_entropy", conditional_entropy),
    **_of_pair("kl_divergence", kl_divergence),
    **_of_distributions("kl_divergence distributions", kl_divergence),
    **_of_pair("distribution_cross_entropy", distribution_cross_entropy),
    **_of_distributions("distribution_cross_entropy distributions", distribution_cross_entropy),
    **_both("conditional_cross_entropy", conditional_cross_entropy, (TABLE, [P, Q]), (SURE_TABLE, [SURE, SURE])),
    **_of_pair("is_absolutely_continuous", is_absolutely_continuous),
    **_of_pair("radon_nikodym", radon_nikodym),
    "density_ratio": lambda x: density_ratio(lambda z: z + 1, lambda z: 2 * z, x([0, 1, 100])),
    **_of_table("pmi", pmi),
    **_of_table("mutual_information", mutual_information),
    **_of_table("mutual_information_definition", mutual_information_definition),
    "convert_base": lambda x: convert_base(x([0, 3, 200]), 2),
    "plug_in_entropy": lambda x: plug_in_entropy(x(COUNTS)),
    "plug_in_mutual_information": lambda x: plug_in_mutual_information(x(PAIRS)),
    "miller_madow_entropy": lambda x: miller_madow_entropy(x(COUNTS)),
    "miller_madow_mutual_information": lambda x: miller_madow_mutual_information(x(PAIRS)),
    "knn_entropy": lambda x: knn_entropy(x(SAMPLE), k=1),
    "knn_kl_divergence": lambda x: knn_kl_divergence(x(SAMPLE), x(OTHERS), k=1),
    "ksg_mutual_information": lambda x: ksg_mutual_information(x(SAMPLE), x(OTHERS), k=1),
    "fisher_information": lambda x: fisher_information(_softmax, x([0, 1, 2])),
    "fisher_information_definition": lambda x: fisher_information_definition(_softmax, x([0, 1, 2])),
    **_both("entropy_rate", lambda p, step: entropy_rate(MarkovChain(p, step)), (P, STEP), (SURE, SURE_STEP)),
    **_both(
        "hmm_entropy_rate_bounds", lambda p, a: hmm_entropy_rate_bounds(_hidden(p, a), 2), (P, STEP), (SURE, SURE_STEP)
    ),
    "differential_entropy": lambda x: differential_entropy(Normal(x(30), x(20))),
    "differential_entropy_definition": lambda x: differential_entropy_definition(Normal(x(30), x(20))),
    **_of_distributions("kl_by_truncation", lambda p, q: kl_by_truncation(p, q, [50.0])),
    "conditional_differential_entropy": lambda x: conditional_differential_entropy(_normal(x), 0),
    "mutual_information_of_density": lambda x: mutual_information_of_density(_normal(x), 0),
    **_of_distribution("integer_frequencies", integer_frequencies),
    **_of_distribution("huffman_lengths", huffman_lengths),
    **_of_distribution("huffman_code", lambda p: huffman_code(p).lengths),
    **_of_distribution("shannon_lengths", shannon_lengths),
    **_of_distribution("shannon_code", lambda p: shannon_code(p).lengths),
    **_of_distribution("PrefixCode.expected_length", lambda p: canonical_code([2, 1, 2]).expected_length(p)),
    **_of_distribution(
        "StaticModel", lambda p: arithmetic_decode(arithmetic_encode([1, 1], StaticModel(p)), StaticModel(p), 2)
    ),
    **_of_distribution("AdaptiveModel", lambda p: list(AdaptiveModel(lambda past: p).frequencies())),
    **_of_distribution("arithmetic_encode", lambda p: _bytes(arithmetic_encode([1, 1, 1], StaticModel(p)))),
    **_of_distribution("arithmetic_decode", lambda p: arithmetic_decode(b"\x40", StaticModel(p), 1)),
    **_of_distribution("range_encode", lambda p: _bytes(range_encode(torch.tensor([1, 1]), p))),
    **_of_distribution("range_decode", lambda p: range_decode(range_encode(torch.tensor([1, 1]), p), p, 2)),
    **_both("stream_frequencies", lambda p: stream_frequencies(p, 16), ([P, Q],), ([SURE, SURE],)),
    "PrefixCode.encode": lambda x: _bytes(canonical_code([2, 1, 2]).encode(x([0, 2, 1, 1]))),
    "prefix_encode_definition": lambda x: [
        int(bit) for bit in prefix_encode_definition(canonical_code([2, 1, 2]), x([0, 2, 1]).tolist())
    ],
    "range_encode symbols": lambda x: _bytes(range_encode(x([0, 2, 1]), f64(P))),
    "arithmetic_encode symbols": lambda x: _bytes(arithmetic_encode(x([0, 2, 1]), StaticModel(f64(P)))),
    "arithmetic_interval": lambda x: [float(part) for part in arithmetic_interval(x([0, 2, 1]), StaticModel(f64(P)))],
    "arithmetic_encode_definition": lambda x: [
        int(bit) for bit in arithmetic_encode_definition(x([0, 2, 1]), StaticModel(f64(P)))
    ],
    "encode_interleaved": lambda x: _bytes(encode_interleaved(x([0, 2, 1]), lambda lanes: _Streams(f64([P] * lanes)))),
    "encode_pixels": lambda x: _bytes(encode_pixels(x([[[0, 2], [1, 1]]]), _pixel_distributions)),
    "decode_pixels": lambda x: decode_pixels(
        encode_pixels(x([[[0, 2], [1, 1]]]), _pixel_distributions), 1, (2, 2), _pixel_distributions
    ),
    "model_fingerprint": lambda x: model_fingerprint("tiny", {"weight": x([3, 200])}),
}

# Symbols and levels: the int64 answer is the right one.
WHOLE = {
    "PrefixCode.encode",
    "prefix_encode_definition",
    "range_encode symbols",
    "arithmetic_encode symbols",
    "arithmetic_interval",
    "arithmetic_encode_definition",
    "encode_interleaved",
    "encode_pixels",
    "decode_pixels",
}

# name -> how many roundings it may lose, where the mathematics makes it worse than dtypes.ROUNDINGS
ROUNDINGS: dict[str, float] = {}

RESULT = "holds the answer of a function that has a case"
BYTES = "takes bytes, text or Python's whole numbers"
ABSTRACT = "abstract: those that are it have cases"
ARRAYS = "takes numpy's arrays of bits and 16-bit distributions, which the coder makes itself"

# Public names that take no numbers in tensors, each with its reason.
NO_NUMBERS: dict[str, str] = {
    "CodeInterval": RESULT,
    "ArchiveHeader": RESULT,
    "Estimate": RESULT,
    "RateBounds": RESULT,
    "RateEstimate": RESULT,
    "ArithmeticDecoder": BYTES,
    "ArithmeticEncoder": BYTES,
    "StreamLayout": BYTES,
    "ContextMixingCodec": BYTES,
    "ModelCodec": BYTES,
    "StoreCodec": BYTES,
    "canonical_code": BYTES,
    "kraft_sum": BYTES,
    "rans_encode_definition": BYTES,
    "context_mixing_decode": BYTES,
    "context_mixing_encode": BYTES,
    "compress": BYTES,
    "prefix_decode_definition": BYTES,
    "read_header": BYTES,
    "decode_interleaved": BYTES,
    "decompress": BYTES,
    "write_atomic": BYTES,
    "Codec": ABSTRACT,
    "CodingModel": ABSTRACT,
    "StreamModel": ABSTRACT,
    "ContextMixer": ARRAYS,
    "ContextModel": ARRAYS,
    "RANSDecoder": ARRAYS,
    "VectorizedContextMixer": ARRAYS,
    "rans_encode": ARRAYS,
    "hmm_entropy_rate": "draws its own numbers from a generator; the bounds of the same rate have a case",
}
