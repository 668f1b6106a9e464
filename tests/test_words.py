"""The field's words: names, help and README speak as PyTorch, Hugging Face, scikit-learn and the papers do, and no word
of our own comes back."""

import ast
import dataclasses
import re
from pathlib import Path

import pytest

import quoin
from pages import PAGES
from quoin.cli.commands import COMMANDS
from quoin.cli.flags import Parser
from quoin.runs import RunConfig, find_recipe, recipe_names

SOURCE = Path(quoin.__file__).parent
ROOT = SOURCE.parents[1]

# What was said once, and what the field says.
IN_NAMES = {
    "law": "distribution, probs",
    "laws": "distributions, probs",
    "came": "got",
    "codes": "embedding, encoding",
    "mistake": "UserError",
    "likeliest": "most probable, argmax",
    "nearness": "nn_distance_ratio",
    "facts": "data_info",
    "judge": "evaluation classifier",
    "judged": "evaluated",
    "wire": "connection",
    "shelf": "storage",
    "lane": "stream",
    "lanes": "streams",
    "kink": "breakpoint",
    "kinks": "breakpoints",
    "vocabulary": "tokenizer, vocab_size",
    "labelled": "labeled",
    "labelling": "sequence classification",
    "unlabelled": "null label",
    "optimiser": "optimizer",
    "standardiser": "StandardScaler",
    "parametrisation": "prediction_type",
    "reparametrise": "reparameterize",
    "normalised": "normalized",
    "generalisation": "generalization",
    "colour": "color",
    "colours": "colors",
    "centre": "center",
    "centres": "centers",
    "centred": "centered",
    "neighbour": "neighbor",
    "neighbours": "neighbors",
    "contestant": "implementation",
    "laps": "repeats",
    "promise": "regularity",
    "strays": "unassigned",
    "shares": "fractions, weights, responsibilities",
    "room": "package; of a cache: spec",
    "rooms": "packages",
    "homes": "implementations",
    "drawing": "plot",
}
IN_PROSE = {
    "law": "distribution",
    "laws": "distributions",
    "likeliest": "most probable",
    "likelier": "more probable",
    "foretell": "predict",
    "foretells": "predicts",
    "perceptrons of several layers": "MLPs",
    "nearness": "nearest-neighbour distance ratio",
    "facts": "data info",
    "judge": "evaluation classifier",
    "judged": "evaluated",
    "came": "got",
    "nucleus of": "top-p",
    "kink": "breakpoint",
    "kinks": "breakpoints",
    "lanes": "streams",
    "marks": "special tokens",
    "silent": "dead, dropped",
    "pull": "weight decay",
    "draw": "sample, plot",
    "draws": "samples, plots",
    "drawn": "sampled, plotted",
    "rivals": "baselines",
    "rooms": "packages",
    "house": "project",
    "contestant": "implementation",
    "lap": "repeat",
    "mistakes": "errors",
    "walked": "denoised",
}
# A plain word where the field has no other: the name, or the sentence around it.
KEPT_NAMES = {
    "PowerLaw",  # a power law is one
    "codes",  # of a RandomVariable, as pandas has it; prefix codes
    # Claims: their random cases hang on the names of function and file.
    "generalisation",
    "layer_is_the_sum_over_neighbours",
    "neighbours_correlate",
    "normalised",
    "normalised_moments",
}
KEPT_PROSE = ("law of large numbers", "laws of large numbers", "law of total", "power law")


def words(name: str) -> list[str]:
    """multi_head, MultiHead and MULTI_HEAD are "multi" and "head"."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return [word.lower() for word in spaced.split("_") if word]


def names_of(tree: ast.AST) -> set[str]:
    """What a file defines: functions, classes, parameters, fields and variables."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return found


def refused_names(tree: ast.AST) -> list[str]:
    return [
        f"{name}: say {IN_NAMES[word]}"
        for name in sorted(names_of(tree) - KEPT_NAMES)
        for word in words(name)
        if word in IN_NAMES
    ]


def refused_prose(text: str) -> list[str]:
    for kept in KEPT_PROSE:
        text = re.sub(kept, "", text, flags=re.IGNORECASE)
    return [
        f"{word} in {text[max(0, m.start() - 40) : m.end() + 40]!r}: say {instead}"
        for word, instead in IN_PROSE.items()
        for m in re.finditer(rf"\b{word}\b", text, re.IGNORECASE)
    ]


PACKAGES = sorted(path.name for path in SOURCE.iterdir() if path.is_dir() and not path.name.startswith("_"))


@pytest.mark.parametrize("package", [*PACKAGES, "."])
def test_names(package):
    files = (SOURCE / package).rglob("*.py") if package != "." else SOURCE.glob("*.py")
    found = [
        f"{path.relative_to(SOURCE)}: {line}"
        for path in sorted(files)
        for line in refused_names(ast.parse(path.read_text()))
    ]
    files_found = [
        path
        for path in (SOURCE / package).rglob("*.py")
        if set(words(path.stem)) & IN_NAMES.keys() and path.stem not in KEPT_NAMES
    ]
    assert not found, "\n".join(found)
    assert not files_found


def helps():
    for name, (what, add_words) in COMMANDS.items():
        parser = Parser(f"quoin {name}", what)
        add_words(parser, [])
        yield f"quoin {name}", f"{what}\n{parser.format_help()}"
    for name in recipe_names():
        recipe = find_recipe(name)
        yield (
            f"quoin train {name}",
            f"{recipe.summary} {' '.join(each.metadata['help'] for each in dataclasses.fields(recipe.options))}",
        )
    yield "run config", " ".join(each.metadata["help"] for each in dataclasses.fields(RunConfig))


@pytest.mark.parametrize(("name", "text"), list(helps()), ids=lambda each: each[:30])
def test_help(name, text):
    assert not refused_prose(text)


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", *PAGES])
def test_pages(page):
    text = re.sub(r"```.*?```|`[^`]*`", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    assert not refused_prose(text)


def test_a_planted_word_is_seen():
    assert len(IN_NAMES) >= 30
    for word in IN_NAMES:
        planted = ast.parse(
            f"def entropy_of_{word}(x): ...\nclass Big{word.title()}: ...\ndef f(the_{word}): "
            f"...\n{word.upper()}_SIZE = 1"
        )
        assert len(refused_names(planted)) == 4, word
    for word in IN_PROSE:
        assert refused_prose(f"The {word} of x.")
    assert not refused_prose("By the law of large numbers, as a power law.")
