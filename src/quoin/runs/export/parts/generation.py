"""Generative models of images and points: the network of one step, or the decoder, and sample.py for the loop."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from quoin.data import ImageInfo
from quoin.generate import (
    DiffusionSampler,
    FlowSampler,
    GuidedDiffusionSampler,
    PixelSampler,
    complete_pixels,
    greedy_token,
    sample_ddim,
)
from quoin.models import DecoderModel, LinearVAE
from quoin.runs.export.exportable import BATCH, Exportable, ExportInput, ExportPart, ScriptCheck
from quoin.runs.export.parts.generation_steps import (
    Decoder,
    Denoise,
    GuidedDenoise,
    LinearDecoder,
    PixelLogits,
    Velocity,
)
from quoin.runs.export.written import CannotExportError
from quoin.runs.run import Run

__all__ = ["generation_parts"]

NUM_SAMPLES = 3
LOOP_TOLERANCE = 1e-3  # each of many steps rounds, and the next begins from there


def generation_parts(run: Run) -> Exportable:
    """The parts of whatever kind of generative model."""
    model, info = run.model, run.data_info
    names = list(info.class_names or ()) if isinstance(info, ImageInfo) else []
    told: dict[str, Any] = {"class_names": names, "units": "samples are on the scale of the training data"}
    if isinstance(model, (DiffusionSampler, GuidedDiffusionSampler)):
        return _diffusion(model, told)
    if isinstance(model, FlowSampler):
        return _flow(model, told)
    if isinstance(model, PixelSampler):
        return _pixels(model, told)
    if isinstance(model, LinearVAE):
        return _linear_decoder(model, told)
    if isinstance(model, DecoderModel):
        dtype = next(model.parameters()).dtype  # type: ignore[attr-defined]
        return _decoder(Decoder(model), model.latent_dim, dtype, model, told)
    raise CannotExportError(
        f"expected a diffusion, flow, decoder or pixel model, got {type(model).__name__}, which has no step to export: "
        "give --to safetensors"
    )


def _normal(dtype: torch.dtype) -> Any:
    return lambda size, generator: torch.randn(size, generator=generator, dtype=dtype)


def _scales(model: DiffusionSampler | GuidedDiffusionSampler | FlowSampler) -> dict[str, Any]:
    dtype = str(model.scale.dtype).removeprefix("torch.")
    return {"loc": model.loc.tolist(), "scale": model.scale.tolist(), "dtype": dtype, "shape": list(model.shape)}


def _diffusion(model: DiffusionSampler | GuidedDiffusionSampler, told: dict[str, Any]) -> Exportable:
    schedule, dtype, guided = model.schedule, model.scale.dtype, isinstance(model, GuidedDiffusionSampler)
    inputs = [
        ExportInput("noisy", (BATCH, *model.shape), _normal(dtype), "on the network's scale"),
        ExportInput(
            "time",
            (BATCH,),
            lambda size, rng: torch.randint(1, schedule.num_steps + 1, size, generator=rng),
            f"from {schedule.num_steps}, noise, to 1",
        ),
    ]
    sampling: dict[str, Any] = {
        **_scales(model),
        "guided": guided,
        "num_steps": model.num_steps,
        "signal": schedule.signal.tolist(),
        "noise": schedule.noise.tolist(),
    }
    if isinstance(model, GuidedDiffusionSampler):
        count = model.num_classes
        inputs += [
            ExportInput("labels", (BATCH,), lambda size, rng: torch.randint(count, size, generator=rng), "classes"),
            ExportInput("guidance_scale", (1,), lambda size, rng: torch.full(size, 2.0, dtype=dtype), "1 for none"),
        ]
        sampling["guidance_scale"] = model.guidance_scale

    def ours(noisy: Tensor, time: Tensor, *given: Tensor) -> tuple[Tensor, ...]:
        if isinstance(model, GuidedDiffusionSampler):
            return (*model.denoiser(given[0], float(given[1]))(noisy, time),)
        return (*model.denoiser()(noisy, time),)

    module = GuidedDenoise(model) if isinstance(model, GuidedDiffusionSampler) else Denoise(model)
    part = ExportPart("denoise", module, tuple(inputs), ("clean", "noise"), ours)
    return Exportable(
        (part,),
        told | {"sampling": sampling},
        {"sample.py": "sample_diffusion"},
        (_sample_check(model, {"sampler": sample_ddim}, (*model.shape,), dtype),),
    )


def _flow(model: FlowSampler, told: dict[str, Any]) -> Exportable:
    dtype = model.scale.dtype
    inputs = (
        ExportInput("state", (BATCH, *model.shape), _normal(dtype), "on the network's scale"),
        ExportInput(
            "time", (BATCH,), lambda size, rng: torch.rand(size, generator=rng, dtype=dtype), "0 for noise, 1 for data"
        ),
    )
    part = ExportPart("velocity", Velocity(model), inputs, ("velocity",), lambda x, t: (model.network(x, t),))
    sampling = _scales(model) | {"num_steps": model.num_steps}
    check = _sample_check(model, {}, (*model.shape,), dtype)
    return Exportable((part,), told | {"sampling": sampling}, {"sample.py": "sample_flow"}, (check,))


def _decoder(
    module: nn.Module, latent_dim: int, dtype: torch.dtype, model: DecoderModel, told: dict[str, Any]
) -> Exportable:
    inputs = (ExportInput("latent", (BATCH, latent_dim), _normal(dtype), "normal numbers"),)
    part = ExportPart("decoder", module, inputs, ("sample",))
    sampling = {"latent_dim": latent_dim, "noise_dim": 0, "dtype": str(dtype).removeprefix("torch.")}
    check = _sample_check(model, {}, (latent_dim,), dtype)
    return Exportable((part,), told | {"sampling": sampling}, {"sample.py": "sample_latent"}, (check,))


def _linear_decoder(model: LinearVAE, told: dict[str, Any]) -> Exportable:
    """Probabilistic PCA, whose examples have noise of their own beside the latent's."""
    decoder, dtype = model.decoder, model.decoder.weight.dtype
    num_features, latent_dim = decoder.weight.shape

    def ours(latent: Tensor, noise: Tensor) -> tuple[Tensor, ...]:
        return (model.loc + model.scale * (decoder(latent) + decoder.noise * noise),)

    inputs = (
        ExportInput("latent", (BATCH, latent_dim), _normal(dtype), "normal numbers"),
        ExportInput("noise", (BATCH, num_features), _normal(dtype), "normal numbers, or zeros for the mean"),
    )
    part = ExportPart("decoder", LinearDecoder(model), inputs, ("sample",), ours)
    sampling = {
        "latent_dim": latent_dim,
        "noise_dim": num_features,
        "dtype": str(dtype).removeprefix("torch."),
    }
    check = _sample_check(model, {}, (latent_dim,), dtype, (num_features,))
    return Exportable((part,), told | {"sampling": sampling}, {"sample.py": "sample_latent"}, (check,))


