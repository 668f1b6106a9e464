"""Dropout and batch normalisation of the global batch: against torch's own on all rows."""

import copy
import math

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.checkpoint import checkpoint

from process_group import in_processes
from quoin.data import RowNoise
from quoin.data.row_noise import rounded_probability
from quoin.layers import ExactAttention, batch_norm_definition
from quoin.train import DeviceContext, GradientUpdater
from quoin.train.global_batch import BatchPiece, GlobalBatch
from quoin.train.global_batch_norm import global_batch_norm
from quoin.train.processes import process_rank
from seeds import seeded

ROWS = 6


class Seen(nn.Module):
    """A model, and what it gave."""

    def __init__(self, model):
        super().__init__()
        self.model, self.weight, self.outputs = model, nn.Parameter(torch.ones(())), []

    def forward(self, *inputs):
        found = self.model(*inputs)
        self.outputs.append(found[0] if isinstance(found, tuple) else found)
        return self.outputs[-1].sum() * self.weight


def outputs_of(model, x, cut=(ROWS,), *, seed=3, step=0):
    """What `model` gives in a step on the rows of `x`, in pieces of these sizes."""
    seen = Seen(model.train())
    updater = GradientUpdater(
        seen, torch.optim.SGD(seen.parameters(), 0.0), total_steps=9, device_context=DeviceContext()
    )
    updater.step_count = step
    batch, pieces, start = GlobalBatch(seen, seed, DeviceContext()), [], 0
    for size in cut:
        rows = torch.arange(start, start + size)
        pieces.append((BatchPiece(rows, start, len(x)), (x[start : start + size],)))
        start += size
    batch.update(updater, pieces, seen, weight=1.0)
    return torch.cat([each.detach() for each in seen.outputs])


