"""A normal of the plane held by a point of its ellipse, and X once Y is known: as it is, and by three printed forms."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.lab.parts.claim_forms import form_of
from quoin.lab.parts.normal_pictures import ellipse
from quoin.lab.parts.picture import Picture
from quoin.notes.claims.gaussians import constant_of_the_quotient, density_in_two_dimensions, inverse_covariance
from quoin.prob import MultivariateNormal, normal_density_1d

__all__ = ["FORMS", "RADIUS", "SIGMA_X", "Slice", "draw_slice", "held_normal", "printed_slice", "right_slice"]

SIGMA_X = 1.0
RADIUS = 2.0  # standard deviations out to the ellipse that is held
FORMS = {
    "DE44": "the inverse without its determinant",
    "DE45": "the cross term squared",
    "DE46": "the density of Y over its variance, not its root",
}
GRID = torch.linspace(-3.5, 3.5, 141)


class Slice(NamedTuple):
    """A normal density in x times a number, which is 1 where it is right."""

    mean: float
    variance: float
    area: float = 1.0

    def density(self, x: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        return self.area * normal_density_1d(x, torch.tensor(self.mean), torch.tensor(self.variance).sqrt())


def held_normal(point: tuple[float, float]) -> MultivariateNormal:
    """The centred normal whose ellipse of two standard deviations reaches farthest up at `point`.

    There x is 2 ρ σ_X and y is 2 σ_Y; σ_X stays what it is.
    """
    sigma_y, cross = point[1] / RADIUS, point[1] / RADIUS * point[0] / RADIUS
    return MultivariateNormal(torch.zeros(2), torch.tensor([[SIGMA_X**2, cross], [cross, sigma_y**2]]))


def right_slice(joint: MultivariateNormal, y: float) -> Slice:
    """X given Y = y."""
    given = joint.condition([1], torch.tensor([y]))
    return Slice(float(given.mean[0]), float(given.covariance[0, 0]))


def printed_slice(id: str, joint: MultivariateNormal, y: float) -> Slice:
    """The same by the printed form of an erratum: the printed density cut at y, and rescaled."""
    (s_xx, s_xy), (_, s_yy) = joint.covariance.tolist()
    right = right_slice(joint, y)
    if id == "DE44":  # the density has x² times half of the inverse's first entry in its exponent
        precision = form_of(inverse_covariance, True)(s_xx, s_xy, s_yy)
        return Slice(float(-precision[0, 1] / precision[0, 0]) * y, float(1 / precision[0, 0]))
    if id == "DE45":  # Σ_YY x² − 2 c x y in the exponent is least at x = c y / Σ_YY
        return right._replace(mean=form_of(density_in_two_dimensions, True)(s_xy) * y / s_yy)
    constants = [form_of(constant_of_the_quotient, which)(s_yy) for which in (False, True)]
    return right._replace(area=constants[0] / constants[1])


def draw_slice(picture: Picture, joint: MultivariateNormal, y: float, right: Slice, wrong: Slice | None) -> None:
    """The joint density with the handles `shape` and `y`; X before and after, below."""
    plane = picture.axes((-3.5, 3.5), (-3.4, 3.4), box=(46, 26, 570, 194), title="the joint density of X and Y")
    plane.curve(ellipse(joint, RADIUS / 2), "ink", width=1.2)
    plane.curve(ellipse(joint, RADIUS), "hand", width=1.8)
    plane.line([-3.5, 3.5], [y, y], "hand", width=2)
    plane.handle("y", -3.2, y, label="Y is seen to be", along="y")
    sigma_y = float(joint.covariance[1, 1].sqrt())
    plane.handle("shape", RADIUS * float(joint.covariance[0, 1]) / sigma_y, RADIUS * sigma_y, label="the ellipse")
    below = picture.axes((-3.5, 3.5), (0, 1.4), box=(46, 270, 570, 112), title="X, before and after", x_label="x")
    below.line(GRID, Slice(0.0, SIGMA_X**2).density(GRID), "faint", label="before")
    below.line(GRID, right.density(GRID), "model", label="given Y")
    if wrong is not None:
        below.line(GRID, wrong.density(GRID), "printed", label="given Y, as printed")
