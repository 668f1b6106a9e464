"""quoin.fit on modules of one's own: a plain PyTorch loop as its second implementation, data of every form, kills and
resumes to the same bits, and what is refused."""

import math
import os
import random
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import polars
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, Subset, TensorDataset, WeightedRandomSampler
from torch.utils.data import Dataset as TorchDataset

import quoin
from quoin.cli import main
from quoin.data import Dataset, epoch_permutation, keyed_generator
from quoin.data.example_reading import read_examples
from quoin.errors import UserError
from quoin.runs import Run
from tasks import difference, left_behind

pytestmark = pytest.mark.usefixtures("one_thread")  # as `fit` below is asked for
ROWS, BATCH, EPOCHS = 37, 8, 3
SEED = 5


@pytest.fixture(autouse=True)
def pages_without_plots(request, monkeypatch):
    """Plots take two thirds of such short runs; the test of the report has them."""
    if "reported" not in request.node.name:
        monkeypatch.setattr("quoin.train.report.figures", lambda *sources: [])


def make_model(width=6, dropout=0.3):
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Linear(4, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, 3)
    )


def make_data():
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(ROWS, 4, generator=generator)
    return inputs, (inputs[:, 0] > 0).long() + (inputs[:, 1] > 0.5).long()


def adam(parameters):
    return torch.optim.AdamW(parameters, lr=0.02, weight_decay=0.1)


def fit(model, data, root, **given):
    """A quiet run on one thread of the CPU."""
    usual = {"epochs": EPOCHS, "batch_size": BATCH, "seed": SEED, "device": "cpu", "num_threads": 1}
    return quoin.fit(model, data, runs=root, show_progress=False, **usual | given)


def weights_of(model):
    return {name: each.clone() for name, each in model.state_dict().items()}


def assert_equal_weights(one, other):
    assert one.keys() == other.keys()
    assert [name for name in one if not torch.equal(one[name], other[name])] == []


# ---- the second implementation ------------------------------------------------------------------------------------


