"""Checkpoints of several processes: the same file from any number of them, loaded by any other to the same bits."""

import hashlib
import itertools
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import nn

from process_group import in_processes
from quoin.errors import UserError
from quoin.train import RunFolder
from quoin.train import checkpoint as checkpoints
from quoin.train.checkpoint import give_shards, write_checkpoint
from quoin.train.durable import Directory
from quoin.train.processes import is_main, num_processes, process_rank
from quoin.train.receiving import load_for_all, places_in, share_state
from tasks import difference, new_folder

DIMS = (6, 7, 5, 1)  # rows that two or three processes cannot share evenly, and one that only the first gets
HERE = "test_receiving"


class Net(nn.Module):
    """Some layers, a tied weight, a buffer and a number."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*[nn.Linear(*pair) for pair in itertools.pairwise(DIMS)])
        self.again = nn.Linear(6, 7)
        self.again.weight = self.layers[0].weight  # type: ignore[assignment]
        self.register_buffer("seen", torch.arange(9))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x).sum() + self.again(x).square().sum()


def built(*, is_sharded: bool) -> tuple[Net, torch.optim.Optimizer]:
    torch.manual_seed(process_rank())  # the processes begin apart
    net = Net()
    if is_sharded:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        fully_shard(net, mesh=init_device_mesh("cpu", (num_processes(),)))
    return net, torch.optim.AdamW(net.parameters(), lr=0.1)


def train(net: Net, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    net(torch.linspace(-1, 1, 12).reshape(2, 6) * (1 + process_rank())).backward()
    optimizer.step()


def state_of(net: Net, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    return {"task": {"model": {"weights": net.state_dict()}, "optimizer": optimizer.state_dict()}, "best": None}


def gathered(tensor: Any) -> torch.Tensor:
    """A sharded tensor put together by hand, from the parts that each process says it has."""
    if not hasattr(tensor, "to_local"):
        return tensor.detach()
    import torch.distributed as dist

    parts: list[Any] = [None] * num_processes()
    dist.all_gather_object(parts, tensor.detach().to_local().clone())
    return torch.cat(parts)


def hashes(net: Net, optimizer: torch.optim.Optimizer) -> dict[str, str]:
    """A hash of each tensor of the state, put together from all processes."""
    named = {f"task.model.weights.{name}": gathered(tensor) for name, tensor in net.state_dict().items()}
    for number, kept in optimizer.state_dict()["state"].items():
        named |= {f"task.optimizer.state.{number}.{key}": gathered(value) for key, value in kept.items()}
    return {name: hashed(tensor) for name, tensor in named.items()}


def hashed(tensor: torch.Tensor) -> str:
    return hashlib.sha256(tensor.contiguous().numpy().tobytes()).hexdigest()


# In each of several processes


def saved(root: str, is_sharded: bool) -> dict[str, str]:
    net, optimizer = built(is_sharded=is_sharded)
    for _ in range(2):
        train(net, optimizer)
    state = state_of(net, optimizer)
    if is_main():
        new_folder(Path(root)).save_checkpoint({**state, "best": {"weights": torch.ones(3)}}, 2)
    else:
        give_shards(state)
    return hashes(net, optimizer)


def loaded(run: str, is_sharded: bool) -> dict[str, Any]:
    net, optimizer = built(is_sharded=is_sharded)
    place = places_in({"task.model.weights": net}, {"task.optimizer": optimizer})
    found = load_for_all(RunFolder.open(Path(run)), place=place)
    assert found is not None
    state, step = found
    assert step == 2
    assert (state["best"] is not None) == is_main()
    received = [
        state["task"]["model"]["weights"]["layers.0.weight"],
        state["task"]["optimizer"]["state"][1]["exp_avg"],
    ]
    parts = [(each.to_local() if hasattr(each, "to_local") else each).shape for each in received]
    net.load_state_dict(state["task"]["model"]["weights"])
    optimizer.load_state_dict(state["task"]["optimizer"])
    before = hashes(net, optimizer)
    train(net, optimizer)  # goes on
    return {"hashes": before, "parts": parts, "moved": hashes(net, optimizer) != before}


def refused(root: str) -> str:
    """What each process is told by a disk that refuses, and that all are still together afterwards."""
    net, optimizer = built(is_sharded=True)
    train(net, optimizer)
    try:
        if is_main():
            folder = Directory.at(Path(root))
            write = Directory.write

            def full(self: Directory, name: str, content: Any) -> None:
                if name == "tensors.safetensors":
                    next(iter(content))
                    raise OSError(28, "No space left on device")
                write(self, name, content)

            Directory.write = full  # type: ignore[method-assign]
            write_checkpoint(folder, state_of(net, optimizer), recipe="small", step=1)
        else:
            give_shards(state_of(net, optimizer))
        return "nothing"
    except (OSError, UserError) as error:
        train(net, optimizer)
        return str(error)


def aside(root: str) -> list[str]:
    """The best model, set aside by the main process, and brought back into the shards of all."""
    net, optimizer = built(is_sharded=True)
    train(net, optimizer)
    before = hashes(net, optimizer)
    model = {"task": {"model": {"weights": net.state_dict()}}}
    best = None
    if is_main():
        best = checkpoints.set_aside(Directory.at(Path(root)), model)
    else:
        give_shards(model)
    train(net, optimizer)
    moved = hashes(net, optimizer)
    share_state(best, places_in({"task.model.weights": net}, {}))
    after = hashes(net, optimizer)
    return [name for name in before if moved[name] != before[name] and after[name] == before[name]]


# The tests


def read(run: Path) -> dict[str, str]:
    """A hash of each tensor in the run's checkpoint, as the library of the format reads it."""
    found = safetensors.torch.load_file(run / "checkpoints" / "00000002" / "tensors.safetensors")
    assert torch.equal(found.pop("best.weights"), torch.ones(3))
    return {name: hashed(tensor) for name, tensor in found.items()}


