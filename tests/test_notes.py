"""The map is truthful: a home is public and says so where it computes; what is only mentioned does not count."""

import subprocess
import sys
import textwrap

import pytest

from quoin.errors import Mistake
from quoin.notes import map as notes

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

    monkeypatch.setattr(notes, "_source", lambda: tmp_path)
    notes._table.cache_clear()
    yield write
    notes._table.cache_clear()


def found(id):
    return next(entry for entry in notes.entries() if entry.id == id)


def test_every_id_written_in_the_source_is_in_the_notes():
    assert notes.unknown_ids() == []


def test_the_notes_are_whole():
    table, kinds = notes._table()["notes"], {"block", "claim", "figure", "mention", "wording", "reference"}
    assert {row["kind"] for row in table.values()} <= kinds
    assert {row["area"] for row in table.values()} == set(notes.areas()) == set(range(1, 22))
    assert all(row["title"].strip() for row in table.values())


def test_our_own_figures_and_homes_are_on_the_map():
    assert found("D1F1").figures == ("quoin.notes.figures.networks.two_five_one",)
    for entry in notes.entries():
        for home in entry.homes:
            _, room, name, *inner = home.split(".")
            value = getattr(__import__(f"quoin.{room}", fromlist=[name]), name)
            for part in inner:
                value = getattr(value, part)
            assert entry.id in value.__doc__


def test_a_home_is_public_and_closes_with_the_id(house):
    house("layers/__init__.py", "from quoin.layers.dense import Dense, shown as dense\n__all__ = ['Dense', 'dense']")
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
        def shown():
            """Exported under another name. Notes: Z1.1."""
        def private():
            """Not exported. Notes: D1.2-1."""
        def mentions():
            """Notes: D1.2-1. But there is more to say."""
        ''',
    )
    house("layers/other.py", 'def Dense():\n    """A private namesake.  Notes: D1.2-1."""\n')
    assert found("Z1.1").homes == ("quoin.layers.Dense", "quoin.layers.dense")
    assert found("Z1.2n").homes == ("quoin.layers.Dense",)
    assert found("D1F1").homes == ("quoin.layers.Dense.apply",)
    assert found("D1.2-1").homes == ()


def test_a_public_name_whose_docstring_goes_on_is_no_home(house):
    house("prob.py", '__all__ = ["f"]\ndef f():\n    """Notes: Z1.1. But there is more to say."""\n')
    assert found("Z1.1").homes == ()


def test_homes_in_a_room_within_a_room_and_in_a_room_of_one_file(house):
    house("layers/__init__.py", "from .attention import exact\n__all__ = ['exact']")
    house("layers/attention/__init__.py", "from .exact import exact, cached\n__all__ = ['exact', 'cached']")
    house("layers/attention/exact.py", 'def exact():\n    "Notes: Z1.1."\ndef cached():\n    "Notes: Z1.2n."')
    house("prob.py", '__all__: list[str] = ["f"]\ndef f():\n    "Notes: D1.2-1."')
    assert found("Z1.1").homes == ("quoin.layers.exact",)
    assert found("Z1.2n").homes == ("quoin.layers.attention.cached",)
    assert found("D1.2-1").homes == ("quoin.prob.f",)


def test_claims_figures_and_recipes_carry_their_ids(house):
    house("notes/claims/area.py", '@claim(("Z1.1", "Z1.2n"), "s", right=a, printed=b)\ndef f(form, generator): ...')
    house("notes/figures/area.py", '@figure("D1F1", "c")\ndef g(): ...')
    house("recipes/two_words.py", 'NOTES = ("Z1.1",)')
    house("train/loop.py", 'NOTES = ("Z1.1",)\n@claim("Z1.1", "not in the room of claims")\ndef h(generator): ...')
    assert found("Z1.1").as_json() == {
        "id": "Z1.1", "title": "a", "kind": "block", "area": 1,
        "homes": [], "claims": ["quoin.notes.claims.area.f"], "figures": [], "recipes": ["two-words"],
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
    assert [line.split()[0] for line in notes.unknown_ids()] == ["Z9.9"]


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
    ("word", "hint"), [("Z1.2", "did you mean 'Z1.2n'"), ("tensors", "which begins"), ("4711", "quoin map"), ("", "quoin map")]
)
def test_a_word_that_names_nothing_is_a_mistake(house, word, hint):
    with pytest.raises(Mistake, match=hint) as caught:
        notes.select([word])
    assert "\n" not in str(caught.value)


def test_an_id_without_a_claim_is_a_mistake_for_check(house):
    with pytest.raises(Mistake, match="claim"):
        notes.choose([found("Z1.1")], ["D1F1"], "claim")


def test_the_map_does_not_import_torch():
    code = "import sys; from quoin import notes; notes.entries(); print(sorted({'torch', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
