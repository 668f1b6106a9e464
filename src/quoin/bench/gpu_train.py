"""Training GPT-2 of 124 M parameters on the GPU: the step of `quoin train transformer-lm --size gpt2` beside nanoGPT's.

The text is in characters, which make the vocabulary of no model: both have GPT-2's.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch.nn import functional

from quoin.bench.language_problem import LR, GPTWork, text
from quoin.bench.language_torch import GPTByHand
from quoin.bench.worker import Repeats
from quoin.data import load_corpus
from quoin.recipes.transformer_lm import Options, model
from quoin.tasks.language_modeling import LanguageTask, make_language_optimizer
from quoin.train import setup_device

__all__ = ["nanogpt", "quoin"]

GPT2 = GPTWork(768, 12, 12, 1024, batch_size=32, num_steps=20)
VOCAB, PADDED_VOCAB = 50_257, 50_304  # the second is nanoGPT's: a multiple of 64
DEVICE, COMPILE = "cuda", True  # tests run the same on the CPU, small


def quoin(repeats: Repeats) -> dict[str, float]:
    """The recipe's own task, compiled, in bfloat16."""
    precision = "bfloat16" if DEVICE == "cuda" else "float32"
    device_context, _ = setup_device(DEVICE, precision=precision, compile=COMPILE)
    options = Options(
        size="gpt2",
        embed_dim=GPT2.embed_dim,
        num_heads=GPT2.num_heads,
        num_layers=GPT2.num_layers,
        context_length=GPT2.context_length,
        batch_size=GPT2.batch_size,
        dropout=0.0,
        lr=LR,
        epochs=10_000,
    )
    data_info: Any = SimpleNamespace(vocab_size=VOCAB)
    net = model(options, data_info).to(device_context.device)
    task = LanguageTask(
        net, make_language_optimizer(net, options), load_corpus("topics", "char", 0), options, device_context
    )
    batches = iter(())

    def step() -> torch.Tensor:
        nonlocal batches
        rows = next(batches, None)
        if rows is None:
            batches = iter(task.batches)
            rows = next(batches)
        return task.step(rows)["loss"]

    return _run(repeats, step)


def nanogpt(repeats: Repeats) -> dict[str, float]:
    """As its train.py has it: logits of all tokens, autocast, fused AdamW, clipped gradients, batches from pinned
    memory, compiled."""
    torch.set_float32_matmul_precision("high")  # TF32, which its train.py allows
    torch.manual_seed(0)
    net = GPTByHand(PADDED_VOCAB, GPT2).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), LR, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    tokens, reach = torch.from_numpy(text().tokens), torch.arange(GPT2.context_length + 1)

    def loss_of(inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            return functional.cross_entropy(net(inputs).flatten(0, 1), targets.flatten())

    compiled: Any = torch.compile(loss_of) if COMPILE else loss_of

    def batch() -> torch.Tensor:
        seen = tokens[torch.randint(len(tokens) - GPT2.context_length, (GPT2.batch_size, 1)) + reach]
        return seen.pin_memory().to(DEVICE, non_blocking=True) if DEVICE == "cuda" else seen

    seen = batch()

    def step() -> torch.Tensor:
        nonlocal seen
        loss = compiled(seen[:, :-1].contiguous(), seen[:, 1:].contiguous())
        seen = batch()  # the next one, while the GPU computes
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    return _run(repeats, step)


def _run(repeats: Repeats, step: Callable[[], torch.Tensor]) -> dict[str, float]:
    def steps() -> float:
        began = repeats.clock()
        loss = step()
        for _ in range(GPT2.num_steps - 1):
            loss = step()
        loss.item()  # waits for the GPU
        return repeats.clock() - began

    seconds = repeats.timed(steps)
    tokens = GPT2.num_steps * GPT2.batch_size * GPT2.context_length
    peak = torch.cuda.max_memory_allocated() / 2**30 if DEVICE == "cuda" else 0.0
    return {"tokens/s": tokens / seconds, "GPU GiB": peak}
