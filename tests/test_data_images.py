"""`images:FOLDER`: pictures of every kind decoded, cached, standardised by the batch, learnt from and predicted for."""

import dataclasses
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from commands import refused, tried
from quoin.callbacks import Listener, listen_with
from quoin.data import (
    StandardScaler,
    cache_entries,
    cache_folder,
    image_workers,
    load,
    prepare,
    remove_entry,
    split,
    split_images,
    stored_images,
)
from quoin.data import cache as cache_module
from quoin.data.files_images import load_images
from quoin.data.image_cache import ImageSettings
from quoin.data.image_decoding import decode_image, probe_image
from quoin.errors import UserError

pytestmark = pytest.mark.usefixtures("one_thread")

CLASSES = ("cat", "dog", "ähre 7")


def drawn(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def saved(path: Path, pixels: np.ndarray, mode: str | None = None, **how: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(pixels)
    (image.convert(mode) if mode else image).save(path, **how)  # pyright: ignore[reportArgumentType]
    return path


def write_folder(folder: Path, count: int = 6, size: tuple[int, int] = (12, 12)) -> Path:
    """`count` colour pictures of every class, PNG, so that what is read back is exact."""
    for number, name in enumerate(CLASSES):
        for each in range(count):
            saved(folder / name / f"{each}.png", drawn(100 * number + each, *size, 3))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_folder(tmp_path_factory.mktemp("pictures") / "pets", 40)


@pytest.fixture
def own_cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("QUOIN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Told(Listener):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def say(self, text: str) -> None:
        self.notes.append(text)


# ---- one picture ----------------------------------------------------------------------------------------------------


def decoded(path: Path, shape: tuple[int, int, int]) -> np.ndarray:
    image = decode_image(str(path), shape)
    return np.asarray(image).reshape(*shape[1:], shape[0]).astype(int)


def test_every_mode_of_a_picture_is_read(tmp_path):
    grey, colour = drawn(0, 5, 7), drawn(1, 5, 7, 3)
    shape = (3, 5, 7)
    assert np.array_equal(decoded(saved(tmp_path / "g.png", grey), (1, 5, 7))[..., 0], grey)
    assert np.array_equal(decoded(saved(tmp_path / "g.bmp", grey), shape), np.stack([grey] * 3, -1))
    assert np.array_equal(decoded(saved(tmp_path / "c.bmp", colour), shape), colour)
    assert np.array_equal(decoded(saved(tmp_path / "c.webp", colour, lossless=True), shape), colour)
    assert np.abs(decoded(saved(tmp_path / "c.JPG", np.full_like(colour, 90), quality=95), shape) - 90).max() <= 2
    # 601 luma
    luma = colour @ np.array([0.299, 0.587, 0.114])
    assert np.abs(decoded(tmp_path / "c.bmp", (1, 5, 7))[..., 0] - luma).max() <= 1
    # a palette
    few = colour[:1, :4].repeat(2, 0)
    assert np.array_equal(
        decoded(
            saved(
                tmp_path / "p.png",
                few,
                "P",
            ),
            (3, 2, 4),
        ),
        np.asarray(Image.fromarray(few).convert("P").convert("RGB")),
    )
    # what is transparent stands on white
    alpha = drawn(2, 5, 7, 4)
    fraction = alpha[..., 3:] / 255
    expected = fraction * alpha[..., :3] + (1 - fraction) * 255
    assert np.abs(decoded(saved(tmp_path / "a.png", alpha), shape) - expected).max() <= 1
    assert np.abs(decoded(saved(tmp_path / "la.png", alpha[..., ::3]), shape)[..., 0] - expected[..., 0]).max() <= 1
    # 16 bits: 65535 is white
    wide = (drawn(3, 5, 7).astype(np.uint16) << 8) | drawn(4, 5, 7)
    assert np.array_equal(decoded(saved(tmp_path / "w.png", wide), (1, 5, 7))[..., 0], np.rint(wide / 257).astype(int))
    Image.fromarray(grey > 99).save(tmp_path / "b.png")
    assert np.array_equal(decoded(tmp_path / "b.png", (1, 5, 7))[..., 0], 255 * (grey > 99))
    greys = [path for path in sorted(tmp_path.iterdir()) if probe_image(str(path))[2]]
    assert [path.name for path in greys] == ["b.png", "g.bmp", "g.png", "la.png", "w.png"]


@pytest.mark.parametrize("ending", ["png", "webp"])
def test_orientation_is_honoured(tmp_path, ending):
    upright = drawn(0, 4, 6, 3)
    stored = {  # how a camera held otherwise stores it, by the EXIF standard: where row 0 and column 0 are
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.transpose(1, 0, 2),
        6: upright[:, ::-1].transpose(1, 0, 2),
        7: upright[::-1, ::-1].transpose(1, 0, 2),
        8: upright[::-1].transpose(1, 0, 2),
    }
    for orientation, pixels in stored.items():
        exif = Image.Exif()
        exif[0x0112] = orientation
        path = saved(
            tmp_path / f"{orientation}.{ending}",
            np.ascontiguousarray(pixels),
            exif=exif,
            lossless=True,
        )
        assert probe_image(str(path))[:2] == (4, 6)
        assert np.array_equal(decoded(path, (3, 4, 6)), upright), orientation


@pytest.mark.parametrize("size", [(40, 60), (60, 40), (10, 14), (33, 33)])
def test_resized_to_cover_and_cropped_in_the_middle(tmp_path, size):
    """Beside torch's own antialiased interpolation of the whole picture."""
    pixels = drawn(5, *size, 3)
    height, width = 20, 20
    scale = max(height / size[0], width / size[1])
    whole = [round(side * scale) for side in size]
    image = torch.from_numpy(pixels).permute(2, 0, 1)[None].double()
    resized = torch.nn.functional.interpolate(image, whole, mode="bilinear", antialias=True)[0]
    top, left = (whole[0] - height) // 2, (whole[1] - width) // 2
    expected = resized[:, top : top + height, left : left + width].permute(1, 2, 0).numpy()
    assert np.abs(decoded(saved(tmp_path / "a.png", pixels), (3, height, width)) - expected).max() <= 2


def test_a_large_jpeg_is_decoded_at_a_fraction(tmp_path):
    y, x = np.mgrid[:800, :640]
    pixels = np.stack([y * 255 // 800, x * 255 // 640, np.full_like(y, 99)], -1).astype(np.uint8)
    found = decoded(saved(tmp_path / "a.jpg", pixels, quality=95), (3, 32, 32))
    image = Image.fromarray(pixels).crop((0, 80, 640, 720)).resize((32, 32), Image.Resampling.BOX)
    assert np.abs(found - np.asarray(image).astype(int)).max() <= 6


# ---- a folder -------------------------------------------------------------------------------------------------------


def test_a_folder_is_read_class_by_class(folder):
    data = load(f"images:{folder}")
    assert (data.class_names, data.target_name, data.image_shape) == (CLASSES, "class", (3, 12, 12))
    assert data.targets.tolist() == [label for label in range(3) for _ in range(40)]
    names = [path for name in CLASSES for path in sorted((folder / name).iterdir())]
    for row in (0, 41, 119):
        pixels = torch.from_numpy(np.array(Image.open(names[row]))).permute(2, 0, 1)
        assert torch.equal(data.features[row], pixels.float() / 255)
    grey = load(f"images:{folder}", image_size=6, image_channels=1)
    assert grey.image_shape == (1, 6, 6)
    assert data.fingerprint != grey.fingerprint


def test_own_splits_are_kept(tmp_path):
    for place, count in (("train", 5), ("val", 2), ("test", 3)):
        write_folder(tmp_path / place, count)
    data = load(f"images:{tmp_path}")
    assert (data.num_rows, data.validation_start, data.test_start) == (30, 15, 21)
    parts = split(data, seed=3)
    assert [part.tolist() for part in parts] == [list(range(15)), list(range(15, 21)), list(range(21, 30))]
    (tmp_path / "val").rename(tmp_path / "other")
    with pytest.raises(UserError, match="expected train/, validation/ and test/"):
        load(f"images:{tmp_path}")
    for path in sorted((tmp_path / "other").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    (tmp_path / "other").rmdir()
    data = load(f"images:{tmp_path}")
    train, validation, test = split(data, seed=3, validation=0.2)
    assert (len(train), len(validation), test.tolist()) == (12, 3, list(range(15, 24)))
    (tmp_path / "test" / "cat").rename(tmp_path / "test" / "cow")
    with pytest.raises(UserError, match="got 'cow', which train/ lacks"):
        load(f"images:{tmp_path}")


def test_stored_images_are_the_tensor_they_stand_for(folder, monkeypatch):
    data = load(f"images:{folder}")
    stored, whole = data.features, data.features[:]
    assert isinstance(stored, stored_images.StoredImages)
    assert type(whole) is torch.Tensor
    assert (stored.shape, stored.dtype, len(stored), stored.ndim) == (whole.shape, whole.dtype, len(whole), 4)
    rows = torch.tensor([5, 0, 119, 5])
    for index in (7, -1, slice(3, 9), rows, [1, 2], rows > 4 if len(rows) == 120 else torch.arange(120) % 3 == 0):
        assert torch.equal(stored[index], whole[index])
    assert torch.equal(stored[rows, 1], whole[rows, 1])
    assert torch.equal(stored[2, 0, 3], whole[2, 0, 3])
    assert torch.equal(stored.index_select(0, rows), whole.index_select(0, rows))
    assert torch.equal(torch.cat(list(stored.split(50))), whole)
    assert [len(piece) for piece in stored.split(50)] == [50, 50, 20]
    assert [piece.shape for piece in stored.take(rows[:0]).split(50)] == [(0, 3, 12, 12)]
    assert torch.equal(stored.flatten(1) * 2, whole.flatten(1) * 2)
    assert torch.equal(torch.stack([stored, whole]).amax(0), whole)
    assert torch.equal(stored.take(rows)[1:], whole[rows][1:])
    train = split(data, seed=0).train
    expected, found = StandardScaler.fit(whole, train, per_channel=True), stored.fit_scaler(train)
    for one, other in zip(expected, found):
        assert one.shape == other.shape
        assert torch.allclose(one, other, rtol=1e-6)
    # kept in memory or read by the batch: the same bits
    loaded = prepare(data, split(data, seed=0))
    raw = split_images(data, split(data, seed=0))
    monkeypatch.setattr(stored_images, "MAX_NUMBERS", 0)
    by_batch = prepare(data, split(data, seed=0))
    assert type(loaded.train.features) is torch.Tensor
    assert isinstance(by_batch.train.features, stored_images.StoredImages)
    assert torch.equal(by_batch.train.features[:], loaded.train.features)
    assert by_batch.data_info == loaded.data_info
    assert torch.allclose(loaded.train.features.mean((0, 2, 3)), torch.zeros(3), atol=1e-5)
    assert torch.allclose(loaded.train.features.std((0, 2, 3)), torch.ones(3), atol=1e-3)
    lazily = split_images(data, split(data, seed=0))
    assert (lazily.data_info, raw.data_info.levels) == (raw.data_info, 256)
    assert torch.equal(lazily.test.features[:], raw.test.features)


def test_only_training_rows_move_the_scale(tmp_path):
    for place in ("train", "test"):
        write_folder(tmp_path / place, 2)
    before = load(f"images:{tmp_path}")
    for path in (tmp_path / "test").rglob("*.png"):
        saved(path, np.full((12, 12, 3), 255, np.uint8))
    after = load(f"images:{tmp_path}")
    parts = split(after, seed=0)
    scales = [prepare(data, parts).feature_scaler for data in (before, after)]
    assert all(torch.equal(one, other) for one, other in zip(*scales))
    assert before.fingerprint != after.fingerprint


def test_two_levels_are_seen(tmp_path):
    for name in ("a", "b"):
        saved(tmp_path / name / "1.png", 255 * (drawn(1, 8, 8) > 99).astype(np.uint8))
    assert load(f"images:{tmp_path}").features.levels == 2  # pyright: ignore[reportAttributeAccessIssue]
    saved(tmp_path / "a" / "2.png", np.full((8, 8), 254, np.uint8))
    assert load(f"images:{tmp_path}").features.levels == 256  # pyright: ignore[reportAttributeAccessIssue]


# ---- bad input ------------------------------------------------------------------------------------------------------


def no_folder(place: Path) -> None: ...


def empty(place: Path) -> None:
    place.mkdir()


def no_classes(place: Path) -> None:
    saved(place / "a.png", drawn(0, 8, 8))


def one_class(place: Path) -> None:
    saved(place / "a" / "a.png", drawn(0, 8, 8))


def no_pictures(place: Path) -> None:
    (place / "a").mkdir(parents=True)
    (place / "a" / "a.gif").write_bytes(b"GIF89a")


def two_sizes(place: Path) -> None:
    saved(place / "a" / "a.png", drawn(0, 8, 9))
    saved(place / "b" / "a.png", drawn(0, 30, 20))
    (place / "b" / "notes.txt").write_text("a note beside an error would be a second line")


def no_image(place: Path) -> None:
    one_class(place)
    (place / "b").mkdir()
    (place / "b" / "x.png").write_text("no picture")


def cut(place: Path) -> None:
    one_class(place)
    content = saved(place / "b" / "x.png", drawn(0, 8, 8)).read_bytes()
    (place / "b" / "x.png").write_bytes(content[:60])


def bomb(place: Path) -> None:
    one_class(place)
    (place / "b").mkdir()
    Image.new("1", (20_000, 20_000)).save(place / "b" / "x.png")


def all_broken(place: Path) -> None:
    for name in ("a", "b"):
        (place / name).mkdir(parents=True)
        (place / name / "x.png").write_text("no picture")


def odd_name(place: Path) -> None:
    one_class(place)
    saved(place / "b\x1b[31m\n" / "a.png", drawn(0, 8, 8))


MISTAKES = [
    (no_folder, "cannot be reached"),
    (empty, "got no folder with pictures: add pictures"),
    (no_classes, "sort the pictures into folders named after their classes"),
    (one_class, "expected two or more classes"),
    (no_pictures, "got no folder with pictures"),
    (two_sizes, "got 2 sizes, 8 x 9 to 30 x 20 (height x width): resize them with --image-size, such as"),
    (no_image, "cannot read 'b/x.png' (no PNG, JPEG, WEBP or BMP): repair or remove it, or leave it out with --skip"),
    (cut, "cannot read 'b/x.png' ("),
    (bomb, "20000 x 20000 pixels"),
    (all_broken, "but none can be"),
    (odd_name, "expected class folders with plain names"),
]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        pytest.param(make, told, marks=[] if make in (no_classes, two_sizes, cut) else pytest.mark.deep)
        for make, told in MISTAKES
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_mistake_is_told_in_one_line(make, told, tmp_path):
    make(tmp_path / "p")
    assert told in refused("train", "mlp", "--data", f"images:{tmp_path / 'p'}", "--runs", tmp_path)


def test_a_folder_without_a_form_and_flags_without_pictures_are_answered(folder, tmp_path):
    assert f"write 'images:{folder}'" in refused("train", "lenet", "--data", folder)
    for flag in (("--image-size", 8), ("--image-channels", 1), ("--skip-broken",)):
        assert f"{flag[0]} is for images:FOLDER" in refused("train", "lenet", *flag, "--runs", tmp_path)
    assert "expected 1 or 3 channels, got 2" in refused(
        "train", "lenet", "--data", f"images:{folder}", "--image-channels", 2, "--runs", tmp_path
    )


def test_broken_files_are_named_and_skipped_when_asked(tmp_path):
    write_folder(tmp_path, 3)
    (tmp_path / "dog" / "1.png").write_bytes(b"")
    (tmp_path / "dog" / "1.txt").write_text("not a picture")
    (tmp_path / "dog" / ".hidden.png").write_text("not ours")
    with pytest.raises(UserError, match=r"'dog/1\.png'"):
        load(f"images:{tmp_path}")
    told = Told()
    with listen_with(told):
        data = load(f"images:{tmp_path}", skip_broken=True)
    assert data.targets.tolist() == [0, 0, 0, 1, 1, 2, 2, 2]
    assert any("1 broken picture left out: 'dog/1.png'" in note for note in told.notes)
    assert any("1 file with other endings" in note for note in told.notes)
    (tmp_path / "dog" / "1.png").unlink()
    assert torch.equal(data.features[:], load(f"images:{tmp_path}").features[:])


# ---- the cache ------------------------------------------------------------------------------------------------------


class Interrupting(Listener):
    """Ctrl-C after the first chunk."""

    def progress(self, label: str):
        import contextlib

        def stop(done: int, total: int) -> None:
            raise KeyboardInterrupt

        return contextlib.nullcontext(stop)


def test_an_interrupted_decoding_goes_on(own_cache, tmp_path, monkeypatch):
    write_folder(tmp_path / "p", 40)
    settings = ImageSettings((12, 12), 3)
    with listen_with(Interrupting()), pytest.raises(KeyboardInterrupt):
        load_images(str(tmp_path / "p"), settings)
    assert [(entry.name[:8], entry.name[-6:]) for entry in cache_entries()] == [("images/.", ".draft")]
    assert "an unfinished draft" in tried("cache")[1]
    (draft,) = own_cache.glob("images/.*.draft")
    lines = (draft / "done.jsonl").read_text().splitlines()
    assert 1 <= len(lines) < 4
    (draft / "done.jsonl").write_text("\n".join([*lines, '[96, [["cut sho']))
    if len(lines) > 1:  # a row that did not reach the disk
        with open(draft / "pixels", "r+b") as file:
            file.seek(json.loads(lines[0])[0] * 432)
            file.write(bytes(432))
    asked = []
    monkeypatch.setattr(
        image_workers.ImageWorkers,
        "_ask",
        lambda self, job, ask=image_workers.ImageWorkers._ask: asked.append(job) or ask(self, job),
    )
    data = load_images(str(tmp_path / "p"), settings)
    todo = [job for job in asked if job["do"] == "decode"]
    assert len(todo) == 4 - len(lines) + (len(lines) > 1)
    (entry,) = cache_entries()
    assert sorted(path.name for path in entry.path.iterdir()) == ["info.json", "lock", "pixels", "statistics.npy"]
    fresh = data.features[:].clone()
    del data
    assert remove_entry(entry)
    assert torch.equal(load_images(str(tmp_path / "p"), settings).features[:], fresh)


def test_several_at_once_decode_once(own_cache, tmp_path, monkeypatch):
    write_folder(tmp_path / "p", 12)
    decoded_by: list[int] = []
    monkeypatch.setattr(
        image_workers.ImageWorkers,
        "__enter__",
        lambda self: decoded_by.append(threading.get_ident()) or self,
    )
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(load(f"images:{tmp_path / 'p'}").fingerprint)) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(decoded_by) == 1
    assert len(found) == 3
    assert len(set(found)) == 1
    assert [path.name for path in (own_cache / "images").iterdir()] == [cache_entries()[0].path.name]


def test_the_cache_is_listed_limited_and_emptied(own_cache, tmp_path, monkeypatch):
    assert "nothing cached" in tried("cache")[1]
    places = [write_folder(tmp_path / name, 2) for name in ("one", "two", "three")]
    first, second = (load(f"images:{place}") for place in places[:2])
    (own_cache / "fetched" / "mnist").mkdir(parents=True)
    (own_cache / "fetched" / "mnist" / "file").write_bytes(bytes(10_000))
    entries = {entry["what"]: entry for entry in json.loads(tried("cache", "--json")[1])["entries"]}
    assert f"6 images of 3 x 12 x 12 from {places[0]}" in entries
    assert entries["fetched data"]["bytes"] == 10_000
    names = [entries[what]["name"] for what in entries if "one" in what]
    assert "give --yes" in tried("cache", "rm", *names)[2].splitlines()[-1]
    assert tried("cache", "rm", *names, "--yes")[:2] == (1, f"{names[0]}: kept, a process reads it\n")
    del second  # the only one that may go now
    for entry in cache_entries("images"):  # the one in use is also the oldest
        os.utime(entry.path / cache_module.LOCK, (0.0, 0.0) if entry.name == names[0] else None)
    monkeypatch.setenv("QUOIN_CACHE_SIZE", f"{2 * cache_entries('images')[0].num_bytes}")
    third = load(f"images:{places[2]}")
    assert {json.loads((entry.path / "info.json").read_text())["source"] for entry in cache_entries("images")} == {
        str(places[0]),
        str(places[2]),
    }
    assert len(cache_entries("fetched")) == 1
    with pytest.raises(UserError, match=r"take 0\.001"):
        load(f"images:{places[2]}", image_size=240)
    monkeypatch.setenv("QUOIN_CACHE_SIZE", "much")
    with pytest.raises(UserError, match="expected a size such as 20G"):
        load(f"images:{places[2]}", image_size=7)
    assert torch.equal(first.features[:1], first.features[:][:1])
    del first, third
    assert tried("cache", "rm", "--all", "--yes")[0] == 0
    assert cache_entries() == []
    assert "expected an entry" in refused("cache", "rm", "x")
    assert "expects names" in refused("cache", "rm")
    assert cache_folder() == own_cache


def test_a_damaged_entry_is_made_anew(own_cache, tmp_path):
    write_folder(tmp_path / "p", 2)
    before = load(f"images:{tmp_path / 'p'}").fingerprint
    (entry,) = cache_entries()
    for name, content in (("pixels", b""), ("info.json", b"{}"), ("statistics.npy", b"x")):
        (entry.path / name).write_bytes(content)
        assert load(f"images:{tmp_path / 'p'}").fingerprint == before


# ---- runs -----------------------------------------------------------------------------------------------------------


def trained(folder: Path, runs: Path, *words: object, recipe: str = "lenet") -> Path:
    code, out, err = tried(
        "train",
        recipe,
        "--data",
        f"images:{folder}",
        "--epochs",
        2,
        "--num-threads",
        1,
        "--runs",
        runs,
        "--json",
        *words,
    )
    assert code == 0, err
    return Path(json.loads(out)["run"])


def weights(run: Path) -> list[bytes]:
    last = max((run / "checkpoints").glob("0*"))
    return [path.read_bytes() for path in sorted(last.glob("*.safetensors"))]


@pytest.mark.deep
def test_a_run_is_the_same_in_memory_and_by_the_batch(folder, tmp_path, monkeypatch):
    kept = trained(folder, tmp_path)
    monkeypatch.setattr(stored_images, "MAX_NUMBERS", 0)
    by_batch = trained(folder, tmp_path)
    assert weights(kept) == weights(by_batch) != []
    results = [json.loads((run / "result.json").read_text())["metrics"] for run in (kept, by_batch)]
    assert results[0] == results[1]


def test_a_run_by_the_batch_is_evaluated_on_another_folder_and_predicts_for_it(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(stored_images, "MAX_NUMBERS", 0)
    by_batch = trained(folder, tmp_path, "--max-steps", 2)
    other = tmp_path / "other"
    for each in range(3):
        saved(other / "dog" / f"{each}.png", drawn(100 + each, 12, 12, 3))
    saved(other / "dog" / "x.bmp", drawn(9, 40, 30))  # another size and mode
    code, out, err = tried("eval", by_batch, "--data", f"images:{other}", "--json")
    assert code == 0, err
    code, table, err = tried("predict", by_batch, other)
    assert code == 0, err
    lines = [line.split(",") for line in table.splitlines()]
    assert lines[0] == ["file", "class", *(f"p({name})" for name in CLASSES)]
    assert [line[0] for line in lines[1:]] == ["dog/0.png", "dog/1.png", "dog/2.png", "dog/x.bmp"]
    assert json.loads(out)["accuracy"] == np.mean([line[1] == "dog" for line in lines[1:]])
    alone = tried("predict", by_batch, other / "dog" / "1.png")[1].splitlines()[1].split(",")
    assert alone[:2] == ["1.png", lines[2][1]]
    assert np.allclose([float(p) for p in alone[2:]], [float(p) for p in lines[2][2:]], atol=1e-5)
    (other / "dog" / "y.png").write_text("broken")
    assert "cannot read 'dog/y.png'" in refused("predict", by_batch, other)


@pytest.mark.deep
def test_a_changed_file_is_told(tmp_path):
    write_folder(tmp_path / "p", 8)
    run = trained(tmp_path / "p", tmp_path / "runs", "--max-steps", 1)
    saved(tmp_path / "p" / "cat" / "0.png", drawn(999, 12, 12, 3))
    assert "changed since it was started" in refused("eval", run)


@pytest.mark.deep
@pytest.mark.parametrize(
    "recipe",
    [
        "lenet",
        "resnet",
        "resnext",
        "vgg",
        "densenet",
        "vit",
        "attention-digits",
        "mlp",
        "softmax-regression",
        "mlp-dropout",
    ],
)
def test_every_classifier_of_images_takes_a_folder(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr(stored_images, "MAX_NUMBERS", 0)
    write_folder(tmp_path / "p", 12, (16, 16))
    run = trained(tmp_path / "p", tmp_path / "runs", "--epochs", 1, recipe=recipe)
    assert (run / "report.html").exists()
    assert len(tried("predict", run, tmp_path / "p")[1].splitlines()) == 37


@pytest.mark.deep
@pytest.mark.parametrize("recipe", ["vae", "vae-conv", "gan", "pixelcnn", "diffusion-digits"])
def test_every_generative_model_of_images_takes_a_folder(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr(stored_images, "MAX_NUMBERS", 0)
    write_folder(tmp_path / "p", 24, (8, 8))
    channels = () if recipe != "pixelcnn" else ("--image-channels", 1)
    run = trained(tmp_path / "p", tmp_path / "runs", "--epochs", 1, "--num-samples", 20, *channels, recipe=recipe)
    assert (run / "report.html").exists()


@pytest.mark.deep
def test_a_killed_run_resumes_to_the_same_bits(folder, tmp_path):
    from commands import stopping

    words = ("train", "lenet", "--data", f"images:{folder}", "--epochs", 4, "--checkpoint-every", 3, "--num-threads", 1)
    whole = tmp_path / "whole"
    assert tried(*words, "--runs", whole)[0] == 0
    done = subprocess.run(stopping(9, *words, "--runs", tmp_path / "cut"), capture_output=True, check=False)
    assert done.returncode == -9, done.stderr
    assert tried("resume", tmp_path / "cut" / "lenet-1")[0] == 0
    assert weights(whole / "lenet-1") == weights(tmp_path / "cut" / "lenet-1")


@pytest.mark.deep
def test_a_script_needs_no_guard_and_a_worker_no_torch(folder, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"import quoin.data\nprint(quoin.data.load('images:{folder}', image_size=5).features.shape)\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert "[120, 3, 5, 5]" in done.stdout
    code = "import quoin.data.image_decoding, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_dataset_knows_where_its_validation_begins(folder):
    data = load(f"images:{folder}")
    with pytest.raises(ValueError, match="validation_start"):
        dataclasses.replace(data, validation_start=120)
