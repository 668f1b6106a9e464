"""The errata by class, and what was looked at in the notes and found right."""

from __future__ import annotations

from quoin import notes

__all__ = ["CLASSES", "FOUND_RIGHT", "errata_tags"]

NOTES = {"Z": "Zhao", "D": "Diehl", "M": "McAllester"}

# What kind of slip each erratum is, in the words that the page shows.
CLASSES: dict[str, tuple[str, ...]] = {
    name: tuple(ids.split())
    for name, ids in {
        "false as printed": (
            "ZE1 ZE2 ZE7 ZE11 ZE22 ZE25 ZE28 ZE29 ZE32 ZE33 ME1 ME2 ME3 DE1 DE4 DE5 DE6 DE10 DE15 DE16 DE17 DE19 "
            "DE20 DE23 DE28 DE29 DE30 DE32 DE34 DE35 DE36 DE39 DE42 DE44 DE45 DE46 DE48 DE49 DE51 DE52 DE53 DE55 "
            "DE56 DE57 DE58 DE59 DE60 DE61"
        ),
        "a misprinted symbol": (
            "ZE4 ZE5 ZE6 ZE8 ZE9 ZE12 ZE21 ZE24 ZE27 ZE30 ZE31 ME5 DE3 DE7 DE8 DE9 DE11 DE18 DE26 DE33 DE37 DE38 "
            "DE41 DE43 DE50 DE54 ZE42 DE73 DE74"
        ),
        "a condition is missing": (
            "ZE3 ZE10 ZE13 ZE14 ZE15 ZE16 ZE17 ZE18 ZE19 ZE20 ZE23 ZE26 ZE34 ZE35 ZE36 ZE37 ME4 ME6 DE12 DE13 "
            "DE14 DE21 DE22 DE24 DE25 DE27 DE31 DE40 DE47 DE62 DE63 DE64 DE65 DE66 ZE39 ZE40 ZE41 ZE43 ME7 ME8 "
            "DE67 DE68 DE69 DE70 DE71 DE72 DE75 DE76 DE77"
        ),
        "spelling": ("ZE38 DE2"),
    }.items()
}

# Checked like the errata, and right as the notes print it; ids where they have one.
FOUND_RIGHT: tuple[str, ...] = (
    "Steepest descent by Cauchy–Schwarz: ⟨y, x⟩ is at least −‖x‖, reached at y = −x/‖x‖.",
    "Total variation as half of the sum of |P − Q|, and its proof.",
    "log p(x) is the ELBO plus the divergence to the posterior, in sign and direction; six ways to group it agree.",
    "Performer's features are unbiased, and the form with cosh has less variance.",
    "Attention's invariance to the order of its keys, self-attention's equivariance.",
    "The bound of gradient descent on a convex function, for rates up to 1/L.",
    "D(P‖Q) may be finite where D(Q‖P) is infinite, and KL has no triangle inequality.",
    "Isserlis' theorem and Gaussian integration by parts, as statements.",
    "Mean and covariance of a conditional normal in two dimensions; only the calculation errs.",
    "A random walk of independent steps is a Markov chain.",
    "GELU, ELU, the homogeneity of ReLU, Adam's update, (νAⁿ)_j, and KL under a diffeomorphism.",
    "The laws of large numbers, the central limit theorem and Stone–Weierstrass: standard, not tested by numbers.",
    "The sizes of a cross-correlation with stride and channels, where the padding counts both sides.",
    "The gradient of softmax and cross-entropy, perplexity m of a uniform guess, variance d of a dot product.",
    "Binary softmax, the margin 2ys, the asymptotes of the log loss, the entropy of 256 equal values.",
)


def errata_tags() -> dict[str, dict[str, str]]:
    """Of each erratum its note, its class and its area: by these the page is filtered."""
    classes = {id: name for name, ids in CLASSES.items() for id in ids}
    areas = notes.areas()
    return {
        entry.id: {"note": NOTES[entry.id[0]], "class": classes[entry.id], "area": areas[entry.area]}
        for entry in notes.entries()
        if entry.id[1] == "E"
    }
