"""A state as files: what goes in comes out, to the bit, in the same order, and tied where it was tied."""

import json
import math

import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as some

from quoin.train.checkpoint import set_aside
from quoin.train.durable import Directory
from quoin.train.state import flatten_state, generator_states, load_generator_states, unflatten_state
from quoin.train.tensor_file import read_tensors, tensor_pieces
from tasks import copy_state, difference

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool)


def tensors():
    shapes = some.lists(some.integers(0, 3), max_size=3)
    return some.builds(
        lambda shape, dtype: torch.arange(math.prod(shape)).reshape(shape).to(dtype), shapes, some.sampled_from(DTYPES)
    )


leaves = (
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False) | some.text(max_size=4) | tensors()
)
keys = some.sampled_from(["a", "b", "a.b", "b.a", "0", "$tensor", "$dict", "$float", ""]) | some.integers(0, 2)
trees = some.recursive(
    leaves,
    lambda inner: (
        some.lists(inner, max_size=3)
        | some.lists(inner, max_size=3).map(tuple)
        | some.dictionaries(keys, inner, max_size=4)
    ),
    max_leaves=12,
)


def through_files(tree):
    """There and back through the bytes of both files, the tensors read by the library of the format and by us."""
    skeleton, named = flatten_state(tree)
    text, content = json.dumps(skeleton, allow_nan=False), b"".join(tensor_pieces(named))
    theirs, ours = safetensors.torch.load(content), read_tensors(bytearray(content))
    assert same(theirs, {name: ours[name] for name in theirs})
    assert theirs.keys() == ours.keys()
    return unflatten_state(json.loads(text), ours)


def same(one, other) -> bool:
    """Equal to the bit; bfloat16, which NumPy lacks, by its integers."""

    def plain(tree):
        if isinstance(tree, torch.Tensor) and tree.dtype == torch.bfloat16:
            return tree.view(torch.int16)
        if isinstance(tree, dict):
            return {key: plain(value) for key, value in tree.items()}
        return type(tree)(plain(item) for item in tree) if isinstance(tree, (list, tuple)) else tree

    return difference(plain(one), plain(other)) is None


@given(trees)
@settings(max_examples=300, deadline=None)
def test_any_tree_comes_back_to_the_bit_and_in_order(tree):
    assert same(tree, through_files(tree))
    assert same(tree, copy_state(tree))


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 0.1 + 0.2, 5e-324, -0.0])
def test_a_float_keeps_its_value(value):
    assert repr(through_files([value])[0]) == repr(value)


def test_paths_that_are_spelt_alike_stay_apart():
    one, two = torch.ones(2), torch.zeros(2)
    for tree in ({"a.b": one, "a": {"b": two}}, {"x": {0: one, "0": two}}, {"a": [one], "a.0": two}):
        assert difference(tree, through_files(tree)) is None


def test_one_tensor_is_stored_once_and_comes_back_as_one():
    shared = torch.randn(4, 3)
    skeleton, named = flatten_state({"embed": shared, "head": shared.detach(), "other": shared.clone()})
    assert len(named) == 2
    back = unflatten_state(skeleton, named)
    assert back["embed"] is back["head"]
    assert back["other"] is not back["embed"]


def test_the_same_storage_seen_in_two_shapes_is_two_tensors():
    whole = torch.arange(6.0)
    tree = {"flat": whole, "square": whole.view(2, 3), "part": whole[:3], "turned": whole.view(2, 3).T}
    assert difference(tree, through_files(tree)) is None


def test_a_view_does_not_drag_its_storage_along():
    _, named = flatten_state({"corner": torch.zeros(1000, 1000)[0, :2]})
    assert sum(map(len, tensor_pieces(named))) < 200


def test_a_state_is_taken_apart_without_a_copy():
    weight = torch.nn.Parameter(torch.zeros(2))
    _, named = flatten_state({"weight": weight})
    assert named["weight"].data_ptr() == weight.data_ptr()
    assert not named["weight"].requires_grad


@pytest.mark.parametrize("size", [3, 2**20])
def test_what_was_set_aside_does_not_move_when_training_goes_on_and_takes_no_name(size, tmp_path):
    weight = torch.nn.Parameter(torch.arange(float(size)))
    tree = {"weight": weight, "tied": weight, "loss": 0.5, "part": weight[:2], "turned": weight[:2].view(2, 1).T}
    before = copy_state(tree)
    kept = set_aside(Directory.at(tmp_path), tree)
    assert not list(tmp_path.iterdir())
    with torch.no_grad():
        weight += 1
    assert difference(before, kept) is None
    assert kept["weight"] is kept["tied"]
    assert not kept["weight"].requires_grad


def test_what_could_name_code_is_refused_with_its_place():
    with pytest.raises(TypeError, match=r"task\.hook is a function"):
        flatten_state({"task": {"hook": lambda: None}})


def test_generators_go_on_where_they_stood():
    torch.manual_seed(0)
    torch.rand(3)
    there = copy_state(generator_states())
    expected = torch.rand(5)
    torch.rand(7)
    load_generator_states(there)
    assert torch.equal(torch.rand(5), expected)
