"""How to run, whatever the recipe: device, threads, precision, how often to save. Imports no torch."""

from dataclasses import dataclass
from typing import Literal

from quoin.options import ValidatedOptions, option

__all__ = ["RunConfig"]


@dataclass(frozen=True)
class RunConfig(ValidatedOptions):
    """Where and how a run is carried out."""

    device: str = option("auto", "auto, cpu, cuda, cuda:1, mps ...; auto for the best available")
    num_threads: int = option(0, "CPU threads; 0 for torch's default", at_least=0, at_most=1024)
    precision: Literal["float32", "bfloat16", "float16"] = option(
        "float32", "autocast dtype of the forward pass on a GPU"
    )
    compile: bool = option(False, "torch.compile the model; not bitwise reproducible")
    memory_format: Literal["auto", "contiguous", "channels-last"] = option(
        "auto", "memory format of images; auto times both in a long run"
    )
    deterministic: bool = option(False, "deterministic algorithms on a GPU; warns where there is none")
    checkpoint_every: int = option(0, "steps between checkpoints; 0 spends about 3% of the time on them", at_least=0)
    max_steps: int = option(0, "maximum number of steps; 0 for no limit", at_least=0)
