"""Bits: surprise, entropy, mutual information and relative entropy; prefix and arithmetic codes; context models that compress."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.info.archive import Codec, Contents, MixCodec, ModelCodec, StoreCodec, pack, read_header, unpack, write_whole
    from quoin.info.arithmetic import (
        ArithmeticDecoder,
        ArithmeticEncoder,
        CodeInterval,
        CodingModel,
        FixedLaw,
        SteppedLaw,
        arithmetic_decode,
        arithmetic_encode,
        arithmetic_encode_definition,
        arithmetic_interval,
        integer_frequencies,
    )
    from quoin.info.context import ContextMix, ContextModel, LaneMix
    from quoin.info.density import (
        conditional_differential_entropy,
        cross_entropy_of_densities,
        differential_entropy,
        differential_entropy_definition,
        kl_by_truncation,
        kl_of_densities,
        kl_of_densities_definition,
        mutual_information_of_density,
    )
    from quoin.info.entropy import conditional_entropy, entropy, joint_entropy, self_information
    from quoin.info.estimate import (
        Estimate,
        entropy_from_counts,
        entropy_from_sample,
        kl_from_samples,
        mutual_information_from_counts,
        mutual_information_from_sample,
        plug_in_entropy,
        plug_in_mutual_information,
    )
    from quoin.info.fingerprint import model_fingerprint
    from quoin.info.fisher import fisher_information, fisher_information_definition
    from quoin.info.huffman import huffman_code, huffman_lengths
    from quoin.info.lanes import LaneDecoder, lanes_encode, lanes_encode_definition, mix_decode, mix_encode
    from quoin.info.mutual import mutual_information, mutual_information_definition, pmi
    from quoin.info.pixel_coding import NewLaws, pixels_decode, pixels_encode
    from quoin.info.prefix import PrefixCode, canonical_code, kraft_sum, prefix_decode_definition, prefix_encode_definition
    from quoin.info.range_coding import range_decode, range_encode
    from quoin.info.rate import RateBounds, RateEstimate, entropy_rate, hidden_entropy_rate, hidden_entropy_rate_bounds
    from quoin.info.relative import (
        conditional_cross_entropy,
        cross_entropy,
        density_ratio,
        is_abs_continuous,
        radon_nikodym,
        relative_entropy,
    )
    from quoin.info.shannon import shannon_code, shannon_lengths
    from quoin.info.token_lanes import LaneLayout, LaneModel, lane_frequencies, token_lanes_decode, token_lanes_encode
    from quoin.info.units import in_base

__all__ = [
    "ArithmeticDecoder",
    "ArithmeticEncoder",
    "CodeInterval",
    "Codec",
    "CodingModel",
    "Contents",
    "ContextMix",
    "ContextModel",
    "Estimate",
    "FixedLaw",
    "LaneDecoder",
    "LaneLayout",
    "LaneMix",
    "LaneModel",
    "MixCodec",
    "ModelCodec",
    "NewLaws",
    "PrefixCode",
    "RateBounds",
    "RateEstimate",
    "SteppedLaw",
    "StoreCodec",
    "arithmetic_decode",
    "arithmetic_encode",
    "arithmetic_encode_definition",
    "arithmetic_interval",
    "canonical_code",
    "conditional_cross_entropy",
    "conditional_differential_entropy",
    "conditional_entropy",
    "cross_entropy",
    "cross_entropy_of_densities",
    "density_ratio",
    "differential_entropy",
    "differential_entropy_definition",
    "entropy",
    "entropy_from_counts",
    "entropy_from_sample",
    "entropy_rate",
    "fisher_information",
    "fisher_information_definition",
    "hidden_entropy_rate",
    "hidden_entropy_rate_bounds",
    "huffman_code",
    "huffman_lengths",
    "in_base",
    "integer_frequencies",
    "is_abs_continuous",
    "joint_entropy",
    "kl_by_truncation",
    "kl_from_samples",
    "kl_of_densities",
    "kl_of_densities_definition",
    "kraft_sum",
    "lane_frequencies",
    "lanes_encode",
    "lanes_encode_definition",
    "mix_decode",
    "mix_encode",
    "model_fingerprint",
    "mutual_information",
    "mutual_information_definition",
    "mutual_information_from_counts",
    "mutual_information_from_sample",
    "mutual_information_of_density",
    "pack",
    "pixels_decode",
    "pixels_encode",
    "plug_in_entropy",
    "plug_in_mutual_information",
    "pmi",
    "prefix_decode_definition",
    "prefix_encode_definition",
    "radon_nikodym",
    "range_decode",
    "range_encode",
    "read_header",
    "relative_entropy",
    "self_information",
    "shannon_code",
    "shannon_lengths",
    "token_lanes_decode",
    "token_lanes_encode",
    "unpack",
    "write_whole",
]

export_lazily(__name__)
