"""A notebook run by nbclient, with a kernel of this very Python: every object that a user looks at shows a picture or a
table there, and long work one bar."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

pytestmark = pytest.mark.deep

START = """
import pathlib, tempfile, warnings
import numpy as np, torch
from torch import nn
import quoin
from quoin import autodiff, data, display, estimators, expressivity, info, inspect, metrics, models, notes, optim, plot
from quoin import prob, runs, tensor
from quoin.runs import compare
from quoin.notes import claims, figures
torch.manual_seed(0)
folder = pathlib.Path(tempfile.mkdtemp())
x = torch.randn(64, 3)
y = (x.sum(1) > 0).long()
def fitted(name, seed):
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    return quoin.fit(model, (x, y), epochs=2, batch_size=16, seed=seed, runs=folder, name=name, show_progress=False)
one, two = fitted("one", 0), fitted("two", 1)
chain = prob.MarkovChain([1, 0, 0], [[0.5, 0.5, 0], [0.25, 0.5, 0.25], [0, 0.5, 0.5]])
normals = prob.SphericalNormals([[-2.0], [2.0]], [1.0, 1.0])
v = autodiff.Var([1.0, 2.0])
"""

SHOWN = {
    "plot": "plot.curves({'a': ([1, 2, 3], [1, 4, 2])}, title='<script>')",
    "graph plot": "autodiff.plot_graph(autodiff.trace(lambda x: (x * x).sum(), torch.ones(3)))",
    "attention plot": "plot.attention([plot.AttentionLayer('a', torch.eye(3)[None], tuple('abc'), tuple('abc'))])",
    "panel": "plot.Panel('a <b>', plot.bars({'a': 1.0, 'b': 2.0}), 'caption')",
    "graph": "autodiff.trace(lambda x: (x * x).sum(), torch.ones(3))",
    "tape": "(v * v + v).sum()",
    "forward pass": "autodiff.forward_pass(torch.ones(2, 3), [torch.ones(4, 3)], [torch.zeros(4)])",
    "run": "one",
    "inspection": "one.inspect() if one.can('inspect') else runs.Run.open(one.path)",
    "comparison": "compare.comparison([one.path, two.path], group=False)",
    "images": "data.load('digits')",
    "table": "data.load('iris')",
    "signals": "data.load('waves')",
    "text": "data.load_text('topics')",
    "pairs": "data.load_pairs('dates', num_pairs=20)",
    "prepared": "data.prepare(data.load('iris'), data.split(data.load('iris'), seed=0))",
    "graph of nodes": "data.load_karate_club()",
    "tokenizer": "data.CharTokenizer('abc')",
    "probability space": "prob.ProbabilitySpace(['heads', '<script>'], [0.5, 0.5])",
    "random variable": "prob.RandomVariable(prob.ProbabilitySpace.uniform(range(6)), lambda n: n % 3)",
    "normal": "prob.MultivariateNormal([0.0, 1.0], [[1.0, 0.5], [0.5, 2.0]])",
    "mixture": "prob.GaussianMixtureDistribution([0.25, 0.75], normals)",
    "density": "prob.Density(lambda x: 2 * x, (0, 1))",
    "chain": "chain",
    "hidden chain": "prob.HiddenMarkovModel(chain, prob.CategoricalEmission([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]))",
    "schedule": "prob.linear_beta_schedule(50)",
    "absorption": "prob.absorption([[0.5, 0.5], [0.0, 1.0]])",
    "Huffman": "info.huffman_code([0.5, 0.3, 0.2])",
    "Shannon": "info.shannon_code((0.5, 0.3, 0.2))",
    "estimate": "info.knn_entropy(torch.randn(20, 1))",
    "piecewise": "expressivity.PiecewiseLinear(torch.tensor([0.0]), torch.tensor([0.0, 1.0]), torch.tensor(0.0))",
    "descent": "optim.descend(lambda x: (x**2).sum(), torch.ones(2), optim.GradientDescent(0.1), 5)",
    "CP": "tensor.cp_decompose(torch.ones(2, 2, 2), 1, generator=torch.Generator().manual_seed(0))",
    "summary": "inspect.layer_summary(one.model, torch.ones(1, 3))",
    "entry": "notes.select(['Z3.4'])[0]",
    "entries": "notes.select(['Z3.4', 'Z3.9'])",
    "claim": "claims.select(claims.collect(), ['Z3.4'])[0]",
    "outcome": "claims.select(claims.collect(), ['Z3.4'])[0].run()",
    "evidence": "claims.select(claims.collect(), ['Z3.4'])[0].run().evidence",
    "figure": "figures.two_five_one",
    "figure with other numbers": "figures.sample_paths(num_paths=3)",
    "estimator": "estimators.RidgeRegressor()",
}

BARS = {
    "fit": """
