"""The tape held against torch.autograd: every row of the table, broadcasting, second derivatives, random programs."""

from typing import Any

import pytest
import torch

from quoin.autodiff import RULES, Var, backward, concatenate
from quoin.errors import UserError
from quoin.notes.claims.autodiff import random_program


def positive(*shape: int, dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype) + 0.3


def joined(x: Any, y: Any) -> Any:
    return concatenate([x, y, x], dim=1) if isinstance(x, Var) else torch.cat([x, y, x], dim=1)


# name -> (function of a Var or a tensor each, shapes)
PROGRAMS: dict[str, tuple[Any, tuple[tuple[int, ...], ...]]] = {
    "add": (lambda x, y: x + y + 2 + (3 + x), ((2, 3), (2, 3))),
    "sub": (lambda x, y: x - y - 2 - (3 - x), ((2, 3), (2, 3))),
    "mul": (lambda x, y: 2 * x * y * 3, ((2, 3), (2, 3))),
    "div": (lambda x, y: 2 / x / y / 3, ((2, 3), (2, 3))),
    "neg": (lambda x: -x * x, ((2, 3),)),
    "pow": (lambda x: x**3 + x**2 + x**0.5 + x**-1 + x**1 + x**0, ((2, 3),)),
    "exp": (lambda x: x.exp(), ((2, 3),)),
    "log": (lambda x: x.log(), ((2, 3),)),
    "sin": (lambda x: x.sin(), ((2, 3),)),
    "cos": (lambda x: x.cos(), ((2, 3),)),
    "sqrt": (lambda x: x.sqrt(), ((2, 3),)),
    "tanh": (lambda x: x.tanh(), ((2, 3),)),
    "sigmoid": (lambda x: x.sigmoid(), ((2, 3),)),
    "relu": (lambda x: (x - 0.8).relu() * x, ((4, 5),)),
    "abs": (lambda x: (x - 0.8).abs() * x, ((4, 5),)),
    "sign": (lambda x: (x - 0.8).sign() * x, ((4, 5),)),
    "sum": (lambda x: x.sum(1) * x.sum((0, 1)) * x.sum(-1, keepdim=True).sum(0), ((2, 3),)),
    "mean": (lambda x: x.mean() * x.mean(0) * x.mean(1, keepdim=True), ((2, 3),)),
    "expand": (lambda x, y, z: x * y + z * x, ((2, 3), (3,), (2, 1))),
    "a scalar": (lambda x, y: x * y + y, ((2, 3), ())),
    "matmul": (lambda x, y: x @ y, ((2, 3), (3, 4))),
    "matrix by vector": (lambda x, y: x @ y, ((2, 3), (3,))),
    "vector by matrix": (lambda x, y: x @ y, ((3,), (3, 2))),
    "vector by vector": (lambda x, y: x @ y, ((3,), (3,))),
    "matrices in a batch": (lambda x, y: x @ y, ((5, 2, 3), (3, 4))),
    "reshape": (lambda x: x.reshape((3, 2)) @ x, ((2, 3),)),
    "mT": (lambda x: x.mT @ x, ((2, 3),)),
    "take": (lambda x: x[0] * x[:, 1:].sum() + x[torch.tensor([1, 1, 0])].sum(0), ((2, 3),)),
    "put": (lambda x: x[..., 0] ** 2, ((2, 3),)),
    "concatenate": (lambda x, y: joined(x, y) ** 2, ((2, 3), (2, 1))),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_rule_agrees_with_torch_in_value_first_and_second_derivative(name, dtype):
    program, shapes = PROGRAMS[name]
    tensors = [positive(*shape, dtype=dtype, seed=i).requires_grad_() for i, shape in enumerate(shapes)]
    variables = [Var(tensor) for tensor in tensors]
    ours, theirs = program(*variables), program(*tensors)
    torch.testing.assert_close(ours.value, theirs.detach())
    upstream = positive(*theirs.shape, dtype=dtype, seed=9)
    adjoints = backward(ours, Var(upstream))
    first = torch.autograd.grad(theirs, tensors, upstream, create_graph=True)
    torch.testing.assert_close([adjoints[v].value for v in variables], [g.detach() for g in first])
    if not all(g.requires_grad for g in first):
        return  # linear: torch has no graph for a constant
    bent = backward(sum((adjoints[v] * adjoints[v]).sum() for v in variables))  # pyright: ignore[reportArgumentType]
    second = torch.autograd.grad(sum((g * g).sum() for g in first), tensors, allow_unused=True, materialize_grads=True)  # pyright: ignore
    for variable, expected in zip(variables, second):
        torch.testing.assert_close(bent[variable].value if variable in bent else torch.zeros_like(expected), expected)


def test_every_row_of_the_table_is_held():
    used = set()
    for program, shapes in PROGRAMS.values():
        variables = [Var(positive(*shape, dtype=torch.float64, seed=i)) for i, shape in enumerate(shapes)]
        todo = [program(*variables)]
        todo += backward(todo[0].sum()).values()
        while todo:
            variable = todo.pop()
            used.add(variable.op)
            todo += variable.inputs
    assert used - {""} == set(RULES)


def test_a_wrong_rule_is_seen(monkeypatch):
    wrong = RULES["tanh"]._replace(adjoints=lambda g, out, x: (g * (1 - out),))
    monkeypatch.setitem(RULES, "tanh", wrong)
    with pytest.raises(AssertionError):
        test_a_rule_agrees_with_torch_in_value_first_and_second_derivative("tanh", torch.float64)


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_agree_with_torch_in_float32(seed):
    generator = torch.Generator().manual_seed(seed)
    program, start = random_program(generator), torch.randn(3, 3, generator=generator)
    variable, tensor = Var(start), start.clone().requires_grad_()
    (expected,) = torch.autograd.grad(program(tensor), tensor)
    torch.testing.assert_close(
        backward(program(variable))[variable].value, expected, rtol=1e-3, atol=1e-4 * float(expected.abs().max())
    )


def test_a_long_chain_does_not_exhaust_the_stack():
    x = Var(torch.tensor(1.0, dtype=torch.float64))
    y = x
    for _ in range(5000):
        y = y * 1.0001
    assert abs(float(backward(y)[x]) - 1.0001**5000) < 1e-9


def test_detach_stops_and_reuse_adds():
    x = Var(3.0)
    assert float(backward(x * x.detach())[x]) == 3
    assert x not in backward(x.detach() * 2)
    y = x * x
    assert float(backward(y + y + y * x)[x]) == 2 * 6 + 3 * 9


def test_the_derivative_of_relu_and_abs_at_zero_is_zero():
    x = Var(0.0)
    assert float(backward(x.relu())[x]) == 0
    assert float(backward(x.abs())[x]) == 0


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (lambda: Var(torch.ones(2, dtype=torch.int64)), "expected floats"),
        (lambda: backward(Var([1.0, 2.0])), "one number"),
        (lambda: backward(Var([1.0, 2.0]), Var([1.0])), r"shape \(2,\), got \(1,\)"),
        (lambda: Var([1.0, 2.0]) + Var([1.0, 2.0, 3.0]), r"\(2,\) and \(3,\)"),
        (lambda: Var([[1.0, 2.0]]) @ Var([[1.0, 2.0]]), r"\(1, 2\) @ \(1, 2\)"),
        (lambda: Var(1.0) ** Var(2.0), "plain number"),  # pyright: ignore[reportOperatorIssue]
        (lambda: concatenate([]), "one or more"),
    ],
)
def test_a_mistake_is_one_line(bad, words):
    with pytest.raises(UserError, match=words) as caught:
        bad()
    assert "\n" not in str(caught.value)
