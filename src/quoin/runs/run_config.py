"""How to run, whatever the recipe: device, threads, processes, precision, how often to save. Imports no torch."""

from dataclasses import dataclass
from typing import Literal

from quoin.display import shown
from quoin.errors import UserError
from quoin.options import ValidatedOptions, option

__all__ = ["RunConfig"]

LOG_EVERY = 50  # where the trainer reads the losses of a GPU anyway


@shown
@dataclass(frozen=True)
class RunConfig(ValidatedOptions):
    """Where and how a run is carried out."""

    device: str = option("auto", "auto, cpu, cuda, cuda:1, mps ...; auto for the best available")
    num_threads: int = option(0, "CPU threads; 0 for torch's default", at_least=0, at_most=1024)
    precision: Literal["float32", "bfloat16", "float16"] = option(
        "float32", "autocast dtype of the forward pass on a GPU"
    )
    compile: bool = option(False, "torch.compile the model; not bitwise reproducible")
    checkpoint_activations: bool = option(
        False, "keep the input of each block alone and compute the rest again for the gradient: less memory, more time"
    )
    memory_format: Literal["auto", "contiguous", "channels-last"] = option(
        "auto", "memory format of images; auto times both in a long run"
    )
    processes: int = option(1, "processes that train one model on this machine", at_least=1, at_most=1024)
    shard: bool = option(False, "each process keeps a fraction of the model and its optimizer state (FSDP2)")
    deterministic: bool = option(False, "deterministic algorithms on a GPU; warns where there is none")
    checkpoint_every: int = option(0, "steps between checkpoints; 0 spends about 3% of the time on them", at_least=0)
    max_steps: int = option(0, "maximum number of steps; 0 for no limit", at_least=0)
    log: tuple[Literal["tensorboard", "csv"], ...] = option(
        (), "also write logs for other tools into RUN/log: event files for TensorBoard, CSV files"
    )
    log_every: int = option(LOG_EVERY, "steps between logged batches; on a GPU each makes it wait", at_least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.log_every != LOG_EVERY and not self.log:
            raise UserError(f"--log-every {self.log_every} is for a log: add --log tensorboard or --log csv")
