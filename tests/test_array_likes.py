"""Lists, tuples and arrays where information theory and probability ask for a small table: the answer for tensors, or
one line.

The cases are those of tests/dtype_cases: functions of `x`, which makes of plain numbers what is tried."""

import importlib
import traceback
from pathlib import Path

import numpy as np
import pytest
import torch

from dtypes import numbers_in
from quoin import info, prob
from quoin.errors import UserError
from quoin.tensor.array_like import float_tensor, number_tensor

SOURCE = Path(info.__file__).parents[1]
PACKAGES = {"info": info, "prob": prob}
CASES = {
    (package, name): case
    for package in PACKAGES
    for name, case in importlib.import_module(f"dtype_cases.{package}").CASES.items()
}


def tensor_answer(case):
    """For floats, or where those are refused, for what torch makes of the numbers, such as labels."""
    for dtype in (torch.float64, torch.float32, None):
        try:
            return list(
                map(torch.as_tensor, numbers_in(case(lambda values, dtype=dtype: torch.tensor(values, dtype=dtype))))
            )
        except (ValueError, TypeError, RuntimeError):
            continue
    return None


def as_list(values):
    return values


def as_tuple(values):
    return tuple(as_tuple(each) for each in values) if isinstance(values, (list, tuple)) else values


def answer(case, x):
    """All numbers of the answer; the message of a UserError; None where the case itself needs a tensor, for it computes
    with it or hands it to a method: tables enter through functions and constructors."""
    try:
        return [torch.as_tensor(each) for each in numbers_in(case(x))]
    except UserError as error:
        return str(error)
    except (TypeError, AttributeError, ValueError, RuntimeError, Warning) as error:
        codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
        names = [code.co_qualname for code in codes if str(SOURCE) in code.co_filename]
        if names and (names[0] in DOORS or names[0].endswith(".__init__")):
            raise
        return None


# `model_fingerprint` takes the weights of a model by name, and `decode_pixels` a model of tensors
NO_TABLES = {"model_fingerprint", "decode_pixels"}
DOORS = {name for package in PACKAGES.values() for name in package.__all__} - NO_TABLES


@pytest.mark.parametrize("given", [as_list, as_tuple, np.array], ids=lambda given: given.__name__)
@pytest.mark.parametrize(("package", "name"), CASES, ids=lambda each: each)
def test_what_is_no_tensor_is_answered_like_one_or_refused(package, name, given):
    found = answer(CASES[package, name], given)
    if found is None:
        pytest.skip("the case computes with its tensor")
    if isinstance(found, str):
        assert "\n" not in found
        return
    expected = tensor_answer(CASES[package, name])
    assert expected is not None, "a list is answered, and a tensor is not"
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.double(), other.double(), rtol=1e-5, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: info.huffman_code([0.5, 0.3, 0.2]).codewords, ("0", "10", "11")),
        (lambda: info.shannon_lengths((0.5, 0.25, 0.25)), [1, 2, 2]),
        (lambda: float(info.entropy([0.5, 0.25, 0.25], base=2)), 1.5),
        (lambda: float(info.entropy([1, 0], base=2)), 0.0),
        (lambda: float(info.kl_divergence([0.5, 0.5, 0.0], (0.25, 0.25, 0.5), base=2)), 1.0),
        (lambda: float(info.mutual_information([[0.5, 0], [0, 0.5]], base=2)), 1.0),
        (lambda: float(info.self_information(0.125, base=2)), 3.0),
        (lambda: prob.bayes_rule([0.5, 0.5], [0.25, 0.75]).tolist(), [0.25, 0.75]),
        (lambda: prob.chain_distribution([1, 0], [[0.5, 0.5], [0.25, 0.75]], 2).tolist(), [0.375, 0.625]),
        (lambda: prob.stationary_distribution(np.eye(2)[::-1] / 2 + 0.25).tolist(), pytest.approx([0.5, 0.5])),
        (lambda: prob.MarkovChain([1, 0], [[0.5, 0.5], [0, 1]]).distribution(1).tolist(), [0.5, 0.5]),
        (lambda: float(info.PrefixCode(("0", "10", "11")).expected_length([0.5, 0.25, 0.25])), 1.5),
    ],
)
def test_lists_are_answered(call, expected):
    assert call() == expected


def test_most_public_functions_are_tried_with_lists():
    answered = {name.partition(" ")[0] for (_, name), case in CASES.items() if isinstance(answer(case, as_list), list)}
    assert len(answered) >= 60


def test_the_dtype_of_what_is_given():
    double = torch.zeros(2, dtype=torch.float64)
    assert float_tensor([1, 2], "p").dtype == torch.float32
    assert float_tensor([1, 2], "p", double).dtype == torch.float64
    assert float_tensor([1, 2], "p", double.numpy()).dtype == torch.float64
    assert float_tensor(np.array([1.0, 2.0]), "p", torch.zeros(2)).dtype == torch.float64
    assert float_tensor(np.array([1, 2]), "p").dtype == torch.float32
    assert number_tensor([1, 2], "labels").dtype == torch.int64
    assert float_tensor([0.1], "p", double).tolist() == [0.1]  # rounded once
    assert float_tensor(0.1, "p", double).item() == 0.1
    whole = torch.tensor([1, 2])
    assert float_tensor(whole, "p") is whole  # for the function to refuse, as ever


def test_gradients_pass_through_a_list_of_tensors():
    p = torch.tensor(0.25, requires_grad=True)
    info.entropy([p, 1 - p]).backward()
    assert p.grad is not None
    torch.testing.assert_close(p.grad, torch.log(torch.tensor(3.0)))  # ln((1 - p) / p)


@pytest.mark.parametrize("bad", ["abc", [[0.5], [0.25, 0.25]], None, [None, 1.0], {"a": 1.0}, ["0.5", "0.5"], object()])
def test_what_is_no_table_is_one_line(bad):
    for call in (info.entropy, info.huffman_code, prob.stationary_distribution, info.mutual_information):
        with pytest.raises(UserError, match=r"expected .*got .*; ") as told:
            call(bad)
        assert "\n" not in str(told.value)
