"""Six optimizers on one MLP, each at its best learning rate of a sweep: loss by steps and by seconds."""

from dataclasses import dataclass

from quoin import data, losses, models, tasks, train
from quoin.options import default, option
from quoin.tasks.options import DataOptions, EpochOptions, SupervisedOptions
from quoin.tasks.target import Target

NOTES = ("D1.5-4", "D1.5-6", "D1.5-7", "D1.5-8", "D1.5-10")
KEYWORDS = ("adam", "adamw", "rmsprop", "nesterov", "sgd", "momentum")
SUBJECT = "Optimization"
# Of the optimizer that ends worst, at the learning rate that validation chose for it: each of the six classifies the
# digits at its own.
TARGET = Target("test_min_accuracy", at_least=0.95)
MONITOR = None  # all are compared as they end


@dataclass(frozen=True)
class Options(DataOptions, EpochOptions):
    hidden_dims: tuple[int, ...] = option(
        (128,), "units of each hidden layer, from input to output", at_least=1, at_most=1_000_000
    )
    lrs: tuple[float, ...] = option(
        (0.01, 0.03, 0.1, 0.3, 1.0), "learning rates to try for SGD, momentum and Nesterov", above=0.0, at_most=1e38
    )
    adaptive_lrs: tuple[float, ...] = option(
        (0.001, 0.003, 0.01, 0.03), "learning rates to try for RMSProp, Adam and AdamW", above=0.0, at_most=1e38
    )
    momentum: float = option(0.9, "momentum, of momentum and Nesterov", above=0.0, below=1.0)
    weight_decay: float = option(0.1, "weight decay of AdamW", at_least=0.0, at_most=1e6)
    loss_threshold: float = option(0.1, "training loss, averaged over an epoch, to which steps are counted", above=0.0)
    epochs: int = default(15)
    batch_size: int = option(32, "examples per optimizer step", at_least=1, at_most=10**9)


def model(options: Options, data_info: "data.TabularInfo") -> "models.MLP":
    """The MLP that all start from; the run keeps the one of the lowest validation loss."""
    return models.MLP(
        [data_info.num_features, *options.hidden_dims, data_info.num_classes],
        generator=data.keyed_generator("weights", options.seed),
    )


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.data import BatchSampler
    from quoin.tasks.optimizer_race import OPTIMIZERS, OptimizerRace, Trial, learning_rates, make_unfused_optimizer

    sweep = [(name, lr) for name in OPTIMIZERS for lr in learning_rates(name, options)]
    data = tasks.load_classification_data(options, device_context)
    own = SupervisedOptions(seed=options.seed, epochs=options.epochs, batch_size=options.batch_size)
    trials = []
    for name, lr in sweep:
        net = model(options, data.data_info).to(device_context.device)
        optimizer = make_unfused_optimizer(
            name, net.parameters(), lr, momentum=options.momentum, weight_decay=options.weight_decay
        )
        trials.append(
            Trial(
                name,
                lr,
                tasks.supervised_task(
                    tasks.Classification, net, losses.cross_entropy, optimizer, data, own, device_context
                ),
            )
        )
    batches = BatchSampler(data.train.num_rows, options.batch_size, seed=options.seed, device=device_context.device)
    return OptimizerRace(trials, batches, level=options.loss_threshold)
