"""The benchmarks on language, on Quoin: the step of the recipe `transformer-lm` with a GPT, eager and compiled."""

import torch

from quoin.bench.language_problem import GPTS, LR, GPTWork, nats, text
from quoin.bench.worker import Repeats
from quoin.data import load_corpus
from quoin.models import GPT
from quoin.tasks.language_modeling import LanguageTask, make_language_optimizer
from quoin.tasks.sequence_options import LanguageOptions
from quoin.train import setup_device

__all__ = ["gpt", "gpt_compiled", "run_gpt"]


def gpt(repeats: Repeats, size: str) -> dict[str, float]:
    return run_gpt(repeats, GPTS[size], compile=False)


def gpt_compiled(repeats: Repeats, size: str) -> dict[str, float]:
    return run_gpt(repeats, GPTS[size], compile=True)


def run_gpt(repeats: Repeats, work: GPTWork, *, compile: bool) -> dict[str, float]:
    """The steps of a GPT, in one of several processes too."""
    device_context, remarks = setup_device("cpu", threads=repeats.threads, compile=compile)
    if device_context.compile != compile:
        raise SystemExit(remarks[0])
    given = text()
    options = LanguageOptions(
        context_length=work.context_length,
        batch_size=work.batch_size,
        lr=LR,
        max_grad_norm=0.0,
        weight_decay=0.0,
        schedule="constant",
        warmup_ratio=0.0,
        epochs=10_000,
    )
    generator = torch.Generator().manual_seed(0)
    model = GPT(
        given.vocab_size, work.embed_dim, work.num_heads, work.num_layers, work.context_length, generator=generator
    )
    task = LanguageTask(
        model, make_language_optimizer(model, options), load_corpus("topics", "char", 0), options, device_context
    )
    done = 0
    while done < repeats.count * work.num_steps:
        for rows in task.batches:
            task.step(rows)
            done += 1
            if done % work.num_steps == 0:
                repeats.end()
            if done == repeats.count * work.num_steps:
                break
    inputs, targets = given.test_windows(work)
    with torch.no_grad():
        return nats(model.eval()(torch.from_numpy(inputs)).numpy(), targets)
