"""Sample from a trained model: text token by token, images pixel by pixel, points and images from noise."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.generate.beam import Beams, beam_search
    from quoin.generate.choosing import TokenSampler, greedy_token, temperature_softmax, top_k_filter, top_p_filter
    from quoin.generate.decoding import (
        Generated,
        TokenCache,
        TokenPredictor,
        TokenStep,
        generate_tokens,
        greedy_search,
        sample_tokens,
        stream_tokens,
    )
    from quoin.generate.diffusion import (
        StepCallback,
        clip_denoiser,
        denoise_at,
        sample_ddim,
        sample_ddpm,
        sample_initial_noise,
    )
    from quoin.generate.diffusion_model import DiffusionSampler, DiffusionSolver, GuidedDiffusionSampler
    from quoin.generate.diffusion_solvers import sample_dpm_solver_2, sample_euler, sample_heun
    from quoin.generate.flow import (
        FlowDensity,
        FlowSampler,
        VelocityField,
        flow_log_prob,
        integrate_euler,
        integrate_midpoint,
    )
    from quoin.generate.guidance import LabeledNetwork, classifier_free_guidance, classifier_free_guidance_definition
    from quoin.generate.langevin import annealed_langevin, langevin
    from quoin.generate.paths import PathModel, SamplePath
    from quoin.generate.pixels import PixelSampler, PixelScores, complete_pixels

__all__ = [
    "Beams",
    "DiffusionSampler",
    "DiffusionSolver",
    "FlowDensity",
    "FlowSampler",
    "Generated",
    "GuidedDiffusionSampler",
    "LabeledNetwork",
    "PathModel",
    "PixelSampler",
    "PixelScores",
    "SamplePath",
    "StepCallback",
    "TokenCache",
    "TokenPredictor",
    "TokenSampler",
    "TokenStep",
    "VelocityField",
    "annealed_langevin",
    "beam_search",
    "classifier_free_guidance",
    "classifier_free_guidance_definition",
    "clip_denoiser",
    "complete_pixels",
    "denoise_at",
    "flow_log_prob",
    "generate_tokens",
    "greedy_search",
    "greedy_token",
    "integrate_euler",
    "integrate_midpoint",
    "langevin",
    "sample_ddim",
    "sample_ddpm",
    "sample_dpm_solver_2",
    "sample_euler",
    "sample_heun",
    "sample_initial_noise",
    "sample_tokens",
    "stream_tokens",
    "temperature_softmax",
    "top_k_filter",
    "top_p_filter",
]

export_lazily(__name__)
