"""The benchmark `regions`: every linear region of random ReLU networks of the plane, beside the patterns that a grid of
points meets.

The wider network has between four and five times as many regions: its ratio shows whether the time follows the regions
found. The grid finds only those regions that hold one of its points, and shows nothing of their shape.
"""

from quoin.bench.worker import Repeats

__all__ = ["grid", "narrow", "wide"]

POINTS = 500  # a side of the grid


def narrow(repeats: Repeats) -> dict[str, float]:
    return _exact(repeats, 64)


def wide(repeats: Repeats) -> dict[str, float]:
    return _exact(repeats, 128)


def _network(hidden_dim: int):
    import torch
    from torch import nn

    from quoin.models import MLP

    generator = torch.Generator().manual_seed(0)
    net = MLP([2, hidden_dim, hidden_dim, 1], generator=generator).double()
    for module in net.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.bias, std=0.3, generator=generator)
    return net


def _exact(repeats: Repeats, hidden_dim: int) -> dict[str, float]:
    import torch

    from quoin.expressivity import regions_in_window

    torch.set_num_threads(repeats.threads)
    net = _network(hidden_dim)
    found = repeats.timed(lambda: regions_in_window(net))
    return {"regions": float(len(found))}


def grid(repeats: Repeats) -> dict[str, float]:
    import torch

    from quoin.expressivity import activation_pattern

    torch.set_num_threads(repeats.threads)
    net = _network(64)
    line = torch.linspace(-1, 1, POINTS, dtype=torch.float64)
    points = torch.cartesian_prod(line, line)
    random = torch.randint(-(2**62), 2**62, (128,), generator=torch.Generator().manual_seed(0))

    def distinct() -> torch.Tensor:
        patterns = activation_pattern(net, points)
        # A hash of each pattern: to sort the patterns themselves takes far longer.
        return (patterns * random).sum(dim=1).unique()

    return {"regions": float(len(repeats.timed(distinct)))}
