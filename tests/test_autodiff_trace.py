"""Tracing: every value again bit for bit, adjoints as autograd has them, and nothing of the caller's touched."""

import dataclasses

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from quoin.autodiff import Graph, replay, same_bits, trace
from quoin.autodiff.graph import Call
from quoin.errors import UserError
from seeds import seeded


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=seeded(seed))


@pytest.fixture(autouse=True)
def _global_seed():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def differing(graph: Graph) -> list[str]:
    return [
        str(node.index) + node.op
        for node, value in zip(graph.nodes, replay(graph), strict=True)
        if not same_bits(node.value, value)
    ]


# ---- functions with what makes recording hard -------------------------------------------------------------------


def writes_in_place(x):
    y = x * 2
    y.add_(1)
    first = y[0]
    first.mul_(3)
    y[1] = x[0]
    y[:, 0] += y[:, 1]
    return (y.T**2).sum()


def writes_to_its_input(x):
    x.mul_(2)
    x[0] = 0
    return x.exp().sum()


def writes_past_autograd(x):
    y = x.clone()
    y.data.add_(1)
    z = y.detach()
    z.mul_(2)
    return (y * y).sum()


def gives_several(x):
    narrow, wide = x.T.split([1, 2])
    values, places = torch.max(x, 1)
    rows = [row * 2 for row in x]
    mean, variance = torch.var_mean(x)
    return {
        "a": narrow.sum() + wide[0].sum() + values.sum(),
        "b": (places, rows[0]),
        "c": [mean, variance, torch.sort(x, 1).values],
    }


def draws(x):
    given = seeded(5)
    noise = (
        torch.rand_like(x)
        + torch.rand(5, 3, generator=given)
        + torch.empty(5, 3).uniform_()
        + torch.bernoulli(x.sigmoid())
    )
    torch.manual_seed(7)
    return (functional.dropout(x, 0.5) * noise).sum() + torch.randn(1, generator=given).sum()


def branches(x):
    count = 0
    while x.abs().max() > 0.01 and count < 20:
        x = x / 2 if x.sum() > 0 else x / 3
        count += 1
    return x.sum() * count / float(x.detach().abs().sum().item())


def counts(x):
    ranks = x.argsort(dim=1)
    mask = x > 0
    x = torch.where(mask, x, torch.zeros(()))
    return x[torch.arange(5), ranks[:, 0]].sum() + mask.sum() + torch.nonzero(mask).sum()


def fills(x):
    out = torch.empty(5, 3)
    torch.mul(x.detach(), 3, out=out)
    other = torch.zeros_like(x)
    other[x > 0] = 1
    other.index_put_((torch.tensor([0, 0]),), x[:2], accumulate=True)
    return (out * other).sum()


def differentiates(x):
    x = x.clone()
    (slope,) = torch.autograd.grad(x.sin().sum(), x, create_graph=True)
    return (slope**2).sum()


def narrows(x):
    with torch.autocast("cpu", torch.bfloat16):
        y = x @ x.T
    with torch.no_grad():
        z = y.float() * 2
    return (y * z).sum()


def is_strange(x):
    y = torch.fft.fft(x)
    return (torch.log(-x.abs()) + y.abs() + torch.einsum("ij,ik->jk", x, x).sum() + (y.conj() * y).real).sum()


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone().mul_(2)

    @staticmethod
    def backward(ctx, *adjoints):
        return 2 * adjoints[0]


def has_a_rule_of_its_own(x):
    return (Doubled.apply(x) ** 2).sum()


FUNCTIONS = [
    writes_in_place,
    writes_to_its_input,
    writes_past_autograd,
    gives_several,
    draws,
    branches,
    counts,
    fills,
    differentiates,
    narrows,
    is_strange,
    has_a_rule_of_its_own,
]


