"""Small tasks for the loop, and what it takes to run, crash and compare them.

Three unlike learners prove the protocol: two weights under one optimizer (drawing from torch's own generator), two
players under two optimizers (drawing from a generator of their own), and a mixture fitted by EM, which takes no
gradient and carries sums over an epoch.
"""

import math
import os
import shutil
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from quoin.data import BatchSampler, Dataset, PreparedData, Split, TabularInfo, prepare
from quoin.tasks.supervised import Classification, Regression
from quoin.train import DeviceContext, RunFolder, Trainer, durable
from quoin.train.state import flatten_state, unflatten_state

ROWS, BATCH = 13, 4  # four batches an epoch, the last of one row


class Crash(BaseException):
    """The process ends here; nothing may catch it."""


class TwoWeights:
    """y = w x + b by SGD with momentum, its inputs shaken by torch's own generator."""

    kind = "study"
    data_info: TabularInfo | None = None

    def __init__(self) -> None:
        torch.manual_seed(5)  # as a run does before it builds its task
        self.x = torch.linspace(-1, 1, ROWS)
        self.y = 3 * self.x - 1
        self.line = nn.Linear(1, 1)
        nn.init.zeros_(self.line.weight)
        nn.init.zeros_(self.line.bias)
        self.optimizer = torch.optim.SGD(self.line.parameters(), 0.1, momentum=0.9)
        self.batches = BatchSampler(ROWS, BATCH, seed=1)

    def losses(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.line(x[:, None])[:, 0] - y).square()

    def step(self, rows: Tensor) -> dict[str, Tensor]:
        self.optimizer.zero_grad()
        losses = self.losses(self.x[rows] + 0.1 * torch.randn(len(rows)), self.y[rows])
        losses.mean().backward()
        self.optimizer.step()
        return {"loss": losses.sum().detach()}

    def evaluate(self, split: str) -> dict[str, float]:
        return {"loss": self.losses(self.x, self.y).mean().item()} if split == "validation" else {}

    def state_dict(self) -> dict[str, Any]:
        return {
            "model": self.line.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "batches": self.batches.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.line.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.batches.load_state_dict(state["batches"])

    def panels(self) -> list:
        return []


class TwoPlayers:
    """A forger z -> a z + c against a critic of its numbers, each with its own Adam; the z come from a named
    generator."""

    kind = "study"
    data_info: TabularInfo | None = None

    def __init__(self) -> None:
        torch.manual_seed(5)
        self.real = 2 + 0.5 * torch.randn(ROWS, 1, generator=torch.Generator().manual_seed(2))
        self.forger, self.critic = nn.Linear(1, 1), nn.Linear(1, 1)
        for each in (*self.forger.parameters(), *self.critic.parameters()):
            nn.init.constant_(each, 0.3)
        self.forging = torch.optim.Adam(self.forger.parameters(), 0.05)
        self.judging = torch.optim.Adam(self.critic.parameters(), 0.05)
        self.noise = torch.Generator().manual_seed(3)
        self.batches = BatchSampler(ROWS, BATCH, seed=2)

    def step(self, rows: Tensor) -> dict[str, Tensor]:
        forged = self.forger(torch.randn(len(rows), 1, generator=self.noise))
        judged = softplus(-self.critic(self.real[rows])) + softplus(self.critic(forged.detach()))
        self.judging.zero_grad()
        judged.mean().backward()
        self.judging.step()
        fooled = softplus(-self.critic(forged))
        self.forging.zero_grad()
        fooled.mean().backward()
        self.forging.step()
        return {
            "judging": judged.sum().detach(),
            "forging": fooled.sum().detach(),
        }  # not in alphabetical order, on purpose

    def evaluate(self, split: str) -> dict[str, float]:
        return {"centre": abs(self.forger.bias.item() - 2)} if split == "validation" else {}

    def state_dict(self) -> dict[str, Any]:
        return {
            "model": {"forger": self.forger.state_dict(), "critic": self.critic.state_dict()},
            "optimizers": [self.forging.state_dict(), self.judging.state_dict()],
            "noise": self.noise.get_state(),
            "batches": self.batches.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.forger.load_state_dict(state["model"]["forger"])
        self.critic.load_state_dict(state["model"]["critic"])
        self.forging.load_state_dict(state["optimizers"][0])
        self.judging.load_state_dict(state["optimizers"][1])
        self.noise.set_state(state["noise"])
        self.batches.load_state_dict(state["batches"])

    def panels(self) -> list:
        return []


class TwoBumps:
    """EM for two unit Gaussians: responsibilities are summed batch by batch, the parameters move at the end of an
    epoch."""

    kind = "study"
    data_info: TabularInfo | None = None

    def __init__(self) -> None:
        torch.manual_seed(5)
        generator = torch.Generator().manual_seed(4)
        self.x = torch.cat([torch.randn(6, generator=generator) - 2, torch.randn(7, generator=generator) + 2]).double()
        self.shares = {"left": 0.5, "right": 0.5}
        self.means = torch.tensor([-0.1, 0.2], dtype=torch.float64)
        self.sums = torch.zeros(2, 2, dtype=torch.float64)  # of responsibility, of responsibility times x
        self.batches = BatchSampler(ROWS, BATCH, seed=3)

    def joint(self, x: Tensor) -> Tensor:
        shares = torch.tensor(list(self.shares.values()), dtype=torch.float64)
        return torch.exp(-(x[:, None] - self.means).square() / 2) / math.sqrt(2 * math.pi) * shares

    def step(self, rows: Tensor) -> dict[str, Tensor]:
        joint = self.joint(self.x[rows])
        belongs = joint / joint.sum(1, keepdim=True)
        self.sums = self.sums + torch.stack([belongs.sum(0), (belongs * self.x[rows, None]).sum(0)])
        if self.batches.position == self.batches.num_batches:
            self.means = self.sums[1] / self.sums[0]
            self.shares = dict(zip(("left", "right"), (self.sums[0] / ROWS).tolist()))
            self.sums = torch.zeros_like(self.sums)
        return {"loss": -joint.sum(1).log().sum()}

    def evaluate(self, split: str) -> dict[str, float]:
        return {"loss": -self.joint(self.x).sum(1).log().mean().item()} if split == "validation" else {}

    def state_dict(self) -> dict[str, Any]:
        return {
            "model": {"means": self.means, "shares": self.shares},
            "sums": self.sums,
            "batches": self.batches.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.means, self.shares, self.sums = state["model"]["means"], state["model"]["shares"], state["sums"]
        self.batches.load_state_dict(state["batches"])

    def panels(self) -> list:
        return []


KINDS = (TwoWeights, TwoPlayers, TwoBumps)


def new_folder(root: Path, recipe: str = "small") -> RunFolder:
    return RunFolder.create(
        root, recipe, {"kind": "study", "options": {"seed": 0}, "settings": {}, "data": None}, {"threads": 1}
    )


def timeless(tree: Any) -> Any:
    """The same tree without the fields that hold a time, or the memory of the process, which has done other things."""
    if isinstance(tree, dict):
        return {
            key: timeless(value)
            for key, value in tree.items()
            if key not in ("seconds", "saving_seconds", "peak_memory")
        }
    return [timeless(item) for item in tree] if isinstance(tree, (list, tuple)) else tree


def difference(one: Any, other: Any, path: str = "") -> str | None:
    """Where two states differ in type, order, shape or a single bit; None if nowhere."""
    if isinstance(one, Tensor):
        same = isinstance(other, Tensor) and one.dtype == other.dtype and one.shape == other.shape
        same = same and one.numpy(force=True).tobytes() == other.numpy(force=True).tobytes()
        return None if same else path
    if isinstance(one, dict) and isinstance(other, dict):
        if list(one) != list(other):
            return f"{path}: {list(one)} and {list(other)}"
        return next((found for key in one if (found := difference(one[key], other[key], f"{path}.{key}"))), None)
    if isinstance(one, (list, tuple)) and type(one) is type(other):
        if len(one) != len(other):
            return f"{path}: {len(one)} and {len(other)} items"
        return next(
            (found for index in range(len(one)) if (found := difference(one[index], other[index], f"{path}.{index}"))),
            None,
        )
    return None if type(one) is type(other) and repr(one) == repr(other) else f"{path}: {one!r} and {other!r}"


def copy_state(tree: Any) -> Any:
    """A copy of a state that training on does not change, in rows as a file has it; what was one tensor stays one."""
    skeleton, tensors = flatten_state(tree)
    rows = {name: tensor.clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()}
    return unflatten_state(skeleton, rows)


def left_behind(run: RunFolder) -> dict[str, Any]:
    """All that a run promises to make again to the bit: its newest checkpoint, its metrics, its result."""
    found = run.load_checkpoint()
    return timeless({"checkpoint": found and [found[0], found[1]], "metrics": run.metrics(), "result": run.result})


class Disk:
    """Stands between the run folder and the disk; the operation number `fatal` crashes the process or, with `error`, is
    refused.

    A write that crashes or is refused has brought half of its bytes. With `power_cut` a crash also takes half of what
    no sync has brought to the disk from every file, as the loss of a machine's memory may.
    """

    def __init__(
        self, monkeypatch, root: Path, *, fatal: int = -1, error: OSError | None = None, power_cut: bool = False
    ) -> None:
        self.root, self.fatal, self.error, self.power_cut = root, fatal, error, power_cut
        self.done: list[str] = []
        self.on_disk: dict[int, int] = {}  # inode to bytes, for files opened since
        self._rename, self._unlink, self._mkdir = os.rename, os.unlink, os.mkdir
        monkeypatch.setattr(os, "fsync", self.fsync)
        monkeypatch.setattr(os, "rename", self.rename)
        monkeypatch.setattr(os, "unlink", self.unlink)
        monkeypatch.setattr(os, "mkdir", self.mkdir)
        monkeypatch.setattr(shutil, "rmtree", self.rmtree)
        monkeypatch.setattr(durable, "open", self.open, raising=False)

    def passes(self, what: str) -> bool:
        self.done.append(what)
        return len(self.done) - 1 != self.fatal

    def fail(self) -> None:
        if self.error is not None:
            raise self.error
        if self.power_cut:
            for path in self.root.rglob("*"):
                if path.is_file() and (safe := self.on_disk.get(path.stat().st_ino)) is not None:
                    os.truncate(path, (safe + path.stat().st_size) // 2)
        raise Crash

    def fsync(self, handle: int) -> None:
        if not self.passes("sync"):
            self.fail()
        about = os.fstat(handle)
        self.on_disk[about.st_ino] = about.st_size  # and no true sync: these tests are about order

    def rename(self, source: str, target: str, **folders: int) -> None:
        if not self.passes("rename"):
            self.fail()
        self._rename(source, target, **folders)

    def unlink(self, name: str, **folder: int) -> None:
        if not self.passes("remove"):
            self.fail()
        self._unlink(name, **folder)

    def mkdir(self, name: str, mode: int = 0o777, **folder: int) -> None:
        if not self.passes("make"):
            self.fail()
        self._mkdir(name, mode, **folder)

    def rmtree(self, name: str, ignore_errors: bool = False, *, dir_fd: int) -> None:
        inside = os.open(name, os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=dir_fd)
        try:
            for each in sorted(os.listdir(inside)):
                self.unlink(each, dir_fd=inside)
        finally:
            os.close(inside)
        if not self.passes("remove"):
            self.fail()
        os.rmdir(name, dir_fd=dir_fd)

    def open(self, handle: int, mode: str):
        file = open(handle, mode)  # noqa: SIM115 -- closed by the caller's `with`
        if mode == "rb":
            return file
        about = os.fstat(file.fileno())
        self.on_disk[about.st_ino] = min(about.st_size, self.on_disk.get(about.st_ino, about.st_size))
        write = file.write

        def half(content):
            if self.passes("write"):
                return write(content)
            write(content[: len(content) // 2])
            file.flush()
            return self.fail()

        return _Written(file, half)


class _Written:
    """A file whose `write` is another's."""

    def __init__(self, file, write) -> None:
        self._file, self.write = file, write

    def __enter__(self):
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def flush(self) -> None:
        self._file.flush()

    def fileno(self) -> int:
        return self._file.fileno()


def run_loop(
    task, run: RunFolder, *, resume: bool = False, epochs: int = 3, checkpoint_every: int = 1, **how: Any
) -> Trainer:
    """Train `task` in `run` under its lock, as the recipes do."""
    with run.locked():
        trainer = Trainer(task, run, epochs=epochs, checkpoint_every=checkpoint_every, **how)
        if resume:
            trainer.resume()
        trainer.run()
    return trainer


def numbers_dataset(num_rows: int = 30, *, classes: int = 0) -> Dataset:
    generator = torch.Generator().manual_seed(6)
    features = torch.randn(num_rows, 3, generator=generator)
    targets = features @ torch.tensor([1.0, -2.0, 0.5]) + 0.3
    if classes:
        targets = targets.argsort().argsort() * classes // num_rows
    names = tuple(map(str, range(classes))) if classes else None
    return Dataset("made", features, targets, ("a", "b", "c"), names)


def parted(dataset: Dataset, train: int, validation: int) -> PreparedData:
    """The first rows train, the next choose, the rest judge."""
    rows = torch.arange(dataset.num_rows)
    return prepare(dataset, Split(rows[:train], rows[train : train + validation], rows[train + validation :]))


def regression(data: PreparedData, *, lr: float = 0.05, momentum: float = 0.0, **how: Any) -> Regression:
    """Linear regression on `data` from zero weights."""
    from quoin.losses import squared_loss
    from quoin.models import LinearRegression

    torch.manual_seed(5)
    model = LinearRegression(3)
    how = {"batch_size": 8, "epochs": 3, "seed": 0, "device_context": DeviceContext()} | how
    return Regression(model, squared_loss, torch.optim.SGD(model.parameters(), lr, momentum=momentum), data, **how)


def classification(data: PreparedData, *, lr: float = 0.05, **how: Any) -> Classification:
    from quoin.losses import cross_entropy
    from quoin.models import MLP

    torch.manual_seed(5)
    model = MLP([3, 5, 3], generator=torch.Generator().manual_seed(7))
    how = {"batch_size": 8, "epochs": 3, "seed": 0, "device_context": DeviceContext()} | how
    return Classification(model, cross_entropy, torch.optim.Adam(model.parameters(), lr), data, **how)