KINDS = {
    "dropout": (nn.Dropout(0.4), (5, 3)),
    "dropout of flattened tokens": (nn.Sequential(nn.Flatten(0, 1), nn.Dropout(0.4), nn.Unflatten(0, (-1, 5))), (5, 3)),
    "dropout1d": (nn.Dropout1d(0.4), (5, 3)),
    "dropout2d": (nn.Dropout2d(0.4), (5, 3, 2)),
    "dropout3d": (nn.Dropout3d(0.4), (5, 3, 2, 2)),
    "alpha": (nn.AlphaDropout(0.4), (5, 3)),
    "twice": (nn.Sequential(drop := nn.Dropout(0.4), nn.Linear(3, 3), drop), (5, 3)),
    "lstm": (nn.LSTM(3, 4, 3, batch_first=True, dropout=0.4, bidirectional=True), (5, 3)),
    "gru": (nn.GRU(3, 4, 2, batch_first=True, dropout=0.4), (5, 3)),
    "rnn": (nn.RNN(3, 4, 2, batch_first=True, dropout=0.4), (5, 3)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_piece_is_dropped_as_in_the_whole(kind):
    model, shape = KINDS[kind]
    x = torch.randn(ROWS, *shape, generator=seeded(0))
    whole = outputs_of(model, x)
    for cut in ((3, 3), (1, 5), (2, 2, 2)):
        torch.testing.assert_close(outputs_of(model, x, cut), whole)
    assert not torch.equal(outputs_of(model, x, step=1), whole)
    assert not torch.equal(outputs_of(model, x, seed=4), whole)
    assert torch.equal(outputs_of(model, x), whole)
    assert torch.equal(outputs_of(model.eval(), x), whole)  # it trains again
    model.eval()
    assert torch.equal(*(first(model(x)) for _ in range(2)))


def first(output):
    return output[0] if isinstance(output, tuple) else output


def test_masks_have_their_probability_and_keep_the_mean():
    x = torch.ones(200, 300)
    for p in (0.1, 0.37, 0.8):
        found = outputs_of(nn.Dropout(p), x, (200,))
        dropped, n = float((found == 0).double().mean()), x.numel()
        assert abs(dropped - p) < 5 * math.sqrt(p * (1 - p) / n) + 2**-16
        assert found[found != 0].unique().numel() == 1
        assert float(found.max()) == pytest.approx(1 / rounded_probability(1 - p))
        # rows and columns are independent: the variance of their means is that of so many draws
        for dim, count in ((0, 200), (1, 300)):
            ratio = float((found == 0).double().mean(dim).var()) / (p * (1 - p) / count)
            assert abs(ratio - 1) < 5 * math.sqrt(2 / (x.shape[1 - dim] - 1))
    channels = outputs_of(nn.Dropout2d(0.5), torch.ones(50, 40, 3, 3), (50,))
    assert (channels.amin((2, 3)) == channels.amax((2, 3))).all()
    assert 0.4 < float((channels == 0).double().mean()) < 0.6
    noise = torch.randn(300, 300, generator=seeded(1))
    alpha = outputs_of(nn.AlphaDropout(0.3), noise, (300,))
    assert abs(float(alpha.mean())) < 0.02
    assert abs(float(alpha.std()) - 1) < 0.02
    assert torch.equal(outputs_of(nn.Dropout(0.0), x, (200,)), x)
    assert not outputs_of(nn.Dropout(1.0), x, (200,)).any()


def test_bernoulli_noise_has_its_rounded_probability():
    for p in (0.001, 0.3, 0.5, 0.9999):
        found = RowNoise("p", num_rows=1000).bernoulli(p, 700)
        assert abs(float(found.double().mean()) - p) < 5 * math.sqrt(p * (1 - p) / found.numel()) + 2**-16
    assert RowNoise("p", num_rows=3).bernoulli(1.0, 4).all()
    assert not RowNoise("p", num_rows=3).bernoulli(0.0, 4).any()
    whole = RowNoise("p", num_rows=9).bernoulli(0.5, 5)
    chosen = torch.tensor([4, 0, 8])
    assert torch.equal(RowNoise("p", num_rows=9, start=3, stop=5).select(chosen).bernoulli(0.5, 5), whole[chosen])


def test_a_model_is_torchs_own_but_in_a_step():
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.LSTM(3, 3, 2, dropout=0.5, batch_first=True))
    before = copy.deepcopy(model.state_dict())
    x = torch.randn(ROWS, 2, 3)
    outputs_of(model, x)
    assert all("forward" not in module.__dict__ for module in model.modules())
    assert [type(each) for each in model] == [nn.Linear, nn.Dropout, nn.LSTM]
    assert before.keys() == model.state_dict().keys()

    def fails(*arguments):
        raise ZeroDivisionError

    batch = GlobalBatch(model, 0, DeviceContext())
    updater = GradientUpdater(
        model, torch.optim.SGD(model.parameters(), 0.1), total_steps=1, device_context=DeviceContext()
    )
    with pytest.raises(ZeroDivisionError):
        batch.update(updater, [(BatchPiece(torch.arange(2), 0, 2), ())], fails, weight=1.0)
    assert all("forward" not in module.__dict__ for module in model.modules())
    torch.manual_seed(1)
    expected = nn.functional.dropout(x, 0.5)
    torch.manual_seed(1)
    assert torch.equal(model[1](x), expected)


@pytest.mark.parametrize("reentrant", [False, True])
def test_activations_computed_again_are_dropped_alike(reentrant):
    class Blocks(nn.Module):
        """One dropout that all blocks share, so that it is called several times."""

        def __init__(self, again):
            super().__init__()
            self.again, self.dropout = again, nn.Dropout(0.5)
            self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))

        def block(self, layer, x):
            return self.dropout(torch.tanh(layer(self.dropout(x))))

        def forward(self, x):
            x = x.requires_grad_()
            for layer in self.layers:
                x = checkpoint(self.block, layer, x, use_reentrant=reentrant) if self.again else self.block(layer, x)
            return x

    x, plain = torch.randn(ROWS, 8, generator=seeded(2)), Blocks(False)
    again = Blocks(True)
    again.load_state_dict(plain.state_dict())
    assert torch.equal(outputs_of(plain, x.clone()), outputs_of(again, x.clone()))
    for one, other in zip(plain.parameters(), again.parameters()):
        assert one.grad.abs().sum() > 0
        torch.testing.assert_close(one.grad, other.grad)


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("given_state", [False, True])
def test_recurrent_layers_one_by_one_are_torchs(kind, packed, given_state):
    """A probability of 2^-20 rounds to 0 with us, and drops nothing of these few numbers with torch."""
    more = {"proj_size": 2} if kind is nn.LSTM else {}
    torch.manual_seed(0)
    cell = kind(3, 5, 3, batch_first=True, dropout=2.0**-20, bidirectional=True, **more).double()
    plain = kind(3, 5, 3, batch_first=True, bidirectional=True, **more).double()
    plain.load_state_dict(cell.state_dict())
    x = torch.randn(ROWS, 7, 3, dtype=torch.float64)
    lengths = torch.tensor([3, 7, 1, 5, 7, 2])
    state = tuple(torch.randn(6, ROWS, size, dtype=torch.float64) for size in ((2, 5) if more else (5,)))
    state = (state if kind is nn.LSTM else state[0]) if given_state else None

    def run(cell, x):
        given = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False) if packed else x
        found, after = cell(given, state)
        found = pad_packed_sequence(found, batch_first=True)[0] if packed else found
        parts = [found, *(after if isinstance(after, tuple) else (after,))]
        return torch.cat([part.flatten() for part in parts])

    class Runs(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = cell

        def forward(self, x):
            return run(cell, x)

    torch.testing.assert_close(outputs_of(Runs(), x), run(plain, x).detach(), rtol=1e-12, atol=1e-12)
    run(plain, x).sum().backward()
    for one, other in zip(cell.parameters(), plain.parameters()):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-10, atol=1e-12)


