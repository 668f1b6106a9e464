"""Any attention that has `forward` alone, made an inner attention: what it does not offer is worked around or said.

    class MyAttention(nn.Module):
        def forward(self, query, key, value, *, mask=None, causal=False): ...

Tensors are (batch, heads, positions, head_dim). A mask is boolean and broadcasts to (batch, heads, queries, keys), True
where a query may attend to a key; causal hides from each query the keys after it. An attention may also offer `weights`
of the same arguments without the values, to be seen, and `init_cache` with `decode_step`, to decode quicker, as
inner_attention.py has them.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.layers.attention.checks import check_attention, check_batch_indices
from quoin.layers.attention.inner_attention import AttentionCache, AttentionStepOutput, CacheSpec, InnerAttention
from quoin.tensor import attention_mask

__all__ = ["ForwardOnlyAttention", "PrefixCache", "as_inner_attention"]

_MASK = ("mask", "attn_mask")  # ours, and torch's
_CAUSAL = ("causal", "is_causal")


@dataclass(frozen=True, eq=False)
class PrefixCache:
    """All positions so far, their queries, keys and values: what `forward` is called with again for each new one."""

    heads: tuple[Float[Tensor, "batch heads seq dim"], ...] = ()

    @property
    def seq_len(self) -> int:
        return self.heads[0].shape[2] if self.heads else 0

    def select(self, indices: Int[Tensor, "selected"]) -> "PrefixCache":
        """The cache of these sequences, in this order."""
        if self.heads:
            check_batch_indices(indices, len(self.heads[0]))
        return PrefixCache(tuple(each[indices] for each in self.heads))

    def append(self, new: tuple[Float[Tensor, "batch heads new dim"], ...]) -> "PrefixCache":
        """The cache with these positions behind the others."""
        pairs = zip(self.heads, new, strict=True)
        return PrefixCache(tuple(torch.cat(pair, dim=2) for pair in pairs) if self.heads else new)


class ForwardOnlyAttention(nn.Module):
    """An inner attention of a module or function that may have no more than a forward pass.

    A `forward` without `causal` is handed a mask that hides the keys after each query; one without `mask` serves where
    nothing is padded. Without `decode_step`, decoding calls `forward` on the whole prefix for each new token: equal,
    and slower. `MultiHeadAttention` makes one of whatever it is given that is no `InnerAttention` yet.

    >>> def average(query, key, value, *, mask=None, causal=False):
    ...     return value.cumsum(2) / torch.arange(1, value.shape[2] + 1)[:, None]
    >>> attend = ForwardOnlyAttention(average)
    >>> attend(torch.ones(1, 2, 3, 4), torch.ones(1, 2, 3, 4), torch.ones(1, 2, 3, 4), causal=True).shape
    torch.Size([1, 2, 3, 4])
    """

    def __init__(self, attend: Callable[..., Tensor]):
        super().__init__()
        self.attend = attend
        self.called = getattr(attend, "__name__", type(attend).__name__)
        self.mask_name, self.causal_name = _accepted(attend, _MASK), _accepted(attend, _CAUSAL)

    @property
    def offers_weights(self) -> bool:
        """Whether it can be asked for its attention weights."""
        return callable(getattr(self.attend, "weights", None))

    @property
    def offers_cache(self) -> bool:
        """Whether it decodes by steps of its own, and does not compute the whole prefix again."""
        return all(callable(getattr(self.attend, name, None)) for name in ("init_cache", "decode_step"))

    def forward(
        self,
        query: Float[Tensor, "batch heads query head_dim"],
        key: Float[Tensor, "batch kv_heads key head_dim"],
        value: Float[Tensor, "batch kv_heads key value_dim"],
        *,
        mask: Bool[Tensor, "... #query #key"] | Bool[Tensor, "#key"] | None = None,
        causal: bool = False,
    ) -> Float[Tensor, "batch heads query value_dim"]:
        check_attention(query, key, value, mask, causal=causal)
        return self.attend(query, key, value, **self._named(query, key, mask, causal))

    def weights(
        self,
        query: Float[Tensor, "batch heads query head_dim"],
        key: Float[Tensor, "batch kv_heads key head_dim"],
        *,
        mask: Bool[Tensor, "... #query #key"] | Bool[Tensor, "#key"] | None = None,
        causal: bool = False,
    ) -> Float[Tensor, "batch heads query key"]:
        """The weights, if it offers them."""
        if not self.offers_weights:
            raise UserError(
                f"expected an attention that offers its weights, got {self.called}, which has only forward; give it a "
                "method weights(query, key, *, mask=None, causal=False)"
            )
        check_attention(query, key, None, mask, causal=causal)
        attend: Any = self.attend
        return attend.weights(query, key, **self._named(query, key, mask, causal))

    def init_cache(self, spec: CacheSpec) -> AttentionCache:
        """An empty cache: its own, or one of the whole prefix."""
        attend: Any = self.attend
        return attend.init_cache(spec) if self.offers_cache else PrefixCache()

    def decode_step(
        self,
        cache: AttentionCache,
        query: Float[Tensor, "batch heads new head_dim"],
        key: Float[Tensor, "batch kv_heads new head_dim"],
        value: Float[Tensor, "batch kv_heads new value_dim"],
    ) -> AttentionStepOutput:
        """What `forward`, causal, gives for the new positions on all positions so far."""
        if self.offers_cache:
            attend: Any = self.attend
            return attend.decode_step(cache, query, key, value)
        if not isinstance(cache, PrefixCache):
            raise UserError(
                f"expected the cache that init_cache gave, got {type(cache).__name__}; each attention keeps its "
                "own kind"
            )
        check_attention(query, key, value, causal=True)
        before, cache = cache.seq_len, cache.append((query, key, value))
        return AttentionStepOutput(self(*cache.heads, causal=True)[:, :, before:], cache)

    def _named(self, query: Tensor, key: Tensor, mask: Tensor | None, causal: bool) -> dict[str, Any]:
        """The mask and causality by the names that it takes."""
        if causal and self.causal_name is None and self.mask_name is not None:
            mask = attention_mask((*query.shape[:3], key.shape[2]), mask, causal=True, device=query.device)
        if mask is not None and self.mask_name is None:
            raise UserError(
                f"expected an attention that takes a mask, got {self.called}, which does not; add mask=None to the "
                "arguments of its forward"
            )
        named: dict[str, Any] = {} if self.causal_name is None else {self.causal_name: causal}
        return named if self.mask_name is None else named | {self.mask_name: mask}


def as_inner_attention(attend: Any) -> InnerAttention:
    """The attention itself if it offers all that layers ask for, else a `ForwardOnlyAttention` of it."""
    return attend if isinstance(attend, InnerAttention) else ForwardOnlyAttention(attend)


def _accepted(attend: Callable[..., Tensor], names: tuple[str, ...]) -> str | None:
    """The first of these names that it takes as a keyword."""
    call = attend.forward if isinstance(attend, nn.Module) else attend
    parameters = inspect.signature(call).parameters
    takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    return next((name for name in names if name in parameters), names[0] if takes_all else None)
