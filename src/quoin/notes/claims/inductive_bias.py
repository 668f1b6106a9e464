"""What an assumption built into the weights is worth: where it fits the data, where it does not, and where it was
destroyed."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.layers import convolution_as_dense
from quoin.losses import cross_entropy
from quoin.metrics import accuracy
from quoin.models import MLP, init_image_weights, least_squares
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import normal
from quoin.notes.claims.rounding import gap, max

LENGTH, SIZE, ROWS, NOISE, REPEATS = 12, 3, 40, 0.5, 400
OUTPUTS = LENGTH - SIZE + 1


class Excess(NamedTuple):
    """|ŵ - w|² + b̂² of a fit, which for x ~ N(0, I) is its squared error on new data beyond the noise, for each
    repeat."""

    dense: Float[Tensor, "repeats"]  # the mean over the outputs
    shared: Float[Tensor, "repeats"]


def windows(X: Float[Tensor, "n length"]) -> Float[Tensor, "windows size"]:
    return X.unfold(1, SIZE, 1).reshape(-1, SIZE)


def excess_errors(
    A: Float[Tensor, "outputs length"], X: Float[Tensor, "n length"], generator: torch.Generator
) -> Excess:
    """Least squares for y = A x + noise: a weight for each entry of A, and a kernel fitted to the windows of all
    outputs at once."""
    Y = (X @ A.T).unsqueeze(-1) + NOISE * normal(ROWS, OUTPUTS, REPEATS, generator=generator)
    dense, shared = least_squares(X, Y.reshape(ROWS, -1)), least_squares(windows(X), Y.reshape(-1, REPEATS))
    weight, bias = dense.weight.reshape(OUTPUTS, REPEATS, LENGTH), dense.bias.reshape(OUTPUTS, REPEATS)
    written = torch.stack([convolution_as_dense(kernel, LENGTH) for kernel in shared.weight])
    return Excess(
        ((weight - A[:, None]).square().sum(-1) + bias.square()).mean(0),
        (written - A).square().sum(-1).mean(-1) + shared.bias.square(),
    )


@claim(
    "D1.1-16",
    "3 shared weights learn a convolution from the rows that leave d weights an output far off, and cannot learn "
    "another map",
)
def shared_weights_generalise(generator: torch.Generator) -> Evidence:
    """On average |ŵ - w|² + b̂² is σ² tr ([X, 1]ᵀ[X, 1])⁻¹: the more weights to the same rows, the more.

    Where A is a convolution both fits are as far off as their traces say, and the shared one at most a tenth as far;
    where it is not, the shared one misses what it cannot write, and the dense one wins.
    """
    worst, designs = 0.0, 4
    for _ in range(designs):
        X, kernel = normal(ROWS, LENGTH, generator=generator), normal(SIZE, generator=generator)
        matched = excess_errors(convolution_as_dense(kernel, LENGTH), X, generator)
        for found, design, num_samples in (
            (matched.dense, X, OUTPUTS * REPEATS),
            (matched.shared, windows(X), REPEATS),
        ):
            covariance = NOISE**2 * torch.linalg.inv(with_ones(design).mT @ with_ones(design))  # of ŵ and b̂
            deviation = math.sqrt(2 * float(covariance.square().sum()) / num_samples)
            worst = max(worst, abs(float(found.mean() - covariance.trace())) / deviation)
        other = excess_errors(normal(OUTPUTS, LENGTH, generator=generator), X, generator)
        as_expected = 10 * matched.shared.mean() < matched.dense.mean() and other.shared.mean() > other.dense.mean()
        worst = worst if as_expected else math.inf
    source = "6 standard deviations, passed by chance less than once in ten million"
    return Evidence(
        "|excess - trace| in standard deviations, winners as stated", worst, 6.0, source, 2 * designs * REPEATS
    )


def with_ones(X: Float[Tensor, "n d"]) -> Float[Tensor, "n d+1"]:
    return torch.cat([X, torch.ones(len(X), 1, dtype=X.dtype)], dim=1)


def bars(num_rows: int, generator: torch.Generator) -> tuple[Float[Tensor, "n 1 10 10"], Int[Tensor, "n"]]:
    """Noisy images of a bar of five pixels anywhere, lying (0) or standing (1)."""
    side, long = 10, 5
    labels = torch.randint(2, (num_rows,), generator=generator)
    first, second = (
        torch.randint(side, (num_rows,), generator=generator),
        torch.randint(side - long + 1, (num_rows,), generator=generator),
    )
    rows, steps = torch.arange(num_rows)[:, None], torch.arange(long)
    lying = torch.zeros(num_rows, side, side, dtype=torch.float64)
    lying[rows, first[:, None], second[:, None] + steps] = 2.0
    pictures = torch.where(labels[:, None, None] == 0, lying, lying.mT) + 0.5 * normal(
        num_rows, side, side, generator=generator
    )
    return pictures.unsqueeze(1), labels


def trained(model: nn.Module, X: Float[Tensor, "n 1 10 10"], labels: Int[Tensor, "n"]) -> nn.Module:
    """After 100 steps of Adam on all rows: enough to fit them."""
    adam = torch.optim.Adam(model.parameters(), 0.05)
    for _ in range(100):
        adam.zero_grad()
        cross_entropy(model(X), labels).mean().backward()
        adam.step()
    return model


@claim(
    "Z7.1c",
    "scrambling the pixels, alike in all images, ruins a convolutional network; an MLP learns the same from them",
)
def scrambled_pixels_ruin_a_cnn(generator: torch.Generator) -> Evidence:
    """Lying and standing bars. The MLP that starts with its columns scrambled alike takes the same steps, and has the
    same probability."""
    (X, labels), (new, truth) = bars(300, generator), bars(1000, generator)
    order = torch.randperm(X[0].numel(), generator=generator)

    def scrambled(pictures: Tensor) -> Tensor:
        return pictures.flatten(1)[:, order].reshape(pictures.shape)

    def cnn() -> nn.Module:
        layers = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(16, 2))
        return init_image_weights(layers, generator)

    def right(model: nn.Module, pictures: Tensor) -> float:
        with torch.no_grad():
            return accuracy(model(pictures).argmax(-1), truth)

    small, small_new = X.float(), new.float()  # twice as fast; the MLPs need float64 to be compared
    seen = right(trained(cnn(), small, labels), small_new)
    ruined = right(trained(cnn(), scrambled(small), labels), scrambled(small_new))
    plain = MLP([100, 32, 2], generator=generator).double()
    other = MLP([100, 32, 2], generator=generator).double()
    other.load_state_dict(
        {name: value[:, order] if value.shape[-1] == 100 else value for name, value in plain.state_dict().items()}
    )
    trained(plain, X, labels)
    trained(other, scrambled(X), labels)
    with torch.no_grad():
        same = gap(plain(new), other(scrambled(new))) < 1e-6  # rounding of sums in another order, through 100 steps
    lost = seen - ruined if same and seen > right(plain, new) else -math.inf
    source = (
        "two fifths of all above chance; over 30 seeds the loss was 0.41 ± 0.03, so the bound is 8 such "
        "standard deviations off"
    )
    return Evidence("accuracy that the CNN lost, the MLP none", lost, 0.2, source, len(truth), ">=")
