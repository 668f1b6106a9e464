"""The benchmarks on language, on Keras 3: compiled by XLA on JAX, eager on torch."""

from typing import Any

import numpy as np

from quoin.bench.language_problem import GPTS, LR, GPTWork, nats, text
from quoin.bench.worker import Repeats

__all__ = ["gpt_keras_jax", "gpt_keras_torch"]


def gpt_keras_jax(repeats: Repeats, size: str) -> dict[str, float]:
    """As many optimizer steps to a call as a repeat has, so that calling weighs nothing."""
    return _fit(repeats, GPTS[size], steps_per_execution=GPTS[size].num_steps)


def gpt_keras_torch(repeats: Repeats, size: str) -> dict[str, float]:
    import torch

    torch.set_num_threads(repeats.threads)
    return _fit(repeats, GPTS[size], steps_per_execution=1)


def _fit(repeats: Repeats, work: GPTWork, *, steps_per_execution: int) -> dict[str, float]:
    import keras  # pyright: ignore[reportMissingImports]

    keras.utils.set_random_seed(0)
    given = text()
    model = _gpt(given.vocab_size, work)
    model.compile(
        optimizer=keras.optimizers.AdamW(LR, weight_decay=0.0, beta_2=0.99),  # pyright: ignore[reportArgumentType]
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        steps_per_execution=steps_per_execution,
    )
    bell = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: repeats.end())
    inputs, targets = given.windows(work, repeats.count * work.num_steps)

    class Batches(keras.utils.PyDataset):  # every repeat has windows of its own, as with the others
        repeat = 0

        def __len__(self) -> int:
            return work.num_steps

        def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
            start = (self.repeat * work.num_steps + index) * work.batch_size
            return inputs[start : start + work.batch_size], targets[start : start + work.batch_size]

        def on_epoch_end(self) -> None:
            self.repeat = min(self.repeat + 1, repeats.count - 1)

    model.fit(Batches(), epochs=repeats.count, verbose=0, callbacks=[bell])  # pyright: ignore[reportArgumentType]
    test_inputs, test_targets = given.test_windows(work)
    return nats(np.asarray(model.predict(test_inputs, verbose=0)), test_targets)  # pyright: ignore[reportArgumentType]


def _gpt(vocab_size: int, work: GPTWork):
    import keras  # pyright: ignore[reportMissingImports]
    from keras import layers  # pyright: ignore[reportMissingImports]

    start: Any = keras.initializers.RandomNormal(stddev=0.02)

    class Placed(layers.Layer):
        """Adds learned positions; as a layer, since embeddings looked up while the model is built would be constants,
        and not learnt."""

        def __init__(self) -> None:
            super().__init__()
            self.embedding = layers.Embedding(work.context_length, work.embed_dim, embeddings_initializer=start)

        def call(self, x: Any) -> Any:
            return x + self.embedding(keras.ops.arange(work.context_length))

    tokens = keras.Input((work.context_length,), dtype="int32")
    x = Placed()(layers.Embedding(vocab_size, work.embed_dim, embeddings_initializer=start)(tokens))
    for _ in range(work.num_layers):
        h = layers.LayerNormalization(epsilon=1e-5)(x)
        x = x + layers.MultiHeadAttention(work.num_heads, work.embed_dim // work.num_heads, kernel_initializer=start)(
            h, h, use_causal_mask=True
        )
        h = layers.LayerNormalization(epsilon=1e-5)(x)
        h = layers.Dense(4 * work.embed_dim, kernel_initializer=start)(h)
        x = x + layers.Dense(work.embed_dim, kernel_initializer=start)(keras.activations.gelu(h, approximate=True))
    x = layers.LayerNormalization(epsilon=1e-5)(x)
    return keras.Model(tokens, layers.Dense(vocab_size, use_bias=False, kernel_initializer=start)(x))
