"""The attention of a Transformer by its name or of the user's own, FILE.py:NAME, tried on a few positions first.

What one's own must be is in quoin.layers.attention.forward_only: a class of nn.Module with
`forward(query, key, value, *, mask=None, causal=False)`, or a function of these. A class may take any of `head_dim`,
`num_heads`, `embed_dim` and `context_length` where it is made.
"""

import itertools
from collections.abc import Callable

import torch
from torch import Tensor, nn

from quoin.callbacks import current_listener
from quoin.data import keyed_generator
from quoin.errors import UserError
from quoin.layers import ExactAttention, InnerAttention, LinearAttention
from quoin.layers.attention.forward_only import ForwardOnlyAttention, as_inner_attention
from quoin.own_code import is_code_reference
from quoin.tasks.own_parts import OwnCallable, check_output, load_callable, make_with, own_seed

__all__ = ["attention_maker", "own_attention_maker", "tell_slow_decoding"]

_EXPECTED = (
    "an nn.Module with forward(query, key, value, *, mask=None, causal=False) of (batch, heads, positions, head_dim)"
)
_POSITIONS, _CHANGED = 6, 3  # tried on so many positions, of which those from here on change


def attention_maker(
    name: str, *, embed_dim: int, num_heads: int, seed: int, causal: bool, padded: bool, context_length: int = 0
) -> Callable[[], InnerAttention]:
    """Makes the attention of one block after another: `exact`, `linear`, or the user's own."""
    if is_code_reference(name):
        return own_attention_maker(
            name,
            embed_dim=embed_dim,
            num_heads=num_heads,
            seed=seed,
            causal=causal,
            padded=padded,
            context_length=context_length,
        )
    return {"exact": ExactAttention, "linear": LinearAttention}[name]


def own_attention_maker(
    reference: str, *, embed_dim: int, num_heads: int, seed: int, causal: bool, padded: bool, context_length: int = 0
) -> Callable[[], InnerAttention]:
    """Makes the user's attention for one block after another.

    Args:
        seed: What it samples while it is made hangs on this and the number of the block alone, so that it can be made
            again.
        causal: Whether the model looks at what came before alone; an attention that looks ahead is then refused.
        padded: Whether the model pads its sequences; an attention that sees padding is then refused.
        context_length: The most positions, if that is known; 0 if not.
    """
    if embed_dim % num_heads:
        raise UserError(f"--num-heads expects a divisor of --embed-dim {embed_dim}, got {num_heads}: give another")
    own = load_callable(reference, _EXPECTED)
    offered = {"head_dim": embed_dim // num_heads, "num_heads": num_heads, "embed_dim": embed_dim}
    offered |= {"context_length": context_length} if context_length else {}
    blocks = itertools.count()

    def make() -> InnerAttention:
        with own_seed(keyed_generator("attention", seed, next(blocks)).initial_seed()):
            return as_inner_attention(make_with(own, offered) if isinstance(own.call, type) else own.call)

    _try(own, make(), (2, num_heads, _POSITIONS, embed_dim // num_heads), causal=causal, padded=padded)
    blocks = itertools.count()
    return make


def _try(own: OwnCallable, made: InnerAttention, shape: tuple[int, ...], *, causal: bool, padded: bool) -> None:
    attend = made.attend if isinstance(made, ForwardOnlyAttention) else made
    call = attend.forward if isinstance(attend, nn.Module) else attend
    random = keyed_generator("tried")
    given = [torch.randn(shape, generator=random, requires_grad=True) for _ in range(3)]
    if not own._replace(call=call).binds(*given):  # pyright: ignore[reportArgumentType]
        raise own.wrong("a forward that does not take three tensors, query, key and value")
    if isinstance(made, nn.Module):
        made.eval()
    if padded and isinstance(made, ForwardOnlyAttention) and made.mask_name is None:
        raise own.refused("takes no mask, and here sequences are padded: add mask=None to the arguments of its forward")
    output = check_output(own, _attended(own, made, given, causal), shape, f"three tensors of shape {shape}")
    with own.told():
        grads = torch.autograd.grad(output.sum(), given[1:], allow_unused=True)
    if all(each is None for each in grads):
        raise own.refused("gives an output that depends on neither keys nor values: gather values")
    with torch.no_grad():
        if causal:
            _check_causal(own, made, given, output, random)
            _attended(own, made, [each[:, :, :1] for each in given], causal)  # as generation begins
        if padded:
            for ahead in {False, causal}:
                _check_padding(own, made, given, random, causal=ahead)


def _attended(
    own: OwnCallable, made: InnerAttention, given: list[Tensor], causal: bool, mask: Tensor | None = None
) -> Tensor:
    with own_seed(0), own.told():  # one that samples gives the same again
        return made(*given, mask=mask, causal=causal)


def _check_causal(
    own: OwnCallable, made: InnerAttention, given: list[Tensor], output: Tensor, random: torch.Generator
) -> None:
    later = [_with_others(each, random) for each in given]
    moved = _moved(output, _attended(own, made, later, True))[:, :, :_CHANGED].any(dim=0).any(dim=0)
    if moved.any():
        takes = isinstance(made, ForwardOnlyAttention) and not (made.causal_name or made.mask_name)
        do = "add causal=False to the arguments of its forward, and then" if takes else "with causal=True"
        raise own.refused(
            f"looks ahead in a causal model: its output at position {int(moved.nonzero()[0]) + 1} changes with "
            f"positions {_CHANGED + 1} to {_POSITIONS}; {do} hide from each query the keys after it"
        )


def _check_padding(
    own: OwnCallable, made: InnerAttention, given: list[Tensor], random: torch.Generator, *, causal: bool
) -> None:
    mask = torch.ones(2, 1, 1, _POSITIONS, dtype=torch.bool)
    mask[1, ..., _CHANGED:] = False
    query, key, value = given
    others = [query, *(torch.cat([each[:1], _with_others(each[1:], random)]) for each in (key, value))]
    one, other = (_attended(own, made, each, causal, mask) for each in (given, others))
    if not one.isfinite().all() or _moved(one, other).any():
        raise own.refused("sees padding: hide from all queries the keys where mask is False")


def _with_others(x: Tensor, random: torch.Generator) -> Tensor:
    """The same with other numbers at the later positions."""
    return torch.cat([x[:, :, :_CHANGED], torch.randn(x[:, :, _CHANGED:].shape, generator=random)], dim=2)


def _moved(one: Tensor, other: Tensor) -> Tensor:  # (b, h, n, d) -> (b, h, n)
    return ~torch.isclose(one, other, rtol=1e-4, atol=1e-5).all(dim=-1)


def tell_slow_decoding(model: nn.Module) -> None:
    """Say that the model decodes slowly, where its attention has no cache of its own."""
    own = [each for each in model.modules() if isinstance(each, ForwardOnlyAttention) and not each.offers_cache]
    if own:
        current_listener().say(
            f"{own[0].called} has no decode_step: each token computes its attention over the whole prefix again, "
            "with equal results, only slower"
        )
