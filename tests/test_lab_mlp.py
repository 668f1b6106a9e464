"""The page on multilayer perceptrons: what each exhibit shows, held against counts by sampling, numpy and autograd."""

import math
import random

import numpy as np
import pytest
import torch

from quoin.errors import UserError
from quoin.lab import mlp
from quoin.lab.parts import digits, exhibit_of
from quoin.lab.parts.mlp_pictures import creased_net, layers_in_one, learned

FOLD = exhibit_of(mlp.where_does_it_fold)
LEARN = exhibit_of(mlp.learning_seen_from_inside)
DEAD = exhibit_of(mlp.who_is_dead)
SURE = exhibit_of(mlp.sure_in_the_dark)
OWN = exhibit_of(mlp.yours)


def random_creases(seed, count):
    chance = random.Random(seed)
    return [[chance.uniform(-0.9, 0.9), chance.uniform(-0.9, 0.9)] for _ in range(count)]


def cells_of_lines(creases):
    """Regions of lines in the square, by Euler: 1 + lines that meet it + crossings inside of it."""
    lines = [(np.array(foot) / np.hypot(*foot), np.hypot(*foot)) for foot in creases]
    meets = sum(abs(offset) < np.abs(normal).sum() for normal, offset in lines)
    inside = 0
    for number, (a, p) in enumerate(lines):
        for b, q in lines[:number]:
            matrix = np.stack([a, b])
            if abs(np.linalg.det(matrix)) > 1e-12:
                inside += bool((np.abs(np.linalg.solve(matrix, np.array([p, q]))) < 1).all())
    return 1 + meets + inside


