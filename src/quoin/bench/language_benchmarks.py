"""The benchmarks on language models: training steps of GPTs and an LSTM beside hand-written torch and Keras. Imports no
torch, no peer.
"""

from quoin.bench.benchmark import TORCH_STEPS, Benchmark, Implementation
from quoin.bench.targets import NoMoreMemoryThan, RatioAtLeast, TimesAsQuickAs

__all__ = ["LANGUAGE_BENCHMARKS"]

_QUOIN, _TORCH, _PEERS = (f"quoin.bench.language_{name}" for name in ("quoin", "torch", "peers"))
AS_QUICK = 0.97  # the same work in the same kernels: as quick means this close to 1


def _gpt(size: str, compiled: float, keras: float) -> tuple[Implementation, ...]:
    on_jax, on_torch = (("KERAS_BACKEND", "jax"),), (("KERAS_BACKEND", "torch"),)
    given = (size,)
    return (
        Implementation("Quoin", _QUOIN, "gpt", NoMoreMemoryThan("torch"), arguments=given),
        Implementation("Quoin --compile", _QUOIN, "gpt_compiled", TimesAsQuickAs("torch", compiled), arguments=given),
        Implementation("torch", _TORCH, "gpt", RatioAtLeast(AS_QUICK), arguments=given),
        Implementation("Keras on JAX", _PEERS, "gpt_keras_jax", RatioAtLeast(keras), ("keras", "jax"), on_jax, given),
        Implementation("Keras on torch", _PEERS, "gpt_keras_torch", RatioAtLeast(keras), ("keras",), on_torch, given),
    )


def _lstm() -> tuple[Implementation, ...]:
    quoin, peers = "quoin.bench.recurrent_quoin", "quoin.bench.recurrent_peers"
    on_jax = (
        ("KERAS_BACKEND", "jax"),
    )  # on torch Keras 3.15 does not train a stateful LSTM: it forgets to cut the graph between batches
    return (
        Implementation("Quoin", quoin, "lstm", NoMoreMemoryThan("torch")),
        Implementation("Quoin --compile", quoin, "lstm_compiled", TimesAsQuickAs("torch", 1.1)),
        Implementation("torch", peers, "torch_eager", RatioAtLeast(AS_QUICK)),
        Implementation("Keras on JAX", peers, "keras_jax", RatioAtLeast(2.0), ("keras", "jax"), on_jax),
    )


LANGUAGE_BENCHMARKS = (
    Benchmark(
        "lstm-lm",
        "12 training steps of an LSTM of 256 units on 32 streams of 64 characters, AdamW, truncated BPTT",
        _lstm(),
        num_repeats=9,
        on_torch=TORCH_STEPS,
    ),
    Benchmark(
        "gpt-small",
        "20 training steps of a GPT, 4 layers of embed_dim 128, on 12 windows of 64 characters, AdamW",
        _gpt("small", 1.2, 2.0),
        num_repeats=9,
        on_torch=TORCH_STEPS,
    ),
    Benchmark(
        "gpt-medium",
        "2 training steps of a GPT, 6 layers of embed_dim 256, on 16 windows of 256 characters, AdamW",
        _gpt("medium", 1.1, 1.3),
        num_repeats=5,
        on_torch=TORCH_STEPS,
    ),
)
