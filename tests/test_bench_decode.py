"""The rows on decoding: both sides say the same tokens, and every attention goes on from its context. No clock in any
assertion."""

import io

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from quoin.bench import gpu_train, select_benchmarks
from quoin.bench.decode_quoin import from_context, greedily
from quoin.bench.language_problem import GPTWork
from quoin.bench.worker import Repeats
from quoin.cli import main


def one_repeat(implementation, *arguments):
    return implementation(Repeats(1, 1, io.StringIO(), io.StringIO()), *arguments)


@pytest.mark.filterwarnings("ignore")
def test_both_sides_say_the_same_tokens():
    pytest.importorskip("transformers")
    from quoin.bench.decode_peers import transformers_generate

    ours, theirs = one_repeat(greedily), one_repeat(transformers_generate)
    assert ours["checksum"] == theirs["checksum"]
    assert ours["checksum"] > 0


@pytest.mark.parametrize("attention", ["linear", "performer", "exact"])
def test_every_attention_goes_on_from_its_context(attention):
    assert one_repeat(from_context, attention, "70")["tokens/s"] > 0


def test_the_rows_ask_for_what_the_issue_asks():
    decode, context = select_benchmarks(["decode", "decode-context"])
    assert [each.target.bound for each in decode.implementations if each.target] == [4.0, 1.0]
    asked = [each for each in context.implementations if each.target]
    assert [each.arguments for each in asked] == [("linear", "4096"), ("performer", "4096")]
    names = {each.name for each in context.implementations}
    assert {each.target.other for each in asked} <= names


def test_the_gpu_rows_ask_for_what_the_issue_asks():
    decode, same = (each for each in select_benchmarks(["gpu"]) if each.name.startswith("gpu-decode"))
    assert {each.name: each.target.bound for each in decode.implementations if each.target} == {
        "transformers generate": 4.0,
        "transformers generate, static cache, compiled": 1.0,
    }
    assert [each.target.text() for each in same.implementations if each.target] == [
        "the checksum of Quoin, captured step"
    ]
    assert all(each.needs_cuda for each in (decode, same))


def test_both_sides_train_the_same_gpt2(monkeypatch):
    """On the CPU, small and not compiled: both have GPT-2's parameters, but for nanoGPT's padding."""
    monkeypatch.setattr(gpu_train, "GPT2", GPTWork(16, 2, 2, 8, batch_size=2, num_steps=2))
    monkeypatch.setattr(gpu_train, "DEVICE", "cpu")
    monkeypatch.setattr(gpu_train, "COMPILE", False)
    moved = []
    hook = register_optimizer_step_post_hook(lambda optimizer, *rest: moved.append(num_parameters(optimizer)))
    try:
        for side in (gpu_train.quoin, gpu_train.nanogpt):
            assert one_repeat(side)["tokens/s"] > 0
    finally:
        hook.remove()
    ours, theirs = moved[:2], moved[2:]
    assert ours == [theirs[0] - 16 * (gpu_train.PADDED_VOCAB - gpu_train.VOCAB)] * 2
    assert theirs == [theirs[0]] * 2
    (row,) = (each for each in select_benchmarks(["gpu"]) if each.name == "gpu-train")
    assert [each.target.bound for each in row.implementations] == [pytest.approx(14.84), 1.05]


def num_parameters(optimizer):
    return sum(each.numel() for group in optimizer.param_groups for each in group["params"])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is one")
def test_the_gpu_group_is_refused_in_one_line_without_a_gpu(capsys):
    assert main(["bench", "gpu"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "CUDA" in said.err
