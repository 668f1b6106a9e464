"""The row `lstm-lm` on Quoin: the step of the recipe `lstm-lm`, eager and compiled."""

import torch
from torch import nn

from quoin.bench.language_problem import nats, text
from quoin.bench.recurrent_problem import BATCH, CLIP, HIDDEN, LENGTH, RATE, STEPS, WIDTH, test_lane
from quoin.bench.worker import Laps
from quoin.data import load_corpus
from quoin.models import RecurrentLanguageModel
from quoin.tasks.language_modeling import CarriedLanguageTask, adam
from quoin.tasks.options import RecurrentOptions
from quoin.train import choose_place

__all__ = ["lstm", "lstm_compiled"]


def lstm(laps: Laps) -> dict[str, float]:
    return _run(laps, compile=False)


def lstm_compiled(laps: Laps) -> dict[str, float]:
    return _run(laps, compile=True)


def _run(laps: Laps, *, compile: bool) -> dict[str, float]:
    place, remarks = choose_place("cpu", threads=laps.threads, compile=compile)
    if place.compile != compile:
        raise SystemExit(remarks[0])
    options = RecurrentOptions(
        context=LENGTH, batch_size=BATCH, lr=RATE, clip=CLIP, weight_decay=0.0, schedule="constant", warm_up=0.0, epochs=10_000
    )  # fmt: skip
    given, generator = text(), torch.Generator().manual_seed(0)
    model = RecurrentLanguageModel(nn.LSTM, given.vocabulary_size, WIDTH, HIDDEN, generator=generator)
    task = CarriedLanguageTask(model, adam(model, options), load_corpus("topics", "characters", 0), options, place)
    done = 0
    while done < laps.count * STEPS:
        for rows in task.batches:
            task.step(rows)
            done += 1
            if done % STEPS == 0:
                laps.end()
            if done == laps.count * STEPS:
                break
    inputs, targets = test_lane(given)
    with torch.no_grad():
        return nats(model.eval()(torch.from_numpy(inputs)).numpy(), targets)