def modules() -> dict[str, tuple[nn.Module, Tensor]]:
    return {
        "dropout and batch norm": (
            nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(inplace=True), nn.Dropout(0.5)),
            normal(5, 3),
        ),
        "convolution": (
            nn.Sequential(nn.Conv2d(1, 2, 3), nn.MaxPool2d(2), nn.GroupNorm(1, 2), nn.Flatten()),
            normal(2, 1, 8, 8),
        ),
        "lstm": (nn.LSTM(3, 4, 2, dropout=0.3), normal(5, 2, 3)),
        "transformer": (nn.TransformerEncoderLayer(4, 2, 8), normal(5, 2, 4)),
        "transformer, evaluating": (nn.TransformerEncoderLayer(4, 2, 8).eval(), normal(5, 2, 4)),
        "embedding": (nn.EmbeddingBag(10, 3), torch.randint(10, (4, 6), generator=seeded())),
    }


# ---- values -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("layout", ["plain", "transposed", "gapped", "expanded"])
def test_a_replay_has_every_bit(f, layout):
    x = {
        "plain": normal(5, 3),
        "transposed": normal(3, 5).T,
        "gapped": normal(10, 6)[::2, ::2],
        "expanded": normal(1, 3).expand(5, 3),
    }[layout]
    if f is writes_to_its_input and layout == "expanded":
        pytest.skip("torch refuses to write to overlapping memory")
    graph = trace(f, x)
    assert differing(graph) == []
    assert len(graph.nodes) > 3


@pytest.mark.parametrize("name", modules())
def test_a_module_replays_and_computes_what_it_does_untraced(name):
    module, x = modules()[name]
    with torch.random.fork_rng():
        expected = module(x)
    graph = trace(module, x)
    assert differing(graph) == []
    first = expected[0] if isinstance(expected, tuple) else expected
    if "evaluating" in name:  # torch leaves its fused path while it is watched
        torch.testing.assert_close(graph.output, first.detach())
    else:
        assert same_bits(graph.output, first.detach())


def test_a_replay_sees_what_it_depends_on():
    """The check can fail: without the generator's state a dropout comes out otherwise, and so do the nodes after it."""
    graph = trace(lambda x: functional.dropout(x, 0.5).sum(), normal(50))
    forgetful = [
        dataclasses.replace(step, random_states=()) if isinstance(step, Call) else step for step in graph.steps
    ]
    torch.manual_seed(1)
    assert differing(graph) == []
    assert differing(dataclasses.replace(graph, steps=tuple(forgetful))) == ["1dropout", "2sum"]


def test_a_training_step_replays_though_it_writes_to_the_parameters():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    labels = torch.tensor([0, 1, 1])

    def step(x):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    graph = trace(step, normal(3, 3))
    assert differing(graph) == []
    again = trace(step, normal(3, 3))
    assert differing(again) == []
    assert again.output < graph.output  # it did train


def test_tensors_that_share_memory_share_it_again():
    base = normal(6)
    front, back = base[:4], base[2:]

    def f(x):
        front.add_(x.detach())
        return (back * x).sum() + base.sum()

    graph = trace(f, normal(4, seed=1))
    assert differing(graph) == []


def test_the_callers_things_are_left_alone():
    x, model = normal(5, 3), nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
    before = x.clone()
    trace(writes_to_its_input, x)
    assert same_bits(x, before)
    assert not x.requires_grad
    with torch.random.fork_rng():
        model(x)
        expected = torch.get_rng_state()
    graph = trace(model, x, adjoint=torch.ones(5, 3))
    assert torch.equal(torch.get_rng_state(), expected)
    replay(graph)
    assert torch.equal(torch.get_rng_state(), expected)
    assert all(parameter.grad is None for parameter in model.parameters())
    held = [node.value.clone() for node in graph.nodes]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert all(same_bits(a, node.value) for a, node in zip(held, graph.nodes))
    assert differing(graph) == []


def test_the_hooks_go_even_after_an_error():
    from torch.nn.modules import module

    def fails(x):
        nn.Linear(3, 2)(x)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        trace(fails, normal(5, 3))
    assert not module._global_forward_hooks
    assert not module._global_forward_pre_hooks


