"""The map is truthful: a home is public and says so where it computes; what is only mentioned does not count."""

import importlib
import json
import subprocess
import sys
import textwrap
import tomllib

import pytest

from quoin.cli.commands import COMMANDS
from quoin.errors import UserError
from quoin.notes import map as notes
from quoin.notes.search import search
from quoin.notes.source_index import build_index, mentions
from quoin.runs.catalog import recipe_names
from quoin.runs.listing import describe_options, describe_recipes, listed_options, listed_recipes

TOML = """
[areas]
"1" = "Tensors and linear algebra"
"2" = "Tensors of another kind"
"13" = "Efficient attention"

[notes]
"Z1.1" = { area = 1, kind = "block", title = "a" }
"Z1.2n" = { area = 1, kind = "claim", title = "b" }
"D1F1" = { area = 2, kind = "figure", title = "c" }
"D1.2-1" = { area = 13, kind = "block", title = "d" }
"""


@pytest.fixture
def house(tmp_path, monkeypatch):
    """An invented source tree: write(path, text) adds a file to it, and `notes` reads it instead of ours."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "notes.toml").write_text(TOML)

    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(textwrap.dedent(text))

    write.root = tmp_path
    monkeypatch.setattr(notes, "_NOTES", tmp_path / "notes")
    monkeypatch.setattr(notes, "index", lambda: build_index(tmp_path))
    notes._table.cache_clear()
    yield write
    notes._table.cache_clear()


def found(id):
    return next(entry for entry in notes.entries() if entry.id == id)


def unknown(written):
    return [mention.id for mention in written if mention.id not in notes.titles()]


def test_every_id_written_in_the_source_is_in_the_notes():
    assert unknown(mentions()) == []


def test_the_stored_index_is_that_of_the_source():
    stored = notes.index()
    assert stored == json.loads(json.dumps(build_index())), "`make index` writes it anew"


def test_the_stored_listing_is_that_of_the_recipes():
    assert listed_recipes() == describe_recipes(), "`make index` writes it anew"
    assert listed_options() == describe_options(), "`make index` writes it anew"


def test_the_notes_are_whole():
    table, kinds = notes._table()["notes"], {"block", "claim", "figure", "mention", "wording", "reference"}
    assert {row["kind"] for row in table.values()} <= kinds
    assert {row["area"] for row in table.values()} == set(notes.areas()) == set(range(1, 22))
    assert all(row["title"].strip() for row in table.values())


def test_our_own_figures_and_implementations_are_on_the_map():
    assert found("D1F1").figures == ("quoin.notes.figures.networks.two_five_one",)
    for entry in notes.entries():
        for path in entry.implementations:
            _, package, name, *inner = path.split(".")
            value = getattr(__import__(f"quoin.{package}", fromlist=[name]), name)
            for part in inner:
                value = getattr(value, part)
            assert entry.id in value.__doc__


def test_a_home_is_public_and_closes_with_the_id(house):
    house(
        "layers/__init__.py",
        "from quoin.layers.dense import Dense, format_value as dense\n__all__ = ['Dense', 'dense']",
    )
    house(
        "layers/dense.py",
        '''
        """A module docstring is no home.  Notes: D1.2-1."""
        class Dense:
            """W x + b.

            Notes: Z1.1, Z1.2n.
            """
            def apply(self):
                """Notes: D1F1."""
            def _hidden(self):
                """Notes: D1.2-1."""
        def format_value():
            """Exported under another name. Notes: Z1.1."""
        def private():
            """Not exported. Notes: D1.2-1."""
        def mentions():
            """Notes: D1.2-1. But there is more to say."""
        ''',
    )
    house("layers/other.py", 'def Dense():\n    """A private namesake.  Notes: D1.2-1."""\n')
    assert found("Z1.1").implementations == ("quoin.layers.Dense", "quoin.layers.dense")
    assert found("Z1.2n").implementations == ("quoin.layers.Dense",)
    assert found("D1F1").implementations == ("quoin.layers.Dense.apply",)
    assert found("D1.2-1").implementations == ()


def test_a_public_name_whose_docstring_goes_on_is_no_home(house):
    house("prob.py", '__all__ = ["f"]\ndef f():\n    """Notes: Z1.1. But there is more to say."""\n')
    assert found("Z1.1").implementations == ()


def test_homes_in_a_room_within_a_room_and_in_a_room_of_one_file(house):
    house("layers/__init__.py", "from .attention import exact\n__all__ = ['exact']")
    house("layers/attention/__init__.py", "from .exact import exact, cached\n__all__ = ['exact', 'cached']")
    house("layers/attention/exact.py", 'def exact():\n    "Notes: Z1.1."\ndef cached():\n    "Notes: Z1.2n."')
    house("prob.py", '__all__: list[str] = ["f"]\ndef f():\n    "Notes: D1.2-1."')
    assert found("Z1.1").implementations == ("quoin.layers.exact",)
    assert found("Z1.2n").implementations == ("quoin.layers.attention.cached",)
    assert found("D1.2-1").implementations == ("quoin.prob.f",)


def test_a_block_is_checked_by_the_claims_that_compute_with_it(house):
    house("prob/__init__.py", 'from quoin.prob.a import f, g, Chain\n__all__ = ["f", "g", "Chain"]')
    chain = 'class Chain:\n    "No notes."\n    def law(self):\n        "S.\\n\\nNotes: D1.2-1."\n'
    house("prob/a.py", f'def f(x):\n    "S.\\n\\nNotes: Z1.1."\ndef g(x):\n    "S.\\n\\nNotes: Z1.2n."\n{chain}')
    house("notes/claims/helpers.py", "from quoin.prob import Chain, f\ndef helper(x): return f(Chain().law())")
    other = 'from quoin.notes.claims.helpers import helper\n@claim("D1F1", "s")\ndef by_helper(generator): helper(1)\n'
    house("notes/claims/area.py", f"from quoin.prob import g\n{other}def not_a_claim(): return g(1)")
    assert found("Z1.1").used_by_claims == found("Z1.1").checked_by == ("quoin.notes.claims.area.by_helper",)
    assert found("D1.2-1").checked_by == ("quoin.notes.claims.area.by_helper",)
    assert found("Z1.2n").checked_by == ()


def test_every_block_that_computes_is_checked_by_a_claim():
    """A mention is content that the notes only point at: three of them compute, and tests of their own hold these."""
    unchecked = {entry.id for entry in notes.entries() if entry.implementations and not entry.checked_by}
    assert unchecked == {"D5.2-3", "D0-2", "D1-8b"}  # made digits, index sets, AlexNet
    assert all(found(id).kind == "mention" for id in unchecked)


def test_claims_figures_and_recipes_carry_their_ids(house):
    house("notes/claims/area.py", '@claim(("Z1.1", "Z1.2n"), "s", right=a, printed=b)\ndef f(form, generator): ...')
    house("notes/figures/area.py", '@figure("D1F1", "c")\ndef g(): ...')
    house("recipes/two_words.py", 'NOTES = ("Z1.1",)')
    house("train/trainer.py", 'NOTES = ("Z1.1",)\n@claim("Z1.1", "not in the room of claims")\ndef h(generator): ...')
    assert found("Z1.1").as_json() == {
        "id": "Z1.1", "title": "a", "kind": "block", "area": 1,
        "implementations": [], "claims": ["quoin.notes.claims.area.f"], "figures": [], "recipes": ["two-words"],
        "used_by_claims": [],
    }  # fmt: skip
    assert found("Z1.2n").claims == ("quoin.notes.claims.area.f",)
    assert found("D1F1").figures == ("quoin.notes.figures.area.g",)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("layers/a.py", '"""Notes: Z9.9."""'),
        ("layers/a.py", 'def _private():\n    """Words. Notes: Z1.1, Z9.9. More words."""'),
        ("notes/claims/a.py", '@claim("Z9.9", "s")\ndef f(generator): ...'),
        ("notes/figures/a.py", '@figure(("D1F1", "Z9.9"), "s")\ndef f(): ...'),
        ("recipes/a.py", 'NOTES = ("Z9.9",)'),
    ],
)
def test_an_unknown_id_is_found_wherever_it_is_written(house, path, text):
    house(path, text)
    assert {*unknown(mentions(house.root))} == {"Z9.9"}


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ((), ["Z1.1", "Z1.2n", "D1F1", "D1.2-1"]),
        (("z1.1",), ["Z1.1"]),
        (("1",), ["Z1.1", "Z1.2n"]),
        (("tensors_and-linear algebra",), ["Z1.1", "Z1.2n"]),
        (("Efficient", "D1F1"), ["D1F1", "D1.2-1"]),
    ],
)
def test_words_choose_ids_and_areas(house, words, ids):
    assert [entry.id for entry in notes.select(words)] == ids


@pytest.mark.parametrize(
    ("word", "hint"),
    [("Z1.2", "did you mean 'Z1.2n'"), ("tensors", "which begins"), ("4711", "quoin map"), ("", "quoin map")],
)
def test_a_word_that_names_nothing_is_a_mistake(house, word, hint):
    with pytest.raises(UserError, match=hint) as caught:
        notes.select([word])
    assert "\n" not in str(caught.value)


def test_an_id_without_a_claim_is_a_mistake_for_check(house):
    with pytest.raises(UserError, match="claim"):
        notes.choose([found("Z1.1")], ["D1F1"], "claim")


def test_the_map_does_not_import_torch():
    code = "import sys; from quoin import notes; notes.entries(); print(sorted({'torch', 'numpy'} & set(sys.modules)))"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


# What someone who knows PyTorch, Hugging Face or scikit-learn would look for, and what must be among the first three
# answers.
def every_option() -> set[str]:
    """The options of all recipes."""
    from quoin.cli.commands import _train
    from quoin.cli.flags import Parser

    found = set()
    for name in recipe_names():
        parser = Parser("quoin train", "")
        _train(parser, [name])
        found |= set(parser.flags)
    return found


def test_an_option_called_as_elsewhere_is_known():
    from quoin.options import CALLED_ELSEWHERE

    options = {meant for meant in CALLED_ELSEWHERE.values() if meant.startswith("--")}
    assert options <= every_option()
    assert set(CALLED_ELSEWHERE.values()) - options == {"quoin resume"}
    assert not {f"--{name}" for name in CALLED_ELSEWHERE} & every_option()


LOOKED_FOR = {
    "huffman": "quoin.info.huffman_code",
    "bahdanau": "quoin.models.BahdanauDecoder",
    "weight decay": "quoin.losses.l2_penalty",
    "perplexity": "quoin.metrics.perplexity",
    "rope": "quoin.layers.RotaryEmbedding",
    "rotary": "quoin.layers.RotaryEmbedding",
    "MultiheadAttention": "quoin.layers.MultiHeadAttention",
    "kl divergence": "quoin.prob.kl_divergence",
    "cross_entropy": "quoin.losses.cross_entropy",
    "mse": "quoin.losses.mse",
    "top-p": "quoin.generate.top_p_filter",
    "ddim": "quoin.generate.sample_ddim",
    "roc auc": "quoin.metrics.roc_auc",
    "tokenizer": "quoin.data.Tokenizer",
    "kaiming": "quoin.layers.kaiming_normal",
    "Conv2d": "torch.nn.Conv2d",
    "nn.Embedding": "torch.nn.Embedding",
    "lstm": "torch.nn.LSTM",
    "TransformerEncoderLayer": "quoin.layers.TransformerBlock",
    "CosineAnnealingLR": "quoin.optim.cosine",
    "DataLoader": "quoin.data.BatchSampler",
    "num_heads": "quoin.layers.MultiHeadAttention",
    "UNet": "quoin.models.UNet",
    "Normal": "quoin.prob.MultivariateNormal",
    "LayerNorm": "torch.nn.LayerNorm",
    "train_test_split": "quoin.data.split",
    "DDIMScheduler": "quoin.generate.sample_ddim",
    "roc_auc_score": "quoin.metrics.roc_auc",
    "f1_score": "quoin.metrics.confusion_matrix",
    "SGD": "quoin.optim.GradientDescent",
    "seq2seq": "translate-dates",
    "gpt": "transformer-lm",
    "skip connection": "resnet",
    "SwiGLU": "quoin.layers.GatedFeedForward",
    "swish": "quoin.layers.GatedFeedForward",
    "frechet_inception_distance": "quoin.prob.squared_frechet_of_samples",
    "fréchet": "quoin.prob.squared_frechet_of_samples",
    "count_linear_regions": "quoin.expressivity.regions_in_window",
    "elbo": "quoin.losses.elbo_definition",
    "warmup_steps": "--warmup-ratio",
    "batch_size": "--batch-size",
    "max-grad-norm": "--max-grad-norm",
    "gradient clipping": "--max-grad-norm",
    "learning rate": "--lr",
    "resume": "quoin resume",
    "MaxPool2d": "torch.nn.MaxPool2d",
    "BatchNorm1d": "torch.nn.BatchNorm2d",
    "BahdanauAttention": "quoin.layers.AdditiveAttention",
    "apply_rotary_pos_emb": "quoin.layers.apply_rotary",
    "GaussianNLLLoss": "quoin.losses.gaussian_nll",
    "SoftMarginLoss": "quoin.losses.logistic_loss",
    "Lidstone": "quoin.models.laplace_unigram",
    "rsample": "quoin.prob.ReparameterizedDistribution",
    "cross_val_score": "quoin.metrics.cross_validate",
    "mutual_info_score": "quoin.info.mutual_information",
    "gradient_accumulation_steps": "--micro-batch-size",
    "micro-batch-size": "--micro-batch-size",
    "fp16": "--precision",
    "resnet18": "quoin.models.resnet18",
    "resume_from_checkpoint": "quoin.runs.resume",
}


@pytest.mark.parametrize("word", LOOKED_FOR)
def test_what_people_look_for_is_found_at_once(word):
    assert LOOKED_FOR[word] in [hit.name for hit in search(word)[:3]]


def test_every_hit_can_be_pasted():
    for query in ("attention", "entropy", "normal"):
        for hit in search(query):
            for line in hit.lines:
                if line.startswith("from "):
                    exec(line, {})
                else:
                    assert line.split()[:2] in (["quoin", "check"], ["quoin", "figure"], ["quoin", "train"])
            assert hit.lines or hit.kind == "item"


def test_keywords_name_what_there_is():
    keywords = tomllib.loads((notes._NOTES / "keywords.toml").read_text(encoding="utf-8"))
    named = {name for names in keywords.values() for name in names}
    of_torch = {name for name in named if name.startswith("torch.")}
    options = {name for name in named if name.startswith("--")}
    commands = {name for name in named if name.startswith("quoin ")}
    assert not {f"quoin.{name}" for name in named - of_torch - options - commands} - notes.index()["names"].keys()
    assert options <= every_option()
    assert {name.removeprefix("quoin ") for name in commands} <= COMMANDS.keys()
    for path in of_torch:
        package, _, name = path.rpartition(".")
        assert hasattr(importlib.import_module(package), name)


@pytest.mark.parametrize("query", ["", "?!", "xyzzyx", "attention xyzzyx"])
def test_what_is_nowhere_is_not_found(query):
    assert search(query) == []
