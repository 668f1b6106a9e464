"""The benchmarks on language, on plain torch: a GPT and its loop as one writes them by hand, eager, with the fused
kernels that torch has.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from quoin.bench.language_problem import GPTS, LR, GPTWork, nats, text
from quoin.bench.worker import Repeats

__all__ = ["GPTByHand", "gpt"]


class _Block(nn.Module):
    def __init__(self, work: GPTWork) -> None:
        super().__init__()
        self.heads = work.num_heads
        self.norm1, self.norm2 = nn.LayerNorm(work.embed_dim), nn.LayerNorm(work.embed_dim)
        self.qkv, self.out = nn.Linear(work.embed_dim, 3 * work.embed_dim), nn.Linear(work.embed_dim, work.embed_dim)
        self.up, self.down = (
            nn.Linear(work.embed_dim, 4 * work.embed_dim),
            nn.Linear(4 * work.embed_dim, work.embed_dim),
        )

    def forward(self, x: Float[Tensor, "batch seq embed"]) -> Float[Tensor, "batch seq embed"]:
        b, t, w = x.shape
        q, k, v = (each.view(b, t, self.heads, -1).transpose(1, 2) for each in self.qkv(self.norm1(x)).split(w, dim=2))
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(b, t, w))
        return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPTByHand(nn.Module):
    """GPT-2 as one writes it, of any size."""

    def __init__(self, vocab_size: int, work: GPTWork) -> None:
        super().__init__()
        self.embedding, self.position_embedding = (
            nn.Embedding(vocab_size, work.embed_dim),
            nn.Embedding(work.context_length, work.embed_dim),
        )
        self.blocks = nn.Sequential(*(_Block(work) for _ in range(work.num_layers)))
        self.norm = nn.LayerNorm(work.embed_dim)
        for parameter in self.parameters():
            if parameter.ndim > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens: Int[Tensor, "batch seq"]) -> Float[Tensor, "batch seq vocab"]:
        x = self.embedding(tokens) + self.position_embedding.weight[: tokens.shape[1]]
        return functional.linear(self.norm(self.blocks(x)), self.embedding.weight)


def gpt(repeats: Repeats, size: str) -> dict[str, float]:
    torch.set_num_threads(repeats.threads)
    torch.manual_seed(0)
    work, given = GPTS[size], text()
    model, tokens = GPTByHand(given.vocab_size, work), torch.from_numpy(given.tokens)
    optimizer = torch.optim.AdamW(model.parameters(), LR, betas=(0.9, 0.99), weight_decay=0.0, fused=True)
    reach = torch.arange(work.context_length + 1)
    for _ in range(repeats.count):
        for _ in range(work.num_steps):
            seen = tokens[torch.randint(len(tokens) - work.context_length, (work.batch_size, 1)) + reach]
            logits = model(seen[:, :-1])
            loss = functional.cross_entropy(logits.flatten(0, 1), seen[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        repeats.end()
    inputs, targets = given.test_windows(work)
    with torch.no_grad():
        return nats(model.eval()(torch.from_numpy(inputs)).numpy(), targets)