@pytest.mark.parametrize(
    "creases",
    [[list(foot) for foot in mlp.CREASES], *(random_creases(seed, count) for seed, count in ((1, 2), (2, 5), (3, 8)))],
)
def test_regions_of_one_layer_by_euler(creases):
    assert FOLD.view({"creases": creases}).numbers[0].text == str(cells_of_lines(creases))


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_every_sampled_pattern_is_a_region(layers):
    net = creased_net(mlp.CREASES, layers)
    x, patterns = torch.rand(60_000, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 2 - 1, []
    for module in net[:-1]:
        x = module(x)
        if isinstance(module, torch.nn.ReLU):
            patterns.append(x.detach() > 0)
    sampled = len(torch.cat(patterns, dim=1).unique(dim=0))
    counted = int(FOLD.view({"layers": layers}).numbers[0].text)
    assert sampled <= counted <= sampled + 2  # a sliver may have no sample


def test_a_crease_runs_through_its_point_and_square_to_it():
    net = creased_net([(0.3, -0.4), (0.1, 0.2)], 1)
    along = torch.tensor([[0.3, -0.4], [0.3 + 0.4, -0.4 + 0.3], [0.3 - 0.8, -0.4 - 0.6]], dtype=torch.float64)
    assert torch.allclose(net[0](along)[:, 0], torch.zeros(3, dtype=torch.float64), atol=1e-12)


def test_deeper_creases_are_broken_and_the_printed_order_is_too_large():
    # of n units 1 + n + n(n-1)/2 regions a layer; the order is (n/2)^(2(layers-1)) n^2, printed with n over 2 for n/2
    for count, most, order, wrong in ((5, 16**2, 6.25 * 25, 100 * 25), (4, 11**2, 4 * 16, 36 * 16)):
        state = {"creases": [list(foot) for foot in mlp.CREASES[:count]], "layers": 2}
        assert [number.value for number in FOLD.view(state).numbers[1:]] == [str(most), order]
        printed = FOLD.view({**state, "printed": True}).numbers[2]
        assert (printed.value, printed.printed) == (wrong, True)
        assert str(most) in FOLD.surprise
        assert str(wrong) in FOLD.surprise
    assert "A 2-5-1 network" in FOLD.view({}).note  # the storyboard's
    assert not FOLD.view({"creases": random_creases(4, 6)}).reached
    assert "21 parameters" in FOLD.view({"creases": random_creases(4, 5)}).note


def test_with_the_identity_all_layers_are_one_map():
    for steps in (0, 5, 30):
        off, loss, regions = LEARN.view({"activation": "identity", "steps": steps}).numbers
        assert (off.value, regions.text) == (0.0, "1")
    # no line parts the cross, so no line does better than saying nothing
    assert loss.value > 0.6
    for activation in ("ReLU", "tanh"):
        view = LEARN.view({"activation": activation, "steps": 30})
        assert view.numbers[0].value > 1
        assert view.numbers[1].value < 0.05
        assert not view.reached


@pytest.mark.parametrize("activation", ["ReLU", "tanh", "identity"])
def test_what_is_learned_is_what_one_run_of_adam_learns(activation):
    points = mlp.CROSS[2:9]
    model, _, losses = learned(points, activation, 3)
    fresh, _, _ = learned(points, activation, 0)
    one = mlp.MLP((2, 8, 8, 1), activation=mlp.ACTIVATIONS[activation])
    one.load_state_dict(fresh.state_dict())
    optimizer = torch.optim.Adam(one.parameters(), lr=0.01)
    x, y = torch.tensor([point[:2] for point in points]), torch.tensor([float(point[2]) for point in points])
    for _ in range(60):
        loss = torch.nn.functional.binary_cross_entropy_with_logits(one(x)[:, 0], y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert losses[-1] == pytest.approx(float(loss.detach()), rel=1e-3)
    for left, right in zip(model.parameters(), one.parameters()):
        assert torch.allclose(left, right, atol=1e-3)
    weight, _ = layers_in_one(model)
    expected = model.head.weight @ model.features[2].weight @ model.features[0].weight
    assert torch.allclose(weight, expected, atol=1e-6)


def test_learning_draws_what_is_there():
    one, other = LEARN.view({"kind": "circle"}), LEARN.view({"kind": "triangle"})
    assert one.numbers == other.numbers
    assert len(one.picture.svg()) < 150_000


@pytest.mark.parametrize(
    ("shift", "lr"), [(0.0, 0.1), (-4.0, 0.1), (2.0, 10.0), (-3.0, 0.01), (-1.3, 0.7), (-2.2, 3.0)]
)
def test_who_is_dead(shift, lr):
    before, after = mlp.shifted_and_trained(shift, lr)
    data = mlp.CLOUD
    dead = (data @ after.features[0].weight.T + after.features[0].bias <= 0).all(dim=0)
    first = (data @ before.features[0].weight.T + shift <= 0).all(dim=0)
    view = DEAD.view({"shift": shift, "lr": lr})
    hidden = torch.relu(data @ after.features[0].weight.T + after.features[0].bias)
    assert view.numbers[0].text == str(int(dead.sum()))
    assert view.numbers[1].value == pytest.approx(float((hidden == 0).float().mean()), abs=1e-6)
    assert view.numbers[2].value == pytest.approx(float((hidden == 0).all(dim=1).float().mean()), abs=1e-6)
    assert view.reached == bool(first.any())
    # the dead stay where they were, to the last bit
    assert torch.equal(before.features[0].weight[first], after.features[0].weight[first])
    assert torch.equal(before.head.weight[:, first], after.head.weight[:, first])
    assert float(mlp.logistic_gradient(after)[1][first].abs().sum()) == 0.0
    assert DEAD.view({"shift": shift, "lr": lr, "printed": True}).numbers[2].value == 0.0


@pytest.mark.parametrize("x", [(0.35, 0.15), (10.0, 6.0), (-12.0, -12.0), (12.0, 12.0), (1.7, -8.0), (0.0, 0.0)])
def test_confidence_is_the_sigmoid_of_the_score(x):
    model, _, _ = learned(mlp.CROSS, "ReLU", 3)
    with torch.no_grad():
        score = abs(float(model(torch.tensor([x]))))
    view = SURE.view({"x": list(x)})
    assert view.numbers[0].value == pytest.approx(1 / (1 + math.exp(-score)), abs=1e-6)
    assert view.numbers[2].value == pytest.approx(math.hypot(*x), abs=1e-5)


def test_it_is_surest_where_it_saw_nothing():
    far = SURE.view({"x": [10.0, 6.0]})
    here, seen, _ = (number.value for number in far.numbers)
    assert here > 0.999 > 0.95 > seen
    assert far.reached
    assert not SURE.view({}).reached


def test_rows_of_ones_own():
    chance = random.Random(0)
    rows = [(chance.gauss(side, 0.3), chance.gauss(0, 1), "ab"[side > 0]) for side in (-1, 1) for _ in range(40)]
    file = ("u,v,kind\n" + "\n".join(f"{u},{v},{kind}" for u, v, kind in rows)).encode()
    view = mlp.yours(file, "ReLU", 30)
    assert view.numbers[0].value > 0.9
    assert "20 held out" in view.picture.alt
    assert "triangles: b" in view.picture.svg()
    for bad in (b"u,v,kind\n1,2,a\n2,3,b\n3,4,c\n", b"u,kind\n1,a\n2,b\n", b"\xff\xfe\x00"):
        with pytest.raises(UserError):
            mlp.yours(bad, "ReLU", 1)


@pytest.mark.parametrize(("shift", "lr"), [(0.0, 0.1), (-1.0, 0.5)])
def test_gradients_by_hand(shift, lr):
    model = mlp.shifted_and_trained(shift, lr)[1]
    weight, bias, out, level = (each.detach().double().numpy() for each in model.parameters())
    x = mlp.CLOUD.double().numpy()
    z = x @ weight.T + bias
    signs = np.where(x[:, 0] > 0, 1.0, -1.0)
    score = np.maximum(z, 0) @ out[0] + level[0]
    slope = -signs / (1 + np.exp(signs * score)) / len(x)  # of the mean logistic loss in each score
    back = slope[:, None] * out[0] * (z > 0)
    parts = np.concatenate([back.T @ x, back.sum(0)[:, None], (slope @ np.maximum(z, 0))[:, None]], axis=1)
    svg = DEAD.view({"shift": shift, "lr": lr}).picture.svg()
    for norm, alive in zip(np.linalg.norm(parts, axis=1), (z > 0).any(axis=0)):
        assert f"> {digits(norm, 2) if alive else 'dead: 0'}<" in svg
