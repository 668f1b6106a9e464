"""A checkpoint is whole or absent, and one changed bit is refused: crashed at every operation, flipped at every bit."""

import errno
import hashlib
import json
import random
import shutil
from pathlib import Path

import pytest
import safetensors
import torch
from torch import nn

from quoin.errors import UserError
from quoin.train import Monitor, RunFolder, load_state_dict_strict, read_checkpoint, write_checkpoint
from quoin.train.checkpoint import checkpoint_steps, prune
from tasks import (
    KINDS,
    Crash,
    Disk,
    TwoBumps,
    TwoWeights,
    copy_state,
    difference,
    left_behind,
    new_folder,
    numbers_dataset,
    parted,
    regression,
    run_loop,
)

FILES = ("tensors.safetensors", "state.json", "manifest.json")
STATE = {"model": {"w": torch.tensor([1.5, -2.0]), "b": torch.tensor(0.25)}, "rates": (0.1, 0.2), "step": 7}


def seal(manifest: dict) -> bytes:
    """A manifest as its definition says: the hash of the canonical text of everything else inside it."""

    def text(value) -> bytes:
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()

    return text({**manifest, "sha256": hashlib.sha256(text(manifest)).hexdigest()})


def told_off(path: Path, *, recipe: str = "small") -> str:
    """The one line with which the checkpoint at `path` is refused."""
    with pytest.raises(UserError) as caught:
        read_checkpoint(path, recipe=recipe)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert str(path) in message
    return message


@pytest.fixture
def checkpoint(tmp_path) -> Path:
    return write_checkpoint(tmp_path / "checkpoints", STATE, recipe="small", step=7)


def test_a_state_comes_back_to_the_bit(checkpoint):
    assert difference(STATE, read_checkpoint(checkpoint, recipe="small")) is None


def test_the_files_are_plain_safetensors_and_json_under_their_hashes(checkpoint):
    assert sorted(path.name for path in checkpoint.iterdir()) == sorted(FILES)
    with safetensors.safe_open(checkpoint / FILES[0], "pt") as tensors:  # pyright: ignore
        assert set(tensors.keys()) == {"model.w", "model.b"}
    manifest = json.loads((checkpoint / "manifest.json").read_bytes())
    assert (manifest["format"], manifest["recipe"], manifest["step"]) == (1, "small", 7)
    for name in FILES[:2]:
        content = (checkpoint / name).read_bytes()
        assert manifest["files"][name] == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


# Damage


@pytest.mark.parametrize("name", FILES)
def test_every_single_bit_flip_is_refused(checkpoint, name):
    content = (checkpoint / name).read_bytes()
    for bit in range(8 * len(content)):  # every one, not a sample
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        (checkpoint / name).write_bytes(flipped)
        message = told_off(checkpoint)
        assert name in message or "belongs to" in message or "format" in message, (bit, message)
        assert "train again" in message or "install" in message or "open the run" in message


