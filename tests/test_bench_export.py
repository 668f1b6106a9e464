"""The benchmarks `export`: both sides run the same network on the same numbers, and the file takes another batch."""

import io

import pytest
import torch

from quoin.bench import export_implementations as sides
from quoin.bench import select_benchmarks
from quoin.bench.export_benchmarks import EXPORT_BENCHMARKS
from quoin.bench.worker import Repeats

ROWS = {"mlp": 3, "lenet": 3, "gpt": 2, "unet": 2}


def test_every_network_of_the_group_has_a_number_of_calls():
    assert select_benchmarks(["export"]) == list(EXPORT_BENCHMARKS)
    asked = {one.arguments for each in EXPORT_BENCHMARKS for one in each.implementations}
    assert {(network, int(rows)) for network, rows in asked} == set(sides.CALLS)
    assert {network for network, _ in sides.CALLS} == set(ROWS)


@pytest.mark.parametrize("network", ROWS)
def test_quoins_side_predicts_what_the_model_gives(network):
    problem = sides.make_problem(network, ROWS[network])
    with torch.no_grad():
        found, expected = problem.predict(), problem.model(*problem.inputs)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert found.std() > 0.01  # of numbers that differ, so that a difference between the sides would show


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore")  # torch.onnx warns of parts of torch that it uses itself
@pytest.mark.parametrize("network", ROWS)
def test_onnxruntime_computes_the_same_at_this_batch_and_another(network, monkeypatch, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    rows = ROWS[network]
    monkeypatch.setitem(sides.CALLS, (network, rows), 2)
    threads = torch.get_num_threads()
    figures = []
    try:
        for side in (sides.quoin, sides.onnxruntime):
            answers = io.StringIO()
            figures.append(side(Repeats(2, 1, io.StringIO("go\n"), answers), network, str(rows)))
            assert len(answers.getvalue().splitlines()) == 2
    finally:
        torch.set_num_threads(threads)  # which the implementations set for the whole process
    assert figures[1]["largest difference"] < 1e-4
    assert figures[0]["mean output"] == pytest.approx(figures[1]["mean output"], abs=1e-5)

    sides.write_onnx(sides.make_problem(network, rows), tmp_path / "model.onnx")
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    other = sides.make_problem(network, rows + 2)
    feed = {each.name: x.numpy() for each, x in zip(session.get_inputs(), other.inputs, strict=True)}
    with torch.no_grad():  # the weights are those of the seed, whatever the rows
        expected = other.model(*other.inputs)
    torch.testing.assert_close(torch.from_numpy(session.run(None, feed)[0]), expected, rtol=0, atol=1e-4)
