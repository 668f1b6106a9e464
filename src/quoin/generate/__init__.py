"""Draw from a trained model: text token by token, images pixel by pixel, points and images out of noise."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.generate.beam import Beams, beam_search
    from quoin.generate.choosing import Sampling, likeliest, nucleus_law, tempered_law, top_k_law
    from quoin.generate.decoding import Chosen, Generated, TokenModel, TokenState, decode, greedy, sampled, stream
    from quoin.generate.diffusion import Watch, clipped, ddim, ddpm, denoise_at, start_noise
    from quoin.generate.diffusion_model import DiffusionSampler, GuidedDiffusionSampler, ReverseWalk
    from quoin.generate.diffusion_solvers import dpm_solver_2, flow_euler, flow_heun
    from quoin.generate.flow import FlowDensity, FlowSampler, VelocityField, flow_log_prob, follow_euler, follow_midpoint
    from quoin.generate.guidance import LabelledNetwork, guided, guided_definition
    from quoin.generate.langevin import annealed_langevin, langevin
    from quoin.generate.paths import PathModel, SamplePath
    from quoin.generate.pixels import PixelSampler, PixelScores, complete_pixels

__all__ = [
    "Beams",
    "Chosen",
    "DiffusionSampler",
    "FlowDensity",
    "FlowSampler",
    "Generated",
    "GuidedDiffusionSampler",
    "LabelledNetwork",
    "PathModel",
    "PixelSampler",
    "PixelScores",
    "ReverseWalk",
    "SamplePath",
    "Sampling",
    "TokenModel",
    "TokenState",
    "VelocityField",
    "Watch",
    "annealed_langevin",
    "beam_search",
    "clipped",
    "complete_pixels",
    "ddim",
    "ddpm",
    "decode",
    "denoise_at",
    "dpm_solver_2",
    "flow_euler",
    "flow_heun",
    "flow_log_prob",
    "follow_euler",
    "follow_midpoint",
    "greedy",
    "guided",
    "guided_definition",
    "langevin",
    "likeliest",
    "nucleus_law",
    "sampled",
    "start_noise",
    "stream",
    "tempered_law",
    "top_k_law",
]

export_lazily(__name__)
