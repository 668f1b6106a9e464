"""The row `loop` on peers, each as its own documentation says it is quickest: Keras 3 on two backends, scikit-learn."""

import numpy as np

from quoin.bench.loop_problem import BATCH, HIDDEN, INPUTS, OUTPUTS, RATE, accuracy, problem
from quoin.bench.worker import Laps

__all__ = ["keras_jax", "keras_torch", "sklearn_mlp"]

# Updates in one call of the compiled function: 16 was quicker than 1, and no slower than 8.
STEPS_PER_EXECUTION = 16


def keras_jax(laps: Laps) -> dict[str, float]:
    """Compiled by XLA, several updates to a call; XLA takes as many threads as there are processors it may use."""
    return _keras(laps, STEPS_PER_EXECUTION)


def keras_torch(laps: Laps) -> dict[str, float]:
    """One update to a call: on torch, Keras runs eagerly and has no use for more."""
    import torch

    torch.set_num_threads(laps.threads)
    return _keras(laps, 1)


def _keras(laps: Laps, steps_per_execution: int) -> dict[str, float]:
    import keras  # pyright: ignore[reportMissingImports]

    given = problem()
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((INPUTS,)), keras.layers.Dense(HIDDEN, activation="relu"), keras.layers.Dense(OUTPUTS)])
    model.set_weights([given.weights[0], np.zeros(HIDDEN), given.weights[1], np.zeros(OUTPUTS)])
    model.compile(
        optimizer=keras.optimizers.SGD(RATE),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        steps_per_execution=steps_per_execution,
    )
    bell = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: laps.end())
    model.fit(given.features, given.labels, batch_size=BATCH, epochs=laps.count, verbose=0, callbacks=[bell])  # pyright: ignore[reportArgumentType]
    scores = model.predict(given.test_features, verbose=0)  # pyright: ignore[reportArgumentType]
    return accuracy(np.asarray(scores), given)


def sklearn_mlp(laps: Laps) -> dict[str, float]:
    """MLPClassifier, an epoch to a call of `partial_fit`; it draws its own first weights."""
    from sklearn.neural_network import MLPClassifier

    given = problem()
    model = MLPClassifier(
        (HIDDEN,),
        solver="sgd",
        alpha=0.0,
        batch_size=BATCH,  # pyright: ignore[reportArgumentType]
        learning_rate_init=RATE,
        momentum=0.0,
        random_state=0,
    )
    for _ in range(laps.count):
        model.partial_fit(given.features, given.labels, classes=np.arange(OUTPUTS))
        laps.end()
    return accuracy(np.asarray(model.predict_proba(given.test_features)), given)
