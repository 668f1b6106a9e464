"""The lines to paste of exhibits that show trained models: each prints the exhibit's first number."""

from collections.abc import Sequence

__all__ = ["bound_lines", "digit_lines", "pixel_lines", "plane_lines", "trim_lines", "walk_lines"]


def walk_lines(noise: Sequence[float], sampler: str, steps: int) -> str:
    """How far apart eight walks from one noise end."""
    return (
        "import torch\n"
        f"from quoin.generate import {sampler}\n"
        "from quoin.lab.generative import MOONS\n"
        "start, generator = torch.randn(400, 2, generator=torch.Generator().manual_seed(0)), torch.Generator()\n"
        f"start[:8] = torch.tensor({list(noise)!r})\n"
        "model = MOONS.open().model.requires_grad_(False)\n"
        f"ends = {sampler}(model.denoiser(), model.schedule, start, num_steps={steps}, "
        "generator=generator.manual_seed(1))[:8]\n"
        "print(float((ends - ends.mean(dim=0)).square().sum(dim=-1).mean().sqrt()))"
    )


def digit_lines(digit: int, guidance: float) -> str:
    """How many of sixteen samples lie nearest to a test digit of their class."""
    return (
        "import torch\n"
        "from quoin.lab.generative import DIGITS\n"
        f"run, labels, generator = DIGITS.open(), torch.full((16,), {digit}), torch.Generator().manual_seed(0)\n"
        f"wanted = {{'labels': labels, 'guidance_scale': {guidance!r}, 'num_steps': 10}}\n"
        "images = run.model.sample(16, generator=generator, **wanted)\n"
        "test = run.load_task().data.test\n"
        "nearest = torch.cdist(images.flatten(1), test.features.flatten(1)).argmin(dim=1)\n"
        f"print(float((test.targets[nearest] == {digit}).double().mean()))"
    )


def pixel_lines(half: Sequence[float], temperature: float) -> str:
    """The deviation of the pixels that eight completions drew."""
    return (
        "import torch\n"
        "from quoin.generate import TokenSampler, complete_pixels\n"
        "from quoin.lab.generative import PIXELS\n"
        "images = torch.zeros(8, 1, 8, 8)\n"
        f"images[:, 0, :4] = torch.tensor({list(half)!r}).reshape(4, 8)\n"
        f"sampler = TokenSampler({temperature!r}, generator=torch.Generator().manual_seed(0))\n"
        "done = complete_pixels(PIXELS.open().model.model, images, 32, sampler)\n"
        "print(float(done[:, 0, 4:].std(dim=0).mean()))"
    )


def trim_lines(text: str, temperature: float, top_k: int, top_p: float) -> str:
    """The entropy of the next character, cut and refilled."""
    return (
        "from quoin.generate import TokenSampler\n"
        "from quoin.info import entropy\n"
        "from quoin.lab.parts.language_reading import read_text\n"
        "from quoin.lab.parts.text_models import TRANSFORMER\n"
        f"logits = read_text(TRANSFORMER.open(), {text!r}).logits\n"
        f"print(float(entropy(TokenSampler({temperature!r}, {top_k}, {top_p!r}).probs(logits), base=2)))"
    )


def plane_lines(printed: str) -> str:
    """The mean divergence of test digits from the prior, or the loss as printed."""
    opened = "from quoin.lab.latent import VAE_2\n"
    if printed == "DE59":
        return (
            f"from quoin.lab.parts.elbo_forms import decoder_losses\n{opened}"
            "print(decoder_losses(VAE_2.open(), True).trained)"
        )
    form = "printed" if printed == "DE61" else "right"
    return (
        f"from quoin.lab.parts.em_states import encoded_digits\n{opened}"
        "from quoin.notes.claims.latent import divergence_to_the_standard_normal as claim\n"
        "digits = encoded_digits(VAE_2.open())\n"
        f"print(float(claim.{form}(digits.means, digits.stds).mean()))"
    )


def bound_lines(mean: float, std: float, printed: bool) -> str:
    """The lines that print the bound."""
    model = (
        "import torch\n"
        "from quoin.models import PPCA\n"
        "model = PPCA(torch.ones(1, 1).double(), torch.zeros(1).double(), 0.7).requires_grad_(False)\n"
        "x = torch.tensor([1.5]).double()\n"
        f"mean, covariance = torch.tensor([{mean!r}]).double(), torch.tensor([[{std**2!r}]]).double()\n"
    )
    if not printed:
        return model + "print(float(model.elbo(x, mean, covariance)))"
    return model + (
        "from quoin.prob import kl_normal\n"
        "zero, one = torch.zeros(1).double(), torch.eye(1).double()\n"
        "right = model.elbo(x, mean, covariance) + kl_normal(mean, covariance, zero, one)\n"
        "print(float(right + kl_normal(zero, one, mean, covariance)))"
    )
