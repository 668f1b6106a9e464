"""Images pixel by pixel: which pixel depends on which, the blind spot, normalization, sampling, and code lengths."""

import functools
import itertools
import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from quoin.generate import PixelSampler
from quoin.info import MakePixelModel, decode_pixels, encode_pixels
from quoin.models import GatedPixelCNN, PixelCNN, PixelModel, dequantize, pixel_log_prob_definition, quantize
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.rounding import gap, max, randint, roundings

CHANNELS = 32  # that ReLUs shut all of them at once, and hide what a pixel sees, has a probability below 1e-9
SEEN = "exact: a gradient is zero or not"


def gated(
    generator: torch.Generator,
    size: tuple[int, int],
    levels: int,
    *,
    num_layers: int,
    channels: int = CHANNELS,
    kernel_size: int = 3,
    first_kernel_size: int = 3,
) -> GatedPixelCNN:
    sizes = {
        "channels": channels,
        "num_layers": num_layers,
        "kernel_size": kernel_size,
        "first_kernel_size": first_kernel_size,
    }
    return GatedPixelCNN((1, *size), levels, generator=generator, **sizes).double()


def plain(generator: torch.Generator, size: tuple[int, int], levels: int, *, num_layers: int) -> PixelCNN:
    shape = (1, *size)
    return PixelCNN(
        shape, levels, channels=CHANNELS, num_layers=num_layers, first_kernel_size=3, generator=generator
    ).double()


def some_images(generator: torch.Generator, count: int, size: tuple[int, int], levels: int) -> Float[Tensor, "n 1 h w"]:
    return dequantize(torch.randint(levels, (count, *size), generator=generator), levels, torch.float64)


def seen(model: PixelModel, images: Float[Tensor, "1 1 h w"]) -> Bool[Tensor, "h*w h*w"]:
    """Row i: which pixels the logits of pixel i change with, by their gradient; pixels are numbered row by row."""
    jacobian = torch.autograd.functional.jacobian(model.logits, images, vectorize=True)  # (1, k, h, w, 1, 1, h, w)
    pixels = images.numel()
    return (jacobian != 0).any(dim=1).reshape(pixels, pixels)


