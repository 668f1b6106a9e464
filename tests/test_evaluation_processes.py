"""Evaluation and sampling by several processes: every example counted once, the numbers of one process, equal bits in
all of them; and reports that the main process makes by itself."""

import json
import math
import subprocess
import sys

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from process_group import in_processes
from quoin.data import Dataset, Split, prepare
from quoin.data.examples import CollatedExamples, ExampleLayout, StreamExamples, TensorExamples
from quoin.losses import cross_entropy
from quoin.metrics import sliding_window_nll
from quoin.runs import find_recipe, recipe_names
from quoin.runs.fit import build_task
from quoin.tasks.module_objective import make_objective
from quoin.tasks.own_module import evaluate_module
from quoin.tasks.supervised import Classification
from quoin.train import DeviceContext, MeanMetrics
from quoin.train.fractions import own_batches, own_blocks, sample_in_blocks
from quoin.train.gradient_task import runs_in_processes
from quoin.train.processes import (
    alone,
    fraction_of,
    gather_lists,
    gather_rows,
    is_main,
    num_processes,
    on_main,
    process_rank,
)

SMALL = {
    "diffusion-2d": {"num_examples": 64, "num_timesteps": 20, "num_steps": 5},
    "diffusion-digits": {"num_samples": 300, "num_timesteps": 10, "num_steps": 2, "channels": (8, 8)},
    "flow-matching-2d": {"num_examples": 64, "hidden_dim": 16},
    "gan": {"num_samples": 300},
    "gru-lm": {"hidden_dim": 16, "embed_dim": 16},
    "inductive-bias": {"num_rows": (50, 100)},
    "lstm-lm": {"hidden_dim": 16, "embed_dim": 16},
    "pixelcnn": {"num_samples": 300, "channels": 4, "num_layers": 1},
    "rnn-lm": {"hidden_dim": 16, "embed_dim": 16},
    "sequence-classification": {"num_texts": 200},
    "transformer-lm": {"embed_dim": 16, "num_heads": 2, "num_layers": 1, "context_length": 33},
    "translate-dates": {"num_pairs": 200, "hidden_dim": 16},
    "translate-numbers": {"num_pairs": 200, "num_beams": 2},
    "vae": {"num_samples": 300, "num_importance_samples": 20},
    "vae-conv": {"num_samples": 300, "num_importance_samples": 3},
}
QUICK = {
    "mlp": {"threshold": "f1", "data": "moons"},
    "diffusion-2d": {"num_examples": 32, "num_timesteps": 4, "num_steps": 2, "hidden_dim": 4},
}
EXACT = ("accuracy", "exact_match", "coverage", "density", "class_conditional_accuracy", "min_class_ratio")


def build(name, options):
    recipe = find_recipe(name)
    context = DeviceContext(rank=process_rank(), world_size=num_processes())
    return build_task(recipe, recipe.options(**options), context)


def evaluated(recipes):
    """The metrics of each recipe's untrained model."""
    found = {}
    for name, options in recipes.items():
        task = build(name, {key: tuple(each) if isinstance(each, list) else each for key, each in options.items()})
        found[name] = {split: task.evaluate(split) for split in ("train", "validation", "test")}
        if threshold := getattr(task, "threshold", None):
            found[name]["chosen"] = {"threshold": threshold}
    return found


def check_equal(found, expected):
    """Each process has the bits of the first, and it has the numbers of one process."""
    assert all(each == found[0] for each in found[1:])
    assert found[0].keys() == expected.keys()
    for name, splits in expected.items():
        for split, metrics in splits.items():
            assert found[0][name][split].keys() == metrics.keys(), (name, split)
            for metric, value in metrics.items():
                exact = metric.startswith(EXACT)
                close = math.isclose(
                    found[0][name][split][metric], value, rel_tol=1e-12 if exact else 1e-5, abs_tol=1e-7
                )
                assert close, (name, split, metric, found[0][name][split][metric], value)


