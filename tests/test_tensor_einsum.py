"""einsum, tensor products, orders, masks and operation counts: against numpy, loops and mathematics; mistakes by their
words."""

import itertools
import string

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from quoin.errors import UserError
from quoin.tensor import (
    bmm,
    bmm_definition,
    causal_mask,
    dot,
    einsum,
    einsum_definition,
    einsum_multiplications,
    entry,
    hadamard,
    order,
    pairwise_multiplications,
    pure_tensor,
    sequence_mask,
    tensor_product,
    unfolding,
)


@st.composite
def random_spec(draw) -> tuple[str, list[tuple[int, ...]]]:
    """Up to three terms over four letters, with or without an arrow, and shapes that fit."""
    sizes = {letter: draw(st.integers(0, 3)) for letter in "iJkm"}
    terms = draw(st.lists(st.text(alphabet="iJkm", max_size=3), min_size=1, max_size=3))
    used = sorted(set("".join(terms)))
    spec = ",".join(terms)
    if draw(st.booleans()):
        spec += "->" + "".join(draw(st.permutations(used))[: draw(st.integers(0, len(used)))])
    return spec, [tuple(sizes[letter] for letter in term) for term in terms]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(random_spec(), st.integers(0, 1000))
def test_einsum_agrees_with_numpy_on_any_spec(case, seed):
    spec, shapes = case
    generator = torch.Generator().manual_seed(seed)
    operands = [torch.randint(-9, 10, shape, generator=generator) for shape in shapes]  # whole numbers: exact
    expected = torch.as_tensor(numpy.einsum(spec, *(operand.numpy() for operand in operands)).copy())
    for form in (einsum, einsum_definition):
        assert torch.equal(form(spec, *operands), expected), form
        assert torch.equal(form(spec, *(operand.double() for operand in operands)), expected.double()), form


@pytest.mark.parametrize(
    ("spec", "shapes", "words"),
    [
        (
            "ij,jk",
            [(2, 3), (4, 5)],
            ["index j", "3 as in operand 1 of shape (2, 3)", "4 in operand 2 of shape (4, 5)", "'ij,jk'"],
        ),
        ("ij,jk", [(2, 1), (4, 5)], ["index j", "to be 1", "got 4"]),  # torch would stretch the 1
        ("ii", [(3, 4)], ["index i", "3 as in operand 1", "got 4 there too"]),
        ("i,j,i", [(2,), (9,), (3,)], ["index i", "operand 1", "operand 3"]),
        ("...i,...i", [(2, 3), (4, 3)], ["axis 1 of ...", "to be 2", "got 4"]),
        ("...i,...i", [(2, 3), (3,)], ["as many axes under ...", "[0, 1]"]),
        ("ij,jk", [(2, 3)], ["2 operands", "got 1"]),
        ("ij", [(2, 3, 4)], ["operand 1", "2 axes (ij)", "order 3"]),
        ("...ijk", [(2, 3)], ["at least 3 axes", "order 2"]),
        ("ij->ik", [(2, 3)], ["got k which no operand has"]),
        ("ij->ii", [(2, 3)], ["got i more than once"]),
        ("ij->...", [(2, 3)], ["only in the result"]),
        ("i1", [(2, 3)], ["letters", "'i1'"]),
        ("i->j->i", [(2,)], ["letters", "'j->i'"]),
        ("......", [(2,)], ["at most one ..."]),
    ],
)
def test_einsum_names_what_does_not_fit(spec, shapes, words):
    operands = [torch.zeros(shape) for shape in shapes]
    for form, arguments in ((einsum, operands), (einsum_definition, operands), (einsum_multiplications, shapes)):
        with pytest.raises(UserError) as caught:
            form(spec, *arguments)
        assert "\n" not in str(caught.value)
        for word in words:
            assert word in str(caught.value)


def test_einsum_refuses_what_cannot_be_multiplied():
    with pytest.raises(UserError, match=r"one dtype, got torch.float32 and torch.float64"):
        einsum("i,i", torch.ones(2), torch.ones(2, dtype=torch.float64))
    for dtype in (torch.bool, torch.uint8, torch.int32):
        with pytest.raises(UserError, match=f"got {dtype}, whose products overflow"):
            einsum("i,i", torch.ones(2, dtype=dtype), torch.ones(2, dtype=dtype))
    with pytest.raises(UserError, match="tensors after"):
        einsum("i")
    with pytest.raises(UserError, match="tensors after"):
        einsum("i", [1.0, 2.0])  # type: ignore[arg-type]