def allowed(
    height: int, width: int, radius: int, slant: int | None = None
) -> Bool[Tensor, "{height}*{width} {height}*{width}"]:
    """Row i: the pixels before i within `radius`; with `slant`, no farther right than so much for each row up."""
    row, column = (each.flatten() for each in torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij"))
    up, right = row[:, None] - row, column - column[:, None]
    before = (up > 0) | ((up == 0) & (right < 0))
    box = before & (up <= radius) & (right.abs() <= radius)
    return box if slant is None else box & (right <= slant * up)


@claim(
    "D5.2-8",
    "with two stacks the logits of a pixel change with every pixel before it in the receptive field, and with no other",
)
def no_blind_spot(generator: torch.Generator) -> Evidence:
    wrong = cases = 0
    for kernel, first, layers in ((3, 3, 1), (3, 5, 2), (5, 3, 1), (3, 7, 2)):
        size = (randint(4, 6, generator), randint(4, 6, generator))
        model = gated(generator, size, 3, kernel_size=kernel, first_kernel_size=first, num_layers=layers)
        radius = first // 2 + layers * (kernel // 2)
        wrong += int((seen(model, some_images(generator, 1, size, 3)) != allowed(*size, radius)).sum())
        cases += math.prod(size) ** 2
    return Evidence("pairs of pixels that see each other, or do not, against the order", wrong, 0, SEEN, cases, "==")


@claim(
    "D5.2-8",
    "a plain stack of 3 x 3 masked convolutions depends on no later pixel, but is blind to what lies farther right "
    "than up",
)
def plain_stack_has_a_blind_spot(generator: torch.Generator) -> Evidence:
    wrong = blind = cases = 0
    for layers in (1, 2, 3):
        size = (randint(4, 6, generator), randint(5, 6, generator))
        radius = 1 + layers
        found = seen(plain(generator, size, 3, num_layers=layers), some_images(generator, 1, size, 3))
        wrong += int((found != allowed(*size, radius, slant=1)).sum())
        blind += int((allowed(*size, radius) & ~found).sum())
        cases += math.prod(size) ** 2
    wrong += blind == 0
    return Evidence(f"pairs against the rule, beside {blind} in the blind spot", wrong, 0, SEEN, cases, "==")


@claim("D5.2-8", "the probabilities of all images there are sum to one")
def all_images_sum_to_one(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 0
    for height, width, levels in ((2, 2, 5), (2, 3, 3), (3, 2, 3), (1, 4, 4), (3, 3, 2)):
        every = torch.tensor(list(itertools.product(range(levels), repeat=height * width))).unflatten(
            1, (height, width)
        )
        images = dequantize(every, levels, torch.float64)
        for build in (gated, plain):
            model = build(generator, (height, width), levels, num_layers=2)
            with torch.no_grad():
                worst = max(worst, abs(float(model.log_prob(images).exp().sum()) - 1))
            cases += 1
    return Evidence(
        "largest |sum - 1|",
        worst,
        roundings(2**12),
        "4096 float64 roundings, for sums of at most 729 probabilities",
        cases,
    )


@claim(
    "D5.2-8",
    "one pass gives the product of the distributions of all pixels, each of which is shown nothing but those before it",
)
def one_pass_is_the_product(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 6
    for _ in range(cases):
        size, levels = (randint(1, 5, generator), randint(1, 5, generator)), randint(2, 17, generator)
        model = gated(generator, size, levels, num_layers=2)
        images = some_images(generator, 3, size, levels)
        with torch.no_grad():
            worst = max(worst, gap(model.log_prob(images), pixel_log_prob_definition(model.logits, images, levels)))
    return Evidence("largest |one pass - pixel by pixel|", worst, roundings(2**12), "4096 float64 roundings", cases)


@claim("D5.2-8", "images that are sampled pixel by pixel come as often as their probabilities say")
def samples_follow_the_distribution(generator: torch.Generator) -> Evidence:
    height, width, levels, num_samples = 2, 2, 3, 60_000
    model = gated(generator, (height, width), levels, num_layers=1, channels=4)
    with torch.no_grad():  # away from the even distribution that new weights are near
        for weight in model.parameters():
            weight.mul_(3)
    every = torch.tensor(list(itertools.product(range(levels), repeat=height * width))).unflatten(1, (height, width))
    powers = levels ** torch.arange(height * width - 1, -1, -1)
    with torch.no_grad():
        probs = model.log_prob(dequantize(every, levels, torch.float64)).exp()
    samples = quantize(PixelSampler(model).sample(num_samples, generator=generator), levels)
    frequencies = torch.bincount((samples.flatten(1) * powers).sum(dim=1), minlength=len(every)) / num_samples
    distance = float((frequencies - probs).abs().sum()) / 2
    # E of the distance is at most sqrt(m / n) / 2, and one other sample moves it by at most 1 / n: McDiarmid's bound at
    # 1e-7.
    bound = math.sqrt(len(every) / num_samples) / 2 + math.sqrt(math.log(1e7) / (2 * num_samples))
    return Evidence(
        "total variation from the enumerated distribution",
        distance,
        bound,
        "McDiarmid's bound at level 1e-7",
        num_samples,
    )


def distributions_of(model: PixelModel) -> MakePixelModel:
    """The distribution of each pixel from those that the coder has filled in, as the definition has it: a whole pass
    each time."""

    def distribution(known: Tensor, pixel: int) -> Tensor:
        with torch.no_grad():
            scores = model.logits(dequantize(known, model.num_levels, torch.float64)).flatten(2)
        return scores[:, :, pixel].softmax(dim=-1)

    return lambda known: functools.partial(distribution, known)


@claim("D5.2-8", "arithmetic coding by the model gives back every pixel, from -log2 P bits and at most two bytes more")
def archives_are_as_short_as_the_likelihood(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 3
    for _ in range(cases):
        size, levels = (randint(2, 5, generator), randint(2, 5, generator)), randint(2, 17, generator)
        model = gated(generator, size, levels, num_layers=1)
        images = some_images(generator, 20, size, levels)
        numbers = quantize(images, levels)

        archive = encode_pixels(numbers, distributions_of(model))
        if not torch.equal(decode_pixels(archive, len(numbers), size, distributions_of(model)), numbers):
            worst = math.inf
        with torch.no_grad():
            worst = max(worst, abs(8 * len(archive) + float(model.log_prob(images).sum()) / math.log(2)))
    return Evidence(
        "largest |bits of the code + log2 P|", worst, 16.0, "a last byte, and distributions rounded to 2^-32", cases
    )
