"""Losses against the margin, the decision by the sign of a score, and distances between distributions of two
outcomes."""

import torch

from quoin.data import keyed_generator
from quoin.losses import hinge_loss, logistic_loss
from quoin.notes.figures.figure import figure
from quoin.plot import Plot, curves
from quoin.plot.plots import COLORS, FAINT, INK, house_style, new_figure
from quoin.prob import binary_decision, distribution_cross_entropy, kl_divergence, lp_distance, total_variation_distance


@figure(
    "M11F",
    "The log loss and the hinge loss against the margin: both grow like −m on the left; only the hinge reaches zero.",
    {"reach": (0.5, 50)},
)
def log_loss_and_hinge_loss(reach: float = 4.0) -> Plot:
    m = (torch.arange(401, dtype=torch.float64) - 200) * (reach / 200)
    series = {
        "log loss, ln(1 + e⁻ᵐ)": (m, logistic_loss(m)),
        "hinge loss, max(0, 1 − m)": (m, hinge_loss(m)),
        "0-1 loss of the decision": (m, torch.where(m == 0, torch.nan, (m < 0).double())),  # a gap where it jumps
    }
    return curves(series, title="Losses of a margin", x_label="margin m = 2 y s(x)", y_label="loss")


@figure(
    "M7F",
    "The line of scores is cut at zero: y = 1 is predicted from there up and y = −1 below; crosses are wrong.",
    {"num_points": (2, 1000), "separation": (0, 4)},
)
def decision_by_sign(num_points: int = 40, separation: float = 1.2) -> Plot:
    generator = keyed_generator("M7F")
    y = torch.ones(num_points, dtype=torch.long)
    y[: num_points // 2] = -1
    score = separation * y + torch.randn(num_points, generator=generator, dtype=torch.float64)
    right = binary_decision(score) == y
    with house_style():
        sheet = new_figure(height=2.6)
        axes = sheet.add_subplot(title="Deciding between two labels by the sign of a score", xlabel="score s(x)")
        axes.axvspan(-4, 0, color=COLORS[1], alpha=0.10, linewidth=0)
        axes.axvspan(0, 4, color=COLORS[0], alpha=0.10, linewidth=0)
        axes.axvline(0, color=INK, linewidth=1.2)
        for row, (sign, color, name) in enumerate([(-1, COLORS[1], "−1"), (1, COLORS[0], "1")]):
            axes.axhline(row, color=FAINT, linewidth=0.8, zorder=0)
            for met, marker in ((right, "o"), (~right, "x")):
                chosen = score[(y == sign) & met]
                axes.scatter(chosen, torch.full_like(chosen, row), s=34, color=color, marker=marker, zorder=2)
            axes.text((-2.0, 2.0)[row], 1.72, f"predict y = {name}", ha="center", va="center", color=color)
        axes.set_yticks([0, 1], ["true y = −1", "true y = 1"])
        axes.set_xlim(-4, 4)
        axes.set_ylim(-0.6, 2.1)
        axes.spines["left"].set_visible(False)
        axes.tick_params(left=False)
        return Plot(sheet, "The score line cut at zero")


@figure(
    "D1.4F3",
    "Five ways to compare (q, 1 − q) with P = (0.3, 0.7): four vanish at q = 0.3, where the cross-entropy too is "
    "least.",
    {"p": (0.01, 0.99)},
)
def distances_of_two_outcomes(p: float = 0.3) -> Plot:
    q = torch.linspace(0.005, 0.995, 199, dtype=torch.float64)
    Q = torch.stack([q, 1 - q], dim=-1)
    P = torch.tensor([p, 1 - p], dtype=torch.float64).expand_as(Q)
    series = {
        "L¹": (q, lp_distance(P, Q, 1)),
        "L²": (q, lp_distance(P, Q, 2)),
        "total variation": (q, total_variation_distance(P, Q)),
        "KL(P ‖ Q)": (q, kl_divergence(P, Q)),
        "cross-entropy CE(P, Q)": (q, distribution_cross_entropy(P, Q)),
    }
    entropy = float(distribution_cross_entropy(P[:1], P[:1]))
    title = f"Distances from P = ({p:g}, {1 - p:g}) to Q = (q, 1 − q)"
    return curves(
        series, title=title, x_label="q", y_label="distance (nats for the last two)", reference_lines={"H(P)": entropy}
    )