def test_einsum_compiles_without_a_break_or_a_warning():
    compiled = torch.compile(lambda A, B: einsum("ik,kj", A, B), backend="eager", fullgraph=True)
    A, B = torch.randn(2, 3), torch.randn(3, 4)
    torch.testing.assert_close(compiled(A, B), A @ B)


# ---- order and entries ------------------------------------------------------------------------------------------


def test_order_and_entry():
    T = torch.arange(24).reshape(2, 3, 4)
    assert [order(torch.tensor(1.0)), order(torch.zeros(3)), order(torch.zeros(0, 2)), order(T)] == [0, 1, 2, 3]
    for place in itertools.product(range(2), range(3), range(4)):
        assert entry(T, *place) == place[0] * 12 + place[1] * 4 + place[2]
    assert entry(torch.tensor(5)) == 5
    with pytest.raises(UserError, match="3 indices for a tensor of order 3, got 2"):
        entry(T, 0, 0)
    with pytest.raises(UserError, match=r"index 1 from 0 to 2, got 3 \(shape \(2, 3, 4\)\)"):
        entry(T, 0, 3, 0)
    with pytest.raises(UserError, match="got -1"):
        entry(T, -1, 0, 0)


def test_unfolding_moves_entries_where_it_says():
    T = torch.arange(24).reshape(2, 3, 4)
    for i, j, k in itertools.product(range(2), range(3), range(4)):
        assert unfolding(T, 1)[j, 4 * i + k] == T[i, j, k]
        assert unfolding(T, 2, 0)[2 * k + i, j] == T[i, j, k]
    assert unfolding(T).shape == (1, 24)
    for axes in [(3,), (0, 0), (-1,)]:
        with pytest.raises(UserError, match="different axes from 0 to 2"):
            unfolding(T, *axes)


# ---- products ---------------------------------------------------------------------------------------------------


def test_tensor_product_adds_orders():
    R, S, T = torch.randn(2), torch.randn(3, 4), torch.tensor(2.0)
    assert tensor_product(R, S, T).shape == (2, 3, 4)
    torch.testing.assert_close(tensor_product(R, S), torch.tensordot(R, S, dims=0))
    assert tensor_product(torch.zeros(0, 2), torch.zeros(3)).shape == (0, 2, 3)
    with pytest.raises(UserError, match="at least one"):
        tensor_product()
    with pytest.raises(UserError, match=r"argument 2 of shape \(2, 2\)"):
        pure_tensor(torch.ones(2), torch.ones(2, 2))


def test_small_products_refuse_to_stretch():
    assert dot(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])) == 11
    assert hadamard(torch.tensor([1, 2]), torch.tensor([3, 4])).tolist() == [3, 8]
    with pytest.raises(UserError, match="axis n of y to be 3 as in x, got 1"):
        dot(torch.ones(3), torch.ones(1))
    with pytest.raises(UserError, match="leading axes"):
        hadamard(torch.ones(3, 1), torch.ones(3, 3))


def test_bmm_is_torch_bmm_and_names_the_axis():
    query, key = torch.randn(3, 2, 4), torch.randn(3, 4, 5)
    torch.testing.assert_close(bmm(query, key), torch.einsum("nab,nbc->nac", query, key))
    for form in (bmm, bmm_definition):
        assert form(torch.zeros(0, 2, 4), torch.zeros(0, 4, 5)).shape == (0, 2, 5)
        with pytest.raises(UserError, match="axis b of key to be 4 as in query, got 5"):
            form(query, torch.randn(3, 5, 4))
        with pytest.raises(UserError, match="axis n of key to be 3"):
            form(query, torch.randn(2, 4, 5))
        with pytest.raises(UserError, match="one dtype"):
            form(query, key.double())


# ---- counts -----------------------------------------------------------------------------------------------------