def _sample_check(
    model: Any,
    options: Mapping[str, Any],
    shape: tuple[int, ...],
    dtype: torch.dtype,
    then: tuple[int, ...] = (0,),
) -> ScriptCheck:
    """sample.py from the noise of this shape that the run's own sampler draws first, and what it draws after that."""

    def seeded() -> torch.Generator:
        return torch.Generator().manual_seed(0)

    generator = seeded()
    noise = torch.randn((NUM_SAMPLES, *shape), generator=generator, dtype=dtype)
    if then != (0,):
        noise = torch.cat([noise, torch.randn((NUM_SAMPLES, *then), generator=generator, dtype=dtype)], dim=1)
    return ScriptCheck(
        "sample.py",
        ("--noise", "{noise}", "--out", "{out}"),
        lambda: model.sample(NUM_SAMPLES, generator=seeded(), **options),
        {"noise": noise},
        LOOP_TOLERANCE,
    )


def _pixels(model: PixelSampler, told: dict[str, Any]) -> Exportable:
    scores = model.model
    levels, shape, count = scores.num_levels, scores.image_shape, scores.num_classes

    def draw(size: tuple[int, ...], generator: torch.Generator) -> Tensor:
        return torch.randint(levels, size, generator=generator) / (levels - 1)

    inputs = [ExportInput("images", (BATCH, *shape), draw, f"pixels from 0 to 1 in {levels} levels")]
    if count is not None:
        inputs.append(ExportInput("labels", (BATCH,), lambda size, rng: torch.randint(count, size, generator=rng)))
    part = ExportPart("pixels", PixelLogits(scores), tuple(inputs), ("logits",))

    def expected() -> Tensor:
        labels = None if count is None else torch.arange(NUM_SAMPLES) % count
        choose: Any = greedy_token
        return complete_pixels(scores, torch.zeros(NUM_SAMPLES, *shape), 0, choose, labels)

    words = ("-n", str(NUM_SAMPLES), "--temperature", "0", "--out", "{out}")
    sampling = {"shape": list(shape), "num_levels": levels, "num_classes": count}
    check = ScriptCheck("sample.py", words, expected)
    return Exportable((part,), told | {"sampling": sampling}, {"sample.py": "sample_pixels"}, (check,))
