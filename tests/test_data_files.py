"""NPZ, IDX and CIFAR-10 files: what is written by hand here is read back, and damaged files are told in one line."""

import gzip
import pickle
import struct
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quoin.data import TabularInfo, load, read_features, split
from quoin.errors import UserError

rng = np.random.default_rng(0)


def info(names):
    """What a model knows that was trained on numbers under these names."""
    return TabularInfo("t", "", 1, tuple(names), (len(names),), ("y",), None)


def refused(source, match):
    with pytest.raises(UserError, match=match) as caught:
        load(source)
    assert len(str(caught.value).splitlines()) == 1


# NPZ


@pytest.mark.parametrize("names", [("features", "targets"), ("x", "y"), ("X", "labels")])
def test_npz_tables_are_read_back(tmp_path, names):
    x, y = rng.normal(size=(6, 3)), np.array([0.5, 1, 2, 3, 4, 5])
    path = tmp_path / "a.npz"
    arrays: dict[str, Any] = dict(zip(names, (x, y)))
    np.savez(path, **arrays)
    data = load(f"npz:{path}")
    assert np.array_equal(data.features.numpy(), x.astype(np.float64))
    assert np.array_equal(data.targets.numpy(), y.astype(np.float64))
    assert data.feature_names == ("x0", "x1", "x2")
    assert torch.equal(read_features(path, info(data.feature_names)).features, data.features)
    assert torch.equal(read_features(f"npz:{path}", info(data.feature_names)).features, data.features)
    with pytest.raises(UserError, match="expected 2 features"):
        read_features(path, info(("a", "b")))


@pytest.mark.parametrize(
    ("targets", "class_names", "numbers"),
    [
        (np.array(["b", "a", "b"]), ("a", "b"), [1, 0, 1]),
        (np.array([7, -1, 7], dtype=">i4"), ("-1", "7"), [1, 0, 1]),
        (np.array([[1.0], [0.0], [1.0]]), ("0", "1"), [1, 0, 1]),
        (np.array([True, False, True]), ("0", "1"), [1, 0, 1]),
    ],
)
def test_npz_targets_of_every_kind(tmp_path, targets, class_names, numbers):
    np.savez(tmp_path / "a.npz", x=np.eye(3), y=targets)
    data = load(f"npz:{tmp_path}/a.npz")
    assert data.class_names == class_names
    assert data.targets.tolist() == numbers


def test_npz_images_of_bytes_are_scaled_and_floats_are_not(tmp_path):
    path = tmp_path / "a.npz"
    images = rng.integers(0, 256, size=(4, 5, 6), dtype=np.uint8)
    np.savez(path, x=images, y=np.arange(4))
    data = load(f"npz:{path}")
    assert data.image_shape == (1, 5, 6)
    assert np.array_equal(data.features[:, 0].numpy(), images.astype(np.float32) / np.float32(255))
    assert torch.equal(read_features(path, info(data.feature_names)).features, data.features.flatten(1))
    color = rng.random(size=(4, 3, 5, 6))
    np.savez(path, x=color, y=np.arange(4))
    assert np.array_equal(load(f"npz:{path}").features.numpy(), color.astype(np.float32))


@pytest.mark.parametrize(
    ("arrays", "match"),
    [
        ({"x": np.eye(3)}, "targets or y or labels"),
        ({"y": np.eye(3)}, "features or x or X"),
        ({"x": np.eye(3), "y": np.arange(2)}, "expected 3 targets"),
        ({"x": np.array([[1.0], [np.nan]]), "y": np.arange(2)}, r"got nan at \(1, 0\)"),
        ({"x": np.array([[1.0], [1e39]]), "y": np.arange(2)}, r"at \(1, 0\)"),
        ({"x": np.eye(2), "y": np.array([np.inf, 1])}, r"targets .* got inf at \(0,\)"),
        ({"x": np.array([["a"], ["b"]]), "y": np.arange(2)}, "got text"),
        ({"x": np.eye(2) * 1j, "y": np.arange(2)}, "complex"),
        ({"x": np.array([[None], [1]]), "y": np.arange(2)}, "pickle"),
        ({"x": np.zeros((0, 3)), "y": np.zeros(0)}, "shape"),
        ({"x": np.zeros(3), "y": np.zeros(3)}, "shape"),
        ({"x": np.zeros((2, 8, 8, 3)), "y": np.zeros(2)}, "channels last"),
    ],
)
def test_wrong_npz_arrays_are_told_in_one_line(tmp_path, arrays, match):
    np.savez(tmp_path / "a.npz", **arrays)
    refused(f"npz:{tmp_path}/a.npz", match)


