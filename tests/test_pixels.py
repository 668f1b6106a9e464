"""Images pixel by pixel: drawn, completed, coded, kept in archives; and what is refused."""

import json
import math
import struct

import numpy as np
import pytest
import torch

from commands import refused, tried
from quoin.errors import UserError
from quoin.generate import PixelSampler, TokenSampler, complete_pixels
from quoin.info import compress, decode_pixels, decompress, encode_pixels, read_header
from quoin.models import DensityModel, GatedPixelCNN, PixelCNN, dequantize, quantize
from quoin.recipes import pixelcnn as recipe
from quoin.runs.pixel_codec import PixelCodec
from quoin.train import DeviceContext

pytestmark = pytest.mark.usefixtures("one_thread")


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def small(levels: int = 4, *, size: tuple[int, int] = (3, 4), classes: int | None = None) -> GatedPixelCNN:
    return GatedPixelCNN(
        (1, *size), levels, channels=4, num_layers=1, num_classes=classes, generator=generator()
    ).eval()


def some_levels(count: int, levels: int = 4, size: tuple[int, int] = (3, 4)) -> torch.Tensor:
    return torch.randint(levels, (count, *size), generator=generator(1))


def test_samples_are_images_on_the_models_levels():
    sampler = PixelSampler(small())
    assert isinstance(sampler, DensityModel)
    images = sampler.sample(7, generator=generator())
    assert images.shape == (7, 1, 3, 4)
    assert set(quantize(images, 4).unique().tolist()) <= {0, 1, 2, 3}
    assert torch.equal(images, sampler.sample(7, generator=generator()))
    assert not torch.equal(images, sampler.sample(7, generator=generator(1)))


def test_a_model_that_is_learning_is_drawn_from_at_rest():
    model = GatedPixelCNN((1, 3, 4), 4, channels=4, num_layers=1, dropout=0.9, generator=generator())
    drawn = [PixelSampler(model.train(learning)).sample(50, generator=generator()) for learning in (True, False, True)]
    assert torch.equal(drawn[0], drawn[1])
    assert model.training


def test_completions_keep_what_is_known_and_depend_on_it():
    model = small()
    images = dequantize(some_levels(50), 4)
    drawn = complete_pixels(model, images, 5, TokenSampler(generator=generator()))
    assert torch.equal(drawn.flatten(1)[:, :5], images.flatten(1)[:, :5])
    assert not torch.equal(drawn, images)
    again = images.clone()
    again.flatten(1)[:, 5:] = 0  # what was in the place of drawn pixels plays no part
    assert torch.equal(drawn, complete_pixels(model, again, 5, TokenSampler(generator=generator())))
    assert torch.equal(images, complete_pixels(model, images, 12, TokenSampler(generator=generator())))


def test_a_cold_sampler_takes_the_likeliest_level_of_each_pixel():
    model = small()
    cold = PixelSampler(model).sample(1, generator=generator(), temperature=1e-6)
    with torch.no_grad():
        assert torch.equal(quantize(cold, 4), model(cold).argmax(dim=1))


def test_classes_steer_what_is_drawn():
    model = small(2, classes=2)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(5)  # away from the even distribution
        model.shifts[:, 0], model.shifts[:, 1] = -3.0, 3.0
    sampler = PixelSampler(model)
    means = [
        float(sampler.sample(300, generator=generator(), labels=torch.full((300,), label)).mean()) for label in (0, 1)
    ]
    assert abs(means[0] - means[1]) > 0.1
    in_turn = sampler.sample(4, generator=generator())
    assert torch.equal(in_turn, sampler.sample(4, generator=generator(), labels=torch.tensor([0, 1, 0, 1])))
    with pytest.raises(UserError, match="expected labels from 0 to 1, got 2"):
        sampler.sample(1, generator=generator(), labels=torch.tensor([2]))
    with pytest.raises(UserError, match="built without classes"):
        PixelSampler(small()).sample(1, generator=generator(), labels=torch.tensor([0]))
    with pytest.raises(UserError, match="got none; give labels"):
        model.log_prob(torch.zeros(1, 1, 3, 4))


def even(known: torch.Tensor):
    return lambda place: torch.full((len(known), 4), 0.25, dtype=torch.float64)


