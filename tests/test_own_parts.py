"""An attention, a loss, an optimizer, a schedule, an activation of the user's own in Quoin's models, by FILE.py:NAME.

own_example.py has right ones, some of them Quoin's own written anew, which must then do the same; wrong ones are
written here, each of which must be refused in one line before a run begins.
"""

import itertools
import json
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import own_example
from commands import refused, stopping, tried
from near import assert_near
from quoin import inspect, layers, models
from quoin.errors import UserError
from quoin.runs import find_recipe
from quoin.tasks.lr_schedule import make_lr_schedule
from quoin.train import DeviceContext, RunFolder
from tasks import difference, left_behind

pytestmark = pytest.mark.usefixtures("one_thread")

SMALL = {
    "transformer-lm": [
        "--size",
        "small",
        "--embed-dim",
        16,
        "--num-heads",
        2,
        "--num-layers",
        2,
        "--context-length",
        16,
    ],
    "vit": ["--embed-dim", 8, "--num-heads", 2, "--num-layers", 1],
    "translate-numbers": ["--embed-dim", 8, "--num-heads", 2, "--num-layers", 1, "--num-pairs", 100],
    "mlp": ["--hidden-dims", 8],
}
OPTIONS: dict[str, dict[str, Any]] = {
    "transformer-lm": {
        "data": "text:text.txt",
        "embed_dim": 16,
        "num_heads": 2,
        "num_layers": 2,
        "context_length": 16,
        "lr": 0.05,
    },
    "vit": {"embed_dim": 8, "num_heads": 2, "num_layers": 1},
    "translate-numbers": {"embed_dim": 8, "num_heads": 2, "num_layers": 1, "num_pairs": 100},
    "mlp": {"hidden_dims": (8,)},
}
QUICK = ["--max-steps", 3, "--num-threads", 1, "--device", "cpu"]


@pytest.fixture
def example(here):
    """An empty folder with own_example.py in it, and a text."""
    shutil.copy(Path(own_example.__file__), "own_example.py")
    (here / "text.txt").write_text("a quoin is the dressed cornerstone that shows how a wall was laid\n" * 40)
    return here


def trained(recipe: str, *words: object) -> Path:
    data = ["--data", "text:text.txt"] if recipe == "transformer-lm" else []
    code, out, err = tried("train", recipe, *SMALL[recipe], *QUICK, *data, "--json", *words)
    assert code == 0, err
    return Path(json.loads(out)["run"])


def metrics_of(path: Path) -> dict[str, float]:
    return json.loads((path / "result.json").read_text())["metrics"]


# ---- attention


def losses_of(recipe: str, **changed: Any) -> list[float]:
    """The loss of each of eight steps, and of the validation split after them."""
    found = find_recipe(recipe)
    options = found.options(**(OPTIONS[recipe] | changed))
    torch.manual_seed(0)
    task: Any = found.build(options, DeviceContext())
    losses = [float(task.step(rows)["loss"]) for rows in itertools.islice(task.batches, 8)]
    return [*losses, task.evaluate("validation")["loss"]]


@pytest.mark.parametrize("recipe", ["transformer-lm", "vit", "translate-numbers"])
def test_exact_attention_written_anew_learns_the_same(recipe, example):
    """Handed a mask alone, causality and padding in it: every loss is that of the recipe's own, to rounding; another
    attention's are others."""
    ours = losses_of(recipe)
    assert losses_of(recipe, attention="own_example.py:DotAttention") == pytest.approx(ours, rel=1e-5)
    assert losses_of(recipe, attention="own_example.py:DistanceAttention") != pytest.approx(ours, rel=1e-4)


def test_a_run_with_an_own_attention_is_generated_from_evaluated_and_resumed(example):
    path = trained("transformer-lm", "--attention", "own_example.py:DistanceAttention", "--epochs", 1)
    for command in (("generate", path), ("eval", path)):
        said = refused(*command)
        assert "own_example.py" in said
        assert "--code" in said
    words = ["generate", path, "--max-tokens", 20, "--seed", 1]
    code, text, err = tried(*words, "--code", "own_example.py")
    assert code == 0
    assert err.count("DistanceAttention has no decode_step") == 1
    assert tried(*words, "--trust-code")[1] == text
    code, out, _ = tried("eval", path, "--code", "own_example.py", "--json")
    assert code == 0
    assert json.loads(out)["test_loss"] == pytest.approx(metrics_of(path)["test_loss"], rel=1e-6)