def test_two_processes_measure_what_one_does():
    found = in_processes(2, "test_evaluation_processes:quick")
    expected = quick()
    check_equal([each["recipes"] for each in found], expected["recipes"])
    for rank, each in enumerate(found):
        assert each["alone"] == [1, 0, rank == 0, 10]
        assert each["words"] == [f"é\n{row}" for row in range(5)]
        assert each["main"] == {"nothing": None, "value": 0.1}
        assert each["samples"] == [0, 101, 102, 203, 204]
        assert each["means"] == {"loss": 0.75, "other": 1.25}
        assert each["empty"] == [[0.5, 2.0]]
        for name in ("few rows", "modules"):
            assert each[name] == found[0][name] == pytest.approx(expected[name], rel=1e-6), name


def quick():
    values = MeanMetrics()
    if process_rank() == num_processes() - 1:  # the others have counted nothing
        values.add({"loss": torch.tensor(3.0), "other": torch.tensor(5.0)}, 4)
    with alone():
        by_itself = [num_processes(), process_rank(), is_main(), sum(gather_rows(torch.arange(5)).tolist())]
    return {
        "recipes": evaluated(QUICK),
        "few rows": few_rows(),
        "modules": modules(),
        "means": values.over_processes().compute(),
        "words": gather_lists([f"é\n{row}" for row in range(5)[fraction_of(5)]]),
        "empty": gather_rows(
            torch.tensor([[0.5, 2.0]], dtype=torch.float64) if fraction_of(1) == slice(0, 1) else torch.empty(0)
        ).tolist(),
        "main": on_main(lambda: {"nothing": None, "value": 0.1}),
        "samples": sample_in_blocks(numbered, 5, 2, torch.device("cpu")).tolist(),
        "alone": by_itself,
    }


def numbered(number, rows):
    return torch.tensor([100 * number + row for row in range(rows.start, rows.stop)])


def few_rows():
    """Fewer examples than processes: one of validation, one of test."""
    generator = torch.Generator().manual_seed(0)
    features, targets = torch.randn(9, 2, generator=generator).double(), torch.arange(9) % 2
    dataset = Dataset("few", features, targets, ("a", "b"), ("no", "yes"))
    data = prepare(dataset, Split(torch.arange(7), torch.tensor([7]), torch.tensor([8])), torch.device("cpu"))
    net = torch.nn.Linear(2, 2)
    torch.nn.init.normal_(net.weight, generator=generator)
    torch.nn.init.zeros_(net.bias)
    context = DeviceContext(rank=process_rank(), world_size=num_processes())
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    task = Classification(
        net, cross_entropy, optimizer, data, batch_size=3, epochs=1, seed=0, device_context=context
    )  # fmt: skip
    return [
        *task.evaluate("validation").values(),
        *task.evaluate("test").values(),
        *task.predict_split("test")[0].tolist(),
    ]


def modules():
    """A module's metrics over tensors, items and a stream; one of them is a single number of a batch."""
    generator = torch.Generator().manual_seed(0)
    inputs, targets = torch.randn(11, 2, generator=generator), torch.arange(11) % 2
    torch.manual_seed(1)
    net = torch.nn.Linear(2, 2)
    objective = make_objective("cross_entropy", {"largest": lambda outputs, targets: outputs.max()}, targets)
    dataset = TensorDataset(inputs, targets)
    layout = ExampleLayout()
    kinds = [
        TensorExamples(inputs, targets, "here"),
        CollatedExamples(dataset, layout),
        StreamExamples(DataLoader(dataset, batch_size=4), layout),
    ]
    found = [evaluate_module(net, objective, each, 4, torch.device("cpu")) for each in kinds]
    return [value for each in found for value in each.values()]


def test_every_row_is_in_one_fraction(monkeypatch):
    """The rows of all processes, one after another, are all rows once; blocks do not depend on their number."""
    for rows in (0, 1, 5, 256, 257, 1000):
        for size in (1, 7, 256):
            alone_blocks = list(own_blocks(rows, size))
            assert all(block.stop - block.start <= size for _, block in alone_blocks)
            for world in (2, 3, 5):
                blocks, seen = [], []
                monkeypatch.setattr("quoin.train.processes.num_processes", lambda world=world: world)
                for rank in range(world):
                    monkeypatch.setattr("quoin.train.processes.process_rank", lambda rank=rank: rank)
                    blocks += own_blocks(rows, size)
                    seen += [row for batch in own_batches(rows, size) for row in range(rows)[batch]]
                monkeypatch.undo()
                assert blocks == alone_blocks
                assert seen == list(range(rows)) == [row for _, block in blocks for row in range(rows)[block]]


