"""The four kernels of a window on a line, as they are and as the notes print them."""

from jaxtyping import Float
from torch import Tensor

from quoin.lab.parts.claim_forms import form_of
from quoin.layers import nadaraya_watson
from quoin.notes.claims.kernel_pooling import empty_windows_are_answered, epanechnikov_costs_least
from quoin.tensor import BoxcarKernel, EpanechnikovKernel, GaussianKernel, SmoothingKernel, TriangularKernel

__all__ = ["KERNELS", "printed_kernel", "printed_window"]

KERNELS: dict[str, SmoothingKernel] = {
    "boxcar": BoxcarKernel(),
    "triangular": TriangularKernel(),
    "Epanechnikov": EpanechnikovKernel(),
    "Gaussian": GaussianKernel(),
}


def printed_kernel(name: str) -> SmoothingKernel:
    """The kernel that the notes print under this name."""
    if name != "Epanechnikov":
        return KERNELS[name]
    printed = form_of(epanechnikov_costs_least, True)
    assert isinstance(printed, SmoothingKernel)
    return printed


def printed_window(
    name: str,
    bandwidth: float,
    query: Float[Tensor, "query 1"],
    key: Float[Tensor, "key 1"],
    value: Float[Tensor, "key 1"],
) -> Float[Tensor, " query"]:
    """The answers as the notes print them: of a boxcar, the quotient alone, with no rule for an empty window."""
    if name == "boxcar":
        return form_of(empty_windows_are_answered, True)(query / bandwidth, key / bandwidth, value)[:, 0]
    return nadaraya_watson(query, key, value, printed_kernel(name), bandwidth)[:, 0]