def test_what_is_generated_is_what_the_model_predicts():
    """Token by token or in pieces: as the whole prefix gives it at once."""
    torch.manual_seed(0)
    model = models.GPT(11, 8, 2, 2, 16, make_attention=lambda: own_example.DistanceAttention(2)).eval()  # type: ignore
    tokens = torch.randint(11, (3, 12))
    with torch.no_grad():
        whole, cache = model(tokens), model.init_cache(3, 12)
        steps = []
        for piece in tokens.split([5, 1, 1, 3, 2], dim=1):
            logits, cache = model.decode_step(cache, piece)
            steps.append(logits)
            cache = cache.select(torch.tensor([0, 1, 2]))
    assert_near(torch.cat(steps, dim=1), whole, 1e-5)


def test_an_own_attention_keeps_the_numbers_it_was_made_with():
    """Only the model's own matrices are drawn anew by the model."""

    class Scaled(own_example.DotAttention):
        def __init__(self):
            super().__init__()
            self.matrix = nn.Parameter(torch.full((2, 2), 7.0))

    model = models.GPT(11, 8, 2, 2, 16, make_attention=Scaled)  # type: ignore[arg-type]
    inner = [each for each in model.modules() if isinstance(each, Scaled)]
    assert len(inner) == 2
    assert all((each.matrix == 7).all() for each in inner)


def test_attention_maps_say_what_is_missing_and_show_what_there_is(example):
    path = trained("vit", "--attention", "own_example.py:DistanceAttention")
    code, out, err = tried("inspect", path, "--code", "own_example.py")
    assert code == 0, err
    assert out.count("no attention maps: DistanceAttention has only forward") == 1
    assert "encoder.blocks.0.attention.inner_attention.attend" in out
    assert (path / "report.html").read_text().count("No attention maps: DistanceAttention") == 1
    block = layers.transformer_block(8, 2, inner_attention=own_example.DistanceAttention(2))  # type: ignore[arg-type]
    with pytest.raises(UserError, match="DistanceAttention, which has only forward"):
        inspect.attention_maps(block, torch.zeros(1, 3, 8))


@pytest.mark.deep
def test_an_own_attention_with_weights_is_shown(example):
    text = (
        Path("own_example.py")
        .read_text()
        .replace(
            "class HeavyBall",
            "class Seen(DotAttention):\n"
            "    def weights(self, query, key, *, mask=None):\n"
            "        return self(query, key, torch.eye(key.shape[2]).expand(*key.shape[:2], -1, -1), mask=mask)\n\n\n"
            "class HeavyBall",
        )
    )
    Path("own_example.py").write_text(text)
    path = trained("vit", "--attention", "own_example.py:Seen")
    code, out, _ = tried("inspect", path, "--code", "own_example.py")
    assert code == 0
    assert "no attention maps" not in out
    assert "inspect-attention" in out


WRONG = """
import torch
from torch import nn

class Peeks(nn.Module):
    def forward(self, query, key, value, *, mask=None, causal=False):
        return (query @ key.mT).softmax(-1) @ value

class PeeksAtOne(nn.Module):  # at the position after it, and at nothing more
    def forward(self, query, key, value, *, mask=None, causal=False):
        return value + value.roll(-1, 2)

class Unasked(nn.Module):
    def forward(self, query, key, value):
        return value.mean(2, keepdim=True).expand_as(query)

class SeesPadding(nn.Module):
    def forward(self, query, key, value, *, mask=None, causal=False):
        return value.cumsum(2) if causal else value.sum(2, keepdim=True).expand_as(query)

class NoMask(nn.Module):
    def forward(self, query, key, value, *, causal=False):
        return value

class Whole(nn.Module):
    def forward(self, x):
        return x

class Flat(nn.Module):
    def forward(self, query, key, value, *, mask=None, causal=False):
        return value.sum(-1)

class Detached(nn.Module):
    def forward(self, query, key, value, *, mask=None, causal=False):
        return value.detach()

class Infinite(nn.Module):
    def forward(self, query, key, value, *, mask=None, causal=False):
        return value / 0

class Pair(nn.Module):
    def forward(self, query, key, value, *, mask=None, causal=False):
        return value, None

class Raises(nn.Module):
    def forward(self, query, key, value, *, mask=None, causal=False):
        return query @ key

class Asks(nn.Module):
    def __init__(self, alpha):
        super().__init__()

class Plain:
    pass

number = 3

def plain(parameters, lr): return 3
def without_lr(parameters): return torch.optim.SGD(parameters, 0.1)
def forgets(parameters, lr): return torch.optim.SGD(list(parameters)[:1], lr)
def closure(parameters, lr): return torch.optim.LBFGS(parameters, lr)

class Still(torch.optim.Optimizer):
    def __init__(self, parameters, lr): super().__init__(parameters, {"lr": lr})
    def step(self): pass

class Counts(Still):  # what it counts is not in its state
    steps = 0
    @torch.no_grad()
    def step(self):
        self.steps += 1
        for group in self.param_groups:
            for weight in group["params"]:
                weight.sub_(weight.grad / self.steps)

class Keeps(Still):  # what cannot be written
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weight in group["params"]:
                self.state[weight]["thing"] = object()
                weight.sub_(weight.grad)

def falls(progress): return 0.5 - progress
def words(progress): return "half"
def nothing(progress): return 0.0
def random(progress): return float(torch.rand(()))
def two(progress, step): return 1.0

def loss_of_one(outputs): return outputs.sum()
def loss_number(outputs, targets): return 1.0
def loss_detached(outputs, targets): return outputs.detach().sum(-1)
def loss_matrix(outputs, targets): return outputs.square()
def loss_sum(outputs, targets): return nn.functional.cross_entropy(outputs, targets, reduction="sum")
def loss_infinite(outputs, targets): return outputs.sum(-1) / 0
class LossWithWeights(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))
    def forward(self, outputs, targets): return self.weight * outputs.square().sum(-1)

def halves(x): return x[:, ::2]
class Norm(nn.Module):
    def forward(self, x): return x
"""


