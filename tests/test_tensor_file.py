"""A safetensors file written in pieces and read in place: the library of the format reads it to the same bits."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
import safetensors
import safetensors.torch
import torch
from torch import nn

from quoin.train import load_weights, read_checkpoint, save_weights, tensor_file, write_checkpoint
from quoin.train.gradient_updater import GradientUpdater
from quoin.train.tensor_file import DTYPE_NAMES, read_tensors, tensor_pieces
from seeds import seeded
from tasks import difference


def as_bytes(tensor: torch.Tensor) -> bytes:
    """What a tensor holds, element by element in row-major order: by NumPy, which knows nothing of how we write."""
    return tensor.detach().clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8).numpy().tobytes()


def assert_same(found: torch.Tensor, expected: torch.Tensor) -> None:
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert as_bytes(found) == as_bytes(expected)


def bits(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Elements of any bits."""
    if dtype is torch.bool:
        return torch.rand(shape, generator=seeded(0)) < 0.5
    wide = torch.randint(0, 256, (*shape[:-1], shape[-1] * dtype.itemsize), dtype=torch.uint8, generator=seeded(0))
    return wide.view(dtype)


@pytest.fixture
def small_pieces(monkeypatch):
    """Pieces of 48 bytes, so that small tensors are written as large ones are."""
    monkeypatch.setattr(tensor_file, "PIECE", 48)
    monkeypatch.setattr(tensor_file, "SMALL", 16)


def cases() -> dict[str, torch.Tensor]:
    found = {f"all of {dtype}": bits(dtype, 5, 3, 7) for dtype in DTYPE_NAMES}
    square = torch.arange(400.0).reshape(20, 20)
    return found | {
        "scalar": torch.tensor(2.5),
        "true": torch.tensor(True),
        "empty": torch.zeros(0),
        "empty rows": torch.zeros(3, 0, 2, dtype=torch.bfloat16),
        "turned": square.T,
        "every other": square[::2, 1::3],
        "channels last": torch.randn(2, 3, 4, 5, generator=seeded(1)).contiguous(memory_format=torch.channels_last),
        "expanded": torch.tensor([1.0, 2.0]).expand(30, 2),
        "narrow": torch.arange(300)[None, :, None].mT,
        "conjugate": bits(torch.complex64, 9).conj(),
        "one of a column": square[:1, 3],
        "learned": nn.Parameter(torch.ones(3)),
        'name " of \n any é kind': torch.ones(2),
    }


@pytest.mark.usefixtures("small_pieces")
def test_the_library_of_the_format_and_ours_read_every_kind_of_tensor(tmp_path):
    given = cases()
    pieces = list(tensor_pieces(given))
    assert max(map(len, pieces[1:])) <= 48  # after the header
    (tmp_path / "all").write_bytes(b"".join(pieces))
    with safetensors.safe_open(tmp_path / "all", "pt") as theirs:  # pyright: ignore
        assert set(theirs.keys()) == given.keys()
        for name, tensor in given.items():
            assert_same(theirs.get_tensor(name), tensor)
    ours = read_tensors(bytearray(b"".join(pieces)))
    assert ours.keys() == given.keys()
    for name, tensor in given.items():
        assert_same(ours[name], tensor)


