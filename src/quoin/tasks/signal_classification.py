"""Signal classification: the encoders by their names, and the task that learns from signals."""

from collections.abc import Callable
from typing import Any

from torch import Generator, nn

from quoin.data import TabularInfo
from quoin.layers import transformer_block
from quoin.losses import cross_entropy
from quoin.models import ConvSignalEncoder, RecurrentSignalEncoder, TransformerSignalEncoder
from quoin.tasks.optimizer import make_optimizer, weight_decay_groups
from quoin.tasks.supervised import Classification
from quoin.tasks.supervised_data import load_signal_data, supervised_task
from quoin.train import DeviceContext

__all__ = ["signal_classifier", "signal_encoder"]


def signal_encoder(
    name: str, options: Any, data_info: TabularInfo, generator: Generator
) -> ConvSignalEncoder | RecurrentSignalEncoder | TransformerSignalEncoder:
    """The encoder of this name, with the sizes that `options` give."""
    channels, length = shape = data_info.signal_shape
    patch_size = min(options.patch_size, length)
    num_layers, dropout = options.num_layers, options.dropout
    if name == "conv":
        return ConvSignalEncoder(
            channels,
            options.hidden_dim,
            num_layers=num_layers,
            kernel_size=options.kernel_size,
            dropout=dropout,
            generator=generator,
        )
    if name == "transformer":
        blocks = [
            transformer_block(
                options.embed_dim,
                options.num_heads,
                activation=nn.functional.gelu,
                dropout=dropout,
                generator=generator,
            )
            for _ in range(num_layers)
        ]
        return TransformerSignalEncoder(shape, blocks, patch_size=patch_size, dropout=dropout, generator=generator)
    return RecurrentSignalEncoder(
        {"gru": nn.GRU, "lstm": nn.LSTM}[name],
        shape,
        options.hidden_dim,
        patch_size=patch_size,
        num_layers=num_layers,
        dropout=dropout,
        generator=generator,
    )


def signal_classifier(
    model: Callable[[Any, TabularInfo], nn.Module], options: Any, device_context: DeviceContext
) -> Classification:
    """The recipe's `model` under cross-entropy on the signals that `options` name."""
    data = load_signal_data(options, device_context)
    net = model(options, data.data_info).to(device_context.device)
    optimizer = make_optimizer(weight_decay_groups(net, options), options)
    return supervised_task(Classification, net, cross_entropy, optimizer, data, options, device_context)
