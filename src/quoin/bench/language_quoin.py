"""The rows on language, on Quoin: the step of the recipe `transformer-lm` with a GPT, eager and compiled."""

import torch

from quoin.bench.language_problem import GPTS, RATE, GPTWork, nats, text
from quoin.bench.worker import Laps
from quoin.data import load_corpus
from quoin.models import GPT
from quoin.tasks.language_modeling import LanguageTask, adam
from quoin.tasks.options import LanguageOptions
from quoin.train import choose_place

__all__ = ["gpt", "gpt_compiled"]


def gpt(laps: Laps, size: str) -> dict[str, float]:
    return _run(laps, GPTS[size], compile=False)


def gpt_compiled(laps: Laps, size: str) -> dict[str, float]:
    return _run(laps, GPTS[size], compile=True)


def _run(laps: Laps, work: GPTWork, *, compile: bool) -> dict[str, float]:
    place, remarks = choose_place("cpu", threads=laps.threads, compile=compile)
    if place.compile != compile:
        raise SystemExit(remarks[0])
    given = text()
    options = LanguageOptions(
        context=work.length, batch_size=work.batch, lr=RATE, clip=0.0, weight_decay=0.0, schedule="constant", warm_up=0.0, epochs=10_000
    )
    generator = torch.Generator().manual_seed(0)
    model = GPT(given.vocabulary_size, work.width, work.heads, work.layers, work.length, generator=generator)
    task = LanguageTask(model, adam(model, options), load_corpus("topics", "characters", 0), options, place)
    done = 0
    while done < laps.count * work.steps:
        for rows in task.batches:
            task.step(rows)
            done += 1
            if done % work.steps == 0:
                laps.end()
            if done == laps.count * work.steps:
                break
    inputs, targets = given.test_windows(work)
    with torch.no_grad():
        return nats(model.eval()(torch.from_numpy(inputs)).numpy(), targets)
