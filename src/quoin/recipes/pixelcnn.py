"""A gated PixelCNN of digits: exact likelihood as a product over pixels, sampling pixel by pixel."""

from dataclasses import dataclass

from quoin import data, generate, models, tasks, train
from quoin.options import default, option
from quoin.tasks.generative_options import GenerativeOptions
from quoin.tasks.target import Target
from quoin.train.monitor import Monitor

NOTES = ("D5.2-8",)
KEYWORDS = ("autoregressive", "masked convolution", "likelihood")
SUBJECT = "Generative models"
# Exact, for images never seen. Seeds 100 and 101 reach 1.74 and 1.75; the context mixing of `quoin compress` needs 2.7
# for such images.
TARGET = Target("test_bits_per_dimension", at_most=1.8)
MONITOR = Monitor("validation_bits_per_dimension")


@dataclass(frozen=True)
class Options(GenerativeOptions):
    epochs: int = default(40)
    lr: float = default(0.008)
    warmup_ratio: float = default(0.05)
    max_grad_norm: float = default(1.0)
    weight_decay: float = default(0.3)
    ema_decay: float = option(0.98, "EMA decay of the weights", at_least=0.0, below=1.0)
    channels: int = option(32, "channels of each layer of either stack", at_least=1, at_most=10_000)
    num_layers: int = option(4, "gated layers", at_least=1, at_most=1000)
    kernel_size: int = option(3, "kernel size of the gated layers, odd", at_least=1, at_most=101)
    first_kernel_size: int = option(7, "kernel size of the first layer, odd, at least 3", at_least=3, at_most=101)
    dropout: float = option(0.3, "dropout probability", at_least=0.0, below=1.0)
    class_conditional: bool = option(False, "condition the model on the class, to sample images of a class")


def model(options: Options, data_info: "data.ImageInfo") -> "generate.PixelSampler":
    from quoin.errors import UserError

    if not data_info.levels:
        raise UserError(
            f"pixelcnn expects images with 2, 17 or 256 grey levels, but those of {data_info.source} have others: "
            "round them"
        )
    return generate.PixelSampler(
        models.GatedPixelCNN(
            data_info.image_shape,
            data_info.levels,
            channels=options.channels,
            num_layers=options.num_layers,
            kernel_size=options.kernel_size,
            first_kernel_size=options.first_kernel_size,
            num_classes=data_info.num_classes if options.class_conditional else None,
            dropout=options.dropout,
            generator=data.keyed_generator("weights", options.seed),
        )
    )


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.runs.open_classifier import open_classifier
    from quoin.tasks.pixelcnn import PixelTask

    data = tasks.load_raw_images(options, device_context)
    net = model(options, data.data_info).to(device_context.device)
    optimizer = tasks.make_optimizer(net.parameters(), options)
    return PixelTask(
        net, optimizer, data, options, device_context, average=options.ema_decay, open_classifier=open_classifier
    )
