"""The benchmarks `export`: one network, called as Quoin predicts with it, and exported to ONNX and run by onnxruntime.

Both run the same numbers through the same weights, with as many threads; the outputs are held against each other in
the process of onnxruntime.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from quoin.bench.language_problem import GPTS
from quoin.bench.unet_problem import CHANNELS, NUM_BLOCKS, NUM_TIMESTEPS, SHAPE
from quoin.bench.worker import Repeats
from quoin.models import GPT, MLP, UNet, lenet
from quoin.tasks.supervised import predict_in_batches

__all__ = ["make_problem", "onnxruntime", "quoin", "write_onnx"]

VOCAB_SIZE, CONTEXT_LENGTH = 65, 128
LENET_SHAPE, MLP_SIZES, NUM_CLASSES = (1, 28, 28), (784, 256, 10), 10
CALLS = {("mlp", 256): 100, ("mlp", 1): 1000, ("lenet", 256): 10, ("lenet", 1): 300, ("gpt", 8): 4, ("unet", 16): 4}


class Problem(NamedTuple):
    """A network at rest and what it reads; `predict` is how Quoin itself goes through it."""

    model: nn.Module
    inputs: tuple[Tensor, ...]
    predict: Callable[[], Tensor]


def make_problem(network: str, rows: int) -> Problem:
    """The same weights and numbers in every process."""
    generator = torch.Generator().manual_seed(0)
    if network == "gpt":
        small = GPTS["small"]
        model = GPT(
            VOCAB_SIZE, small.embed_dim, small.num_heads, small.num_layers, CONTEXT_LENGTH, generator=generator
        ).eval()
        tokens = torch.randint(VOCAB_SIZE, (rows, CONTEXT_LENGTH), generator=generator)
        return Problem(model, (tokens,), lambda: model(tokens))
    if network == "unet":
        model = UNet(SHAPE, channels=CHANNELS, num_blocks=NUM_BLOCKS, generator=generator).eval()
        with torch.no_grad():  # its last layer starts at zero, which would hide a difference
            model.leave.weight.normal_(0, 0.1, generator=generator)
        images = torch.randn((rows, *SHAPE), generator=generator)
        t = torch.randint(NUM_TIMESTEPS, (rows,), generator=generator)
        return Problem(model, (images, t), lambda: model(images, t))
    if network == "mlp":
        model, features = MLP(MLP_SIZES, generator=generator).eval(), torch.rand(rows, 784, generator=generator)
    else:
        model = lenet(LENET_SHAPE, NUM_CLASSES, generator=generator).eval()
        features = torch.rand((rows, *LENET_SHAPE), generator=generator)
    return Problem(model, (features,), lambda: predict_in_batches(model, features))


@torch.no_grad()
def quoin(repeats: Repeats, network: str, rows: str) -> dict[str, float]:
    torch.set_num_threads(repeats.threads)
    problem = make_problem(network, int(rows))
    return {"mean output": float(_timed(repeats, problem.predict, network, rows).mean(dtype=torch.float64))}


def onnxruntime(repeats: Repeats, network: str, rows: str) -> dict[str, float]:
    import onnxruntime as runtime

    problem = make_problem(network, int(rows))
    options = runtime.SessionOptions()
    options.intra_op_num_threads = repeats.threads
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        write_onnx(problem, path)
        session = runtime.InferenceSession(path, options, ["CPUExecutionProvider"])
    feed = {each.name: x.numpy() for each, x in zip(session.get_inputs(), problem.inputs, strict=True)}

    def predict() -> Tensor:
        return torch.from_numpy(session.run(None, feed)[0])

    output = _timed(repeats, predict, network, rows)
    with torch.no_grad():
        difference = float((output - problem.model(*problem.inputs)).abs().max())
    return {"mean output": float(output.mean(dtype=torch.float64)), "largest difference": difference}


def write_onnx(problem: Problem, path: Path) -> None:
    """The network as an ONNX file whose batch is free."""
    batch = torch.export.Dim("batch")
    with torch.no_grad():
        program = torch.onnx.export(
            problem.model, problem.inputs, dynamo=True, dynamic_shapes=tuple({0: batch} for _ in problem.inputs),
            verbose=False,
        )  # fmt: skip
    assert program is not None
    program.save(path)


def _timed(repeats: Repeats, predict: Callable[[], Tensor], network: str, rows: str) -> Tensor:
    calls = CALLS[network, int(rows)]

    def work() -> Tensor:
        for _ in range(calls - 1):
            predict()
        return predict()

    return repeats.timed(work)
