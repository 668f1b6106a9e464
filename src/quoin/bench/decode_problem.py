"""The work of the benchmark `decode`: a small GPT-2, its weights in Hugging Face's layout, and the beginning of a
text."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["CONFIG", "GPT2", "PROMPT", "TOKENS", "figures", "prompt", "weights"]

PROMPT, TOKENS = 16, 128
CONFIG: dict[str, Any] = {
    "model_type": "gpt2",
    "vocab_size": 256,
    "n_positions": 1024,
    "n_embd": 128,
    "n_layer": 4,
    "n_head": 4,
}
GPT2: dict[str, Any] = CONFIG | {"vocab_size": 50257, "n_embd": 768, "n_layer": 12, "n_head": 12}  # 124 M parameters


def weights(config: dict[str, Any] = CONFIG) -> dict[str, Float[Tensor, "..."]]:
    """The same random weights in every process, of an std at which the most probable token is clear."""
    embed_dim, shapes = config["n_embd"], {}
    for layer in range(config["n_layer"]):
        maps = {"attn.c_attn": (embed_dim, 3 * embed_dim), "attn.c_proj": (embed_dim, embed_dim)}
        maps |= {"mlp.c_fc": (embed_dim, 4 * embed_dim), "mlp.c_proj": (4 * embed_dim, embed_dim)}
        shapes |= {f"h.{layer}.{name}.weight": shape for name, shape in maps.items()}
        shapes |= {f"h.{layer}.{name}.bias": shape[1:] for name, shape in maps.items()}
        shapes |= {f"h.{layer}.{norm}.{kind}": (embed_dim,) for norm in ("ln_1", "ln_2") for kind in ("weight", "bias")}
    shapes |= {"ln_f.weight": (embed_dim,), "ln_f.bias": (embed_dim,)}
    shapes |= {"wte.weight": (config["vocab_size"], embed_dim), "wpe.weight": (config["n_positions"], embed_dim)}
    generator = torch.Generator().manual_seed(0)
    sampled = {name: 0.1 * torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    return {
        name: tensor + 1 if "ln_" in name and name.endswith("weight") else tensor for name, tensor in sampled.items()
    }


def prompt(length: int = PROMPT, vocab_size: int = CONFIG["vocab_size"]) -> Int[Tensor, "1 {length}"]:
    return torch.randint(vocab_size, (1, length), generator=torch.Generator().manual_seed(1))


def figures(tokens: Int[Tensor, "1 seq"], seconds: float) -> dict[str, float]:
    """Tokens a second in the last repeat, and a sum that is the same where every token is."""
    indices = torch.arange(1, tokens.numel() + 1)
    return {"tokens/s": tokens.numel() / seconds, "checksum": float((tokens.flatten() * indices).sum() % 10_007)}
