"""How to run, whatever the recipe: device, threads, precision, how often to save. Imports no torch."""

from dataclasses import dataclass
from typing import Literal

from quoin.options import ValidatedOptions, option

__all__ = ["RunConfig"]


@dataclass(frozen=True)
class RunConfig(ValidatedOptions):
    """Where and how a run is carried out."""

    device: str = option("auto", "auto, cpu, cuda, cuda:1, mps ...; auto takes the best there is")
    num_threads: int = option(0, "CPU threads; 0 leaves torch's own choice", at_least=0, at_most=1024)
    precision: Literal["float32", "bfloat16", "float16"] = option(
        "float32", "autocast dtype of the forward pass on a GPU"
    )
    compile: bool = option(False, "torch.compile the model; not reproducible to the bit")
    memory_format: Literal["auto", "contiguous", "channels-last"] = option(
        "auto", "memory format of images; auto times both in a long run"
    )
    deterministic: bool = option(False, "deterministic algorithms on a GPU; warns where there is none")
    checkpoint_every: int = option(0, "steps between checkpoints; 0 spends about 3% of the time on them", at_least=0)
    max_steps: int = option(0, "stop after this many steps in all; 0 sets no limit", at_least=0)