@pytest.mark.deep
@pytest.mark.parametrize(
    ("writers", "readers"),
    [
        ((2, True), [(1, False), (1, True), (2, True), (3, True), (2, False)]),
        ((3, True), [(2, True)]),
        ((1, False), [(2, True)]),
    ],
)
def test_what_any_number_of_processes_saved_any_number_loads_to_the_same_bits(writers, readers, tmp_path):
    told = in_processes(writers[0], f"{HERE}:saved", str(tmp_path), writers[1])
    run = tmp_path / "small-1"
    file = read(run)
    tied = told[0].pop("task.model.weights.again.weight")
    assert tied == told[0]["task.model.weights.layers.0.weight"]
    assert file == told[0]
    for world_size, is_sharded in readers:
        for rank, found in enumerate(in_processes(world_size, f"{HERE}:loaded", str(run), is_sharded)):
            assert found["hashes"].pop("task.model.weights.again.weight") == tied
            assert found["hashes"] == file
            assert found["moved"]
            rows = [len(part) for part in torch.arange(7).chunk(world_size)][rank] if is_sharded else 7
            assert found["parts"] == [[rows, 6], [rows]]  # no process has more than its part
    assert {path.name for path in (run / "checkpoints").iterdir()} == {"00000002"}


@pytest.mark.deep
def test_a_disk_that_refuses_is_told_to_every_process(tmp_path):
    told = in_processes(2, f"{HERE}:refused", str(tmp_path))
    assert "No space left" in told[0]
    assert told[1] == "the main process could not write: No space left on device"
    assert not list(tmp_path.iterdir())


@pytest.mark.deep
def test_the_best_model_of_sharded_processes_is_set_aside_and_comes_back(tmp_path):
    for found in in_processes(2, f"{HERE}:aside", str(tmp_path)):
        assert {name for name in found if name.startswith("task.model")} == set(found)
        assert len(found) == 8  # three layers, the tied one and its bias
    assert not list(tmp_path.iterdir())


@pytest.mark.deep
def test_a_sharded_run_goes_on_with_any_number_of_processes(tmp_path):
    """From the checkpoint before the last, and with the best model of the same epoch in the end."""
    quoin = [sys.executable, "-m", "quoin.cli"]
    words = ["--max-steps", "40", "--checkpoint-every", "10", "--num-threads", "1", "--runs", str(tmp_path)]
    subprocess.run([*quoin, "train", "mlp", "--processes", "2", "--shard", *words], check=True, capture_output=True)
    whole = safetensors.torch.load_file(tmp_path / "mlp-1/checkpoints/00000040/tensors.safetensors")
    for world_size, bound in ((2, 0.0), (1, 1e-5), (3, 1e-5)):
        run = tmp_path / f"on-{world_size}"
        shutil.copytree(tmp_path / "mlp-1", run)
        words = ["--step", "30", "--processes", str(world_size)]
        subprocess.run([*quoin, "resume", str(run), *words], check=True, capture_output=True)
        found = safetensors.torch.load_file(run / "checkpoints/00000040/tensors.safetensors")
        assert found.keys() == whole.keys()
        assert any(name.startswith("best.weights") for name in found)
        for name, tensor in found.items():
            if "generators" not in name:
                assert (tensor.double() - whole[name].double()).abs().max() <= bound, name
        if bound == 0:
            assert (RunFolder.open(run).result or {})["metrics"] == (RunFolder.open(tmp_path / "mlp-1").result or {})[
                "metrics"
            ]


def test_one_process_loads_straight_into_its_weights(tmp_path):
    net, optimizer = built(is_sharded=False)
    train(net, optimizer)
    run = new_folder(tmp_path)
    run.save_checkpoint(state_of(net, optimizer), 1)
    torch.manual_seed(9)
    other = Net()
    moving = torch.optim.AdamW(other.parameters(), lr=0.1)
    assert difference(net.state_dict(), other.state_dict()) is not None
    found = load_for_all(run, place=places_in({"task.model.weights": other}, {"task.optimizer": moving}))
    assert found is not None
    state, _ = found
    assert difference(net.state_dict(), other.state_dict()) is None
    assert state["task"]["model"]["weights"]["seen"].data_ptr() == other.seen.data_ptr()  # type: ignore[operator]
    moving.load_state_dict(state["task"]["optimizer"])
    assert difference(state_of(net, optimizer), state_of(other, moving)) is None


def test_what_does_not_fit_comes_as_it_is_so_that_loading_tells(tmp_path):
    run = new_folder(tmp_path)
    run.save_checkpoint({"weights": {"weight": torch.ones(3, 2), "bias": torch.zeros(())}}, 1)
    line = nn.Linear(2, 4)
    state, _ = load_for_all(run, place=places_in({"weights": line}, {})) or ({}, 0)
    assert difference(state, {"weights": {"weight": torch.ones(3, 2), "bias": torch.zeros(())}}) is None
    assert load_for_all(new_folder(tmp_path)) is None
    with pytest.raises(UserError, match="no checkpoint of step 7"):
        load_for_all(run, 7)
