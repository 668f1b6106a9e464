"""The graphs of translation: the encoder, and one step of each kind of decoder, its state as plain tensors."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.layers import DecoderBlockCache
from quoin.layers.attention.cache import KeyValueCache
from quoin.layers.attention.growing_cache import GrowingKeyValueCache
from quoin.layers.attention.inner_attention import AttentionCache, CacheSpec
from quoin.layers.attention.multi_head import ProjectedMemory
from quoin.models import RecurrentEncoder, RecurrentState, Seq2Seq, Transformer
from quoin.models.seq2seq import RecurrentEncoderOutput
from quoin.models.transformer import DecoderCache
from quoin.tensor import sequence_mask

__all__ = ["Bridge", "RecurrentDecoderStep", "SourceEncoder", "TransformerDecoderStep"]


class SourceEncoder(nn.Module):
    """Padded sources to the keys and values that each block of the decoder attends to."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, source: Int[Tensor, "batch source"], lengths: Int[Tensor, "batch"]
    ) -> tuple[Float[Tensor, "..."], ...]:
        memory = self.model.encode(source, lengths).memory
        found = [block.cross_attention.project_memory(memory, lengths=lengths) for block in self.model.decoder.blocks]
        return tuple(each for one in found for each in (one.keys, one.values))

    def by_its_own_code(
        self, source: Int[Tensor, "batch source"], lengths: Int[Tensor, "batch"]
    ) -> tuple[Float[Tensor, "..."], ...]:
        """What the run's own cache has of the source before the first token."""
        blocks = self.model.init_cache(self.model.encode(source, lengths), 1).blocks
        return tuple(each for block in blocks for each in block.cross_attention[:2])  # keys and values


class TransformerDecoderStep(nn.Module):
    """One token of the target, after those whose keys and values are given."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, tokens: Int[Tensor, "batch 1"], lengths: Int[Tensor, "batch"], *given: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], ...]:
        return self._read(tokens, lengths, given, GrowingKeyValueCache)

    def by_its_own_code(
        self, tokens: Int[Tensor, "batch 1"], lengths: Int[Tensor, "batch"], *given: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], ...]:
        """The same with the cache that the run itself decodes with."""

        def filled(keys: Tensor, values: Tensor) -> KeyValueCache:
            batch_size, heads, seen, dim = keys.shape
            spec = CacheSpec(batch_size, heads, dim, values.shape[3], seen + 1, keys.dtype, keys.device)
            return KeyValueCache.empty(spec).append(keys, values)

        return self._read(tokens, lengths, given, filled)

    def _read(
        self, tokens: Tensor, lengths: Tensor, given: tuple[Tensor, ...], cache_of: Callable[..., AttentionCache]
    ) -> tuple[Float[Tensor, "..."], ...]:
        half = len(given) // 2
        mask = sequence_mask(lengths, given[0].shape[2])[:, None, None]
        blocks = []
        for at in range(0, half, 2):
            source_keys, source_values, keys, values = given[at], given[at + 1], given[at + half], given[at + half + 1]
            memory = ProjectedMemory(source_keys, source_values, mask)
            blocks.append(DecoderBlockCache(cache_of(keys, values), memory))
        logits, after = self.model.decode_step(DecoderCache(tuple(blocks)), tokens)
        caches = [block.self_attention for block in after.blocks]  # type: ignore[attr-defined]
        return logits, *(each for cache in caches for each in (cache.keys, cache.values))


class Bridge(nn.Module):
    """The last states of both directions to the decoder's first."""

    def __init__(self, encoder: RecurrentEncoder) -> None:
        super().__init__()
        self.bridges = encoder.bridges

    def forward(self, *last: Float[Tensor, "layers batch hidden"]) -> tuple[Float[Tensor, "..."], ...]:
        half = len(last) // 2
        both = zip(self.bridges, last[:half], last[half:], strict=True)
        return tuple(torch.tanh(bridge(torch.cat([ahead, back], dim=-1))) for bridge, ahead, back in both)


class RecurrentDecoderStep(nn.Module):
    """One token of the target, from the source's encodings, none of them padding, and the state."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, tokens: Int[Tensor, "batch 1"], memory: Float[Tensor, "batch source memory"], *state: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], ...]:
        decoder = self.model.decoder
        cache = decoder.init_cache(RecurrentEncoderOutput(memory, None, RecurrentState(state)))
        logits, after, *_ = decoder.decode_step(cache, tokens)
        recurrent = after if isinstance(after, RecurrentState) else after.recurrent
        return logits, *recurrent.tensors