def test_a_packed_sequence_is_dropped_alike_beside_shorter_ones():
    class Packs(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.GRU(3, 4, 2, batch_first=True, dropout=0.5)

        def forward(self, x):
            lengths = x[:, 0, 0].long().abs() + 1
            found, _ = self.cell(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
            return pad_packed_sequence(found, batch_first=True, total_length=x.shape[1])[0]

    x = torch.randn(ROWS, 40, 3, generator=seeded(3))
    x[:, 0, 0] = torch.tensor([4.0, 39.0, 17.0, 3.0, 20.0, 1.0])
    model = Packs()
    whole = outputs_of(model, x)
    for cut in ((3, 3), (1, 1, 2, 2)):
        torch.testing.assert_close(outputs_of(model, x, cut), whole)
    torch.manual_seed(0)
    kept = torch.stack([outputs_of(model, x, step=step)[1, -1] for step in range(8)])
    assert kept.std(0).min() > 0


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("how", ["plain", "masked", "biased", "grouped"])
def test_attention_with_dropout_on_the_cpu_is_the_kernels(how, causal):
    """With a probability that drops nothing; what may see nothing gets zeros."""
    bias = (lambda n, m, offset: torch.arange(float(4 * n * m)).sin().reshape(4, n, m)) if how == "biased" else None
    heads = 2 if how == "grouped" else 4
    x = [torch.randn(2, count, 5, 3, generator=seeded(4)).double() for count in (4, heads, heads)]
    mask = torch.rand(2, 1, 5, 5, generator=seeded(5)) < 0.6 if how == "masked" else None
    if mask is not None:
        mask[:, :, 2] = False
    with_dropout, plain = ExactAttention(bias=bias, dropout=1e-12), ExactAttention(bias=bias)
    found = with_dropout(*x, mask=mask, causal=causal)
    torch.testing.assert_close(found, plain(*x, mask=mask, causal=causal), rtol=1e-10, atol=1e-12)
    weights = ExactAttention(dropout=0.5)(x[0], x[1], torch.ones_like(x[2])) if how == "plain" else None
    assert weights is None or weights.std() > 0.1  # it does drop


# Batch normalisation


def normalised(kind, shape, counts, options, dtype):
    """In one of several processes: outputs, gradients and running averages of this one's rows; a process with 0 rows
    runs one that does not count."""
    torch.manual_seed(0)
    dtype = getattr(torch, dtype)
    x = torch.randn(sum(counts), *shape, generator=seeded(6)).to(dtype) * 3 + 5
    target = torch.randn(sum(counts), *shape, generator=seeded(7)).to(dtype)
    norm = getattr(nn, kind)(shape[0], **options).to(dtype)
    if norm.affine:
        with torch.no_grad():
            norm.weight.copy_(torch.randn(shape[0], generator=seeded(8)))
            norm.bias.copy_(torch.randn(shape[0], generator=seeded(9)))
    rank, lives = process_rank(), True
    own = slice(sum(counts[:rank]), sum(counts[: rank + 1]))
    if counts[rank] == 0:
        own, lives = slice(0, 1), False
    x = x[own].clone().requires_grad_()
    for _ in range(2):  # running averages of two steps
        x.grad = None
        norm.zero_grad()
        output = global_batch_norm(norm, x, is_live=lives)
        loss = ((output - target[own]) ** 3).sum() * lives
        loss.backward()
    own_parts = {"output": output, "x": x.grad} if lives else {"output": output[:0], "x": x.grad[:0]}
    assert lives or not x.grad.any()
    sums = {"weight": norm.weight.grad, "bias": norm.bias.grad} if norm.affine else {}
    averages = dict(norm.named_buffers())
    return [{key: each.double().tolist() for key, each in part.items()} for part in (own_parts, sums, averages)]


def expected_of_all(kind, shape, counts, options):
    torch.manual_seed(0)
    x = torch.randn(sum(counts), *shape, generator=seeded(6)).double() * 3 + 5
    target = torch.randn(sum(counts), *shape, generator=seeded(7)).double()
    norm = getattr(nn, kind)(shape[0], **options).double()
    if norm.affine:
        with torch.no_grad():
            norm.weight.copy_(torch.randn(shape[0], generator=seeded(8)))
            norm.bias.copy_(torch.randn(shape[0], generator=seeded(9)))
    x.requires_grad_()
    for _ in range(2):
        x.grad = None
        norm.zero_grad()
        output = norm(x)
        ((output - target) ** 3).sum().backward()
    if norm.affine:
        definition = batch_norm_definition(x, norm.weight, norm.bias, eps=norm.eps)
        torch.testing.assert_close(first(definition), output, rtol=1e-10, atol=1e-10)
    return x, norm, output


CASES = [
    ("BatchNorm1d", (4,), (3, 5), {}, "float64"),
    ("BatchNorm3d", (2, 2, 2, 2), (1, 4), {"affine": False}, "float64"),
    ("BatchNorm2d", (3, 2, 4), (4, 0), {}, "float32"),
    ("BatchNorm2d", (3, 2, 4), (4, 1, 2), {"momentum": None}, "float64"),
    ("BatchNorm1d", (3,), (2, 0, 3), {}, "float64"),
    ("BatchNorm1d", (3, 5), (7,), {"track_running_stats": False}, "float64"),
]


def normalised_cases(cases):
    return [normalised(*case) for case in cases]


@pytest.mark.parametrize("processes", [1, 2, pytest.param(3, marks=pytest.mark.deep)])
def test_batch_norm_is_that_of_all_rows(processes):
    cases = [case for case in CASES if len(case[2]) == processes]
    by_rank = (
        in_processes(processes, "test_global_batch:normalised_cases", cases)
        if processes > 1
        else [normalised_cases(cases)]
    )
    for case, found in zip(cases, zip(*by_rank, strict=True), strict=True):
        check_normalised(found, *case)


def check_normalised(found, kind, shape, counts, options, dtype):
    x, norm, output = expected_of_all(kind, shape, counts, options)
    near = {"rtol": 1e-12, "atol": 1e-12} if dtype == "float64" else {"rtol": 1e-5, "atol": 1e-4}
    for name, expected in (("output", output), ("x", x.grad)):
        parts = [torch.tensor(own[name], dtype=torch.float64) for own, _, _ in found if own[name]]
        torch.testing.assert_close(torch.cat(parts), expected.detach(), **near)
    for name, expected in (("weight", norm.weight), ("bias", norm.bias)) if norm.affine else ():
        total = sum(torch.tensor(sums[name], dtype=torch.float64) for _, sums, _ in found)
        torch.testing.assert_close(total, expected.grad, **near)
    for name, expected in norm.named_buffers():
        for _, _, averages in found:
            torch.testing.assert_close(torch.tensor(averages[name], dtype=torch.float64), expected.double(), **near)
