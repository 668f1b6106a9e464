"""The benchmark `vae-step`: training steps of a variational autoencoder 784-400-20-400-784 on binary images, by Quoin
and by hand.
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from quoin.bench.worker import Repeats

__all__ = ["by_hand", "by_hand_fused", "quoin"]

SHAPE, LATENT_DIM, HIDDEN_DIM = (1, 28, 28), 20, 400
BATCH_SIZE, NUM_STEPS, LR = 128, 40, 1e-3


def images() -> Float[Tensor, "samples 1 28 28"]:
    """Noisy copies of ten patterns, black and white, the same in every process."""
    random = np.random.default_rng(0)
    patterns = random.random((10, *SHAPE), dtype=np.float32) > 0.7
    flipped = random.random((BATCH_SIZE * NUM_STEPS, *SHAPE), dtype=np.float32) < 0.05
    return torch.from_numpy((patterns[random.integers(10, size=BATCH_SIZE * NUM_STEPS)] ^ flipped).astype(np.float32))


def quoin(repeats: Repeats) -> dict[str, float]:
    """The step of the recipes, with its generators, schedule, checks and optimizer."""
    from quoin.data import Dataset, RowNoise, Split, split_images
    from quoin.models import BinomialDecoder, VAEDecoder, mlp_vae
    from quoin.runs.open_classifier import open_classifier
    from quoin.tasks.generative_options import VAEOptions
    from quoin.tasks.vae import VAETask
    from quoin.train import setup_device

    device_context, _ = setup_device("cpu", threads=repeats.threads)
    x = images()
    names = tuple(f"x{pixel}" for pixel in range(784))
    dataset = Dataset("patterns", x, torch.arange(len(x)) % 2, names, ("0", "1"))
    data = split_images(dataset, Split(torch.arange(len(x)), torch.arange(0), torch.arange(BATCH_SIZE)))

    def coins(net: nn.Module) -> VAEDecoder:
        return BinomialDecoder(net, SHAPE, num_levels=data.data_info.levels)

    net = mlp_vae(SHAPE, LATENT_DIM, coins, hidden_dims=(HIDDEN_DIM,), generator=torch.Generator().manual_seed(0))
    options = VAEOptions(
        batch_size=BATCH_SIZE, lr=LR, schedule="constant", kl_warmup_ratio=0.0, epochs=10**6, latent_dim=LATENT_DIM
    )
    adam = torch.optim.AdamW(net.parameters(), LR, weight_decay=0.0, fused=True)
    task = VAETask(net, adam, data, options, device_context, open_classifier=open_classifier)
    for _ in range(repeats.count):
        for rows in task.batches:
            task.step(rows)
        repeats.end()
    with torch.no_grad():
        losses = task.losses(x[:1000], torch.zeros(1000), noise=RowNoise("measure", num_rows=1000))
    return {"nats an image": float(losses.mean())}


def by_hand(repeats: Repeats) -> dict[str, float]:
    """The network, the loss and the loop of PyTorch's own example of a variational autoencoder."""
    return _by_hand(repeats, fused=False)


def by_hand_fused(repeats: Repeats) -> dict[str, float]:
    """The same with the optimizer in one kernel, which the example does not ask for."""
    return _by_hand(repeats, fused=True)


def _by_hand(repeats: Repeats, *, fused: bool) -> dict[str, float]:
    torch.set_num_threads(repeats.threads)
    torch.manual_seed(0)
    x, model = images(), _Plain()
    optimizer = torch.optim.Adam(model.parameters(), LR, fused=fused)
    for _ in range(repeats.count):
        for rows in torch.randperm(len(x)).split(BATCH_SIZE):
            batch = x.index_select(0, rows)
            optimizer.zero_grad()
            logits, mean, log_variance = model(batch)
            loss = _loss(logits, mean, log_variance, batch) / len(batch)
            loss.backward()
            optimizer.step()
        repeats.end()
    with torch.no_grad():
        logits, mean, log_variance = model(x[:1000])
        return {"nats an image": float(_loss(logits, mean, log_variance, x[:1000])) / 1000}


class _Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(784, HIDDEN_DIM)
        self.fc2 = nn.Linear(HIDDEN_DIM, 2 * LATENT_DIM)
        self.fc3 = nn.Linear(LATENT_DIM, HIDDEN_DIM)
        self.fc4 = nn.Linear(HIDDEN_DIM, 784)

    def forward(
        self, x: Float[Tensor, "batch ..."]
    ) -> tuple[Float[Tensor, "batch pixels"], Float[Tensor, "batch latent"], Float[Tensor, "batch latent"]]:
        mean, log_variance = self.fc2(functional.relu(self.fc1(x.flatten(1)))).chunk(2, dim=1)
        z = mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)
        return self.fc4(functional.relu(self.fc3(z))), mean, log_variance


def _loss(logits: Tensor, mean: Tensor, log_variance: Tensor, x: Tensor) -> Tensor:
    crossed = functional.binary_cross_entropy_with_logits(logits, x.flatten(1), reduction="sum")
    return crossed - 0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
