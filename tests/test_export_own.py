"""What is the user's own, exported: a module that `quoin.fit` trained, a table with categories and missing values, and
a run that is not finished."""

import json
import signal
import subprocess

import numpy as np
import onnxruntime
import pytest
import safetensors.torch
import torch
from torch import nn

import quoin
from commands import refused, stopping, tried
from quoin.errors import UserError
from quoin.runs import Run


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.out(torch.relu(self.hidden(x)))


class Branching(Net):
    """Its graph depends on the numbers that it reads."""

    def forward(self, x):
        return super().forward(x if x.sum() > 0 else -x)


class Counting(Net):
    """Its number of rows becomes a constant."""

    def forward(self, x):
        return super().forward(x) / len(x)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    x = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
    labels = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
    for kind in (Net, Branching, Counting):
        quoin.fit(kind(), (x, labels), epochs=1, name=kind.__name__, runs=folder)
    return folder


@pytest.mark.parametrize("to", ["onnx", "torch", "safetensors"])
def test_a_module_of_one_s_own_is_exported_from_python(to, fitted, tmp_path):
    model = Net()
    run = quoin.open_run(fitted / "Net", model=model)
    written = run.export(to, tmp_path / "out")
    assert written.is_equal
    assert all(each.is_file() for each in written.files)
    x = torch.randn(7, 4)
    with torch.no_grad():
        expected = run.model(x)
    if to == "onnx":
        session = onnxruntime.InferenceSession(tmp_path / "out/model.onnx", providers=["CPUExecutionProvider"])
        np.testing.assert_allclose(session.run(None, {"inputs": x.numpy()})[0], expected.numpy(), atol=1e-6)
    elif to == "torch":
        torch.testing.assert_close(torch.export.load(tmp_path / "out/model.pt2").module()(x), expected)
    else:
        weights = safetensors.torch.load_file(tmp_path / "out/model.safetensors")
        assert all(torch.equal(each, weights[name]) for name, each in run.model.state_dict().items())
    with pytest.raises(UserError, match="--force"):
        run.export(to, tmp_path / "out")


def test_the_command_says_how_a_module_of_one_s_own_is_exported(fitted):
    assert f"quoin.open_run('{fitted / 'Net'}', model=...).export('torch')" in refused(
        "export", fitted / "Net", "--to", "torch"
    )


@pytest.mark.parametrize(
    ("kind", "told"), [(Branching, "branches on the values of a tensor: write torch.where"), (Counting, "x.shape[0]")]
)
@pytest.mark.parametrize("to", ["torch", "huggingface"])
def test_code_without_a_graph_is_told_in_one_line(kind, told, to, fitted, tmp_path, capsys):
    run = quoin.open_run(fitted / kind.__name__, model=kind())
    capsys.readouterr()
    with pytest.raises(UserError) as caught:
        run.export(to, tmp_path / "out")
    words = str(caught.value)
    assert told in words
    assert "--to safetensors" in words
    assert "\n" not in words
    assert capsys.readouterr() == ("", "")  # torch prints the graph as far as it came
    assert not list(tmp_path.iterdir())
    assert run.export("safetensors", tmp_path / "weights").is_equal


TABLE = ["red,1.5,10,cat", "blue,,12,dog", "green,2.5,9,cat", "red,3.5,,bird", ",1.0,11,dog", "blue,2.0,14,bird"]


@pytest.mark.parametrize("to", ["onnx", "huggingface"])
def test_a_table_with_categories_and_missing_values(to, tmp_path):
    file = tmp_path / "animals.csv"
    file.write_text("\n".join(["colour,size,weight,kind", *TABLE * 20]) + "\n")
    words = ["--data", f"csv:{file}", "--target", "kind", "--missing", "mean", "--max-steps", 3]
    code, _, told = tried("train", "mlp", *words, "--name", "run", "--runs", tmp_path)
    assert code == 0, told
    code, told, said = tried("export", tmp_path / "run", "--to", to, "-o", tmp_path / "out", "--json")
    assert code == 0, said
    assert any("test data" in each["what"] for each in json.loads(told)["differences"])
    if to == "onnx":
        info = json.loads((tmp_path / "out/quoin.json").read_text())
        assert info["class_names"] == ["bird", "cat", "dog"]
        assert [each["name"] for each in info["columns"]] == ["colour", "size", "weight"]
        assert info["columns"][0]["levels"] == ["blue", "green", "red"]
        assert info["columns"][2]["mean"] == pytest.approx(np.mean([10, 12, 9, 11, 14]), rel=0.05)  # of training rows
        assert "colour=green" in info["feature_names"]
    else:
        card = (tmp_path / "out/README.md").read_text()
        assert "digits" not in card  # of which the recipe's own summary tells
        assert f"csv:{file}" in card


def test_an_unfinished_run_gives_its_best_so_far_and_says_so(tmp_path):
    words = ("train", "mlp", "--epochs", 400, "--name", "run", "--runs", tmp_path, "--num-threads", 1)
    subprocess.run(stopping(signal.SIGINT, *words), capture_output=True)
    run = Run.open(tmp_path / "run")
    assert run.folder.result is None
    code, told, said = tried("export", tmp_path / "run", "--to", "torch", "-o", tmp_path / "out", "--json")
    assert code == 0, said
    assert f"not finished: this is its best model so far, from the checkpoint of step {run.trained.step}" in said
    assert json.loads(told)["equal"]
    images = torch.rand(3, *run.data_info.feature_shape)
    probabilities, _ = torch.export.load(tmp_path / "out/model.pt2").module()(images)
    torch.testing.assert_close(probabilities, run.predict(images).probabilities)


ATTENTION = """
import torch
from torch import nn

class Mine(nn.Module):
    def forward(self, query, key, value, *, mask=None, causal=False):
        return nn.functional.scaled_dot_product_attention(query, key, value, is_causal=causal)
"""


def test_an_attention_of_one_s_own_is_exported_without_a_step(tmp_path):
    code = tmp_path / "mine.py"
    code.write_text(ATTENTION)
    sizes = ["--embed-dim", 8, "--num-heads", 2, "--num-layers", 1, "--max-steps", 1]
    found = tried("train", "transformer-lm", "--attention", f"{code}:Mine", *sizes, "--name", "run", "--runs", tmp_path)
    assert found[0] == 0, found[2]
    words = ("export", tmp_path / "run", "--to", "torch", "-o", tmp_path / "out")
    assert "--trust-code" in refused(*words)  # code never runs unasked
    status, told, said = tried(*words, "--code", code, "--json")
    assert status == 0, said
    assert "generate.py, which needs one, is not written" in said
    assert [each["what"].split(":")[0] for each in json.loads(told)["differences"]] == ["model"] * 3
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == ["model.pt2", "quoin.json"]