@pytest.mark.parametrize(
    ("recipe", "flag", "name", "said"),
    [
        ("transformer-lm", "--attention", "Peeks", "looks ahead in a causal model: its output at position 1 changes"),
        ("transformer-lm", "--attention", "PeeksAtOne", "its output at position 3 changes with positions 4 to 6"),
        ("transformer-lm", "--attention", "Unasked", "add causal=False"),
        ("translate-numbers", "--attention", "SeesPadding", "sees padding"),
        ("translate-numbers", "--attention", "NoMask", "takes no mask"),
        ("vit", "--attention", "Whole", "forward(query, key, value, *, mask=None, causal=False)"),
        ("vit", "--attention", "Flat", "(2, 2, 6) for three tensors"),
        ("vit", "--attention", "Detached", "no gradient"),
        ("vit", "--attention", "Infinite", "not finite"),
        ("vit", "--attention", "Pair", "tuple"),
        ("vit", "--attention", "Raises", "(wrong.py, line 47)"),
        ("vit", "--attention", "Asks", "may take head_dim, num_heads, embed_dim"),
        ("vit", "--attention", "Plain", "no class of nn.Module"),
        ("vit", "--attention", "number", "int, which cannot be called"),
        ("vit", "--attention", "Peaks", "did you mean 'Peeks'?"),
        ("mlp", "--optimizer", "plain", "int, which is no torch.optim.Optimizer"),
        ("mlp", "--optimizer", "without_lr", "takes no lr"),
        ("mlp", "--optimizer", "forgets", "does not hold just the parameters"),
        ("mlp", "--optimizer", "closure", "closure"),
        ("mlp", "--optimizer", "Still", "moves nothing"),
        ("mlp", "--optimizer", "Counts", "goes on otherwise after load_state_dict"),
        ("mlp", "--optimizer", "Keeps", "state.0.thing is a object"),
        ("mlp", "--schedule", "falls", "gives -0.01 at progress 0.51"),
        ("mlp", "--schedule", "words", "'half' at progress 0"),
        ("mlp", "--schedule", "nothing", "gives 0 from beginning to end"),
        ("mlp", "--schedule", "random", "gives two factors"),
        ("mlp", "--schedule", "two", "missing 1 required positional argument"),
        ("mlp", "--loss", "loss_of_one", "a function of (outputs)"),
        ("mlp", "--loss", "loss_number", "float for outputs (8, 10)"),
        ("mlp", "--loss", "loss_detached", "no gradient"),
        ("mlp", "--loss", "loss_matrix", "shape (8, 10)"),
        ("mlp", "--loss", "loss_sum", "the sum over the examples"),
        ("mlp", "--loss", "loss_infinite", "not finite"),
        ("mlp", "--loss", "LossWithWeights", "parameters of its own"),
        ("mlp", "--activation", "halves", "(5, 2)"),
        ("mlp", "--norm", "Norm", "takes 1 positional argument"),
    ],
)
def test_a_wrong_part_is_one_line_before_anything_is_written(recipe, flag, name, said, here):
    (here / "wrong.py").write_text(WRONG)
    (here / "text.txt").write_text("words and words and words again\n" * 40)
    data = ["--data", "text:text.txt"] if recipe == "transformer-lm" else []
    assert said in refused("train", recipe, *SMALL[recipe], *data, flag, f"wrong.py:{name}")
    assert not (here / "runs").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mlp", "--optimizer", "adan"], "did you mean 'adam'?; or name your own as FILE.py:NAME"),
        (["mlp", "--optimizer", "mine.py"], "as mine.py:NAME"),
        (["mlp", "--optimizer", "mine.py:A"], "No such file"),
        (["mlp", "--loss", "huber"], "name your own as FILE.py:NAME"),
        (["mlp", "--loss", "mine.py:A", "--momentum", "0.5", "--optimizer", "mine.py:B"], "--momentum is of"),
        (["mlp", "--loss", "own_example.py:loss", "--mixup", "0.2"], "--mixup 0.2 is of the recipe's own loss"),
        (["mlp", "--optimizer", "own_example.py:make_heavy_ball", "--weight-decay", "0.2"], "takes no weight_decay"),
    ],
)
def test_a_name_that_is_none_is_told_with_what_would_be(words, said, example):
    assert said in refused("train", *words)


