"""Decoding on the GPU, beside `transformers`: one GPT-2 of 124 M parameters with the same random weights; nothing is
fetched.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from quoin.bench.decode_problem import GPT2, figures, prompt, weights
from quoin.bench.worker import Repeats
from quoin.generate import TokenPredictor, greedy_search
from quoin.models import NextTokenOutput, TransformerLanguageModel, gpt2_from_config, load_gpt2_weights

__all__ = ["quoin", "quoin_ordinary", "transformers_generate"]

PROMPT, TOKENS = 32, 256


@dataclass(frozen=True)
class _Ordinary:
    """A model that offers no static steps."""

    model: TransformerLanguageModel

    def decode_step(self, cache: Any, tokens: Int[Tensor, "1 new"]) -> NextTokenOutput:
        return self.model.decode_step(cache, tokens)


def quoin(repeats: Repeats, dtype: str) -> dict[str, float]:
    """Each token one replay of a CUDA graph."""
    model = _model(dtype)
    return _search(repeats, model, model)


def quoin_ordinary(repeats: Repeats, dtype: str) -> dict[str, float]:
    """The same model with a call for each kernel of each token: what the capture gains."""
    model = _model(dtype)
    return _search(repeats, model, _Ordinary(model))


def _model(dtype: str) -> TransformerLanguageModel:
    model = gpt2_from_config(GPT2)
    load_gpt2_weights(model, weights(GPT2))
    return model.cuda().to(getattr(torch, dtype)).eval()


def _search(repeats: Repeats, model: TransformerLanguageModel, stepped: TokenPredictor) -> dict[str, float]:
    begin = prompt(PROMPT, GPT2["vocab_size"]).cuda()

    def search() -> tuple[Tensor, float]:
        began = repeats.clock()
        found = greedy_search(stepped, model.init_cache(1, PROMPT + TOKENS), begin, max_tokens=TOKENS).tokens.cpu()
        return found, repeats.clock() - began

    return _figures(*repeats.timed(search))


def transformers_generate(repeats: Repeats, dtype: str, cache: str) -> dict[str, float]:
    """`generate` as it comes, or with a static cache, for which it compiles the forward pass by itself in the mode
    `reduce-overhead`."""
    from transformers import GPT2Config, GPT2LMHeadModel  # pyright: ignore[reportMissingImports]

    sizes = {name: value for name, value in GPT2.items() if name != "model_type"}
    model: Any = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=None, eos_token_id=None, pad_token_id=0))
    model.transformer.load_state_dict(weights(GPT2))  # the head is tied to the embeddings
    model = model.cuda().to(getattr(torch, dtype)).eval()
    begin = prompt(PROMPT, GPT2["vocab_size"]).cuda()
    seen, options = torch.ones_like(begin), {"cache_implementation": "static"} if cache == "static" else {}

    def generate() -> tuple[Tensor, float]:
        began = repeats.clock()
        found = model.generate(
            begin, attention_mask=seen, max_new_tokens=TOKENS, do_sample=False, use_cache=True, **options
        ).cpu()
        return found[:, PROMPT:], repeats.clock() - began

    return _figures(*repeats.timed(generate))


def _figures(tokens: Int[Tensor, "1 seq"], seconds: float) -> dict[str, float]:
    return figures(tokens, seconds) | {"GPU MiB": torch.cuda.max_memory_allocated() / 2**20}
