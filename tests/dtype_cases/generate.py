"""Cases for `quoin.generate`: see tests/dtypes.py.

What draws noise draws other numbers in every dtype, so noise is made too small to be seen, or a single step is taken, which draws none.
"""

import torch
from torch import nn

from quoin import generate as q
from quoin.prob import Denoised, PredictClean, linear_schedule
from quoin.tensor import as_floating

SCHEDULE = linear_schedule(8)
LOGITS, LAW = [[0, 200, 3], [1, 2, 130]], [[0.5, 0.125, 0.375], [0.25, 0.5, 0.25]]
START = [[0, 100, 3], [20, 7, 90]]
PROMPT = torch.tensor([[0], [1]])


class Table:
    """A model of tokens whose logits are a row of a table for the last one, and its state, which holds nothing."""

    def __init__(self, x):
        self.table = x([[0.0, 200.0, 3.0], [130.0, 2.0, 1.0], [1.0, 2.0, 100.0]])

    def step(self, state, tokens):
        return self.table[tokens], self

    def select(self, rows):
        return self


def choosing(f):
    def case(x):
        model = Table(x)
        return f(model, model, PROMPT)

    return case


def denoiser(noisy, t):
    noisy = as_floating(noisy)
    return Denoised(noisy / 2, noisy / 4)


def walked(f, steps=4, start=START, **options):
    return lambda x: f(denoiser, SCHEDULE, x(start), steps=steps, generator=torch.Generator(), **options)


def velocity(x, t):
    return x / 2


class Halves(nn.Module):
    def forward(self, x, t, labels=None):
        return x / 2 if labels is None else x / 2 + labels[:, None]


def diffusion(x):
    return q.DiffusionSampler(Halves(), SCHEDULE, PredictClean(), (3,), offset=x([0, 100, 3]), unit=x([2, 20, 100]), steps=2)


def guided_diffusion(x):
    return q.GuidedDiffusionSampler(
        Halves(), SCHEDULE, PredictClean(), (3,), num_classes=2, offset=x([0, 100, 3]), unit=x([2, 20, 100]), steps=2
    )


def flow(x):
    return q.FlowSampler(Halves(), (3,), offset=x([0, 100, 3]), unit=x([2, 20, 100]))


class Levels:
    """A model of pixels that finds the second of two levels likeliest."""

    image_shape, num_levels, num_classes = (1, 2, 2), 3, None

    def __init__(self, x):
        self.logits = x([[0, 200, 3]])

    def reader(self, images, labels=None):
        return lambda place: self.logits.expand(len(images), 3)

    def check_labels(self, labels, count):
        pass


CASES = {
    "likeliest": lambda x: q.likeliest(x(LOGITS)),
    "tempered_law": lambda x: q.tempered_law(x(LOGITS), 50.0),
    "top_k_law": lambda x: q.top_k_law(x(LAW), 2),
    "nucleus_law": lambda x: q.nucleus_law(x(LAW), 0.7),
    "top_k_law counts": lambda x: q.top_k_law(x([[200, 100, 3]]), 2),
    "nucleus_law counts": lambda x: q.nucleus_law(x([[200, 100, 3]]), 0.7),
    "Sampling.law": lambda x: q.Sampling(50.0, top_k=2, nucleus=0.9).law(x(LOGITS)),
    "Sampling": lambda x: q.Sampling(0.5, generator=torch.Generator())(x(LOGITS)),
    "stream": choosing(lambda *given: list(q.stream(*given, q.likeliest, max_tokens=2))),
    "decode": choosing(lambda *given: q.decode(*given, q.likeliest, max_tokens=2)),
    "greedy": choosing(lambda *given: q.greedy(*given, max_tokens=2)),
    "sampled": choosing(lambda *given: q.sampled(*given, max_tokens=2, temperature=0.5, generator=torch.Generator())),
    "beam_search": choosing(lambda *given: q.beam_search(*given, width=2, max_tokens=2)),
    "ddpm": walked(q.ddpm, steps=1),
    "ddim": walked(q.ddim),
    "flow_euler": walked(q.flow_euler),
    "flow_heun": walked(q.flow_heun),
    "dpm_solver_2": walked(q.dpm_solver_2, start=[[0, 1, 3]]),
    "langevin": lambda x: q.langevin(lambda at: at * 100, x(START), step_size=0.01, num_steps=2, generator=torch.Generator()),
    "annealed_langevin": walked(q.annealed_langevin, corrections=1, step_size=1e-12),
    "clipped": lambda x: q.clipped(denoiser, SCHEDULE, low=-1.0, high=40.0)(x(START), torch.tensor([1, 4])),
    "denoise_at": lambda x: q.denoise_at(denoiser, x(START), 3),
    "follow_euler": lambda x: q.follow_euler(velocity, x(START), steps=4),
    "follow_midpoint": lambda x: q.follow_midpoint(velocity, x(START), steps=4),
    "flow_log_prob": lambda x: q.flow_log_prob(velocity, x(START), steps=4),
    "guided_definition": lambda x: q.guided_definition(x([0, 100]), x([200, 3]), 2.0),
    "guided": lambda x: q.guided(Halves(), torch.tensor([0, 1]), strength=2.0, unlabelled=2)(x(START), torch.tensor([1, 4])),
    "DiffusionSampler.inward": lambda x: diffusion(x).inward(x(START)),
    "DiffusionSampler.outward": lambda x: diffusion(x).outward(x(START)),
    "DiffusionSampler.denoiser": lambda x: diffusion(x).denoiser()(x(START), torch.tensor([1, 4])),
    "GuidedDiffusionSampler.denoiser": lambda x: guided_diffusion(x).denoiser(torch.tensor([0, 1]), 2.0)(x(START), torch.tensor([1, 4])),
    "FlowSampler.inward": lambda x: flow(x).inward(x(START)),
    "FlowSampler.log_prob": lambda x: q.FlowSampler(Halves(), (1,), offset=x([100]), unit=x([20])).log_prob(x([[7]])),
    "complete_pixels": lambda x: q.complete_pixels(Levels(x), x([[[[1, 0.5], [0, 0]]]]), 2, q.Sampling(0.5, generator=torch.Generator())),
}

# name -> how many roundings it may lose, where the mathematics makes it worse than dtypes.ROUNDINGS
ROUNDINGS: dict[str, float] = {}

RESULT = "a result, built by the functions that are tried"
NO_NUMBERS = dict.fromkeys(["Beams", "Chosen", "FlowDensity", "Generated", "SamplePath"], RESULT)
NO_NUMBERS |= dict.fromkeys(["PathModel", "PixelScores", "ReverseWalk", "TokenModel", "TokenState"], "a protocol")
NO_NUMBERS |= {
    "start_noise": "takes sizes and a dtype",
    "PixelSampler": "hands images to its model, PixelCNN of quoin.models, as they are",
}

# Tokens and labels: whole numbers, held against int64.
MARKED = {
    "greedy prompt": lambda x: q.greedy(*[Table(torch.tensor)] * 2, x([[0], [1]]), max_tokens=2),
    "beam_search prompt": lambda x: q.beam_search(*[Table(torch.tensor)] * 2, x([[0], [1]]), width=2, max_tokens=2),
    "guided labels": lambda x: q.guided(Halves(), x([0, 1]), strength=2.0, unlabelled=2)(torch.ones(2, 3), torch.tensor([1, 4])),
    "clipped times": lambda x: q.clipped(denoiser, SCHEDULE, low=-1.0, high=40.0)(torch.ones(2, 3), x([1, 4])),
}
CASES |= MARKED
WHOLE = set(MARKED)