def test_an_even_law_costs_the_logarithm_of_its_levels():
    levels = some_levels(300)  # two pieces
    code = encode_pixels(levels, even)
    assert abs(8 * len(code) - 2 * levels.numel()) <= 16
    assert torch.equal(decode_pixels(code, 300, (3, 4), even), levels)


def test_coder_shows_the_model_nothing_but_what_is_known():
    levels, seen = some_levels(3), []

    def laws(known):
        def law(place):
            assert not known.flatten(1)[:, place:].any()
            seen.append(known.clone())
            return torch.full((len(known), 4), 0.25, dtype=torch.float64)

        return law

    code = encode_pixels(levels, laws)
    shown, seen = seen, []
    decode_pixels(code, 3, (3, 4), laws)
    assert all(map(torch.equal, shown, seen))
    assert torch.equal(shown[-1].flatten(1)[:, :-1], levels.flatten(1)[:, :-1])


def image_file(levels: torch.Tensor, kind: str, step: int = 1) -> bytes:
    pixels = (levels * step).numpy().astype(np.uint8)
    if kind == "idx":
        return bytes([0, 0, 8, 3]) + struct.pack(">3I", *pixels.shape) + pixels.tobytes()
    import io

    stream = io.BytesIO()
    np.save(stream, pixels, allow_pickle=False)
    return stream.getvalue()


@pytest.mark.parametrize(("kind", "levels", "step"), [("idx", 4, 1), ("npy", 4, 1), ("idx", 2, 255), ("npy", 4, 85)])
def test_archives_of_image_files_give_them_back_at_the_models_price(kind, levels, step):
    model = small(levels)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2)  # away from the even distribution
    images = PixelSampler(model).sample(400, generator=generator())
    content = image_file(quantize(images, levels), kind, step)
    codec = PixelCodec(model, "small")
    archive = compress(content, codec)
    assert decompress(archive, PixelCodec(model, "small")) == content
    contents = read_header(archive)
    assert contents.method == PixelCodec.method
    with torch.no_grad():
        bits = -float(model.log_prob(images).sum()) / math.log(2)
    header = len(contents.code) - bits / 8  # bytes: what the pixels do not cost
    assert -1 <= header <= 20 + (0 if kind == "idx" else 110) + 0.01 * bits / 8


def test_archives_need_the_same_model():
    content = image_file(some_levels(300), "idx")
    archive = compress(content, PixelCodec(small(), "small"))
    other = GatedPixelCNN((1, 3, 4), 4, channels=4, num_layers=1, generator=generator(9))
    with pytest.raises(UserError, match="expected the model that coded the archive"):
        decompress(archive, PixelCodec(other, "small"))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "expected images as bytes"),
        (b"plain text, no images", "expected images as bytes"),
        (image_file(torch.zeros(0, 3, 4).long(), "npy"), "expected images as bytes"),
        (image_file(torch.zeros(2, 3, 4).long(), "idx")[:-1], "expected images as bytes"),
        (image_file(torch.zeros(2, 5, 4).long(), "npy"), "expected images of 3 x 4 pixels"),
        (image_file(torch.full((2, 3, 4), 9), "npy"), "expected bytes on the model's 4 levels, 0 to 3, got 9"),
        (image_file(torch.zeros(2, 3, 4).long(), "npy").replace(b"|u1", b"<f4"), "expected images as bytes"),
    ],
)
def test_files_that_are_no_such_images_are_refused(content, told):
    with pytest.raises(UserError, match=told):
        compress(content, PixelCodec(small(), "small"))


def test_models_with_classes_do_not_compress():
    with pytest.raises(UserError, match="needs no classes"):
        PixelCodec(small(classes=3), "small")


@pytest.mark.parametrize(
    ("images", "told"),
    [
        (torch.full((1, 1, 3, 4), 0.5), "expected pixels on 4 levels from 0 to 1, got 0.5"),
        (torch.full((1, 1, 3, 4), 4 / 3), "expected pixels on 4 levels from 0 to 1, got 1.33333"),
        (torch.full((1, 1, 3, 4), -1 / 3), "got -0.333333"),
        (torch.full((1, 1, 3, 4), math.nan), "got nan"),
        (torch.zeros(1, 1, 4, 4), "expected images of 1 channel and 3x4 pixels"),
        (torch.zeros(1, 3, 3, 4), "expected images of 1 channel"),
        (torch.zeros(0, 1, 3, 4), "at least one image"),
        (torch.zeros(1, 1, 3, 4, dtype=torch.int64), "float dtype"),
    ],
)
def test_images_off_the_levels_or_of_other_sizes_are_refused(images, told):
    with pytest.raises(UserError, match=told):
        small().log_prob(images)