def test_npz_refuses_pickles_single_arrays_and_missing_files(tmp_path):
    (tmp_path / "p.npz").write_bytes(pickle.dumps([1, 2]))
    np.save(tmp_path / "one.npy", np.eye(2))
    refused(f"npz:{tmp_path}/p.npz", "pickle")
    refused(f"npz:{tmp_path}/one.npy", "single array")
    refused(f"npz:{tmp_path}/none.npz", "No such file")
    refused(f"npz:{tmp_path}", "folder")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_npz_loads_or_is_a_mistake(tmp_path, data):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.arange(6.0).reshape(3, 2), y=np.arange(3))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(0, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    lines = ["loaded"]
    try:
        load(f"npz:{path}")
    except UserError as mistake:
        lines = str(mistake).splitlines()
    assert len(lines) == 1


# IDX


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def mnist(folder, parts=(("train", 20), ("t10k", 6)), pack=lambda content: content, suffix=""):
    arrays = {}
    for part, size in parts:
        arrays[part] = rng.integers(0, 256, (size, 4, 3), dtype=np.uint8), np.arange(size, dtype=np.uint8) % 5
        (folder / f"{part}-images-idx3-ubyte{suffix}").write_bytes(pack(idx(arrays[part][0])))
        (folder / f"{part}-labels-idx1-ubyte{suffix}").write_bytes(pack(idx(arrays[part][1])))
    return arrays


@pytest.mark.parametrize(("pack", "suffix"), [(bytes, ""), (gzip.compress, ".gz")])
def test_idx_folders_are_read_back_with_their_test_part(tmp_path, pack, suffix):
    arrays = mnist(tmp_path, pack=pack, suffix=suffix)
    data = load(f"idx:{tmp_path}")
    images = np.concatenate([arrays["train"][0], arrays["t10k"][0]])
    assert data.image_shape == (1, 4, 3)
    assert np.array_equal(data.features[:, 0].numpy(), images.astype(np.float32) / np.float32(255))
    assert data.targets.tolist() == [*arrays["train"][1], *arrays["t10k"][1]]
    assert data.class_names == ("0", "1", "2", "3", "4")
    assert data.test_start == 20
    assert split(data, 0).test.tolist() == list(range(20, 26))


def test_an_idx_folder_may_have_no_test_part(tmp_path):
    mnist(tmp_path, parts=[("train", 20)])
    assert load(f"idx:{tmp_path}").test_start is None


def damage(name, change):
    def apply(folder):
        path = folder / name
        content = change(path.read_bytes())
        path.unlink()
        if content is not None:
            path.write_bytes(content)

    return apply


IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (damage(IMAGES, lambda content: None), "train-images-idx3-ubyte or the same with .gz"),
        (damage(LABELS, lambda content: None), "train-labels-idx1-ubyte"),
        (damage("t10k-labels-idx1-ubyte", lambda content: None), "t10k-labels-idx1-ubyte"),
        (damage(IMAGES, lambda content: b""), "empty"),
        (damage(IMAGES, lambda content: content[:-1]), "expected 240 bytes .* got 239"),
        (damage(IMAGES, lambda content: content + b"x"), "expected 240 bytes .* got 241"),
        (damage(IMAGES, lambda content: content[:9]), "opens with"),
        (damage(IMAGES, lambda content: b"\x00\x00\x0d\x03" + content[4:]), "opens with 00000d03"),
        (damage(IMAGES, lambda content: content[:4] + b"\xff" * 12 + content[16:]), "got 240"),
        (damage(IMAGES, lambda content: content[:4] + bytes(12)), "states the shape"),
        (damage(IMAGES, gzip.compress), "opens with 1f8b"),
        (damage(LABELS, lambda content: idx(np.zeros(19, np.uint8))), "got 19 and 20"),
        (damage("t10k-images-idx3-ubyte", lambda content: idx(np.zeros((6, 2, 2), np.uint8))), "as large as"),
    ],
)
def test_damaged_idx_files_are_told_in_one_line(tmp_path, change, match):
    mnist(tmp_path)
    change(tmp_path)
    refused(f"idx:{tmp_path}", match)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content[:-9],
        lambda content: b"plain" + content,
        lambda content: content[:30] + bytes(8) + content[38:],
    ],
)
def test_damaged_gzip_is_told_in_one_line(tmp_path, change):
    mnist(tmp_path, pack=gzip.compress, suffix=".gz")
    damage(IMAGES + ".gz", change)(tmp_path)
    refused(f"idx:{tmp_path}", "cut short or damaged")


