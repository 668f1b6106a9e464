"""The row `lstm-lm` on others: plain torch as one writes it by hand, and Keras 3, compiled by XLA on JAX."""

import numpy as np

from quoin.bench.language_problem import nats, text
from quoin.bench.recurrent_problem import BATCH, CLIP, HIDDEN, LENGTH, RATE, STEPS, WIDTH, lanes, test_lane
from quoin.bench.worker import Laps

__all__ = ["keras_jax", "torch_eager"]


def torch_eager(laps: Laps) -> dict[str, float]:
    """The state carried from batch to batch, its gradient cut."""
    import torch
    from torch import nn
    from torch.nn import functional

    torch.set_num_threads(laps.threads)
    torch.manual_seed(0)
    given = text()
    codes, cell = nn.Embedding(given.vocabulary_size, WIDTH), nn.LSTM(WIDTH, HIDDEN, batch_first=True)
    scores = nn.Linear(HIDDEN, given.vocabulary_size)
    parameters = [*codes.parameters(), *cell.parameters(), *scores.parameters()]
    optimiser = torch.optim.AdamW(parameters, RATE, betas=(0.9, 0.99), weight_decay=0.0, fused=True)
    inputs, targets = (torch.from_numpy(each) for each in lanes(given, laps.count * STEPS))
    state, step = None, 0
    for _ in range(laps.count):
        for _ in range(STEPS):
            outputs, state = cell(codes(inputs[step]), state)
            loss = functional.cross_entropy(scores(outputs).flatten(0, 1), targets[step].flatten())
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, CLIP)
            optimiser.step()
            state, step = tuple(each.detach() for each in state), step + 1
        laps.end()
    inputs, answers = test_lane(given)
    with torch.no_grad():
        return nats(scores(cell(codes(torch.from_numpy(inputs)))[0]).numpy(), answers)


def keras_jax(laps: Laps) -> dict[str, float]:
    """As many updates to a call as a lap has, so that calling weighs nothing."""
    import keras  # pyright: ignore[reportMissingImports]
    from keras import layers  # pyright: ignore[reportMissingImports]

    keras.utils.set_random_seed(0)
    given = text()
    tokens = keras.Input((LENGTH,), batch_size=BATCH, dtype="int32")
    x = layers.Embedding(given.vocabulary_size, WIDTH)(tokens)
    x = layers.LSTM(HIDDEN, return_sequences=True, stateful=True)(x)
    model = keras.Model(tokens, layers.Dense(given.vocabulary_size)(x))
    model.compile(
        optimizer=keras.optimizers.AdamW(RATE, weight_decay=0.0, beta_2=0.99, global_clipnorm=CLIP),  # pyright: ignore[reportArgumentType]
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        steps_per_execution=STEPS,
    )
    bell = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: laps.end())
    inputs, targets = lanes(given, laps.count * STEPS)

    class Batches(keras.utils.PyDataset):  # every lap goes on in the text, as with the others
        lap = 0

        def __len__(self) -> int:
            return STEPS

        def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
            return inputs[self.lap * STEPS + index], targets[self.lap * STEPS + index]

        def on_epoch_end(self) -> None:
            self.lap = min(self.lap + 1, laps.count - 1)

    model.fit(Batches(), epochs=laps.count, shuffle=False, verbose=0, callbacks=[bell])  # pyright: ignore[reportArgumentType]
    test_inputs, test_targets = test_lane(given)
    return nats(np.asarray(model.predict(test_inputs, batch_size=BATCH, verbose=0)), test_targets)  # pyright: ignore[reportArgumentType]