_ = quoin.fit(
    nn.Linear(3, 2), (x, y), loss='cross_entropy', epochs=40, batch_size=4, runs=folder, name='three'
)
""",
    "remark": "display.tell('a <remark>')",
    "claims": """
import time
class Slow:
    ids, statement = ('Z3.4',), ''
    def run(self, seed):
        time.sleep(1.1)
        return seed
_ = list(claims.check([Slow(), Slow(), Slow()], num_workers=1))
""",
    "told": "_ = quoin.fit(nn.Linear(3, 2), (x, y), epochs=2, runs=folder, name='five')",
    "silent": "_ = quoin.fit(nn.Linear(3, 2), (x, y), epochs=2, runs=folder, name='four', show_progress=False)",
}


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """All cells, run once: the outputs of each by its name."""
    place = tmp_path_factory.mktemp("notebook")
    cells = {"start": START, **SHOWN, **BARS}
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells.values()])
    nbformat.write(book, place / "book.ipynb")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "IPYTHONDIR": str(place / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(place / "runtime"),
    }
    command = [sys.executable, str(Path(__file__).with_name("run_notebook.py")), str(place / "book.ipynb")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    book = nbformat.read(place / "book.ipynb", as_version=4)
    return dict(zip(cells, (cell.outputs for cell in book.cells), strict=True))


@pytest.mark.parametrize("name", ["start", *SHOWN, *BARS])
def test_a_cell_runs_without_an_error_or_a_word_on_stderr(executed, name):
    for output in executed[name]:
        assert output.output_type != "error", "\n".join(output.traceback)
        assert not (output.output_type == "stream" and output.name == "stderr"), output.text


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_displayed_has_a_picture_or_a_table(executed, name):
    (output,) = (each for each in executed[name] if each.output_type == "execute_result")
    page = output.data.get("text/html", "")
    assert (
        "image/svg+xml" in output.data
        or "image/png" in output.data
        or any(f"<{tag}" in page for tag in ("table", "svg", "img"))
        or "sk-" in page  # scikit-learn's own page of an estimator
    ), output.data.keys()
    if name != "estimator":
        assert "<script>" not in page + output.data.get("image/svg+xml", "")
        assert len(output.data["text/plain"]) <= 200


@pytest.mark.parametrize("name", ["fit", "claims"])
def test_long_work_shows_one_bar(executed, name):
    (output,) = executed[name]  # updated in its place: nbclient keeps the last of a display
    assert output.output_type == "display_data"
    assert "<progress" in output.data["text/html"]


def test_the_bar_ends_full(executed):
    page = executed["fit"][0].data["text/html"]
    assert 'value="640" max="640"' in page or "640/640" in page


def test_no_bar_where_none_is_asked_for(executed):
    assert executed["silent"] == []


def test_a_remark_stands_under_the_cell_and_not_as_an_error(executed):
    (output,) = executed["remark"]
    assert output.output_type == "display_data"
    assert output.data["text/plain"] == "a <remark>"
    assert output.data["text/html"] == "<small>a &lt;remark&gt;</small>"
