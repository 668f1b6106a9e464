"""The benchmark `decode` on `transformers`: `generate` with its cache, greedy, as long as the others; nothing is
fetched.
"""

from typing import Any

import torch
from torch import Tensor

from quoin.bench.decode_problem import CONFIG, TOKENS, figures, prompt, weights
from quoin.bench.worker import Repeats

__all__ = ["transformers_generate", "transformers_static"]


def transformers_generate(repeats: Repeats) -> dict[str, float]:
    """As it comes: a cache that grows with every token."""
    return _generate(repeats, _model(repeats.threads))


def transformers_static(repeats: Repeats) -> dict[str, float]:
    """With a cache of fixed size and the forward pass compiled, as its documentation advises for speed."""
    model = _model(repeats.threads)
    model.forward = torch.compile(model.forward, fullgraph=True)
    return _generate(repeats, model, "static")


def _model(threads: int) -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(threads)
    sizes = {name: value for name, value in CONFIG.items() if name != "model_type"}
    model: Any = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=None, eos_token_id=None, pad_token_id=0)).eval()
    model.transformer.load_state_dict(weights())  # the head is tied to the codes
    return model


def _generate(repeats: Repeats, model: Any, cache: str | None = None) -> dict[str, float]:
    begin, seen = prompt(), torch.ones_like(prompt())

    def generate() -> tuple[Tensor, float]:
        began = repeats.clock()
        found = model.generate(
            begin,
            attention_mask=seen,
            max_new_tokens=TOKENS,
            do_sample=False,
            use_cache=True,
            cache_implementation=cache,
        )
        return found, repeats.clock() - began

    found, seconds = repeats.timed(generate)
    return figures(found[:, begin.shape[1] :], seconds)