def test_the_data_begin_at_64_bytes_and_each_tensor_at_a_multiple_of_its_elements():
    content = b"".join(tensor_pieces(cases()))
    start = 8 + int.from_bytes(content[:8], "little")
    assert start % 64 == 0
    assert content[8:9] == b"{"
    found = re.findall(rb'"dtype":"\w+?(\d+)(?:_\w+)?","shape":\[[^]]*\],"data_offsets":\[(\d+),', content[8:start])
    assert len(found) == len(cases()) - 2  # BOOL has no number
    assert all(int(begin) % max(1, int(width) // 8) == 0 for width, begin in found)


def test_the_same_tensors_give_the_same_bytes_whatever_the_pieces(monkeypatch):
    whole = b"".join(tensor_pieces(cases()))
    for size in (16, 64, 1000):
        monkeypatch.setattr(tensor_file, "PIECE", size)
        assert b"".join(tensor_pieces(cases())) == whole


def test_what_the_format_does_not_hold_is_refused():
    with pytest.raises(TypeError, match=r"holds no torch.complex128, which z is"):
        list(tensor_pieces({"z": torch.zeros(2, dtype=torch.complex128)}))


def header(text: str, data: int) -> bytearray:
    return bytearray(len(text).to_bytes(8, "little") + text.encode() + bytes(data))


ONE = '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'


@pytest.mark.parametrize(
    "content",
    [
        bytearray(),
        bytearray(4),
        header(ONE, 7),
        header(ONE, 9),
        header("[]", 0),
        header("{", 0),
        header(ONE.replace("[2]", "[3]"), 8),
        header(ONE.replace("[2]", "[-2]"), 8),
        header(ONE.replace("[2]", "[2.0]"), 8),
        header(ONE.replace("[2]", "[true,2]"), 8),
        header(ONE.replace("[0,8]", "[8,16]"), 16),
        header(ONE.replace("[0,8]", "[-8,0]"), 8),
        header(ONE.replace("F32", "F31"), 8),
        header(ONE.replace("[2]", '"2"'), 8),
        bytearray((2**63).to_bytes(8, "little")) + b"{}",
    ],
)
def test_what_is_no_such_file_is_refused(content):
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
        read_tensors(content)
    read_tensors(header(ONE, 8))  # and this is one


# Checkpoints


def state_of(size: int) -> dict:
    return {"weights": torch.randn(size, 256, generator=seeded(0)), "bias": torch.ones(4), "step": 3}


def test_writing_into_what_was_read_does_not_reach_the_file(tmp_path):
    state = state_of(2048)
    path = write_checkpoint(tmp_path, state, recipe="small", step=1)
    content = (path / "tensors.safetensors").read_bytes()
    for _ in range(2):
        found = read_checkpoint(path, recipe="small")
        assert difference(state, found) is None
        found["weights"].zero_()
        found["bias"].zero_()
    assert (path / "tensors.safetensors").read_bytes() == content


def test_what_was_read_outlives_its_file(tmp_path):
    state = state_of(2048)
    path = write_checkpoint(tmp_path, state, recipe="small", step=1)
    found = read_checkpoint(path, recipe="small")
    for each in path.iterdir():
        each.unlink()
    path.rmdir()
    assert difference(state, found) is None


def is_mapped(tensor: torch.Tensor, path: Path) -> bool:
    """Whether the tensor lies in a mapped file, by what the system says of this process's memory."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        begin, end = (int(each, 16) for each in line.split()[0].split("-"))
        if begin <= tensor.data_ptr() < end:
            return str(path) in line
    return False


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_large_tensors_are_mapped_and_what_the_optimizer_keeps_is_its_own(tmp_path, device_context):
    def fresh() -> GradientUpdater:
        model = nn.Linear(1024, 1024)
        return GradientUpdater(
            model, torch.optim.AdamW(model.parameters()), total_steps=9, device_context=device_context
        )

    def train(updater: GradientUpdater) -> None:
        x = torch.ones(2, 1024)
        updater.update([(x,)], lambda x: updater.model(x).square().mean(1), weight=0.5)

    one = fresh()
    train(one)
    path = write_checkpoint(
        tmp_path, {"weights": one.model.state_dict(), "updater": one.state_dict()}, recipe="small", step=1
    )
    content = hashlib.sha256((path / "tensors.safetensors").read_bytes()).digest()
    state = read_checkpoint(path, recipe="small")
    assert is_mapped(state["weights"]["weight"], path)
    assert is_mapped(state["updater"]["optimizer"]["state"][0]["exp_avg"], path)
    assert not is_mapped(state["weights"]["bias"], path)
    other = fresh()
    other.model.load_state_dict(state["weights"])
    other.load_state_dict(state["updater"])
    for kept in other.optimizer.state.values():
        assert not any(is_mapped(value, path) for value in kept.values())
    assert not any(is_mapped(each, path) for each in other.model.parameters())
    for updater in (one, other):
        train(updater)
    assert difference(one.model.state_dict(), other.model.state_dict()) is None
    assert difference(one.state_dict(), other.state_dict()) is None
    assert hashlib.sha256((path / "tensors.safetensors").read_bytes()).digest() == content


@pytest.fixture
def device_context():
    from quoin.train import DeviceContext

    return DeviceContext(torch.device("cpu"))


def test_weights_are_written_for_any_reader_and_read_without_changing_the_file(tmp_path):
    model, other = nn.Linear(600, 600), nn.Linear(600, 600)
    path = save_weights(model, tmp_path / "w.safetensors")
    content = path.read_bytes()
    assert difference(dict(model.state_dict()), safetensors.torch.load_file(path)) is None
    load_weights(other, path)
    assert difference(model.state_dict(), other.state_dict()) is None
    with torch.no_grad():
        other.weight.zero_()
    assert path.read_bytes() == content


# Memory

MEASURE = """
import re, sys, threading, time
from pathlib import Path
import torch
from torch import nn
from quoin.train import RunFolder
from quoin.train.checkpoint import read_checkpoint, write_checkpoint, set_aside
from quoin.train.durable import Directory

def anonymous():  # memory that is this process's alone: what it maps of a file the system can take back
    return int(re.search(r"RssAnon:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024

def grown(action):
    before, most, ended = anonymous(), [0.0], threading.Event()
    def watch():
        while not ended.is_set():
            most[0] = max(most[0], anonymous())
            time.sleep(0.001)
    watching = threading.Thread(target=watch)
    watching.start()
    result = action()
    ended.set()
    watching.join()
    return max(most[0], anonymous()) - before, result

model = nn.Sequential(*[nn.Linear(1700, 1700, bias=False) for _ in range(12)])  # 132 MiB, and twice that for Adam
optimizer = torch.optim.AdamW(model.parameters())
for parameter in model.parameters():
    parameter.grad = torch.zeros_like(parameter)
optimizer.step()
state = lambda: {"weights": model.state_dict(), "optimizer": optimizer.state_dict()}
size = 3 * 12 * 1700 * 1700 * 4 / 2**20
root = Path(sys.argv[1])
saved, path = grown(lambda: write_checkpoint(root, state(), recipe="large", step=1))
aside, kept = grown(lambda: set_aside(Directory.at(root), state()))
def load():
    found = read_checkpoint(path, recipe="large")
    model.load_state_dict(found["weights"])
    assert torch.equal(kept["weights"]["3.weight"], model[3].weight)
loaded, _ = grown(load)
print(size, saved, aside, loaded)
"""


@pytest.mark.deep
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_saving_and_loading_400_megabytes_holds_no_second_copy(tmp_path):
    done = subprocess.run([sys.executable, "-c", MEASURE, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    size, saved, aside, loaded = map(float, done.stdout.split())
    assert size > 380
    assert max(saved, aside, loaded) < 0.15 * size, done.stdout
