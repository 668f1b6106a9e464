"""The benchmark `lstm-lm` on others: plain torch as one writes it by hand, and Keras 3, compiled by XLA on JAX."""

import numpy as np

from quoin.bench.language_problem import nats, text
from quoin.bench.recurrent_problem import (
    BATCH_SIZE,
    EMBED_DIM,
    HIDDEN_DIM,
    LENGTH,
    LR,
    MAX_GRAD_NORM,
    NUM_STEPS,
    streams,
    test_stream,
)
from quoin.bench.worker import Repeats

__all__ = ["keras_jax", "torch_eager"]


def torch_eager(repeats: Repeats) -> dict[str, float]:
    """The state carried from batch to batch, its gradient cut."""
    import torch
    from torch import nn
    from torch.nn import functional

    torch.set_num_threads(repeats.threads)
    torch.manual_seed(0)
    given = text()
    embedding, cell = nn.Embedding(given.vocab_size, EMBED_DIM), nn.LSTM(EMBED_DIM, HIDDEN_DIM, batch_first=True)
    scores = nn.Linear(HIDDEN_DIM, given.vocab_size)
    parameters = [*embedding.parameters(), *cell.parameters(), *scores.parameters()]
    optimizer = torch.optim.AdamW(parameters, LR, betas=(0.9, 0.99), weight_decay=0.0, fused=True)
    inputs, targets = (torch.from_numpy(each) for each in streams(given, repeats.count * NUM_STEPS))
    state, step = None, 0
    for _ in range(repeats.count):
        for _ in range(NUM_STEPS):
            outputs, state = cell(embedding(inputs[step]), state)
            loss = functional.cross_entropy(scores(outputs).flatten(0, 1), targets[step].flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, MAX_GRAD_NORM)
            optimizer.step()
            state, step = tuple(each.detach() for each in state), step + 1
        repeats.end()
    inputs, answers = test_stream(given)
    with torch.no_grad():
        return nats(scores(cell(embedding(torch.from_numpy(inputs)))[0]).numpy(), answers)


def keras_jax(repeats: Repeats) -> dict[str, float]:
    """As many optimizer steps to a call as a repeat has, so that calling weighs nothing."""
    import keras  # pyright: ignore[reportMissingImports]
    from keras import layers  # pyright: ignore[reportMissingImports]

    keras.utils.set_random_seed(0)
    given = text()
    tokens = keras.Input((LENGTH,), batch_size=BATCH_SIZE, dtype="int32")
    x = layers.Embedding(given.vocab_size, EMBED_DIM)(tokens)
    x = layers.LSTM(HIDDEN_DIM, return_sequences=True, stateful=True)(x)
    model = keras.Model(tokens, layers.Dense(given.vocab_size)(x))
    model.compile(
        optimizer=keras.optimizers.AdamW(LR, weight_decay=0.0, beta_2=0.99, global_clipnorm=MAX_GRAD_NORM),  # pyright: ignore[reportArgumentType]
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        steps_per_execution=NUM_STEPS,
    )
    bell = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: repeats.end())
    inputs, targets = streams(given, repeats.count * NUM_STEPS)

    class Batches(keras.utils.PyDataset):  # every repeat goes on in the text, as with the others
        repeat = 0

        def __len__(self) -> int:
            return NUM_STEPS

        def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
            return inputs[self.repeat * NUM_STEPS + index], targets[self.repeat * NUM_STEPS + index]

        def on_epoch_end(self) -> None:
            self.repeat = min(self.repeat + 1, repeats.count - 1)

    model.fit(Batches(), epochs=repeats.count, shuffle=False, verbose=0, callbacks=[bell])  # pyright: ignore[reportArgumentType]
    test_inputs, test_targets = test_stream(given)
    return nats(np.asarray(model.predict(test_inputs, batch_size=BATCH_SIZE, verbose=0)), test_targets)  # pyright: ignore[reportArgumentType]