def plain_loop(model, inputs, targets, loss, *, schedule=lambda fraction: 1.0, max_norm=0.0):
    """What a reader would write, in the same order."""
    optimizer, done = adam(model.parameters()), 0
    total = EPOCHS * -(-ROWS // BATCH)
    for epoch in range(EPOCHS):
        for rows in epoch_permutation(SEED, epoch, ROWS).split(BATCH):
            model.train()
            optimizer.param_groups[0]["lr"] = 0.02 * schedule(done / total)
            optimizer.zero_grad()
            loss(model(inputs[rows]), targets[rows]).backward()
            if max_norm:
                nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            done += 1
    return model


@pytest.mark.parametrize("per_example", [False, True])
def test_a_plain_loop_of_the_same_order_gives_the_same_weights_to_the_bit(per_example, tmp_path):
    inputs, targets = make_data()
    ours, theirs = make_model(dropout=0.0), make_model(dropout=0.0)  # it is drawn for rows: test_global_batch.py
    own = nn.CrossEntropyLoss(reduction="none" if per_example else "mean")
    fit(ours, (inputs, targets), tmp_path, loss=own, optimizer=adam)
    plain_loop(theirs, inputs, targets, lambda outputs, targets: own(outputs, targets).mean())
    assert_equal_weights(weights_of(ours), weights_of(theirs))


def test_schedule_and_clipping_are_those_of_a_plain_loop(tmp_path):
    inputs, targets = make_data()
    ours, theirs = make_model(dropout=0.0), make_model(dropout=0.0)  # it is drawn for rows: test_global_batch.py

    def falling(fraction):
        return 1 - fraction

    fit(
        ours,
        (inputs, targets),
        tmp_path,
        loss=nn.CrossEntropyLoss(),
        optimizer=adam,
        schedule=falling,
        max_grad_norm=0.5,
    )
    plain_loop(theirs, inputs, targets, nn.CrossEntropyLoss(), schedule=falling, max_norm=0.5)
    assert_equal_weights(weights_of(ours), weights_of(theirs))


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_micro_batches_give_the_gradient_of_the_whole_batch(reduction, tmp_path):
    """Pieces of 3, 3 and 2 rows of a batch of 8: means of unlike weight."""
    inputs, targets = make_data()
    models = [nn.Linear(4, 3).double() for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    for model, size in zip(models, (0, 3)):
        own = nn.CrossEntropyLoss(reduction=reduction)
        fit(model, (inputs.double(), targets), tmp_path, loss=own, optimizer="sgd", lr=0.5, micro_batch_size=size)
    assert torch.allclose(models[0].weight, models[1].weight, rtol=1e-12, atol=0)


def test_metrics_are_means_over_examples_not_over_batches(tmp_path):
    """37 rows in uneven batches; per example, and a batch's mean weighed by its rows, both against NumPy."""
    inputs, targets = make_data()
    model = nn.Linear(4, 3)

    def margin(outputs, targets):
        return outputs.gather(1, targets[:, None])[:, 0]

    class Items(TorchDataset):  # evaluated by batches of 8, the last of 5
        def __len__(self):
            return ROWS

        def __getitem__(self, row):
            return inputs[row], targets[row]

    metrics = {"margin": margin, "mean_margin": lambda outputs, targets: margin(outputs, targets).mean().item()}
    run = fit(model, Items(), tmp_path, metrics=metrics, epochs=1)
    logits = inputs.double().numpy() @ model.weight.detach().double().numpy().T + model.bias.detach().double().numpy()
    expected = logits[np.arange(ROWS), targets.numpy()].mean()
    assert run.metrics["train_margin"] == pytest.approx(expected, rel=1e-5)
    assert run.metrics["train_mean_margin"] == pytest.approx(expected, rel=1e-5)
    losses = np.log(np.exp(logits).sum(1)) - logits[np.arange(ROWS), targets.numpy()]
    assert run.metrics["train_loss"] == pytest.approx(losses.mean(), rel=1e-5)


# ---- data of every form -------------------------------------------------------------------------------------------


class Pairs(TorchDataset):
    def __init__(self):
        self.inputs, self.targets = make_data()

    def __len__(self):
        return ROWS

    def __getitem__(self, row):
        return self.inputs[row], self.targets[row]


def test_workers_fetch_as_the_users_loader_says(monkeypatch):
    made = []

    class Noted(DataLoader):
        def __init__(self, *arguments, **settings):
            made.append(settings)
            super().__init__(*arguments, **settings)

    monkeypatch.setattr("quoin.data.examples.DataLoader", Noted)
    told = {
        "num_workers": 1,
        "collate_fn": lambda rows: tuple(map(torch.stack, zip(*rows))),
        "timeout": 77.0,
        "worker_init_fn": lambda number: None,
        "prefetch_factor": 3,
        "pin_memory": False,
    }
    loader = DataLoader(Pairs(), batch_size=BATCH, multiprocessing_context="fork", **told)
    examples = read_examples(loader).examples
    fetched = next(iter(examples.fetch([torch.tensor([2, 0])])))
    assert torch.equal(torch.as_tensor(fetched.targets), Pairs().targets[[2, 0]])
    (settings,) = made
    assert {name: settings[name] for name in told} == told
    assert settings["multiprocessing_context"] is loader.multiprocessing_context


def forms():
    inputs, targets = make_data()
    frame = polars.DataFrame(inputs.double().numpy(), schema=list("abcd")).with_columns(
        polars.Series("y", targets.numpy())
    )
    words = np.array(["few", "more", "very many"])[targets.numpy()]  # alphabetical, as the numbers
    dataset = Dataset("mine", inputs, targets, tuple("abcd"), ("0", "1", "2"))
    return {
        "tensors": ((inputs, targets), {}),
        "arrays in float64": ((inputs.double().numpy(), targets.numpy().astype(np.int32)), {}),
        "array and classes as text": ((inputs.numpy(), words), {}),
        "frame": (frame, {"target": "y"}),
        "frame and series": ((frame.drop("y"), frame["y"]), {}),
        "frame with text": (frame.with_columns(polars.Series("y", words)), {"target": "y"}),
        "quoin dataset": (dataset, {}),
        "tensor dataset": (TensorDataset(inputs, targets), {}),
        "map-style dataset": (Pairs(), {}),
        "loader": (DataLoader(Pairs(), batch_size=BATCH, shuffle=True), {"batch_size": None}),
        "loader, other size": (DataLoader(Pairs(), batch_size=3, shuffle=True), {}),
        "loader with workers": (DataLoader(Pairs(), batch_size=BATCH, shuffle=True, num_workers=1), {}),
    }


def test_the_same_examples_in_any_form_give_the_same_weights(tmp_path):
    found = {}
    for form, (data, given) in forms().items():
        model = make_model()
        fit(model, data, tmp_path, **given)
        found[form] = weights_of(model)
    first = found.pop("tensors")
    for form, weights in found.items():
        assert [name for name in first if not torch.equal(first[name], weights[name])] == [], form


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.left, self.right = nn.Linear(1, 3), nn.Linear(3, 3)

    def forward(self, left, right):
        return self.left(left) + self.right(right)


def test_tuples_and_dicts_go_to_the_arguments_of_the_model(tmp_path):
    inputs, targets = make_data()
    left, right = inputs[:, :1], inputs[:, 1:]
    found = []
    for data, given in (
        (((left, right), targets), {}),
        ((left, right, targets), {}),
        ({"right": right, "left": left, "kind": targets}, {"target": "kind"}),
        (TensorDataset(left, right, targets), {}),
        ([{"left": a, "right": b, "kind": c} for a, b, c in zip(left, right, targets)], {"target": "kind"}),
    ):
        model = TwoInputs()
        data = _Listed(data) if isinstance(data, list) else data
        run = fit(model, data, tmp_path, **given)
        found.append(weights_of(model))
    for weights in found[1:]:
        assert_equal_weights(found[0], weights)
    assert torch.allclose(run.predict({"left": left, "right": right}), model(left, right), atol=1e-6)
    assert torch.allclose(run.predict((left.numpy(), right.numpy())), model(left, right), atol=1e-6)


class _Listed(TorchDataset):
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, row):
        return self.items[row]


class OwnLoss(nn.Module):
    """As language models of Hugging Face do: given the labels, the output has the loss."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.line = nn.Linear(4, 3)

    def forward(self, inputs, labels=None):
        logits = self.line(inputs)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits} if labels is not None else logits


def test_a_model_may_compute_its_own_loss(tmp_path):
    inputs, targets = make_data()
    own, plain = OwnLoss(), OwnLoss()
    right = {"right": lambda outputs, inputs: outputs["logits"].argmax(1) == inputs["labels"]}
    run = fit(own, {"inputs": inputs, "labels": targets}, tmp_path, loss=None, metrics=right, optimizer=adam)
    fit(plain.line, (inputs, targets), tmp_path, loss=nn.CrossEntropyLoss(), optimizer=adam)
    assert_equal_weights(weights_of(own.line), weights_of(plain.line))
    assert run.metrics["train_right"] == (plain.line(inputs).argmax(1) == targets).double().mean().item()
    assert run.options.loss == "the model's own"
    some = {"inputs": inputs[:9], "labels": targets[:9]}
    expected = nn.functional.cross_entropy(plain.line(inputs[:9]), targets[:9]).item()
    assert run.evaluate(some)["loss"] == pytest.approx(expected, rel=1e-6)


def test_validation_is_a_fraction_by_the_seed_or_data_of_its_own(tmp_path):
    inputs, targets = make_data()
    run = fit(make_model(), (inputs, targets), tmp_path, validation=0.25, test=(inputs[:5], targets[:5]))
    assert (run.data_info.num_train, run.data_info.num_validation, run.data_info.num_test) == (28, 9, 5)
    assert {"train_loss", "validation_accuracy", "test_loss"} <= run.metrics.keys()
    rest = keyed_generator("validation", SEED)
    order = torch.randperm(ROWS, generator=rest)
    held_out, train = order[:9].sort().values, order[9:].sort().values
    given = fit(
        make_model(), (inputs[train], targets[train]), tmp_path, validation=(inputs[held_out], targets[held_out])
    )
    assert run.history[-1]["validation_loss"] == given.history[-1]["validation_loss"]
    assert run.options.given_splits == ("test",)


def test_the_best_weights_by_the_monitor_are_left_in_the_model(tmp_path):
    inputs, targets = make_data()
    model = make_model()

    def shortfall(outputs, targets):  # of this the largest is wanted, against what the name might say
        return -nn.functional.cross_entropy(outputs, targets, reduction="none")

    run = fit(
        model, (inputs, targets), tmp_path, validation=(inputs[:9], targets[:9]), epochs=12, lr=0.3,
        metrics={"height": shortfall}, monitor="validation_height", mode="max",
    )  # fmt: skip
    heights = [line["validation_height"] for line in run.history]
    assert heights.index(max(heights)) < len(heights) - 1  # the last is not the best, or nothing would be shown
    assert run.metrics["validation_height"] == max(heights)
    assert not model.training
    assert torch.equal(run.model(inputs), run.predict(inputs))
    assert run.model is model


def test_frozen_parameters_stay_and_parameter_groups_are_kept(tmp_path):
    inputs, targets = make_data()
    model = make_model()
    model[0].weight.requires_grad_(False)
    before = weights_of(model)
    groups = [{"params": [model[0].bias], "lr": 0.5}, {"params": model[4].parameters()}]
    optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9)
    run = fit(model, (inputs, targets), tmp_path, optimizer=optimizer)
    changed = {name for name, each in model.state_dict().items() if not torch.equal(each, before[name])}
    assert changed & dict(model.named_parameters()).keys() == {"0.bias", "4.weight", "4.bias"}
    assert "1.running_mean" in changed
    assert (run.options.optimizer, run.options.lr) == ("SGD()", (0.5, 0.1))


def test_random_generators_are_afterwards_as_they_were(tmp_path):
    torch.manual_seed(1), np.random.seed(1), random.seed(1)
    expected = torch.rand(1), np.random.rand(), random.random()
    torch.manual_seed(1), np.random.seed(1), random.seed(1)
    model = make_model()  # which seeds torch
    torch.manual_seed(1)
    run = fit(model, make_data(), tmp_path, validation=0.2, optimizer="sgd")
    run.evaluate()
    assert (torch.rand(1), np.random.rand(), random.random()) == expected
    assert torch.get_num_threads() >= 1


# ---- resumed ------------------------------------------------------------------------------------------------------


class Noisy(Pairs):
    """With transforms that sample from all three generators."""

    def __getitem__(self, row):
        noise = torch.randn(()) + random.gauss(0, 1) + np.random.randn()
        return self.inputs[row] + 0.1 * float(noise), self.targets[row]


def interrupt_at(step, raises=KeyboardInterrupt):
    def callback(event):
        if (event.kind, event.step) == ("step", step):
            raise raises

    return callback


GIVEN = {"loss": nn.CrossEntropyLoss(), "optimizer": adam, "schedule": lambda fraction: 1 - fraction / 2}
GIVEN |= {"metrics": {"right": lambda outputs, targets: outputs.argmax(1) == targets}}


@pytest.mark.parametrize(
    ("data", "step"),
    [(make_data, 1), (make_data, 12), (Pairs, 7), (Noisy, 7)],
    ids=["start", "last", "items", "random transforms"],
)
def test_interrupted_in_a_callback_and_resumed_gives_the_same_bits(data, step, tmp_path):
    whole = fit(make_model(), data(), tmp_path / "whole", validation=0.2, checkpoint_every=3, **GIVEN)
    with pytest.raises(KeyboardInterrupt):
        fit(
            make_model(), data(), tmp_path / "cut", validation=0.2, checkpoint_every=3,
            callbacks=[interrupt_at(step)], **GIVEN,
        )  # fmt: skip
    path = tmp_path / "cut" / "sequential-1"
    assert Run.open(path).metrics is None
    other = make_model()
    nn.init.zeros_(other[0].weight)  # the weights come from the checkpoint, the start too
    run = quoin.resume(path, model=other, data=data(), show_progress=False, **GIVEN)
    assert difference(left_behind(whole.folder), left_behind(run.folder)) is None
    assert_equal_weights(weights_of(whole.model), weights_of(other))
    again = quoin.open_run(path, model=make_model(), **{name: GIVEN[name] for name in ("loss", "metrics")})
    assert again.metrics == whole.metrics
    assert_equal_weights(weights_of(again.model), weights_of(other))


SCRIPT = """
import os, signal, sys
sys.path.insert(0, {tests!r})
from test_fit_module import fit, make_data, make_model

def kill(event):
    if (event.kind, event.step) == ("step", 8):
        os.kill(os.getpid(), signal.SIGKILL)

fit(make_model(), make_data(), {root!r}, validation=0.2, checkpoint_every=3, callbacks=[kill])
"""


def test_killed_and_resumed_in_another_process_gives_the_same_bits(tmp_path):
    script = SCRIPT.format(tests=str(Path(__file__).parent), root=str(tmp_path / "killed"))
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    whole = fit(make_model(), make_data(), tmp_path / "whole", validation=0.2, checkpoint_every=3)
    path = tmp_path / "killed" / "sequential-1"
    run = quoin.resume(path, model=make_model(), data=make_data(), show_progress=False)  # what has a name is known
    assert difference(left_behind(whole.folder), left_behind(run.folder)) is None


def test_ctrl_c_ends_after_the_step_and_says_how_to_go_on(tmp_path, capfd):
    whole = fit(make_model(), make_data(), tmp_path / "whole")

    def press(event):
        if (event.kind, event.step) == ("step", 6):
            os.kill(os.getpid(), signal.SIGINT)

    model = make_model()
    run = quoin.fit(
        model, make_data(), runs=tmp_path, epochs=EPOCHS, batch_size=BATCH, seed=SEED, num_threads=1, device="cpu",
        callbacks=[press],
    )  # fmt: skip
    assert run.metrics is None
    assert (run.path / "report.html").exists()
    told = f"interrupted at step 6; go on with quoin.resume({str(run.path)!r}, model=..., data=...)"
    assert told in capfd.readouterr().err
    quoin.resume(run.path, model=model, data=make_data(), show_progress=False)
    assert_equal_weights(weights_of(model), weights_of(whole.model))


def test_a_used_optimizer_resumes_with_the_learning_rate_that_the_run_began_with(tmp_path):
    """In a notebook the same optimizer is given again: a schedule has moved its learning rate meanwhile."""
    whole = fit(make_model(), make_data(), tmp_path / "whole", optimizer=adam, schedule="cosine")
    model = make_model()
    optimizer = adam(model.parameters())
    with pytest.raises(KeyboardInterrupt):
        fit(model, make_data(), tmp_path, optimizer=optimizer, schedule="cosine", callbacks=[interrupt_at(9)])
    assert optimizer.param_groups[0]["lr"] < 0.01
    quoin.resume(tmp_path / "sequential-1", model=model, data=make_data(), optimizer=optimizer, show_progress=False)
    assert_equal_weights(weights_of(model), weights_of(whole.model))


class Streamed(IterableDataset):
    def __iter__(self):
        return iter(zip(*make_data()))


@pytest.mark.parametrize("stream", ["sampler of its own", "no length"])
def test_a_loader_in_its_own_order_trains_and_says_that_its_bits_will_differ(stream, tmp_path, capfd):
    def loader():
        if stream == "no length":
            return DataLoader(Streamed(), batch_size=BATCH)
        sampler = WeightedRandomSampler(torch.ones(ROWS), ROWS, generator=torch.Generator().manual_seed(1))
        return DataLoader(Pairs(), batch_size=BATCH, sampler=sampler)

    with pytest.raises(KeyboardInterrupt):
        fit(make_model(), loader(), tmp_path, batch_size=None, checkpoint_every=2, callbacks=[interrupt_at(7)])
    run = quoin.resume(tmp_path / "sequential-1", model=make_model(), data=loader())
    assert "a resumed run goes on, but not to equal bits" in capfd.readouterr().err
    assert run.folder.result["steps"] == EPOCHS * 5
    if stream == "no length":  # here the examples and their order happen to be the same in every pass
        assert run.data_info.num_train == 40
        assert math.isfinite(run.metrics["train_loss"])


def test_a_loader_keeps_its_order_its_last_batch_and_its_collation(tmp_path):
    inputs, targets = make_data()
    seen = []

    def collate(items):
        seen.append(len(items))
        return torch.stack([each[0] for each in items]), torch.stack([each[1] for each in items])

    model, plain = nn.Linear(4, 3), nn.Linear(4, 3)
    plain.load_state_dict(model.state_dict())
    loader = DataLoader(Pairs(), batch_size=10, drop_last=True, collate_fn=collate)  # in order: no shuffling
    run = fit(model, loader, tmp_path, batch_size=None, epochs=1, optimizer=adam, loss=nn.CrossEntropyLoss())
    optimizer = adam(plain.parameters())
    for rows in torch.arange(30).split(10):
        optimizer.zero_grad()
        nn.functional.cross_entropy(plain(inputs[rows]), targets[rows]).backward()
        optimizer.step()
    assert_equal_weights(weights_of(model), weights_of(plain))
    assert run.folder.result["steps"] == 3
    assert 10 in seen


# ---- the run ------------------------------------------------------------------------------------------------------


def test_a_run_is_labelled_reported_compared_and_answers_on_the_command_line(tmp_path, capfd, here):
    one = fit(make_model(), make_data(), "runs", name="mine", note="first try", tags=["a", "b"], validation=0.2)
    two = fit(TwoInputs(), ((make_data()[0][:, :1], make_data()[0][:, 1:]), make_data()[1]), "runs", lr=0.01)
    assert (one.path, two.path) == (Path("runs/mine"), Path("runs/two-inputs-1"))
    assert (one.folder.config["note"], one.folder.config["tags"]) == ("first try", ["a", "b"])
    assert repr(two) == "Run('runs/two-inputs-1', two-inputs, finished)"
    page = (two.path / "report.html").read_text()
    assert "Module TwoInputs, seed 5" in page
    assert "Training loss by epoch" in page
    assert one.report() == one.path / "report.html"
    assert one.evaluate() == one.metrics
    capfd.readouterr()
    assert main(["compare", "runs/mine", "runs/two-inputs-1"]) == 0
    assert re.search(r"lr +0\.001 +0\.01", capfd.readouterr().out)
    for words in (
        "eval runs/mine",
        "eval runs/mine --data digits",
        "predict runs/mine x.csv",
        "resume runs/mine --step 0",
    ):
        assert main(words.split()) == 2, words
        told = capfd.readouterr().err
        assert re.fullmatch(
            r"quoin: runs/mine is a run of a module of your own[^\n]+quoin\.\w+\('runs/mine'[^\n]+\n", told
        )
    for words in ("inspect runs/mine", "generate runs/mine"):
        assert main(words.split()) == 2
        assert "is of a module of your own, which is in your Python code" in capfd.readouterr().err


def test_open_and_resume_are_also_for_runs_of_recipes(tmp_path):
    words = "train mlp --data iris --epochs 1 --num-threads 1 --json --runs"
    assert main([*words.split(), str(tmp_path)]) == 0
    run = quoin.open_run(tmp_path / "mlp-1")
    assert run.predict(torch.zeros(1, 4)).values.shape == (1,)
    assert quoin.resume(tmp_path / "mlp-1", show_progress=False).metrics == run.metrics
    with pytest.raises(UserError, match="leave model= and data= out"):
        quoin.open_run(tmp_path / "mlp-1", model=make_model())


def test_predict_takes_frames_by_the_names_of_their_columns(tmp_path):
    inputs, targets = make_data()
    frame = polars.DataFrame(inputs.numpy(), schema=list("abcd")).with_columns(polars.Series("y", targets.numpy()))
    run = fit(nn.Linear(4, 3), frame, tmp_path, target="y")
    assert torch.equal(run.predict(frame.select("d", "y", "b", "a", "c")), run.predict(inputs))
    assert run.evaluate(frame.select("d", "y", "b", "a", "c")) == run.evaluate((inputs, targets))
    with pytest.raises(UserError, match="no column 'c'"):
        run.predict(frame.drop("c"))


def test_classes_as_text_keep_their_numbers_in_other_data(tmp_path):
    inputs, targets = make_data()
    words = np.array(["a", "b", "c"])[targets.numpy()]
    run = fit(nn.Linear(4, 3), (inputs, words), tmp_path)
    some = targets > 0  # of which an order of their own would begin with b
    assert run.evaluate((inputs[some], words[some.numpy()])) == run.evaluate((inputs[some], targets[some]))
    with pytest.raises(UserError, match="class 'd' is none of the training data"):
        run.evaluate((inputs[:1], np.array(["d"])))


def test_lazy_modules_get_their_shapes_before_the_optimizer(tmp_path):
    model = nn.Sequential(nn.LazyLinear(6), nn.ReLU(), nn.LazyLinear(3))
    with pytest.raises(KeyboardInterrupt):
        fit(model, make_data(), tmp_path, callbacks=[interrupt_at(2)])
    lazy = nn.Sequential(nn.LazyLinear(6), nn.ReLU(), nn.LazyLinear(3))
    run = quoin.resume(tmp_path / "sequential-1", model=lazy, data=make_data(), show_progress=False)
    assert math.isfinite(run.metrics["train_loss"])


# ---- refused ------------------------------------------------------------------------------------------------------

X, Y = make_data()
REFUSED = {
    "no module": (lambda: (4, (X, Y), {}), "expected a torch.nn.Module to train, got int"),
    "no parameters": (lambda: (nn.ReLU(), (X, Y), {}), "expected a model with parameters to train, got none in ReLU"),
    "all frozen": (lambda: (nn.Linear(4, 3).requires_grad_(False), (X, Y), {}), "got only frozen parameters"),
    "shapes": (
        lambda: (nn.Linear(5, 3), (X, Y), {}),
        r"the model does not take a batch of inputs float32 \(8, 4\), targets int64 \(8,\): RuntimeError: mat1",
    ),
    "arguments": (lambda: (nn.Linear(4, 3), ((X, X, X), Y), {}), "the model does not take a batch of .*TypeError"),
    "classes": (
        lambda: (nn.Linear(4, 2), (X, Y), {}),
        "expected classes from 0 to 1, as the model has 2 outputs, got 2 among the targets",
    ),
    "classes from below 0": (lambda: (nn.Linear(4, 3), (X, Y - 1), {}), "got -1 among the targets"),
    "mse shapes": (lambda: (nn.Linear(4, 3), (X, X[:, :1]), {}), r"mse does not take outputs float32 \(8, 3\)"),
    "loss gives a number": (
        lambda: (nn.Linear(4, 3), (X, Y), {"loss": lambda outputs, targets: 1.0}),
        r"<lambda>\(\) a tensor of one number or of 8, one per example, got float",
    ),
    "loss without gradient": (
        lambda: (nn.Linear(4, 3), (X, Y), {"loss": lambda outputs, targets: outputs.detach().mean()}),
        "a loss with a gradient, got one without",
    ),
    "loss of another shape": (
        lambda: (nn.Linear(4, 3), (X, Y), {"loss": lambda outputs, targets: outputs}),
        r"got a tensor of shape \(8, 3\): return such, for instance with .mean\(\)",
    ),
    "loss by a wrong name": (
        lambda: (nn.Linear(4, 3), (X, Y), {"loss": "cross-entropy"}),
        "did you mean 'cross_entropy'",
    ),
    "targets of no kind": (lambda: (nn.Linear(4, 3), (X, Y > 0), {}), "to choose a loss by, got bool"),
    "no targets": (lambda: (nn.Linear(4, 3), X, {}), r"give data=\(inputs, targets\)"),
    "dict without target": (lambda: (nn.Linear(4, 3), {"x": X, "y": Y}, {}), "which of x, y is the target"),
    "dict, other target": (lambda: (nn.Linear(4, 3), {"x": X, "y": Y}, {"target": "z"}), "no 'z': choose from x, y"),
    "lengths": (lambda: (nn.Linear(4, 3), (X, Y[:-1]), {}), "as many rows in all inputs and targets, got 37, 36"),
    "empty": (lambda: (nn.Linear(4, 3), (X[:0], Y[:0]), {}), "expected examples to learn from, got none"),
    "a name": (lambda: (nn.Linear(4, 3), "digits", {}), "expected data as .* got str"),
    "text as inputs": (lambda: (nn.Linear(4, 3), (np.array(["a"]), np.array([1])), {}), "the inputs .* got text"),
    "metric gives text": (
        lambda: (nn.Linear(4, 3), (X, Y), {"metrics": {"f1": lambda outputs, targets: "good"}}),
        "expected of metric 'f1' a number or 8, one per example, got str",
    ),
    "metric raises": (
        lambda: (nn.Linear(4, 3), (X, Y), {"metrics": {"f1": lambda outputs, targets: outputs[99]}}),
        "metric 'f1' cannot be computed: IndexError",
    ),
    "metric called loss": (lambda: (nn.Linear(4, 3), (X, Y), {"metrics": {"loss": abs}}), "other than 'loss'"),
    "metrics in a list": (
        lambda: (nn.Linear(4, 3), (X, Y), {"metrics": [abs]}),
        "as a dict of functions by name, got list",
    ),
    "another's optimizer": (
        lambda: (nn.Linear(4, 3), (X, Y), {"optimizer": adam(nn.Linear(4, 3).parameters())}),
        "an optimizer over the model's parameters, got one with 2 others",
    ),
    "LBFGS": (lambda: (nn.Linear(4, 3), (X, Y), {"optimizer": torch.optim.LBFGS}), "LBFGS evaluates the loss several"),
    "optimizer by a wrong name": (
        lambda: (nn.Linear(4, 3), (X, Y), {"optimizer": "adamm"}),
        "^optimizer= is 'adamm': did you mean 'adam",
    ),
    "lr twice": (lambda: (nn.Linear(4, 3), (X, Y), {"optimizer": adam, "lr": 0.1}), "lr= is for an optimizer by name"),
    "lr below 0": (lambda: (nn.Linear(4, 3), (X, Y), {"lr": -1.0}), r"^lr= must be above 0"),
    "no epochs": (lambda: (nn.Linear(4, 3), (X, Y), {"epochs": 0}), "^epochs= must be at least 1"),
    "no batch": (lambda: (nn.Linear(4, 3), (X, Y), {"batch_size": 0}), "^batch_size= must be at least 1"),
    "schedule": (lambda: (nn.Linear(4, 3), (X, Y), {"schedule": "cosin"}), "did you mean 'cosine'"),
    "patience": (lambda: (nn.Linear(4, 3), (X, Y), {"patience": 2}), "there are no validation data"),
    "monitor": (lambda: (nn.Linear(4, 3), (X, Y), {"monitor": "validation_loss"}), "no metric of every epoch here"),
    "mode": (
        lambda: (
            nn.Linear(4, 3),
            (X, Y),
            {"monitor": "validation_height", "validation": 0.2, "metrics": {"height": len}},
        ),
        "metric 'height' cannot be computed",
    ),
    "fraction": (lambda: (nn.Linear(4, 3), (X, Y), {"validation": 1.5}), "as a fraction from 0 to 1"),
    "all held out": (lambda: (nn.Linear(4, 3), (X, Y), {"validation": 0.999}), "leaves none to train on"),
    "callbacks": (lambda: (nn.Linear(4, 3), (X, Y), {"callbacks": print}), "callbacks= as a list of functions"),
    "tags": (lambda: (nn.Linear(4, 3), (X, Y), {"tags": "ab"}), "tags= as a list of words"),
    "device": (lambda: (nn.Linear(4, 3), (X, Y), {"device": "gpu"}), "^device= 'gpu' is not a device"),
    "single examples": (lambda: (nn.Linear(4, 3), Streamed(), {}), "a DataLoader of it"),
    "rows of unlike length": (
        lambda: (nn.Linear(4, 3), ([[1.0], [1.0, 2.0]], [0, 1]), {}),
        "as an array or tensor, got list",
    ),
    "frame without target": (lambda: (nn.Linear(4, 3), polars.DataFrame({"a": [1]}), {}), "target='...'"),
    "frame with text": (
        lambda: (nn.Linear(1, 3), polars.DataFrame({"a": ["x"], "y": [1]}), {"target": "y"}),
        "column 'a' holds objects, expected numbers|column 'a' holds text",
    ),
    "frame with a hole": (
        lambda: (nn.Linear(1, 3), polars.DataFrame({"a": [1.0, None], "y": [1, 2]}), {"target": "y"}),
        "column 'a' has a missing cell in row 1",
    ),
    "the size of a stream": (
        lambda: (nn.Linear(4, 3), DataLoader(Streamed(), batch_size=4), {"batch_size": 2}),
        "makes its own batches",
    ),
    "a fraction of a stream": (
        lambda: (nn.Linear(4, 3), DataLoader(Streamed(), batch_size=4), {"validation": 0.2, "batch_size": None}),
        "give validation= data of its own",
    ),
}


def test_an_event_shows_the_model_that_trains(tmp_path):
    model, seen = make_model(), []
    fit(model, make_data(), tmp_path, callbacks=[lambda event: seen.append(event.model)])
    assert len(seen) >= EPOCHS
    for each in seen:
        assert [id(weight) for weight in each.parameters()] == [id(weight) for weight in model.parameters()]


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_told_in_one_line_before_a_folder_is_made(case, tmp_path):
    make, told = REFUSED[case]
    model, data, given = make()
    with pytest.raises(UserError) as caught:
        fit(model, data, tmp_path / "runs", **given)
    message = str(caught.value)
    assert re.search(told, message), message
    assert "\n" not in message
    assert "--" not in message
    assert not (tmp_path / "runs").exists()


def test_a_name_that_is_taken_is_refused(tmp_path):
    fit(make_model(), make_data(), tmp_path, name="mine", epochs=1)
    with pytest.raises(UserError, match="is there already: choose another name="):
        fit(make_model(), make_data(), tmp_path, name="mine", epochs=1)


def test_a_loss_that_is_not_finite_names_the_argument_and_keeps_the_checkpoint(tmp_path):
    inputs, targets = make_data()
    with pytest.raises(UserError, match=r"not finite at step .*; try a smaller lr=, or max_grad_norm= 1"):
        fit(nn.Linear(4, 1), (inputs * 1e18, targets.float()), tmp_path, optimizer="sgd", lr=1e18)
    assert (tmp_path / "linear-1" / "checkpoints" / "00000000").exists()


RESUMED = {
    "no model": ({"model": None}, "is a run of a module of your own, which is in your Python code"),
    "no data": ({"data": None}, r"quoin.resume\('.*', model=..., data=...\)"),
    "other names": ({"model": TwoInputs()}, "the model does not take|the checkpoint lacks"),
    "other shapes": (
        {"model": make_model(7)},
        r"'0.weight' has shape \(6, 4\) in the checkpoint, \(7, 4\) in the model",
    ),
    "other data": ({"data": (X + 1, Y)}, "the data of .* changed since it was started"),
    "fewer data": ({"data": (X[:-1], Y[:-1])}, "the data of .* changed since it was started"),
    "no loss": ({"loss": None}, r"started with loss=CrossEntropyLoss\(\), which it cannot store: give loss= again"),
    "another loss": ({"loss": nn.L1Loss()}, r"started with loss=CrossEntropyLoss\(\), got L1Loss\(\)"),
    "no optimizer": ({"optimizer": None}, r"started with optimizer=AdamW\(\), which it cannot store"),
    "another optimizer": ({"optimizer": torch.optim.SGD}, r"started with optimizer=AdamW\(\), got SGD\(\)"),
    "no metrics": ({"metrics": None}, "give metrics= again"),
    "other metrics": ({"metrics": {"wrong": GIVEN["metrics"]["right"]}}, "started with metrics="),
    "no schedule": ({"schedule": None}, "give schedule= again"),
    "no validation": ({"validation": None}, "started with validation data of its own: give validation= again"),
}


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    root = tmp_path_factory.mktemp("interrupted")
    with pytest.raises(KeyboardInterrupt):
        fit(make_model(), (X, Y), root, validation=(X[:5], Y[:5]), callbacks=[interrupt_at(3)], **GIVEN)
    return root / "sequential-1"


@pytest.mark.parametrize("case", RESUMED)
def test_a_run_is_not_resumed_with_other_parts(case, interrupted):
    changed, told = RESUMED[case]
    given = {"model": make_model(), "data": (X, Y), "validation": (X[:5], Y[:5]), **GIVEN} | changed
    with pytest.raises(UserError) as caught:
        quoin.resume(interrupted, show_progress=False, **given)
    assert re.search(told, str(caught.value)), caught.value
    assert "\n" not in str(caught.value)


def test_importing_quoin_brings_no_torch_and_shows_the_three_functions():
    code = """
        import sys, quoin
        assert "torch" not in sys.modules
        assert {"fit", "open_run", "resume", "layers"} <= {*dir(quoin)}
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [each.__module__ for each in (quoin.fit, quoin.resume, quoin.open_run)] == ["quoin.runs.fit_module"] * 3


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own files
def test_a_compiled_run_learns_the_same(tmp_path):
    inputs, targets = make_data()
    found = []
    for compiled in (False, True):
        model = TwoInputs()
        fit(model, ((inputs[:, :1], inputs[:, 1:]), targets), tmp_path, compile=compiled)
        found.append(model(inputs[:, :1], inputs[:, 1:]))
    assert torch.allclose(*found, atol=1e-5)


def test_a_subset_is_a_dataset_like_any(tmp_path):
    run = fit(nn.Linear(4, 3), Subset(Pairs(), range(20)), tmp_path)
    assert run.data_info.num_train == 20
