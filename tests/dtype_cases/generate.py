"""Cases for `quoin.generate`: see tests/dtypes.py.

What draws noise draws other numbers in every dtype, so noise is made too small to be seen, or a single step is taken,
which draws none.
"""

import torch
from torch import nn

from quoin import generate as q
from quoin.prob import Denoised, SamplePrediction, linear_beta_schedule
from quoin.tensor import as_floating

SCHEDULE = linear_beta_schedule(8)
LOGITS, LAW = [[0, 200, 3], [1, 2, 130]], [[0.5, 0.125, 0.375], [0.25, 0.5, 0.25]]
START = [[0, 100, 3], [20, 7, 90]]
PROMPT = torch.tensor([[0], [1]])


class Table:
    """A model of tokens whose logits are a row of a table for the last one, and its state, which holds nothing."""

    def __init__(self, x):
        self.table = x([[0.0, 200.0, 3.0], [130.0, 2.0, 1.0], [1.0, 2.0, 100.0]])

    def decode_step(self, cache, tokens):
        return self.table[tokens], self

    def select(self, indices):
        return self


def choosing(f):
    def case(x):
        model = Table(x)
        return f(model, model, PROMPT)

    return case


def denoiser(noisy, t):
    noisy = as_floating(noisy)
    return Denoised(noisy / 2, noisy / 4)


def walked(f, num_steps=4, start=START, **options):
    return lambda x: f(denoiser, SCHEDULE, x(start), num_steps=num_steps, generator=torch.Generator(), **options)


def velocity(x, t):
    return x / 2


class Halves(nn.Module):
    def forward(self, x, t, labels=None):
        return x / 2 if labels is None else x / 2 + labels[:, None]


def diffusion(x):
    return q.DiffusionSampler(
        Halves(), SCHEDULE, SamplePrediction(), (3,), loc=x([0, 100, 3]), scale=x([2, 20, 100]), num_steps=2
    )


def guided_diffusion(x):
    return q.GuidedDiffusionSampler(
        Halves(),
        SCHEDULE,
        SamplePrediction(),
        (3,),
        num_classes=2,
        loc=x([0, 100, 3]),
        scale=x([2, 20, 100]),
        num_steps=2,
    )


def flow(x):
    return q.FlowSampler(Halves(), (3,), loc=x([0, 100, 3]), scale=x([2, 20, 100]))


class Levels:
    """A model of pixels that finds the second of two levels most probable."""

    image_shape, num_levels, num_classes = (1, 2, 2), 3, None

    def __init__(self, x):
        self.logits = x([[0, 200, 3]])

    def predictor(self, images, labels=None):
        return lambda index: self.logits.expand(len(images), 3)

    def check_labels(self, labels, count):
        pass


