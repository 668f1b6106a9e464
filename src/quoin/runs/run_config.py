"""How to run, whatever the recipe: device, threads, precision, how often to save. Imports no torch."""

from dataclasses import dataclass
from typing import Literal

from quoin.options import Checked, option

__all__ = ["RunConfig"]


@dataclass(frozen=True)
class RunConfig(Checked):
    """Where and how a run is carried out."""

    device: str = option("auto", "auto, cpu, cuda, cuda:1, mps ...; auto takes the best there is")
    threads: int = option(0, "CPU threads; 0 leaves torch's own choice", at_least=0, at_most=1024)
    precision: Literal["float32", "bfloat16", "float16"] = option("float32", "what the forward pass computes in on a GPU")
    compile: bool = option(False, "torch.compile the model; not covered by the promise of equal bits")
    layout: Literal["auto", "channels-first", "channels-last"] = option("auto", "how images lie in memory; auto times both in a long run")
    deterministic: bool = option(False, "on a GPU, take kernels whose result does not vary from run to run; warns where there is none")
    checkpoint_every: int = option(0, "steps between checkpoints; 0 saves as often as costs about 3% of the time", at_least=0)
    max_steps: int = option(0, "stop after this many steps in all; 0 sets no limit", at_least=0)