def test_help_shows_the_form_and_what_one_s_own_must_be():
    _, out, _ = tried("train", "transformer-lm", "--help")
    assert "--attention exact|linear|performer|FILE.py:NAME" in out
    assert "adamw|lion|FILE.py:NAME" in out
    assert "mask=None, causal=False" in " ".join(out.split())


# ---- how it is trained


def test_parts_written_anew_do_what_the_recipe_s_own_do(example):
    """Momentum, ReLU, and a mean in place of a loss for each example, also cut into micro-batches."""
    ours = losses_of("mlp", optimizer="momentum", activation="relu")
    own = {"optimizer": "own_example.py:HeavyBall", "activation": "own_example.py:ReLU"}
    assert losses_of("mlp", **own, loss="own_example.py:mean_loss") == pytest.approx(ours, rel=1e-5)
    pieces = losses_of("mlp", **own, loss="own_example.py:mean_loss", micro_batch_size=5)
    assert pieces == pytest.approx(ours, rel=1e-4)


def test_each_part_changes_what_it_says(example, capsys):
    plain = losses_of("mlp", weight_decay=0.0)
    for option, name in {"activation": "swish", "norm": "Center", "optimizer": "make_heavy_ball"}.items():
        changed = losses_of("mlp", weight_decay=0.0, **{option: f"own_example.py:{name}"})
        assert (changed != plain) == (option != "optimizer"), option  # which is the recipe's momentum again
    find = find_recipe("mlp")
    options = find.options(schedule="own_example.py:parabola", warmup_ratio=0.5)
    schedule = make_lr_schedule(options)  # type: ignore[arg-type]
    assert [schedule(progress) for progress in (0.25, 0.5, 0.75, 1.0)] == [0.5, 1.0, 0.25, 0.0]
    losses_of("transformer-lm", optimizer="own_example.py:make_heavy_ball")
    assert "takes no weight_decay: the recipe's 0.3 is not applied" in capsys.readouterr().err


def test_an_own_loss_is_what_every_split_is_evaluated_by(example):
    """The loss of a split is its mean over the rows, not the recipe's own; of numbers, in standardised ones."""
    for recipe in ("mlp", "mlp-regression"):
        found = find_recipe(recipe)
        task: Any = found.build(found.options(loss="own_example.py:loss"), DeviceContext())  # type: ignore[arg-type]
        outputs, targets = task.predict_split("test"), task.data.test.targets
        error = (outputs - targets).abs() if recipe == "mlp-regression" else None
        expected = nn.functional.cross_entropy(outputs, targets, reduction="none") ** 1.5 if error is None else error
        metrics = task.evaluate("test")
        assert metrics["loss"] == pytest.approx(float(expected.mean()), rel=1e-5)
        if error is not None:
            assert metrics["rmse"] == pytest.approx(task.unit * float(error.square().mean().sqrt()), rel=1e-5)


@pytest.mark.deep
def test_a_killed_run_with_own_parts_resumes_to_the_same_bits(example):
    words = ["train", "mlp", *SMALL["mlp"], "--num-threads", 1, "--device", "cpu", "--epochs", 8]
    words += ["--checkpoint-every", 20, "--norm", "own_example.py:Center"]
    words += ["--optimizer", "own_example.py:HeavyBall", "--schedule", "own_example.py:parabola"]
    killed = subprocess.run(stopping(signal.SIGKILL, *words), capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert "--code" in refused("resume", "runs/mlp-1")
    code, _, err = tried("resume", "runs/mlp-1", "--code", "own_example.py")
    assert code == 0, err
    assert tried(*words, "--runs", "whole")[0] == 0
    ended = [left_behind(RunFolder.open(Path(place) / "mlp-1")) for place in ("runs", "whole")]
    assert difference(*ended) is None


@pytest.mark.deep
def test_a_file_that_changed_is_told(example):
    path = trained("mlp", "--activation", "own_example.py:swish")
    Path("own_example.py").write_text(Path("own_example.py").read_text() + "\n# a remark\n")
    code, _, err = tried("eval", path, "--code", "own_example.py")
    assert code == 0
    assert "own_example.py changed since" in err