class Multiplications(TorchDispatchMode):
    """Counts the multiplications that torch is asked for."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func.overloadpacket == torch.ops.aten.mul
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("spec", "shapes", "count"),
    [
        ("ik,kj->ij", [(2, 3), (3, 4)], 24),
        ("i,i", [(5,), (5,)], 5),
        ("i,j->ij", [(5,), (4,)], 20),
        ("i,i,i->i", [(3,), (3,), (3,)], 6),
        ("bik,bkj->bij", [(2, 2, 3), (2, 3, 2)], 24),
        ("ij->j", [(3, 4)], 0),
        ("i,i", [(0,), (0,)], 0),
    ],
)
def test_counted_multiplications_are_those_that_happen(spec, shapes, count):
    with Multiplications() as seen:
        einsum_definition(spec, *(torch.ones(shape) for shape in shapes))
    assert seen.count == einsum_multiplications(spec, *shapes) == count


@pytest.mark.parametrize(
    ("spec", "shapes", "cost", "tree"),
    [
        ("ij,jk,kl->il", [(10, 30), (30, 5), (5, 60)], 4500, ((0, 1), 2)),  # the textbook matrix chain: 1500 + 3000
        ("nd,md,mv->nv", [(100, 4), (100, 4), (100, 4)], 2 * 4 * 4 * 100, (0, (1, 2))),  # linear attention
        (
            "nd,md,mv->nv",
            [(4, 100), (4, 100), (4, 100)],
            2 * 4 * 4 * 100,
            ((0, 1), 2),
        ),  # quadratic attention is cheaper here
        ("ij,k->", [(3, 4), (5,)], 1, (0, 1)),  # what nobody else needs is summed first
        ("ii", [(3, 3)], 0, 0),
    ],
)
def test_the_cheapest_order_of_pairs(spec, shapes, cost, tree):
    found = pairwise_multiplications(spec, *shapes)
    assert (found.multiplications, found.tree) == (cost, tree)


@pytest.mark.parametrize("seed", range(10))
def test_the_cheapest_order_of_a_matrix_chain_is_the_textbook_one(seed):
    count = 3 + seed % 4
    sizes = torch.randint(1, 20, (count + 1,), generator=torch.Generator().manual_seed(seed)).tolist()
    letters = string.ascii_letters[: count + 1]
    spec = ",".join(a + b for a, b in itertools.pairwise(letters)) + f"->{letters[0]}{letters[-1]}"

    def chain(i: int, j: int) -> int:  # Cormen et al., chapter 15
        if i == j:
            return 0
        return min(chain(i, k) + chain(k + 1, j) + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j))

    # Outer products are open to us and not to the textbook; they can only help.
    found = pairwise_multiplications(spec, *itertools.pairwise(sizes)).multiplications
    assert 0 < found <= chain(0, count - 1)
    if min(sizes[1:-1]) >= max(sizes[0], sizes[-1]):
        assert found == chain(0, count - 1)


def test_too_many_operands_to_search():
    with pytest.raises(UserError, match="at most 10 operands, got 11"):
        pairwise_multiplications(",".join("i" * 11), *[(2,)] * 11)


# ---- masks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "m"), [(1, 1), (4, 4), (2, 5), (0, 3), (0, 0)])
def test_causal_mask(n, m):
    mask = causal_mask(n, m)
    assert mask.dtype == torch.bool
    assert mask.tolist() == [[j <= i + m - n for j in range(m)] for i in range(n)]
    if n == m:
        assert torch.equal(causal_mask(n), torch.ones(n, n).tril().bool())


def test_valid_mask():
    lengths = torch.tensor([[0, 2], [3, 1]])
    mask = sequence_mask(lengths, 3)
    assert mask.shape == (2, 2, 3)
    assert torch.equal(mask.sum(dim=-1), lengths)
    assert bool((mask[..., :-1] >= mask[..., 1:]).all())  # the seen come first
    assert sequence_mask(torch.zeros(0, dtype=torch.long), 3).shape == (0, 3)


def test_bad_masks():
    with pytest.raises(UserError, match="got 2 for 3"):
        causal_mask(3, 2)
    with pytest.raises(UserError, match="from 0 to 3, got 4"):
        sequence_mask(torch.tensor([1, 4]), 3)
    with pytest.raises(UserError, match="got -1"):
        sequence_mask(torch.tensor([-1]), 3)
    with pytest.raises(UserError, match=r"integer valid lengths, got torch.float32"):
        sequence_mask(torch.tensor([1.0]), 3)
