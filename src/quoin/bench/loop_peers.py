"""The benchmark `loop` on peers, each as its own documentation recommends for speed: Keras 3 on two backends,
scikit-learn.
"""

import numpy as np

from quoin.bench.loop_problem import BATCH_SIZE, HIDDEN_DIM, INPUTS, LR, OUTPUTS, accuracy, problem
from quoin.bench.worker import Repeats

__all__ = ["keras_jax", "keras_torch", "sklearn_mlp"]

# Updates in one call of the compiled function: 16 was quicker than 1, and no slower than 8.
STEPS_PER_EXECUTION = 16


def keras_jax(repeats: Repeats) -> dict[str, float]:
    """Compiled by XLA, several optimizer steps to a call; XLA takes as many threads as there are processors it may
    use."""
    return _keras(repeats, STEPS_PER_EXECUTION)


def keras_torch(repeats: Repeats) -> dict[str, float]:
    """One update to a call: on torch, Keras runs eagerly and has no use for more."""
    import torch

    torch.set_num_threads(repeats.threads)
    return _keras(repeats, 1)


def _keras(repeats: Repeats, steps_per_execution: int) -> dict[str, float]:
    import keras  # pyright: ignore[reportMissingImports]

    given = problem()
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [keras.Input((INPUTS,)), keras.layers.Dense(HIDDEN_DIM, activation="relu"), keras.layers.Dense(OUTPUTS)]
    )
    model.set_weights([given.weights[0], np.zeros(HIDDEN_DIM), given.weights[1], np.zeros(OUTPUTS)])
    model.compile(
        optimizer=keras.optimizers.SGD(LR),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        steps_per_execution=steps_per_execution,
    )
    bell = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: repeats.end())
    model.fit(given.features, given.labels, batch_size=BATCH_SIZE, epochs=repeats.count, verbose=0, callbacks=[bell])  # pyright: ignore[reportArgumentType]
    scores = model.predict(given.test_features, verbose=0)  # pyright: ignore[reportArgumentType]
    return accuracy(np.asarray(scores), given)


def sklearn_mlp(repeats: Repeats) -> dict[str, float]:
    """MLPClassifier, an epoch to a call of `partial_fit`; it samples its own initial weights."""
    from sklearn.neural_network import MLPClassifier

    given = problem()
    model = MLPClassifier(
        (HIDDEN_DIM,),
        solver="sgd",
        alpha=0.0,
        batch_size=BATCH_SIZE,  # pyright: ignore[reportArgumentType]
        learning_rate_init=LR,
        momentum=0.0,
        random_state=0,
    )
    repeats.timed(lambda: model.partial_fit(given.features, given.labels, classes=np.arange(OUTPUTS)))
    return accuracy(np.asarray(model.predict_proba(given.test_features)), given)
