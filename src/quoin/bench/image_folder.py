"""The benchmark `images`: a folder of JPEGs decoded into Quoin's cache and read from there, beside torch's DataLoader
with Pillow.

Batches are the same for all: 3 x 224 x 224, resized, cropped in the middle and standardised, in a random order.
"""

import os
import statistics
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from quoin.bench.worker import Repeats
from quoin.data import BatchSampler, Split, load, prepare

__all__ = ["data_loader", "decoding", "epoch"]

NUM_IMAGES = 2000
NUM_DIFFERENT = 40
SIZE = 224
BATCH_SIZE = 32
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def write_images(folder: Path) -> list[Path]:
    """NUM_IMAGES JPEGs of 320 x 256 in two classes; few are different, which a decoder does not notice."""
    draw = np.random.default_rng(0)
    contents = []
    for number in range(NUM_DIFFERENT):
        small = Image.fromarray(draw.integers(0, 256, (24, 32, 3), dtype=np.uint8))
        picture = folder / f"{number}.jpg"
        small.resize((320, 256), Image.Resampling.BICUBIC).save(picture, quality=90)
        contents.append(picture.read_bytes())
        picture.unlink()
    paths = []
    for number in range(NUM_IMAGES):
        path = folder / f"class {number % 2}" / f"{number}.jpg"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(contents[number % NUM_DIFFERENT])
        paths.append(path)
    return paths


def decoding(repeats: Repeats) -> dict[str, float]:
    seconds = []
    with tempfile.TemporaryDirectory() as directory:
        (folder := Path(directory) / "pictures").mkdir()
        write_images(folder)
        for number in range(repeats.count):
            began = repeats.clock()
            os.environ["QUOIN_CACHE"] = str(Path(directory) / f"cache{number}")
            assert load(f"images:{folder}", image_size=SIZE).num_rows == NUM_IMAGES
            seconds.append(repeats.clock() - began)
            repeats.end()
    return {"images/s": NUM_IMAGES / statistics.median(seconds)}


def epoch(repeats: Repeats) -> dict[str, float]:
    torch.set_num_threads(repeats.threads)
    with tempfile.TemporaryDirectory() as directory:
        (folder := Path(directory) / "pictures").mkdir()
        write_images(folder)
        os.environ["QUOIN_CACHE"] = str(Path(directory) / "cache")
        dataset = load(f"images:{folder}", image_size=SIZE)
        train = prepare(dataset, Split(torch.arange(NUM_IMAGES), torch.arange(0), torch.arange(0))).train
        batches = BatchSampler(NUM_IMAGES, BATCH_SIZE, seed=0)

        def read() -> int:
            pieces = ((train.features.index_select(0, rows), train.targets.index_select(0, rows)) for rows in batches)
            return sum(len(labels) for _, labels in pieces)

        assert repeats.timed(read) == NUM_IMAGES
    return {}


class PictureFolder(TorchDataset):
    """What a user of torch writes, or takes from torchvision."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths
        self.mean, self.std = (torch.tensor(each)[:, None, None] for each in (MEAN, STD))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        path = self.paths[index]
        with Image.open(path) as opened:
            image = opened.convert("RGB")
        scale = SIZE / min(image.size)
        image = image.resize((round(image.width * scale), round(image.height * scale)), Image.Resampling.BILINEAR)
        left, top = (image.width - SIZE) // 2, (image.height - SIZE) // 2
        image = image.crop((left, top, left + SIZE, top + SIZE))
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous().float().div_(255)
        return pixels.sub_(self.mean).div_(self.std), int(path.parent.name[-1])


def data_loader(repeats: Repeats) -> dict[str, float]:
    torch.set_num_threads(repeats.threads)
    seconds = []
    with tempfile.TemporaryDirectory() as directory:
        (folder := Path(directory) / "pictures").mkdir()
        rows = PictureFolder(write_images(folder))
        for _ in range(repeats.count):
            began = repeats.clock()
            loader = DataLoader(rows, BATCH_SIZE, shuffle=True, num_workers=repeats.threads)
            assert sum(len(labels) for _, labels in loader) == NUM_IMAGES
            seconds.append(repeats.clock() - began)
            repeats.end()
    return {"images/s": NUM_IMAGES / statistics.median(seconds)}