def test_idx_wants_a_folder(tmp_path):
    mnist(tmp_path)
    refused(f"idx:{tmp_path}/{IMAGES}", "is a file")
    refused(f"idx:{tmp_path}/none", "No such file")
    (tmp_path / IMAGES).unlink()
    (tmp_path / IMAGES).mkdir()
    refused(f"idx:{tmp_path}", "is a folder")


# CIFAR-10


def cifar(folder, per_file=3):
    records = rng.integers(0, 256, (6 * per_file, 3073), dtype=np.uint8)
    records[:, 0] %= 10
    names = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]
    for number, name in enumerate(names):
        (folder / name).write_bytes(records[number * per_file : (number + 1) * per_file].tobytes())
    return records


@pytest.mark.parametrize("inside", [".", "cifar-10-batches-bin"])
def test_cifar_is_read_back_with_its_test_part(tmp_path, inside):
    (tmp_path / inside).mkdir(exist_ok=True)
    records = cifar(tmp_path / inside)
    data = load(f"cifar10:{tmp_path}")
    assert data.image_shape == (3, 32, 32)
    assert data.targets.tolist() == records[:, 0].tolist()
    assert data.test_start == 15
    assert data.num_classes == 10
    # A record is planes of red, green, blue; in each, rows of 32.
    assert data.features[4, 2, 30, 7] == np.float32(records[4, 1 + 2 * 1024 + 30 * 32 + 7]) / np.float32(255)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (damage("data_batch_3.bin", lambda content: None), "expected data_batch_3.bin"),
        (damage("test_batch.bin", lambda content: None), "expected test_batch.bin"),
        (damage("data_batch_2.bin", lambda content: b""), "empty"),
        (damage("data_batch_2.bin", lambda content: content[:-1]), "records of 3073 bytes"),
        (damage("data_batch_2.bin", lambda content: b"\x0a" + content[1:]), "labels 0 to 9 .* got 10"),
    ],
)
def test_damaged_cifar_files_are_told_in_one_line(tmp_path, change, match):
    cifar(tmp_path)
    change(tmp_path)
    refused(f"cifar10:{tmp_path}", match)


def test_the_pickled_cifar_is_refused_with_what_to_get(tmp_path):
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps({}))
    refused(f"cifar10:{tmp_path}", r"CIFAR-10 binary version \(suitable for C programs\).*cifar-10-binary\.tar\.gz")
    other = tmp_path / "other"
    (other / "cifar-10-batches-py").mkdir(parents=True)
    refused(f"cifar10:{other}", r"pickled .* cifar-10-binary\.tar\.gz")
