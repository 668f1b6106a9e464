"""The rows on decoding, on Quoin: a GPT-2 loaded from Hugging Face's layout, and GPTs with a long text behind them."""

from typing import Any

import torch

from quoin.bench.decode_problem import CONFIG, PROMPT, TOKENS, figures, prompt, weights
from quoin.bench.worker import Laps
from quoin.generate import greedy
from quoin.layers import AttentionCore, ExactAttention, LinearAttention, PerformerAttention
from quoin.models import GPT, gpt2_from_config, load_gpt2

__all__ = ["from_context", "greedily"]

VOCABULARY, WIDTH, HEADS, LAYERS = 256, 128, 4, 4
FEATURES = 64
FURTHER = 64  # tokens of a lap


def greedily(laps: Laps) -> dict[str, float]:
    """The likeliest token each time, with the keys and values of all before kept."""
    torch.set_num_threads(laps.threads)
    model = gpt2_from_config(CONFIG).eval()
    load_gpt2(model, weights())
    begin = prompt()
    for _ in range(laps.count):
        began = laps.clock()
        found = greedy(model, model.start(1, PROMPT + TOKENS), begin, max_tokens=TOKENS)
        seconds = laps.clock() - began
        laps.end()
    return figures(found.tokens, seconds)


def from_context(laps: Laps, attention: str, length: str) -> dict[str, float]:
    """Tokens one by one after `length` others were read at once; each lap goes on where the last ended."""
    torch.set_num_threads(laps.threads)
    generator = torch.Generator().manual_seed(0)

    def core() -> AttentionCore:
        if attention == "exact":
            return ExactAttention()
        return LinearAttention() if attention == "linear" else PerformerAttention(WIDTH // HEADS, FEATURES, generator=generator)

    most = int(length) + laps.count * FURTHER
    model = GPT(VOCABULARY, WIDTH, HEADS, LAYERS, most, make_core=core, generator=generator).eval()
    text = torch.randint(VOCABULARY, (1, most), generator=generator)
    with torch.no_grad():
        state: Any = model.step(model.start(1, most), text[:, : int(length)]).state
        for _ in range(laps.count):
            began = laps.clock()
            for _ in range(FURTHER):
                state = model.step(state, text[:, :1]).state
            seconds = laps.clock() - began
            laps.end()
    return {"tokens/s": FURTHER / seconds}