def test_wrong_requests_are_refused():
    sampler = PixelSampler(small())
    with pytest.raises(UserError, match="at least one image to sample, got 0"):
        sampler.sample(0, generator=generator())
    with pytest.raises(UserError, match="temperature above 0"):
        sampler.sample(1, generator=generator(), temperature=0.0)
    with pytest.raises(UserError, match="first pixel from 0 to 12, got 13"):
        complete_pixels(small(), torch.zeros(1, 1, 3, 4), 13, TokenSampler())
    with pytest.raises(UserError, match=r"expected images \(n, 1, 3, 4\)"):
        complete_pixels(small(), torch.zeros(1, 1, 4, 4), 0, TokenSampler())
    with pytest.raises(UserError, match="expected grey images"):
        PixelCNN((3, 8, 8), 256)
    with pytest.raises(UserError, match="at least 2 grey levels, got 1"):
        GatedPixelCNN((1, 8, 8), 1)
    with pytest.raises(UserError, match="odd sides"):
        GatedPixelCNN((1, 8, 8), 2, kernel_size=4)
    with pytest.raises(UserError, match="int64"):
        encode_pixels(torch.zeros(1, 2, 2), even)


def test_a_model_of_classes_learns_and_is_shown():
    options = recipe.Options(class_conditional=True, channels=4, num_layers=1)
    task = recipe.build(options, DeviceContext())
    before = float(task.step(torch.arange(64))["loss"])
    for _ in range(20):
        after = float(task.step(torch.arange(64))["loss"])
    assert after < before
    assert [panel.title for panel in task.panels()] == ["Samples", "Completions", "Mean NLL per pixel", "NLL per pixel"]
    assert task.eval_model.sample(3, generator=generator(), labels=torch.tensor([7, 7, 7])).shape == (3, 1, 8, 8)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (np.random.default_rng(0).random((60, 8, 8)), "with 2, 17 or 256 grey levels, but those of npz:"),
        (np.random.default_rng(0).integers(0, 256, (60, 3, 8, 8)).astype(np.uint8), "expected grey images"),
    ],
)
def test_data_that_it_has_no_law_for_are_refused(values, told, tmp_path):
    np.savez(tmp_path / "some.npz", x=values, y=np.arange(60) % 3)
    assert told in refused("train", "pixelcnn", "--data", f"npz:{tmp_path / 'some.npz'}", "--runs", tmp_path)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A small trained run, and a file of digits beside it."""
    folder = tmp_path_factory.mktemp("pixels")
    small = [
        "--epochs",
        "1",
        "--channels",
        "8",
        "--num-layers",
        "1",
        "--num-samples",
        "10",
        "--batch-size",
        "256",
        "--num-threads",
        "1",
    ]
    code, _, err = tried("train", "pixelcnn", *small, "--runs", folder)
    assert code == 0, err
    from quoin.data import load

    np.save(folder / "digits.npy", (load("digits").features[:200, 0] * 16).round().numpy().astype(np.uint8))
    return folder / "pixelcnn-1"


def test_a_run_compresses_files_of_its_images(run):
    file, packed, back = (run.parent / name for name in ("digits.npy", "digits.quoin", "back.npy"))
    code, out, err = tried("compress", file, "--model", run, "-o", packed, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["archive_bytes"] < 0.6 * found["content_bytes"]
    assert tried("decompress", packed, "--model", run, "-o", back)[0] == 0
    assert back.read_bytes() == file.read_bytes()
    assert "--model RUN" in refused("decompress", packed, "-o", run.parent / "no.npy")
    text = run.parent / "text.txt"
    text.write_text("no images")
    assert "IDX or .npy" in refused("compress", text, "--model", run)


def test_a_run_draws_more_images(run):
    out = run.parent / "samples.npy"
    code, _, err = tried("generate", run, "-n", "5", "--temperature", "0.5", "--out", out)
    assert code == 0, err
    images = torch.from_numpy(np.load(out))
    assert images.shape == (5, 1, 8, 8)
    quantize(images, 17)  # refuses what is on no level
    assert "without classes" in refused("generate", run, "-n", "5", "--class", "3", "--out", out)
