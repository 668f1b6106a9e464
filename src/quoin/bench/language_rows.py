"""The rows on language models: training steps of GPTs and an LSTM beside hand-written torch and Keras. Imports no torch, no peer."""

from quoin.bench.measured import NoMoreMemoryThan, RatioAtLeast, TimesAsQuickAs
from quoin.bench.row import Contestant, Row

__all__ = ["LANGUAGE_ROWS"]

_QUOIN, _TORCH, _PEERS = (f"quoin.bench.language_{name}" for name in ("quoin", "torch", "peers"))
AS_QUICK = 0.97  # the same work in the same kernels: as quick means this close to 1


def _gpt(size: str, compiled: float) -> tuple[Contestant, ...]:
    on_jax, on_torch = (("KERAS_BACKEND", "jax"),), (("KERAS_BACKEND", "torch"),)
    given = (size,)
    return (
        Contestant("Quoin", _QUOIN, "gpt", NoMoreMemoryThan("torch"), arguments=given),
        Contestant("Quoin --compile", _QUOIN, "gpt_compiled", TimesAsQuickAs("torch", compiled), arguments=given),
        Contestant("torch", _TORCH, "gpt", RatioAtLeast(AS_QUICK), arguments=given),
        Contestant("Keras on JAX", _PEERS, "gpt_keras_jax", RatioAtLeast(2.0), ("keras", "jax"), on_jax, given),
        Contestant("Keras on torch", _PEERS, "gpt_keras_torch", RatioAtLeast(2.0), ("keras",), on_torch, given),
    )


def _lstm() -> tuple[Contestant, ...]:
    quoin, peers = "quoin.bench.recurrent_quoin", "quoin.bench.recurrent_peers"
    on_jax = (("KERAS_BACKEND", "jax"),)  # on torch Keras 3.15 does not train a stateful LSTM: it forgets to cut the graph between batches
    return (
        Contestant("Quoin", quoin, "lstm", NoMoreMemoryThan("torch")),
        Contestant("Quoin --compile", quoin, "lstm_compiled", TimesAsQuickAs("torch", 1.2)),
        Contestant("torch", peers, "torch_eager", RatioAtLeast(AS_QUICK)),
        Contestant("Keras on JAX", peers, "keras_jax", RatioAtLeast(2.0), ("keras", "jax"), on_jax),
    )


LANGUAGE_ROWS = (
    Row("lstm-lm", "12 training steps of an LSTM of 256 units on 32 lanes of 64 characters, AdamW, state carried", _lstm(), rounds=9),
    Row(
        "gpt-small",
        "20 training steps of a GPT, 4 layers of width 128, on 12 windows of 64 characters, AdamW",
        _gpt("small", 1.2),
        rounds=9,
    ),
    Row(
        "gpt-medium",
        "2 training steps of a GPT, 6 layers of width 256, on 16 windows of 256 characters, AdamW",
        _gpt("medium", 1.1),
        rounds=5,
    ),
)
