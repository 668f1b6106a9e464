"""The attention weights of a model for one input: those of every attention in it, and two numbers that sum a head up.

Weights are asked for beside the model's own pass, whose outputs stay the same to the bit (to rounding where torch's own
layers would have taken a fused path, on which nobody can be asked). What the maps look like is
`quoin.plot`'s matter.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from jaxtyping import Float, Real, Shaped
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError
from quoin.layers.attention import ForwardOnlyAttention, InnerAttention
from quoin.plot import AttentionLayer, AttentionPlot, attention
from quoin.tensor import as_floating
from quoin.tensor.eval_mode import eval_mode

__all__ = [
    "AttentionMaps",
    "attention_distance",
    "attention_entropy",
    "attention_maps",
    "attentions_without_weights",
    "capture_attention",
    "has_attention",
    "plot_attention_maps",
]

_MOST_POSITIONS = 2048  # as many as a page shows; the weights of a long text would fill the memory


@shown
class AttentionMaps(NamedTuple):
    """The weights of every head in one call of one layer, and what the positions are called."""

    layer: str  # the layer's name in the model, as in named_modules()
    weights: Float[Tensor, "heads query key"]
    query_labels: tuple[str, ...]  # numbers from 1 until they are named
    key_labels: tuple[str, ...]

    def labeled(self, queries: Sequence[str], keys: Sequence[str] | None = None) -> "AttentionMaps":
        """The same under these names of the queries and of the keys, which are those of the queries unless given."""
        keys = queries if keys is None else keys
        for labels, count, name in ((queries, self.weights.shape[1], "query"), (keys, self.weights.shape[2], "key")):
            if len(labels) != count:
                raise UserError(
                    f"expected {count} {name} labels for {self.layer!r}, got {len(labels)}; give one for each position"
                )
        return self._replace(query_labels=tuple(map(str, queries)), key_labels=tuple(map(str, keys)))


def attention_maps(
    model: nn.Module, *inputs: Shaped[Tensor, "..."], tokens: Sequence[str] | None = None
) -> list[AttentionMaps]:
    """The maps of all attentions in the order in which `model(*inputs)` calls them, for one input: a batch of one.

    `tokens` name the positions on both sides; for a model whose layers differ in length, name them afterwards with
    `labeled`.

    >>> model = nn.TransformerEncoderLayer(8, nhead=2, batch_first=True)
    >>> [(found.layer, tuple(found.weights.shape)) for found in attention_maps(model, torch.randn(1, 5, 8))]
    [('self_attn', (2, 5, 5))]
    """
    with torch.no_grad(), eval_mode(model), capture_attention(model) as found:
        model(*inputs)
    if not found and (withheld := attentions_without_weights(model)):
        raise UserError(
            f"expected attention that offers its weights, got {type(model).__name__} with {withheld[0]}, which has "
            "only forward; give it a method weights(query, key, *, mask=None, causal=False)"
        )
    if not found:
        kinds = Counter(type(module).__name__ for module in model.modules() if not any(module.children()))
        has = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(8)) or "no modules inside it"
        raise UserError(
            f"expected a model that calls attention, got {type(model).__name__} with {has}; choose one with "
            "MultiHeadAttention"
        )
    return found if tokens is None else [each.labeled(tokens) for each in found]


@contextmanager
def capture_attention(model: nn.Module) -> Iterator[list[AttentionMaps]]:
    """Within, every call of an attention of the model leaves its weights in the list, as they are before dropout."""
    found: list[AttentionMaps] = []

    def keep(layer: str, ask: Callable[..., Tensor]):
        def hook(module: nn.Module, given: tuple, named: dict, output: object) -> None:
            # In eval mode it samples no random numbers: a model in training goes on as if nothing had happened.
            with torch.no_grad(), eval_mode(module):
                weights = ask(module, *given, **named)
            found.append(_map(layer, weights))

        return hook

    asked = _attentions(model)
    # torch's encoder packs padded batches into a form that its attention can run on but not give weights of.
    packing = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(packing and not any(ask is _ask_torch for _, _, ask in asked))
    handles = [module.register_forward_hook(keep(layer, ask), with_kwargs=True) for layer, module, ask in asked]
    try:
        yield found
    finally:
        torch.backends.mha.set_fastpath_enabled(packing)
        for handle in handles:
            handle.remove()


def has_attention(model: nn.Module) -> bool:
    """Whether some module of the model can be asked for weights."""
    return bool(_attentions(model))


def attentions_without_weights(model: nn.Module) -> list[str]:
    """The attentions in the model that cannot be asked for weights, by the names of their classes."""
    own = (module for module in model.modules() if isinstance(module, ForwardOnlyAttention))
    return list(dict.fromkeys(module.called for module in own if not module.offers_weights))


def attention_entropy(weights: Real[Tensor, "heads query key"]) -> Float[Tensor, "heads"]:
    """-Σ_j w_ij ln w_ij in nats, the mean over queries i: 0 where each sees one key, ln m where all m alike.

    Queries that see nothing are left out. NaN where some weights are negative, or all queries see nothing: no
    distribution has an entropy.

    >>> attention_entropy(torch.tensor([[[1.0, 0.0], [0.5, 0.5]]]))
    tensor([0.3466])
    """
    entropies = torch.special.entr(weights).sum(dim=-1)
    return _mean_over_queries(entropies.masked_fill((weights < 0).any(dim=-1), torch.nan), weights)


def attention_distance(weights: Real[Tensor, "heads seq seq"]) -> Float[Tensor, "heads"]:
    """Σ_j w_ij |i - j|, the mean over queries i: how far away the positions are that a head attends to; for a causal
    head, how far back.

    Queries that see nothing are left out; NaN where all do.

    >>> attention_distance(torch.tensor([[[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]]))
    tensor([1.])
    """
    *_, queries, keys = weights.shape
    if queries != keys:
        raise UserError(
            f"expected attention of positions to themselves, got {queries} queries and {keys} keys; "
            "distance needs one sequence"
        )
    weights = as_floating(weights)
    positions = torch.arange(keys, device=weights.device, dtype=weights.dtype)
    return _mean_over_queries((weights * (positions[:, None] - positions).abs()).sum(dim=-1), weights)


def plot_attention_maps(found: Sequence[AttentionMaps], *, title: str = "") -> AttentionPlot:
    """A grid with a row for each layer and a map for each head, which as `.html()` is a page that gives every number.

    Under each head stand its entropy and, where queries and keys are the same positions, its distance.
    """
    layers = [
        AttentionLayer(each.layer or "attention", each.weights, each.query_labels, each.key_labels, _details(each))
        for each in found
    ]
    return attention(layers, title=title)


def _mean_over_queries(values: Tensor, weights: Tensor) -> Tensor:  # (h, n), (h, n, m) -> (h,)
    looking = (weights != 0).any(dim=-1)
    return values.masked_fill(~looking, 0).sum(dim=-1) / looking.sum(dim=-1)


def _details(found: AttentionMaps) -> tuple[tuple[tuple[str, str], ...], ...]:
    weights = found.weights.double()
    columns = [("entropy", attention_entropy(weights).tolist(), "nats")]
    if found.query_labels == found.key_labels:
        columns.append(("distance", attention_distance(weights).tolist(), "positions"))
    heads = range(len(weights))
    return tuple(
        tuple((name, f"{values[h]:.3g} {unit}") for name, values, unit in columns if values[h] == values[h])
        for h in heads
    )


def _map(layer: str, weights: Tensor) -> AttentionMaps:  # (b, h, n, m), or (b, n, m) of one head
    weights = weights.unsqueeze(1) if weights.ndim == 3 else weights
    if weights.ndim != 4 or len(weights) != 1:
        raise UserError(
            f"expected one input, got weights {tuple(weights.shape)} from {layer!r}; give a batch of one, as x[:1]"
        )
    queries, keys = weights.shape[2:]
    return AttentionMaps(layer, weights[0].detach().cpu(), _numbered(queries), _numbered(keys))


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(str(number) for number in range(1, count + 1))


# ---- who can be asked, and how


def _attentions(model: nn.Module) -> list[tuple[str, nn.Module, Callable[..., Tensor]]]:
    """The modules that offer weights, the outermost ones: the inner attention of a multi-head attention answers through
    it.
    """
    found: list[tuple[str, nn.Module, Callable[..., Tensor]]] = []
    inside: set[nn.Module] = set()
    for layer, module in model.named_modules():
        ask = _way_to_ask(module)
        if module in inside or ask is None:
            continue
        inside |= set(module.modules())
        found.append((layer, module, ask))
    return found


def _way_to_ask(module: nn.Module) -> Callable[..., Tensor] | None:
    inner = getattr(module, "inner_attention", module)
    if isinstance(inner, ForwardOnlyAttention) and not inner.offers_weights:
        return None
    if isinstance(module, nn.MultiheadAttention):
        return _ask_torch
    if callable(getattr(module, "attend_with_weights", None)):
        return _ask_layer
    # The protocol asks for a name alone: a buffer of weights, as an n-gram model has, is no attention.
    return _ask_core if isinstance(module, InnerAttention) and callable(module.weights) else None


def _ask_layer(
    module,
    query: Tensor,
    key: Tensor | None = None,
    value: Tensor | None = None,
    *,
    lengths=None,
    mask=None,
    causal=False,
):
    _check_size(query.shape[-2], (query if key is None else key).shape[-2])
    return module.attend_with_weights(query, key, value, lengths=lengths, mask=mask, causal=causal).weights


def _ask_core(module, query: Tensor, key: Tensor, value: Tensor, *, mask=None, causal=False) -> Tensor:
    _check_size(query.shape[-2], key.shape[-2])
    return module.weights(query, key, mask=mask, causal=causal)


def _ask_torch(
    module: nn.MultiheadAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> Tensor:
    positions = -2 if module.batch_first or query.ndim == 2 else 0
    _check_size(query.shape[positions], key.shape[positions])
    _, weights = module.forward(query, key, value, key_padding_mask, True, attn_mask, False, is_causal)
    assert weights is not None
    return weights if weights.ndim == 4 else weights.unsqueeze(0)


def _check_size(queries: int, keys: int) -> None:
    if max(queries, keys) > _MOST_POSITIONS:
        raise UserError(
            f"expected at most {_MOST_POSITIONS} positions to show, got {max(queries, keys)}; give a shorter input"
        )