# ---- adjoints ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_adjoints_are_those_that_autograd_retains(dtype):
    generator = seeded(2)
    W, V = (torch.randn(shape, generator=generator, dtype=dtype) for shape in ((4, 3), (2, 4)))
    x, labels = torch.randn(5, 3, generator=generator, dtype=dtype), torch.tensor([0, 1, 1, 0, 1])
    kept: dict[str, Tensor] = {}

    def f(x, W, V):
        kept["matmul"] = x @ W.T
        kept["tanh"] = kept["matmul"].tanh()
        kept["matmul 2"] = kept["tanh"] @ V.T
        kept["loss"] = functional.cross_entropy(kept["matmul 2"], labels)
        return kept["loss"] + 0.1 * (W**2).sum()

    graph = trace(f, x, W, V)
    inputs = {"x": x.clone().requires_grad_(), "W": W.clone().requires_grad_(), "V": V.clone().requires_grad_()}
    output = f(*inputs.values())
    for tensor in kept.values():
        tensor.retain_grad()
    output.backward()
    found = {node.name: node.adjoint for node in graph.nodes if node.op == "input"}
    for name, tensor in inputs.items():
        torch.testing.assert_close(found[name], tensor.grad)
    first, second = graph.find("matmul")
    for node, name in (
        (first, "matmul"),
        (graph.find("tanh")[0], "tanh"),
        (second, "matmul 2"),
        (graph.find("cross_entropy")[0], "loss"),
    ):
        torch.testing.assert_close(node.value, kept[name].detach())
        torch.testing.assert_close(node.adjoint, kept[name].grad)


def test_adjoints_of_parameters_are_their_gradients():
    module, x = modules()["convolution"]
    graph = trace(lambda x: module(x).square().sum(), x)
    module(x).square().sum().backward()
    named = {node.name: node.adjoint for node in graph.nodes if node.op == "parameter"}
    assert set(named) == {f"Sequential.{name}" for name, _ in module.named_parameters()}
    for name, parameter in module.named_parameters():
        torch.testing.assert_close(named[f"Sequential.{name}"], parameter.grad)


def test_a_value_written_in_place_has_an_adjoint_before_and_after():
    def f(x):
        y = x * 3
        y.mul_(x)  # y = 3x²: ∂y/∂(3x) = x
        return (y * y).sum()  # 9x⁴

    x = torch.tensor([1.0, 2.0], dtype=torch.float64)
    graph = trace(f, x)
    product, written = graph.find("mul")[0], graph.find("mul_")[0]
    torch.testing.assert_close(graph.nodes[0].adjoint, 36 * x**3)
    torch.testing.assert_close(written.adjoint, 6 * x**2)
    torch.testing.assert_close(product.adjoint, 6 * x**3)
    assert same_bits(product.value, 3 * x)


def test_what_is_written_through_a_view_leads_on():
    def f(x):
        y = x * 1
        y[0].mul_(5)
        return (y * torch.tensor([1.0, 10.0])).sum()

    graph = trace(f, torch.tensor([1.0, 2.0]))
    assert graph.output == 25
    torch.testing.assert_close(graph.nodes[0].adjoint, torch.tensor([5.0, 10.0]))
    after = graph.find("after write")[0]
    assert graph.find("mul_")[0].index in after.inputs
    assert after.value.tolist() == [5, 2]
    assert graph.find("mul_")[0].adjoint is None  # autograd knows it only as a part of y


def test_what_does_not_count_has_adjoint_zero_and_what_is_no_float_none():
    graph = trace(lambda x: x.detach().sum() + x[0] * 2 + (x > 0).sum(), torch.tensor([1.0, 2.0]))
    assert graph.nodes[0].adjoint.tolist() == [2, 0]
    assert graph.find("gt")[0].adjoint is None
    graph = trace(lambda x, y: (x + 0 * y.detach()).sum(), torch.ones(2), torch.ones(2))
    assert graph.nodes[1].adjoint.tolist() == [0, 0]


def test_an_adjoint_may_be_given_and_is_needed_where_there_is_no_one_number():
    x = normal(3)
    assert all(node.adjoint is None for node in trace(torch.sin, x).nodes)
    graph = trace(torch.sin, x, adjoint=torch.tensor([1.0, 2.0, 3.0]))
    torch.testing.assert_close(graph.nodes[0].adjoint, x.cos() * torch.tensor([1.0, 2.0, 3.0]))
    graph = trace(lambda x: (x * 2, x.sum()), x, adjoint=[torch.ones(3), torch.tensor(5.0)])
    assert graph.nodes[0].adjoint.tolist() == [7, 7, 7]
    with torch.no_grad():
        assert trace(lambda x: x.sum(), x).nodes[0].adjoint is None