def test_bit_flips_in_a_trained_run_are_refused_and_the_older_checkpoint_is_named(tmp_path):
    data = parted(numbers_dataset(), 16, 6)
    run = new_folder(tmp_path)
    run_loop(regression(data, momentum=0.9), run)
    older, newest = checkpoint_steps(run.checkpoints)
    path, chance = run.checkpoints / f"{newest:08d}", random.Random(0)
    for _ in range(600):
        file = path / chance.choice(FILES)
        content = file.read_bytes()
        flipped = bytearray(content)
        flipped[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        file.write_bytes(flipped)
        with pytest.raises(UserError, match=f"{file.name}.*--step {older}"):
            run.load_checkpoint()
        file.write_bytes(content)
    state, step = run.load_checkpoint(older) or (None, None)
    assert step == older
    assert state is not None


@pytest.mark.parametrize("name", FILES)
def test_cut_short_grown_emptied_or_missing_is_refused(checkpoint, name):
    content = (checkpoint / name).read_bytes()
    shorter = [content[:length] for length in range(0, len(content), 7)]
    for damaged in (*shorter, content + b"\0", content + b"\n", content * 2, b" " + content):
        (checkpoint / name).write_bytes(damaged)
        assert name in told_off(checkpoint)
    (checkpoint / name).unlink()
    assert f"{name} is missing" in told_off(checkpoint)
    (checkpoint / name).mkdir()
    assert f"{name} cannot be read" in told_off(checkpoint)


def test_files_of_two_checkpoints_do_not_mix(tmp_path):
    first = write_checkpoint(tmp_path, {**STATE, "step": 1}, recipe="small", step=1)
    second = write_checkpoint(
        tmp_path, {"model": {"w": torch.tensor([1.5, -2.5]), "b": torch.tensor(0.25)}}, recipe="small", step=2
    )
    kept = {name: (second / name).read_bytes() for name in FILES}
    for name in FILES:
        shutil.copy(first / name, second / name)
        told_off(second)
        (second / name).write_bytes(kept[name])
    (second / FILES[0]).write_bytes(kept[FILES[1]])
    (second / FILES[1]).write_bytes(kept[FILES[0]])
    told_off(second)


def test_a_checkpoint_under_another_steps_name_is_refused(checkpoint):
    moved = checkpoint.rename(checkpoint.with_name("00000009"))
    assert "step 7" in told_off(moved)


def test_another_recipes_checkpoint_is_refused(checkpoint):
    assert "belongs to recipe 'small', expected 'mlp'" in told_off(checkpoint, recipe="mlp")


@pytest.mark.parametrize("extra", [{}, {"files": [], "compression": "zstd"}])
def test_a_newer_format_is_refused_as_such(checkpoint, extra):
    manifest = json.loads((checkpoint / "manifest.json").read_bytes())
    del manifest["sha256"]
    (checkpoint / "manifest.json").write_bytes(seal(manifest | {"format": 2} | extra))
    assert "has format 2, this Quoin reads up to 1: install a newer Quoin" in told_off(checkpoint)


NOTHING = [
    {},
    {"format": 1},
    {"format": "1"},
    {"format": None},
    {"format": 1, "recipe": "small", "step": 7, "files": {}},
]


@pytest.mark.parametrize("body", NOTHING)
def test_a_sealed_manifest_that_says_nothing_is_refused(checkpoint, body):
    (checkpoint / "manifest.json").write_bytes(seal(body))
    assert "manifest.json is not as it was written" in told_off(checkpoint)


@pytest.mark.parametrize("text", ["", "null", "[]", "{", "[" * 100_000, '{"sha256":1}', "\xff"])
def test_a_manifest_of_nonsense_is_refused(checkpoint, text):
    (checkpoint / "manifest.json").write_bytes(text.encode("latin-1"))
    assert "manifest.json is not as it was written" in told_off(checkpoint)


@pytest.mark.parametrize(
    "state", [b"{", b'{"a":{"$tensor":"none"}}', b'{"a":{"$float":"code()"}}', b'{"a":{"$dict":[[[],1]]}}']
)
def test_a_well_sealed_state_that_is_none_is_refused(checkpoint, state):
    (checkpoint / "state.json").write_bytes(state)
    manifest = json.loads((checkpoint / "manifest.json").read_bytes())
    del manifest["sha256"]
    manifest["files"]["state.json"] = {"bytes": len(state), "sha256": hashlib.sha256(state).hexdigest()}
    (checkpoint / "manifest.json").write_bytes(seal(manifest))
    assert "do not make a state" in told_off(checkpoint)


# Weights


class Tied(nn.Module):
    """A head that is the embedding, turned round."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(5, 3)
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.embed.weight


def test_tied_weights_are_stored_once_and_stay_tied(tmp_path):
    saved, loaded = Tied(), Tied()
    path = write_checkpoint(tmp_path, {"weights": saved.state_dict()}, recipe="tied", step=1)
    assert (
        path / "tensors.safetensors"
    ).stat().st_size < 2 * 4 * 15 + 100  # one 5 x 3 float32 beside the header, not two
    with safetensors.safe_open(path / "tensors.safetensors", "pt") as tensors:  # pyright: ignore
        assert len(list(tensors.keys())) == 1
    weights = read_checkpoint(path, recipe="tied")["weights"]
    assert weights["embed.weight"] is weights["head.weight"]
    load_state_dict_strict(loaded, weights)
    assert loaded.head.weight is loaded.embed.weight
    assert torch.equal(loaded.embed.weight, saved.embed.weight)


def test_loading_is_strict_in_names_and_shapes():
    model, weights = nn.Linear(3, 2), nn.Linear(3, 2).state_dict()
    before = copy_state(model.state_dict())
    for given, said in (
        ({"weight": weights["weight"]}, "lacks the model's 'bias'"),
        ({**weights, "scale": torch.ones(1)}, "'scale' that the model lacks"),
        (
            {**weights, "weight": torch.ones(2, 4)},
            r"'weight' has shape \(2, 4\) in the checkpoint, \(2, 3\) in the model",
        ),
        ({**weights, "bias": torch.ones(1)}, r"'bias' has shape \(1,\)"),
    ):
        with pytest.raises(UserError, match=said):
            load_state_dict_strict(model, given)
        assert difference(before, copy_state(model.state_dict())) is None  # refused before anything was changed


# Crashes


def reference(kind, root: Path, monkeypatch) -> tuple[dict, dict[int, object], list[str]]:
    """A run never stopped: what it leaves, its state at every step, and the operations it took."""
    states: dict[int, object] = {}
    save = RunFolder.save_checkpoint

    def noted(run: RunFolder, state: object, step: int) -> None:
        states[step] = copy_state(state)
        save(run, state, step)

    with monkeypatch.context() as patch:
        run = new_folder(root)
        disk = Disk(patch, run.path)
        patch.setattr(RunFolder, "save_checkpoint", noted)
        run_loop(kind(), run, epochs=2)
    return left_behind(run), states, disk.done


@pytest.mark.parametrize("power_cut", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_crash_at_every_operation_loses_nothing(kind, power_cut, tmp_path, monkeypatch):
    whole, states, operations = reference(kind, tmp_path / "whole", monkeypatch)
    assert {"write", "sync", "rename", "remove"} <= set(operations)
    for fatal in range(len(operations)):
        run = new_folder(tmp_path / f"at-{fatal}")
        with monkeypatch.context() as patch:
            Disk(patch, run.path, fatal=fatal, power_cut=power_cut)
            with pytest.raises(Crash):
                run_loop(kind(), run, epochs=2)
        again = RunFolder.open(run.path)
        found = again.load_checkpoint()
        if found is not None:
            state, step = found
            mixed = difference({**states[step], "trainer": None}, {**state, "trainer": None})  # pyright: ignore
            assert mixed is None, f"operation {fatal}: {mixed}"
        with monkeypatch.context() as patch:
            Disk(patch, run.path)  # no true syncs, for speed
            run_loop(kind(), again, resume=True, epochs=2)
        assert difference(whole, left_behind(again)) is None, f"operation {fatal}"
        assert not list(again.checkpoints.glob(".*")), "a crash left debris that nobody removes"


@pytest.mark.parametrize("power_cut", [False, True])
def test_a_crash_while_the_best_model_is_set_aside_loses_nothing(power_cut, tmp_path, monkeypatch):
    how = {"epochs": 4, "checkpoint_every": 6, "monitor": Monitor("validation_loss")}  # best and checkpoint apart
    run = new_folder(tmp_path / "whole")
    with monkeypatch.context() as patch:
        disk = Disk(patch, run.path)
        trainer = run_loop(TwoBumps(), run, **how)
    whole = left_behind(run)
    assert whole["checkpoint"][0]["best"] is not None
    assert trainer.at.best_step == 16  # each epoch was better
    for fatal in range(len(disk.done)):
        run = new_folder(tmp_path / f"at-{fatal}")
        with monkeypatch.context() as patch:
            Disk(patch, run.path, fatal=fatal, power_cut=power_cut)
            with pytest.raises(Crash):
                run_loop(TwoBumps(), run, **how)
        with monkeypatch.context() as patch:
            Disk(patch, run.path)
            run_loop(TwoBumps(), RunFolder.open(run.path), resume=True, **how)
        assert difference(whole, left_behind(run)) is None, f"operation {fatal}"
        assert not list(run.checkpoints.glob(".*")), "a crash left debris that nobody removes"


def test_crashes_while_resuming_lose_nothing(tmp_path, monkeypatch):
    whole, _, operations = reference(TwoWeights, tmp_path / "whole", monkeypatch)
    chance = random.Random(1)
    for trial in range(40):
        run, crashes = new_folder(tmp_path / f"trial-{trial}"), 0
        while True:
            with monkeypatch.context() as patch:
                Disk(patch, run.path, fatal=chance.randrange(len(operations)), power_cut=bool(trial % 2))
                try:
                    run_loop(TwoWeights(), run, resume=crashes > 0, epochs=2)
                    break
                except Crash:
                    crashes += 1
        assert difference(whole, left_behind(run)) is None


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_refuses_is_told_in_one_line_and_the_last_checkpoint_loads(code, tmp_path, monkeypatch):
    whole, states, operations = reference(TwoWeights, tmp_path / "whole", monkeypatch)
    for fatal, what in enumerate(operations):
        if what == "remove":  # removing what is old may fail without harm
            continue
        run = new_folder(tmp_path / f"at-{fatal}")
        with monkeypatch.context() as patch:
            Disk(patch, run.path, fatal=fatal, error=OSError(code, "refused"))
            with pytest.raises(UserError) as caught:
                run_loop(TwoWeights(), run, epochs=2)
        message = str(caught.value)
        assert len(message.splitlines()) == 1
        assert ("disk is full" in message and "quoin resume" in message) or code == errno.EIO
        found = RunFolder.open(run.path).load_checkpoint()
        if code == errno.ENOSPC:  # what it says of the last checkpoint is true, at the first one too
            assert ("its last checkpoint is whole" in message) == (found is not None), message
            assert ("no checkpoint yet" in message) == (found is None), message
        assert found is None or difference({**states[found[1]], "trainer": 0}, {**found[0], "trainer": 0}) is None  # pyright: ignore
        with monkeypatch.context() as patch:
            Disk(patch, run.path)
            run_loop(TwoWeights(), run, resume=True, epochs=2)
        assert difference(whole, left_behind(run)) is None


def test_a_step_that_has_a_checkpoint_is_left_as_it_is(checkpoint):
    write_checkpoint(checkpoint.parent, {"other": 1}, recipe="small", step=7)
    assert difference(STATE, read_checkpoint(checkpoint, recipe="small")) is None


def test_pruning_keeps_what_it_was_told_to(tmp_path):
    for step in (1, 2, 3):
        write_checkpoint(tmp_path, STATE, recipe="small", step=step)
    ours = [".00000004.0123456789abcdef.draft", ".00000002.fedcba9876543210.doomed"]
    theirs = [
        ".git",
        ".00000004.draft",
        ".00000004.0123456789abcdef.draft2",
        ".4.0123456789abcdef.draft",
        ".a.0123456789abcdef.draft",
    ]
    for name in [*ours, *theirs]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "kept").write_text("")
    prune(tmp_path, [1, 3])
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["00000001", "00000003", *theirs])
    assert all((tmp_path / name / "kept").exists() for name in theirs)
