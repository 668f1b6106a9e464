"""The benchmark `lstm-lm` on Quoin: the step of the recipe `lstm-lm`, eager and compiled."""

import torch
from torch import nn

from quoin.bench.language_problem import nats, text
from quoin.bench.recurrent_problem import (
    BATCH_SIZE,
    EMBED_DIM,
    HIDDEN_DIM,
    LENGTH,
    LR,
    MAX_GRAD_NORM,
    NUM_STEPS,
    test_stream,
)
from quoin.bench.worker import Repeats
from quoin.data import load_corpus
from quoin.models import RecurrentLanguageModel
from quoin.tasks.language_modeling import StatefulLanguageTask, make_language_optimizer
from quoin.tasks.sequence_options import RecurrentOptions
from quoin.train import setup_device

__all__ = ["lstm", "lstm_compiled"]


def lstm(repeats: Repeats) -> dict[str, float]:
    return _run(repeats, compile=False)


def lstm_compiled(repeats: Repeats) -> dict[str, float]:
    return _run(repeats, compile=True)


def _run(repeats: Repeats, *, compile: bool) -> dict[str, float]:
    device_context, remarks = setup_device("cpu", threads=repeats.threads, compile=compile)
    if device_context.compile != compile:
        raise SystemExit(remarks[0])
    options = RecurrentOptions(
        context_length=LENGTH,
        batch_size=BATCH_SIZE,
        lr=LR,
        max_grad_norm=MAX_GRAD_NORM,
        weight_decay=0.0,
        schedule="constant",
        warmup_ratio=0.0,
        epochs=10_000,
    )
    given, generator = text(), torch.Generator().manual_seed(0)
    model = RecurrentLanguageModel(nn.LSTM, given.vocab_size, EMBED_DIM, HIDDEN_DIM, generator=generator)
    task = StatefulLanguageTask(
        model, make_language_optimizer(model, options), load_corpus("topics", "char", 0), options, device_context
    )
    done = 0
    while done < repeats.count * NUM_STEPS:
        for rows in task.batches:
            task.step(rows)
            done += 1
            if done % NUM_STEPS == 0:
                repeats.end()
            if done == repeats.count * NUM_STEPS:
                break
    inputs, targets = test_stream(given)
    with torch.no_grad():
        return nats(model.eval()(torch.from_numpy(inputs)).numpy(), targets)
