"""The benchmarks `export`: Quoin's own prediction beside onnxruntime on the same network, exported. No torch."""

from quoin.bench.benchmark import Benchmark, Implementation
from quoin.bench.targets import RatioAtLeast

__all__ = ["EXPORT_BENCHMARKS"]

_SIDES = "quoin.bench.export_implementations"
_NEEDS = ("onnxruntime", "onnxscript")
LEAST = 0.9  # of onnxruntime's speed: whoever exports a model shall do it for other reasons than this


def _export(network: str, rows: int, title: str) -> Benchmark:
    arguments = (network, str(rows))
    return Benchmark(
        f"export-{network}" + ("-1" if rows == 1 else ""),
        title,
        (
            Implementation("Quoin", _SIDES, "quoin", arguments=arguments),
            Implementation("onnxruntime", _SIDES, "onnxruntime", RatioAtLeast(LEAST), _NEEDS, arguments=arguments),
        ),
        num_repeats=15,
        group="export",
    )


EXPORT_BENCHMARKS = (
    _export("mlp", 256, "predictions of an MLP 784-256-10 for 256 rows, 100 times"),
    _export("mlp", 1, "predictions of an MLP 784-256-10 for one row, 1000 times"),
    _export("lenet", 256, "predictions of LeNet for 256 images of 1 x 28 x 28, 10 times"),
    _export("lenet", 1, "predictions of LeNet for one image of 1 x 28 x 28, 300 times"),
    _export("gpt", 8, "logits of the GPT of gpt-small for 8 windows of 128 characters, 4 times"),
    _export("unet", 16, "the noise in 16 images of 1 x 16 x 16 by the U-Net of unet-sample, 4 times"),
)
