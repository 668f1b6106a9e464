"""A hidden Markov model fitted by Baum-Welch (EM) to observations alone, from several initialisations."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quoin import data, train
from quoin.options import option
from quoin.tasks.options import RunOptions
from quoin.tasks.target import Target

if TYPE_CHECKING:
    from torch import nn

NOTES = ("D5.1-10",)
KEYWORDS = ("baum-welch", "viterbi", "forward-backward", "em", "expectation maximization")
SUBJECT = "Latent-variable models"
# The largest total variation distance between a row of the true transition or emission matrix and the fitted one, after
# the best permutation of the states, which the observations cannot identify. Over seeds 100 to 124 it is 0.017 ± 0.004;
# an initialisation that ends in another optimum, as half of them do, has more than 0.5.
TARGET = Target("test_max_total_variation", at_most=0.05)
MONITOR = None  # the likelihood never falls: the last matrices are the best

# Three states, each of which lasts ten steps or so and has symbols of its own, and some in common.
TRANSITION = ((0.9, 0.1, 0.0), (0.05, 0.9, 0.05), (0.1, 0.0, 0.9))
EMISSION = ((0.6, 0.2, 0.1, 0.1, 0.0, 0.0), (0.1, 0.1, 0.4, 0.3, 0.1, 0.0), (0.0, 0.1, 0.1, 0.0, 0.3, 0.5))


@dataclass(frozen=True)
class Options(RunOptions):
    num_sequences: int = option(20, "training sequences, and as many test sequences", at_least=1, at_most=10**6)
    sequence_length: int = option(500, "observations of each sequence", at_least=1, at_most=10**6)
    num_init: int = option(
        8, "random initialisations, of which the one with the highest likelihood is kept", at_least=1, at_most=100
    )
    max_iter: int = option(60, "EM (Baum-Welch) iterations, each over all sequences", at_least=1, at_most=10**6)

    @property
    def num_epochs(self) -> int:
        return self.max_iter


def model(options: Options, data_info: None) -> "nn.ParameterDict":
    """Parameters of each initialisation, every row sampled uniformly from the simplex."""
    import torch
    from torch import nn

    states, symbols = len(EMISSION), len(EMISSION[0])
    tables = {}
    for name, shape in {"start": (states,), "transition": (states, states), "emission": (states, symbols)}.items():
        waits = -torch.rand(
            options.num_init, *shape, generator=data.keyed_generator(name, options.seed), dtype=torch.float64
        ).log()
        tables[name] = nn.Parameter(waits / waits.sum(dim=-1, keepdim=True), requires_grad=False)
    return nn.ParameterDict(tables)


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    import torch

    from quoin.tasks.baum_welch import BaumWelchTask

    transition, emission = (torch.tensor(table, dtype=torch.float64) for table in (TRANSITION, EMISSION))
    return BaumWelchTask(model(options, None), transition, emission, options)
