"""The pages of the lab: which there are, what each is about. Imports neither torch nor marimo."""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["EXTRA_PAGES", "PAGES", "PageInfo", "page_path"]

EXTRA_PAGES = ("errata", "gallery", "runs")  # about no area


@dataclass(frozen=True)
class PageInfo:
    """A page: its name in the address, the areas of the notes whose items it reaches, and what a reader can say after
    it."""

    name: str
    areas: tuple[int, ...]
    title: str
    sentence: str


PAGES = {
    page.name: page
    for page in (
        PageInfo(
            "autodiff",
            (2,),
            "Automatic differentiation",
            "One sweep backwards gives every derivative; where paths meet, adjoints add.",
        ),
        PageInfo(
            "mlp",
            (5,),
            "Multilayer perceptrons",
            "A ReLU network is a folded sheet: units are creases, deeper units crease it folded, learning moves them.",
        ),
        PageInfo(
            "convolution",
            (8,),
            "Convolution",
            "The same few weights everywhere: so a shifted image gives a shifted answer, unless something breaks it.",
        ),
        PageInfo(
            "optimisation",
            (14,),
            "Optimisation",
            "Learning rate and momentum answer curvature; a map says which answers converge.",
        ),
        PageInfo(
            "attention",
            (11,),
            "Attention",
            "Attention is a soft lookup: the answer is a weighted mean of values and never leaves their hull.",
        ),
        PageInfo(
            "positions",
            (12,),
            "Positions",
            "Attention does not see order; each encoding puts it in another way, and RoPE leaves only the distance.",
        ),
        PageInfo(
            "linear-attention",
            (13,),
            "Linear attention",
            "exp(q·k) is a mean over random features, so keys are summed once; the price is variance that explodes "
            "with length.",
        ),
        PageInfo(
            "language",
            (10,),
            "Language models",
            "A language model bets on the next character; bits are what the bet costs, sampling trims it.",
        ),
        PageInfo(
            "information",
            (16,),
            "Information and coding",
            "Entropy is the length no code beats, KL the price of a wrong belief, and predicting is compressing.",
        ),
        PageInfo(
            "chains",
            (17,),
            "Markov chains",
            "A chain forgets where it began; seen through a function it may remember again.",
        ),
        PageInfo(
            "latent",
            (18,),
            "Latent variables: EM and the VAE",
            "EM and the VAE raise one lower bound; what is missing is the KL to the posterior.",
        ),
        PageInfo(
            "generative",
            (19,),
            "Generative models",
            "To generate is to undo noise, fool a critic, or predict pixel by pixel; a number says how well.",
        ),
        PageInfo("tensors", (1,), "Tensors", "An einsum string is a program, and rank is not order."),
        PageInfo(
            "linear",
            (3,),
            "Linear models",
            "Least squares, likelihood and the conditional mean are one answer to three questions.",
        ),
        PageInfo(
            "classification",
            (4,),
            "Classification",
            "A classifier bets; cross-entropy charges for the bet, and its gradient is bet minus truth.",
        ),
        PageInfo(
            "initialisation", (6,), "Initialisation", "Depth multiplies; only one scale neither dies nor explodes."
        ),
        PageInfo("regularisation", (7,), "Regularisation", "The gap between training and truth has several handles."),
        PageInfo(
            "normalisation",
            (9,),
            "Normalisation and residuals",
            "A norm chooses who shares a mean; a skip connection adds the identity to the Jacobian.",
        ),
        PageInfo(
            "probability",
            (15,),
            "Probability",
            "To condition is to slice and rescale; sums forget everything but mean and variance.",
        ),
        PageInfo(
            "expressivity",
            (20,),
            "Expressivity",
            "Any curve is a sum of hinges; depth folds, and folding doubles.",
        ),
    )
}


def page_path(name: str) -> Path:
    """The notebook of a page."""
    return Path(__file__).parent / f"{name.replace('-', '_')}.py"