@pytest.mark.parametrize(("length", "window", "stride"), [(2, 4, 2), (30, 7, 3), (64, 9, 5), (65, 8, 8)])
@pytest.mark.parametrize("world", [2, 3, 40])
def test_windows_are_read_in_fractions(length, window, stride, world):
    """Every token is predicted once, and from the same window."""
    tokens = torch.randint(5, (length,), generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    embedding = torch.nn.Embedding(5, 5)

    def model(seen):  # what was read so far matters
        return embedding(seen).cumsum(1)

    parts = [
        sliding_window_nll(
            model,
            tokens,
            window=window,
            stride=stride,
            fraction=lambda count, rank=rank: slice(count * rank // world, count * (rank + 1) // world),
        )
        for rank in range(world)
    ]
    assert torch.allclose(torch.cat(parts), sliding_window_nll(model, tokens, window=window, stride=stride))


def test_what_several_processes_can_train():
    """Whatever follows one gradient of batches of rows can; closed forms, EM and studies with loops of their own
    cannot."""
    for name in ("ngram", "gmm", "hmm", "ppca", "forward-reverse-kl", "approximate-function", "batchnorm-study"):
        assert not runs_in_processes(build(name, {})), name
    for name in ("mlp", "ridge", "gcn", "mlp-dropout", "vae", "diffusion-2d"):
        assert runs_in_processes(build(name, {})), name


def every_recipe():
    """Small options of all that several processes can train."""
    tasks = {name: build(name, SMALL.get(name, {})) for name in recipe_names()}
    return {name: SMALL.get(name, {}) for name, task in tasks.items() if runs_in_processes(task)}


def panels_of_main(recipes):
    """The main process makes all plots by itself; afterwards the processes still understand each other."""
    counts = []
    for name, options in recipes.items():
        task = build(name, {key: tuple(each) if isinstance(each, list) else each for key, each in options.items()})
        if is_main():
            with alone():
                counts.append(len([panel.plot.inline() for panel in task.panels()]))
        task.evaluate("validation")
    return [counts, gather_lists([process_rank()])]


@pytest.mark.deep
def test_processes_measure_every_recipe_as_one_does():
    recipes = every_recipe()
    assert len(recipes) > 30
    expected = evaluated(recipes)
    for world in (2, 3):
        check_equal(in_processes(world, "test_evaluation_processes:evaluated", recipes, timeout=900), expected)


@pytest.mark.deep
def test_the_main_process_makes_plots_by_itself():
    recipes = every_recipe()
    (counts, ranks), (none, _) = in_processes(2, "test_evaluation_processes:panels_of_main", recipes, timeout=900)
    assert len(counts) == len(recipes)
    assert min(counts) > 0
    assert none == []
    assert ranks == [0, 1]


@pytest.mark.deep
@pytest.mark.parametrize(
    "words",
    [["mlp-dropout", "--dropout", "0"], ["ridge"], ["sequence-classification", "--num-texts", "300"]],
    ids=lambda words: words[0],
)
def test_tasks_of_several_networks_are_evaluated_whole(words, tmp_path):
    """Where each process keeps a fraction of the weights, those of all networks are whole while they are evaluated."""
    found = []
    for name, more in (("one", []), ("two", ["--processes", "2", "--shard"])):
        command = [sys.executable, "-m", "quoin", "train", *words, "--max-steps", "3", "--num-threads", "1", *more]
        subprocess.run([*command, "--runs", str(tmp_path / name)], check=True, capture_output=True)
        (result,) = (tmp_path / name).glob("*/result.json")
        found.append(json.loads(result.read_text())["metrics"])
    assert found[1] == pytest.approx(found[0], rel=1e-4, abs=1e-6)
