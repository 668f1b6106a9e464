"""The rows on language, on Keras 3: compiled by XLA on JAX, eager on torch."""

from typing import Any

import numpy as np

from quoin.bench.language_problem import GPTS, RATE, GPTWork, nats, text
from quoin.bench.worker import Laps

__all__ = ["gpt_keras_jax", "gpt_keras_torch"]


def gpt_keras_jax(laps: Laps, size: str) -> dict[str, float]:
    """As many updates to a call as a lap has, so that calling weighs nothing."""
    return _fit(laps, GPTS[size], steps_per_execution=GPTS[size].steps)


def gpt_keras_torch(laps: Laps, size: str) -> dict[str, float]:
    import torch

    torch.set_num_threads(laps.threads)
    return _fit(laps, GPTS[size], steps_per_execution=1)


def _fit(laps: Laps, work: GPTWork, *, steps_per_execution: int) -> dict[str, float]:
    import keras  # pyright: ignore[reportMissingImports]

    keras.utils.set_random_seed(0)
    given = text()
    model = _gpt(given.vocabulary_size, work)
    model.compile(
        optimizer=keras.optimizers.AdamW(RATE, weight_decay=0.0, beta_2=0.99),  # pyright: ignore[reportArgumentType]
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        steps_per_execution=steps_per_execution,
    )
    bell = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: laps.end())
    inputs, targets = given.windows(work, laps.count * work.steps)

    class Batches(keras.utils.PyDataset):  # every lap has windows of its own, as with the others
        lap = 0

        def __len__(self) -> int:
            return work.steps

        def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
            start = (self.lap * work.steps + index) * work.batch
            return inputs[start : start + work.batch], targets[start : start + work.batch]

        def on_epoch_end(self) -> None:
            self.lap = min(self.lap + 1, laps.count - 1)

    model.fit(Batches(), epochs=laps.count, verbose=0, callbacks=[bell])  # pyright: ignore[reportArgumentType]
    test_inputs, test_targets = given.test_windows(work)
    return nats(np.asarray(model.predict(test_inputs, verbose=0)), test_targets)  # pyright: ignore[reportArgumentType]


def _gpt(vocabulary_size: int, work: GPTWork):
    import keras  # pyright: ignore[reportMissingImports]
    from keras import layers  # pyright: ignore[reportMissingImports]

    start: Any = keras.initializers.RandomNormal(stddev=0.02)

    class Placed(layers.Layer):
        """Adds learned positions; as a layer, since codes looked up while the model is built would be constants, and not learnt."""

        def __init__(self) -> None:
            super().__init__()
            self.codes = layers.Embedding(work.length, work.width, embeddings_initializer=start)

        def call(self, x: Any) -> Any:
            return x + self.codes(keras.ops.arange(work.length))

    tokens = keras.Input((work.length,), dtype="int32")
    x = Placed()(layers.Embedding(vocabulary_size, work.width, embeddings_initializer=start)(tokens))
    for _ in range(work.layers):
        h = layers.LayerNormalization(epsilon=1e-5)(x)
        x = x + layers.MultiHeadAttention(work.heads, work.width // work.heads, kernel_initializer=start)(h, h, use_causal_mask=True)
        h = layers.LayerNormalization(epsilon=1e-5)(x)
        h = layers.Dense(4 * work.width, kernel_initializer=start)(h)
        x = x + layers.Dense(work.width, kernel_initializer=start)(keras.activations.gelu(h, approximate=True))
    x = layers.LayerNormalization(epsilon=1e-5)(x)
    return keras.Model(tokens, layers.Dense(vocabulary_size, use_bias=False, kernel_initializer=start)(x))
