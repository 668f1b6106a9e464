"""The benchmarks on decoding, on Quoin: a GPT-2 loaded from Hugging Face's layout, and GPTs with a long text behind
them.
"""

from typing import Any

import torch

from quoin.bench.decode_problem import CONFIG, PROMPT, TOKENS, figures, prompt, weights
from quoin.bench.worker import Repeats
from quoin.generate import Generated, greedy_search
from quoin.layers import ExactAttention, InnerAttention, LinearAttention, PerformerAttention
from quoin.models import GPT, gpt2_from_config, load_gpt2_weights

__all__ = ["from_context", "greedily"]

VOCAB_SIZE, EMBED_DIM, NUM_HEADS, NUM_LAYERS = 256, 128, 4, 4
NUM_FEATURES = 64
FURTHER = 64  # tokens of a repeat


def greedily(repeats: Repeats) -> dict[str, float]:
    """The most probable token each time, with the keys and values of all before kept."""
    torch.set_num_threads(repeats.threads)
    model = gpt2_from_config(CONFIG).eval()
    load_gpt2_weights(model, weights())
    begin = prompt()

    def search() -> tuple[Generated, float]:
        began = repeats.clock()
        found = greedy_search(model, model.init_cache(1, PROMPT + TOKENS), begin, max_tokens=TOKENS)
        return found, repeats.clock() - began

    found, seconds = repeats.timed(search)
    return figures(found.tokens, seconds)


def from_context(repeats: Repeats, attention: str, length: str) -> dict[str, float]:
    """Tokens one by one after `length` others were read at once; each repeat goes on where the last ended."""
    torch.set_num_threads(repeats.threads)
    generator = torch.Generator().manual_seed(0)

    def inner_attention() -> InnerAttention:
        if attention == "exact":
            return ExactAttention()
        return (
            LinearAttention()
            if attention == "linear"
            else PerformerAttention(EMBED_DIM // NUM_HEADS, NUM_FEATURES, generator=generator)
        )

    most = int(length) + repeats.count * FURTHER
    model = GPT(
        VOCAB_SIZE, EMBED_DIM, NUM_HEADS, NUM_LAYERS, most, make_attention=inner_attention, generator=generator
    ).eval()
    text = torch.randint(VOCAB_SIZE, (1, most), generator=generator)
    with torch.no_grad():
        cache: Any = model.decode_step(model.init_cache(1, most), text[:, : int(length)]).cache

        def read_on() -> float:
            nonlocal cache
            began = repeats.clock()
            for _ in range(FURTHER):
                cache = model.decode_step(cache, text[:, :1]).cache
            return repeats.clock() - began

        seconds = repeats.timed(read_on)
    return {"tokens/s": FURTHER / seconds}
