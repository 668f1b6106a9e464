"""The benchmarks on images, on Keras 3: compiled by XLA on JAX, eager on torch, each with the order of axes that its
backend is quick in.
"""

import numpy as np

from quoin.bench.images_problem import CLASSES, LENET, LR, MOMENTUM, RESNET, Work, accuracy
from quoin.bench.worker import Repeats

__all__ = ["lenet_keras_jax", "lenet_keras_torch", "resnet_keras_jax", "resnet_keras_torch"]


def lenet_keras_jax(repeats: Repeats) -> dict[str, float]:
    return _fit(repeats, LENET, _lenet, "channels_last", steps_per_execution=8)


def lenet_keras_torch(repeats: Repeats) -> dict[str, float]:
    _threads(repeats)
    return _fit(repeats, LENET, _lenet, "channels_first", steps_per_execution=1)


def resnet_keras_jax(repeats: Repeats) -> dict[str, float]:
    """One update to a call: a step takes so long that calling weighs nothing, and four in one would only compile
    longer."""
    return _fit(repeats, RESNET, _resnet, "channels_last", steps_per_execution=1)


def resnet_keras_torch(repeats: Repeats) -> dict[str, float]:
    _threads(repeats)
    return _fit(repeats, RESNET, _resnet, "channels_first", steps_per_execution=1)


def _threads(repeats: Repeats) -> None:
    import torch

    torch.set_num_threads(repeats.threads)


def _fit(repeats: Repeats, work: Work, network, data_format: str, *, steps_per_execution: int) -> dict[str, float]:
    import keras  # pyright: ignore[reportMissingImports]

    keras.config.set_image_data_format(data_format)
    keras.utils.set_random_seed(0)
    given = work.images()
    channels, height, width = work.image_shape
    features, test_features = given.features, given.test_features
    if data_format == "channels_last":
        features, test_features = (np.ascontiguousarray(np.moveaxis(each, 1, -1)) for each in (features, test_features))
    inputs = keras.Input((height, width, channels) if data_format == "channels_last" else work.image_shape)
    model = keras.Model(inputs, network(inputs))
    model.compile(
        optimizer=keras.optimizers.SGD(LR, momentum=MOMENTUM),  # pyright: ignore[reportArgumentType]
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        steps_per_execution=steps_per_execution,
    )
    bell = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: repeats.end())
    model.fit(features, given.labels, batch_size=work.batch_size, epochs=repeats.count, verbose=0, callbacks=[bell])  # pyright: ignore[reportArgumentType]
    scores = model.predict(test_features, verbose=0)  # pyright: ignore[reportArgumentType]
    return accuracy(np.asarray(scores), given)


def _lenet(x):
    from keras import layers  # pyright: ignore[reportMissingImports]

    x = layers.AveragePooling2D(2)(layers.Conv2D(6, 5, padding="same", activation="tanh")(x))
    x = layers.AveragePooling2D(2)(layers.Conv2D(16, 5, activation="tanh")(x))
    x = layers.Dense(120, activation="tanh")(layers.Flatten()(x))
    return layers.Dense(CLASSES)(layers.Dense(84, activation="tanh")(x))


def _resnet(x):
    from keras import layers  # pyright: ignore[reportMissingImports]

    x = layers.ReLU()(_convolved(x, 64, 3, 1))
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        x = _block(_block(x, outputs, stride, changes=outputs != 64), outputs, 1, changes=False)
    return layers.Dense(CLASSES)(layers.GlobalAveragePooling2D()(x))


def _block(x, outputs: int, stride: int, *, changes: bool):
    from keras import layers  # pyright: ignore[reportMissingImports]

    h = _convolved(layers.ReLU()(_convolved(x, outputs, 3, stride)), outputs, 3, 1)
    return layers.ReLU()(layers.add([h, _convolved(x, outputs, 1, stride) if changes else x]))


def _convolved(x, outputs: int, kernel_size: int, stride: int):
    """A convolution and its batch normalisation, with the constants of torch's."""
    import keras  # pyright: ignore[reportMissingImports]
    from keras import layers  # pyright: ignore[reportMissingImports]

    axis = -1 if keras.config.image_data_format() == "channels_last" else 1
    h = layers.Conv2D(outputs, kernel_size, strides=stride, padding="same", use_bias=False)(x)
    return layers.BatchNormalization(axis=axis, momentum=0.9, epsilon=1e-5)(h)