CASES = {
    "greedy_token": lambda x: q.greedy_token(x(LOGITS)),
    "temperature_softmax": lambda x: q.temperature_softmax(x(LOGITS), 50.0),
    "top_k_filter": lambda x: q.top_k_filter(x(LAW), 2),
    "top_p_filter": lambda x: q.top_p_filter(x(LAW), 0.7),
    "top_k_filter counts": lambda x: q.top_k_filter(x([[200, 100, 3]]), 2),
    "top_p_filter counts": lambda x: q.top_p_filter(x([[200, 100, 3]]), 0.7),
    "TokenSampler.probs": lambda x: q.TokenSampler(50.0, top_k=2, top_p=0.9).probs(x(LOGITS)),
    "TokenSampler": lambda x: q.TokenSampler(0.5, generator=torch.Generator())(x(LOGITS)),
    "stream_tokens": choosing(lambda *given: list(q.stream_tokens(*given, q.greedy_token, max_tokens=2))),
    "generate_tokens": choosing(lambda *given: q.generate_tokens(*given, q.greedy_token, max_tokens=2)),
    "greedy_search": choosing(lambda *given: q.greedy_search(*given, max_tokens=2)),
    "sample_tokens": choosing(
        lambda *given: q.sample_tokens(*given, max_tokens=2, temperature=0.5, generator=torch.Generator())
    ),
    "beam_search": choosing(lambda *given: q.beam_search(*given, num_beams=2, max_tokens=2)),
    "sample_ddpm": walked(q.sample_ddpm, num_steps=1),
    "sample_ddim": walked(q.sample_ddim),
    "sample_euler": walked(q.sample_euler),
    "sample_heun": walked(q.sample_heun),
    "sample_dpm_solver_2": walked(q.sample_dpm_solver_2, start=[[0, 1, 3]]),
    "langevin": lambda x: q.langevin(
        lambda at: at * 100, x(START), step_size=0.01, num_steps=2, generator=torch.Generator()
    ),
    "annealed_langevin": walked(q.annealed_langevin, num_corrector_steps=1, step_size=1e-12),
    "clip_denoiser": lambda x: q.clip_denoiser(denoiser, SCHEDULE, low=-1.0, high=40.0)(x(START), torch.tensor([1, 4])),
    "denoise_at": lambda x: q.denoise_at(denoiser, x(START), 3),
    "integrate_euler": lambda x: q.integrate_euler(velocity, x(START), num_steps=4),
    "integrate_midpoint": lambda x: q.integrate_midpoint(velocity, x(START), num_steps=4),
    "flow_log_prob": lambda x: q.flow_log_prob(velocity, x(START), num_steps=4),
    "classifier_free_guidance_definition": lambda x: q.classifier_free_guidance_definition(
        x([0, 100]), x([200, 3]), 2.0
    ),
    "classifier_free_guidance": lambda x: q.classifier_free_guidance(
        Halves(), torch.tensor([0, 1]), guidance_scale=2.0, null_label=2
    )(x(START), torch.tensor([1, 4])),
    "DiffusionSampler.normalize": lambda x: diffusion(x).normalize(x(START)),
    "DiffusionSampler.denormalize": lambda x: diffusion(x).denormalize(x(START)),
    "DiffusionSampler.denoiser": lambda x: diffusion(x).denoiser()(x(START), torch.tensor([1, 4])),
    "GuidedDiffusionSampler.denoiser": lambda x: guided_diffusion(x).denoiser(torch.tensor([0, 1]), 2.0)(
        x(START), torch.tensor([1, 4])
    ),
    "FlowSampler.normalize": lambda x: flow(x).normalize(x(START)),
    "FlowSampler.log_prob": lambda x: q.FlowSampler(Halves(), (1,), loc=x([100]), scale=x([20])).log_prob(x([[7]])),
    "complete_pixels": lambda x: q.complete_pixels(
        Levels(x), x([[[[1, 0.5], [0, 0]]]]), 2, q.TokenSampler(0.5, generator=torch.Generator())
    ),
}

# name -> how many roundings it may lose, where the mathematics makes it worse than dtypes.ROUNDINGS
ROUNDINGS: dict[str, float] = {}

RESULT = "a result, built by the functions that are tried"
NO_NUMBERS = dict.fromkeys(["Beams", "TokenStep", "FlowDensity", "Generated", "SamplePath"], RESULT)
NO_NUMBERS |= dict.fromkeys(
    ["PathModel", "PixelScores", "DiffusionSolver", "TokenPredictor", "TokenCache"], "a protocol"
)
NO_NUMBERS |= {
    "sample_initial_noise": "takes sizes and a dtype",
    "PixelSampler": "hands images to its model, PixelCNN of quoin.models, as they are",
}

# Tokens and labels: whole numbers, held against int64.
MARKED = {
    "greedy_search prompt": lambda x: q.greedy_search(*[Table(torch.tensor)] * 2, x([[0], [1]]), max_tokens=2),
    "beam_search prompt": lambda x: q.beam_search(*[Table(torch.tensor)] * 2, x([[0], [1]]), num_beams=2, max_tokens=2),
    "classifier_free_guidance labels": lambda x: q.classifier_free_guidance(
        Halves(), x([0, 1]), guidance_scale=2.0, null_label=2
    )(torch.ones(2, 3), torch.tensor([1, 4])),
    "clip_denoiser times": lambda x: q.clip_denoiser(denoiser, SCHEDULE, low=-1.0, high=40.0)(
        torch.ones(2, 3), x([1, 4])
    ),
}
CASES |= MARKED
WHOLE = set(MARKED)
