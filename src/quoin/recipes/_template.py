"""A small network of mine that classifies the rows of a table."""  # the first sentence is what --help says

from dataclasses import dataclass

from jaxtyping import Float  # says the shapes of tensors; plain Tensor is as good
from torch import Tensor, nn

from quoin import data, losses, tasks, train
from quoin.options import default, option
from quoin.tasks.options import ClassifierOptions, OptimizerName, SupervisedOptions
from quoin.tasks.target import Target
from quoin.train.monitor import Monitor

# What a run on the default data should reach. Leave it out, and nothing is asked of a run.
TARGET = Target("test_accuracy", at_least=0.8)
# The metric of every epoch by which the best weights are kept. Leave it out, and the last weights are.
MONITOR = Monitor("validation_loss")


# Each field is a flag of `quoin train`. The base classes bring --data, --lr, --batch-size, --epochs, --seed and more
# (`quoin train THIS_FILE.py --help` shows all). `default` gives one of theirs another default, `option` makes a new one
# with its help and range. Types: str, int, float, bool, Literal["a", "b"], tuple[int, ...], or such a one `| None`.
@dataclass(frozen=True)
class Options(ClassifierOptions, SupervisedOptions):
    data: str = default("iris")  # or csv:PATH --target COLUMN, npz:PATH, ...: `quoin list` shows all
    optimizer: OptimizerName = default("adamw")
    lr: float = default(0.01)
    epochs: int = default(40)
    width: int = option(32, "units of the hidden layer", at_least=1, at_most=100_000)
    dropout: float = option(0.1, "dropout probability", at_least=0.0, below=1.0)


class MyNetwork(nn.Module):
    """Your model: any nn.Module from a batch of features to a batch of logits."""

    def __init__(self, num_features: int, num_classes: int, *, width: int, dropout: float) -> None:
        super().__init__()
        self.hidden = nn.Linear(num_features, width)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(width, num_classes)

    def forward(self, features: Float[Tensor, "batch features"]) -> Float[Tensor, "batch classes"]:
        return self.output(self.dropout(self.hidden(features).tanh()))


def model(options: Options, data_info: "data.TabularInfo") -> nn.Module:
    """The untrained model. `quoin predict` and its kin make it again from the options and what the run remembers of its
    data, and read the trained weights into it."""
    return MyNetwork(data_info.num_features, data_info.num_classes, width=options.width, dropout=options.dropout)


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    """All that the trainer needs: data, model, loss and optimizer, put together as a task.

    Torch's generator is already seeded by --seed here, so that the first weights are reproducible.
    """
    data = tasks.load_classification_data(options, device_context)  # split, features scaled to mean 0 and variance 1
    net = model(options, data.data_info).to(device_context.device)
    optimizer = tasks.make_optimizer(net.parameters(), options)
    # The loss gives one number for each example; write your own as a function of logits and labels.
    return tasks.supervised_task(
        tasks.Classification, net, losses.cross_entropy, optimizer, data, options, device_context
    )