# ---- names and shape of the graph -------------------------------------------------------------------------------


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.act = nn.Linear(3, 3), nn.Tanh()

    def forward(self, batch):
        return self.act(self.linear(self.act(self.linear(batch)))).sum()


def test_a_module_used_twice_is_two_nodes_of_one_weight():
    graph = trace(Shared(), normal(5, 3))
    calls = [node for node in graph.nodes if node.op == "linear"]
    assert [node.location for node in calls] == ["linear", "linear (use 2)"]
    weight = graph.find("linear.weight")
    assert len(weight) == 1
    assert all(weight[0].index in node.inputs for node in calls)
    assert [node.location for node in graph.nodes if node.op == "tanh"] == ["act", "act (use 2)"]
    assert graph.nodes[0].name == "batch"


def test_modules_inside_a_function_go_by_their_class():
    one, two = Shared(), Shared()
    graph = trace(lambda x: one(x) + two(x), normal(5, 3))
    assert [node.location for node in graph.nodes if node.op == "linear"] == [
        "Shared.linear",
        "Shared.linear (use 2)",
        "Shared#2.linear",
        "Shared#2.linear (use 2)",
    ]


def test_the_graph_is_acyclic_and_complete():
    for f in FUNCTIONS:
        graph = trace(f, normal(5, 3))
        assert all(source < target for source, target in graph.edges), f.__name__
        assert all(node.index == place for place, node in enumerate(graph.nodes))
        assert str(graph).count("\n") == len(graph.nodes)


def test_inputs_may_be_nested_and_go_by_their_parameters():
    graph = trace(lambda pair, *rest: pair[0] @ pair[1]["w"] + rest[1], (normal(2, 3), {"w": normal(3)}), 1, normal(2))
    assert [node.name for node in graph.nodes if node.op == "input"] == ["pair.0", "pair.1", "rest[1]"]
    assert differing(graph) == []


def test_what_if():
    graph = trace(lambda x: (x * 2).exp().sum(), torch.tensor([0.0, 1.0]))
    (product,) = graph.find("mul")
    values = replay(graph, {product.index: torch.zeros(2)})
    assert values[graph.outputs[0]] == 2
    assert values[0].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (lambda: trace("f"), "function or a module"),  # pyright: ignore[reportArgumentType]
        (lambda: trace(lambda x: 3, normal(2)), "give back a tensor"),
        (lambda: trace(torch.sin, normal(2), adjoint=normal(3)), r"shape \(2,\) for output 0, got \(3,\)"),
        (lambda: trace(torch.sin, normal(2), adjoint=[]), "expected 1 adjoints"),
        (lambda: trace(torch.sin, torch.ones(2).int(), adjoint=normal(2)), "depends on a float"),
        (lambda: trace(lambda x: torch.vmap(torch.sin)(x).sum(), normal(2)), "vmap"),
        (lambda: trace(lambda x: _stepped(x), normal(2)), "ran backward"),
        (lambda: replay(trace(torch.sin, normal(2)), {7: normal(2)}), "nodes from 0 to 1"),
        (lambda: replay(trace(torch.sin, normal(2)), {0: normal(3)}), r"shape \(2,\) for node 0"),
        (lambda: replay(trace(torch.sin, normal(2)), {0: normal(2).double()}), "float64"),
    ],
)
def test_a_mistake_is_one_line(bad, words):
    with pytest.raises(UserError, match=words) as caught:
        bad()
    assert "\n" not in str(caught.value)


def test_inference_mode_is_refused():
    with torch.inference_mode(), pytest.raises(UserError, match="inference_mode"):
        trace(torch.sin, normal(2))


def _stepped(x: Tensor) -> Tensor:
    loss = (x**2).sum()
    loss.backward(retain_graph=False)
    return loss
