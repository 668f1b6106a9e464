"""The rows on language, on plain torch: a GPT and its loop as one writes them by hand, eager, with the fused kernels that torch has."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from quoin.bench.language_problem import GPTS, RATE, GPTWork, nats, text
from quoin.bench.worker import Laps

__all__ = ["gpt"]


class _Block(nn.Module):
    def __init__(self, work: GPTWork) -> None:
        super().__init__()
        self.heads = work.heads
        self.norm1, self.norm2 = nn.LayerNorm(work.width), nn.LayerNorm(work.width)
        self.qkv, self.out = nn.Linear(work.width, 3 * work.width), nn.Linear(work.width, work.width)
        self.up, self.down = nn.Linear(work.width, 4 * work.width), nn.Linear(4 * work.width, work.width)

    def forward(self, x: Tensor) -> Tensor:
        b, t, w = x.shape
        q, k, v = (each.view(b, t, self.heads, -1).transpose(1, 2) for each in self.qkv(self.norm1(x)).split(w, dim=2))
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(b, t, w))
        return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))


class _GPT(nn.Module):
    def __init__(self, vocabulary_size: int, work: GPTWork) -> None:
        super().__init__()
        self.codes, self.places = nn.Embedding(vocabulary_size, work.width), nn.Embedding(work.length, work.width)
        self.blocks = nn.Sequential(*(_Block(work) for _ in range(work.layers)))
        self.norm = nn.LayerNorm(work.width)
        for parameter in self.parameters():
            if parameter.ndim > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.codes(tokens) + self.places.weight[: tokens.shape[1]]
        return functional.linear(self.norm(self.blocks(x)), self.codes.weight)


def gpt(laps: Laps, size: str) -> dict[str, float]:
    torch.set_num_threads(laps.threads)
    torch.manual_seed(0)
    work, given = GPTS[size], text()
    model, tokens = _GPT(given.vocabulary_size, work), torch.from_numpy(given.tokens)
    optimiser = torch.optim.AdamW(model.parameters(), RATE, betas=(0.9, 0.99), weight_decay=0.0, fused=True)
    reach = torch.arange(work.length + 1)
    for _ in range(laps.count):
        for _ in range(work.steps):
            seen = tokens[torch.randint(len(tokens) - work.length, (work.batch, 1)) + reach]
            logits = model(seen[:, :-1])
            loss = functional.cross_entropy(logits.flatten(0, 1), seen[:, 1:].flatten())
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        laps.end()
    inputs, targets = given.test_windows(work)
    with torch.no_grad():
        return nats(model.eval()(torch.from_numpy(inputs)).numpy(), targets)
