"""What config.json records of a run of a module of one's own, as the options of a recipe are for its runs. Imports no
torch."""

from dataclasses import dataclass
from typing import Literal

from quoin.options import option
from quoin.tasks.options import EpochOptions

__all__ = ["ModuleOptions"]


@dataclass(frozen=True)
class ModuleOptions(EpochOptions):
    """The arguments of `quoin.fit`; of a function only its name, with brackets, so that `quoin.resume` asks for it."""

    model: str = option("", "class of the model")
    num_parameters: int = option(0, "weights of the model, frozen ones among them", at_least=0)
    loss: str = option("", "loss function")
    metrics: tuple[str, ...] = option((), "metrics beside the loss")
    optimizer: str = option("", "optimizer")
    lr: tuple[float, ...] = option((), "peak learning rate of each parameter group", at_least=0.0, at_most=1e38)
    weight_decay: float = option(0.0, "weight decay of an optimizer by name", at_least=0.0, at_most=1e38)
    schedule: str = option("constant", "learning-rate schedule")
    batch_size: int = option(32, "examples per optimizer step", at_least=1, at_most=10**9)
    micro_batch_size: int = option(0, "rows of one forward pass; 0 for the whole batch", at_least=0, at_most=10**9)
    max_grad_norm: float = option(0.0, "gradient clipping: maximum norm of the gradient; 0 for none", at_least=0.0)
    mode: Literal["auto", "min", "max"] = option("auto", "whether the monitored metric should be low or high")
    target: tuple[str, ...] = option((), "target columns of a data frame, or the target's name in a dict")
    validation: float = option(0.0, "fraction of the data that is held out for validation", at_least=0.0, below=1.0)
    given_splits: tuple[str, ...] = option((), "splits that were given as data of their own")
