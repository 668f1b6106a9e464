"""Information theory: entropy, mutual information, KL divergence; prefix codes, arithmetic coding, rANS, context
mixing."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.info.archive import (
        ArchiveHeader,
        Codec,
        ContextMixingCodec,
        ModelCodec,
        StoreCodec,
        compress,
        decompress,
        read_header,
        write_atomic,
    )
    from quoin.info.arithmetic import (
        AdaptiveModel,
        ArithmeticDecoder,
        ArithmeticEncoder,
        CodeInterval,
        CodingModel,
        StaticModel,
        arithmetic_decode,
        arithmetic_encode,
        arithmetic_encode_definition,
        arithmetic_interval,
        integer_frequencies,
    )
    from quoin.info.context_arrays import VectorizedContextMixer
    from quoin.info.context_mixing import ContextMixer, ContextModel
    from quoin.info.density import (
        conditional_differential_entropy,
        differential_entropy,
        differential_entropy_definition,
        kl_by_truncation,
        mutual_information_of_density,
    )
    from quoin.info.entropy import conditional_entropy, entropy, joint_entropy, self_information
    from quoin.info.estimate import (
        Estimate,
        knn_entropy,
        knn_kl_divergence,
        ksg_mutual_information,
        miller_madow_entropy,
        miller_madow_mutual_information,
        plug_in_entropy,
        plug_in_mutual_information,
    )
    from quoin.info.fingerprint import model_fingerprint
    from quoin.info.fisher import fisher_information, fisher_information_definition
    from quoin.info.huffman import huffman_code, huffman_lengths
    from quoin.info.interleaved_tokens import (
        StreamLayout,
        StreamModel,
        decode_interleaved,
        encode_interleaved,
        stream_frequencies,
    )
    from quoin.info.mutual import mutual_information, mutual_information_definition, pmi
    from quoin.info.pixel_coding import MakePixelModel, decode_pixels, encode_pixels
    from quoin.info.prefix import (
        PrefixCode,
        canonical_code,
        kraft_sum,
        prefix_decode_definition,
        prefix_encode_definition,
    )
    from quoin.info.range_coding import range_decode, range_encode
    from quoin.info.rans import (
        RANSDecoder,
        context_mixing_decode,
        context_mixing_encode,
        rans_encode,
        rans_encode_definition,
    )
    from quoin.info.rate import RateBounds, RateEstimate, entropy_rate, hmm_entropy_rate, hmm_entropy_rate_bounds
    from quoin.info.relative import (
        conditional_cross_entropy,
        density_ratio,
        is_absolutely_continuous,
        radon_nikodym,
    )
    from quoin.info.shannon import shannon_code, shannon_lengths
    from quoin.prob.divergence import distribution_cross_entropy, kl_divergence
    from quoin.prob.units import convert_base

__all__ = [
    "AdaptiveModel",
    "ArchiveHeader",
    "ArithmeticDecoder",
    "ArithmeticEncoder",
    "CodeInterval",
    "Codec",
    "CodingModel",
    "ContextMixer",
    "ContextMixingCodec",
    "ContextModel",
    "Estimate",
    "MakePixelModel",
    "ModelCodec",
    "PrefixCode",
    "RANSDecoder",
    "RateBounds",
    "RateEstimate",
    "StaticModel",
    "StoreCodec",
    "StreamLayout",
    "StreamModel",
    "VectorizedContextMixer",
    "arithmetic_decode",
    "arithmetic_encode",
    "arithmetic_encode_definition",
    "arithmetic_interval",
    "canonical_code",
    "compress",
    "conditional_cross_entropy",
    "conditional_differential_entropy",
    "conditional_entropy",
    "context_mixing_decode",
    "context_mixing_encode",
    "convert_base",
    "decode_interleaved",
    "decode_pixels",
    "decompress",
    "density_ratio",
    "differential_entropy",
    "differential_entropy_definition",
    "distribution_cross_entropy",
    "encode_interleaved",
    "encode_pixels",
    "entropy",
    "entropy_rate",
    "fisher_information",
    "fisher_information_definition",
    "hmm_entropy_rate",
    "hmm_entropy_rate_bounds",
    "huffman_code",
    "huffman_lengths",
    "integer_frequencies",
    "is_absolutely_continuous",
    "joint_entropy",
    "kl_by_truncation",
    "kl_divergence",
    "knn_entropy",
    "knn_kl_divergence",
    "kraft_sum",
    "ksg_mutual_information",
    "miller_madow_entropy",
    "miller_madow_mutual_information",
    "model_fingerprint",
    "mutual_information",
    "mutual_information_definition",
    "mutual_information_of_density",
    "plug_in_entropy",
    "plug_in_mutual_information",
    "pmi",
    "prefix_decode_definition",
    "prefix_encode_definition",
    "radon_nikodym",
    "range_decode",
    "range_encode",
    "rans_encode",
    "rans_encode_definition",
    "read_header",
    "self_information",
    "shannon_code",
    "shannon_lengths",
    "stream_frequencies",
    "write_atomic",
]

export_lazily(__name__)
