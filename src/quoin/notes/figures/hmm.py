"""What a hidden chain lets through: the states behind a noisy sequence, as beliefs and as the most probable path."""

import torch

from quoin.data import keyed_generator
from quoin.notes.figures.figure import figure
from quoin.plot import Plot
from quoin.plot.plots import COLORS, FAINT, INK, house_style, new_figure
from quoin.prob import GaussianEmission, HiddenMarkovModel, MarkovChain


@figure(
    ["D5.1-2", "D5.1-10"],
    "A Markov chain on three levels that is seen through noise only: the observations, the posterior of each state "
    "given all of them, and "
    "the most probable path against the true one.",
    {"num_steps": (2, 1000), "variance": (0.001, 100)},
)
def hidden_states(num_steps: int = 120, variance: float = 1.44) -> Plot:
    levels = torch.tensor([[-2.0], [0.0], [2.0]], dtype=torch.float64)
    stay = torch.tensor([[0.93, 0.07, 0.0], [0.04, 0.92, 0.04], [0.0, 0.07, 0.93]], dtype=torch.float64)
    start = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64)
    noise = variance * torch.ones(3, 1, 1, dtype=torch.float64)
    model = HiddenMarkovModel(MarkovChain(start, stay), GaussianEmission(levels, noise))
    observed, states = model.sample(num_steps, generator=keyed_generator("figure D5.1-10 hidden"))
    seen, true = observed[0], states[0]
    belief, path = model.posterior(seen).output, model.viterbi(seen).output
    time = torch.arange(num_steps)
    with house_style():
        sheet = new_figure(height=5.6)
        top, middle, bottom = sheet.subplots(3, 1, sharex=True)
        top.scatter(time, seen[:, 0], s=9, color=FAINT, label="observed")
        top.step(time, levels[true, 0], where="mid", color=INK, linewidth=1.2, label="hidden")
        top.set_ylabel("level")
        top.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0, ncols=2, fontsize=8)
        middle.stackplot(
            time, belief.T, colors=COLORS[:3], linewidth=0, labels=[f"state {state}" for state in range(3)]
        )
        middle.set_ylabel("P[state | all]")
        middle.set_ylim(0, 1)
        middle.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0, ncols=3, fontsize=8)
        bottom.step(time, true, where="mid", color=FAINT, linewidth=4, label="true")
        right = f"most probable path, right at {int((path == true).sum())} of {num_steps} steps"
        bottom.step(time, path, where="mid", color=COLORS[0], linewidth=1.5, label=right)
        bottom.set_yticks([0, 1, 2])
        bottom.set_ylabel("state")
        bottom.set_xlabel("step")
        bottom.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0, ncols=2, fontsize=8)
        return Plot(sheet, "hidden states")
