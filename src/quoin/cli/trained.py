"""`quoin eval`, `quoin predict` and `quoin compare`: what is done with runs that are already there."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from quoin.cli.show import print_json, print_table
from quoin.data import check_source_name
from quoin.errors import Mistake, shown

if TYPE_CHECKING:
    from quoin.data import Facts, LabelledFacts
    from quoin.recipes.running.labelling_run import LabelledPrediction
    from quoin.recipes.running.opened import Prediction

__all__ = ["compare", "evaluate", "predict"]

FAR = 30.0  # training spreads from the training mean: no outlier, more likely another unit, such as grey levels to 255 for ones to 1


def evaluate(parsed: argparse.Namespace) -> int:
    if parsed.data is None:
        if parsed.target is not None:
            raise Mistake(f"--target {shown(parsed.target)} names a column of --data csv:PATH, and --data was not given")
        from quoin.recipes.running.run import evaluate_own

        found = evaluate_own(parsed.folder, step=parsed.step)
    else:
        check_source_name(parsed.data)
        from quoin.data import load_like, load_pairs
        from quoin.recipes.running.labelling_run import is_labelling_run, open_labelling_run
        from quoin.recipes.running.language_run import is_language_run, open_language_run
        from quoin.recipes.running.opened import open_table_run
        from quoin.recipes.running.run import open_one

        if is_language_run(open_one(parsed.folder)):
            if parsed.target is not None:
                raise Mistake(f"{parsed.folder} is a language model, got --target {shown(parsed.target)}: leave it out, a text has none")
            found = open_language_run(parsed.folder, step=parsed.step).evaluate(parsed.data)
        elif is_labelling_run(open_one(parsed.folder)):
            if not parsed.data.startswith("tsv:") or parsed.target is not None:
                given = shown(parsed.data) if parsed.target is None else f"--target {shown(parsed.target)}"
                raise Mistake(f"{parsed.folder} classifies texts, got {given}: give --data tsv:PATH with texts and their classes")
            found = open_labelling_run(parsed.folder, step=parsed.step).evaluate(load_pairs(parsed.data))
        else:
            run = open_table_run(parsed.folder, step=parsed.step)
            found = run.evaluate(load_like(run.facts, parsed.data, target=parsed.target, seed=run.options.seed))
    if parsed.json:
        print_json(found)
    else:
        print_table(("metric", "value"), sorted(found.items()))
    return 0


def predict(parsed: argparse.Namespace) -> int:
    from quoin.recipes.running.labelling_run import is_labelling_run
    from quoin.recipes.running.opened import open_table_run
    from quoin.recipes.running.run import open_one
    from quoin.recipes.running.translation_run import is_translation_run

    if parsed.out is not None and _are_one_file(parsed.out, parsed.input):
        raise Mistake(f"--out {shown(str(parsed.out))} is the file to predict for: choose another, or it would be lost")
    if is_translation_run(open_one(parsed.folder)):
        return _translate(parsed)
    if is_labelling_run(open_one(parsed.folder)):
        return _classify(parsed)
    run = open_table_run(parsed.folder, step=parsed.step)
    features = run.read_features(parsed.input)
    prediction = run.predict(features)
    if (far := run.farthest(features)) > FAR:
        note = f"a value lies {far:.0f} training spreads from the training mean; is {parsed.input} on the scale of the training data?"
        print(f"note: {note}", file=sys.stderr)
    return _answer(parsed, prediction, run.facts)


def _classify(parsed: argparse.Namespace) -> int:
    """A text in each line of the file; its class, and the probability of every class, in each row of the answer."""
    from quoin.data import load_text
    from quoin.recipes.running.labelling_run import open_labelling_run

    run = open_labelling_run(parsed.folder, step=parsed.step)
    texts = load_text(f"text:{parsed.input}").content.removesuffix("\n").split("\n")
    return _answer(parsed, run.predict([text.strip() for text in texts]), run.facts)


def _answer(parsed: argparse.Namespace, prediction: "Prediction | LabelledPrediction", facts: "Facts | LabelledFacts") -> int:
    """Print or write the table of predictions."""
    from quoin.recipes.running.predictions import as_csv, write_predictions

    if parsed.out is None:
        sys.stdout.write(as_csv(prediction, facts))
    else:
        write_predictions(parsed.out, prediction, facts)
        print(f"{len(prediction.values)} predictions of {facts.target_name}: {parsed.out}", file=sys.stderr)
    return 0


def _translate(parsed: argparse.Namespace) -> int:
    """A sentence in each line of the file, its translation in each line of the answer."""
    from quoin.data import load_text
    from quoin.recipes.running.translation_run import open_translation_run

    run = open_translation_run(parsed.folder, step=parsed.step)
    said = run.translate(load_text(f"text:{parsed.input}").content.splitlines())
    text = "".join(f"{each.text}\n" for each in said)
    if cut := [number for number, each in enumerate(said, 1) if not each.ended]:
        lines = f"{len(cut)} of {len(said)} translations, the first in line {cut[0]}"
        print(f"note: {lines}, found no end and were cut at the most tokens that are said", file=sys.stderr)
    if parsed.out is None:
        sys.stdout.write(text)
    else:
        _write(parsed.out, text)
        print(f"{len(said)} translations: {parsed.out}", file=sys.stderr)
    return 0


def _are_one_file(one: Path, other: Path) -> bool:
    # os.path, not Path: a name too long to be a file's is then no file, and is refused where it is used
    return os.path.exists(one) and os.path.exists(other) and one.samefile(other)


def compare(parsed: argparse.Namespace) -> int:
    from quoin.recipes.running.comparing import comparison, comparison_page
    from quoin.recipes.running.generative_table import HEADINGS, caution
    from quoin.train.durable import write_here

    if len(parsed.folders) < 2:
        raise Mistake(f"compare expects two or more runs, got {len(parsed.folders)}")
    if parsed.out is not None and parsed.out.suffix != ".html":
        raise Mistake(f"--out expects a page, a file ending in .html, got {shown(parsed.out.name)}")
    out, found = parsed.out or Path("compare.html"), comparison(parsed.folders)
    if parsed.out is not None:
        _write(out, comparison_page(found))
    else:  # a name that the user did not choose: no link of that name is followed
        write_here(out.name, comparison_page(found).encode(errors="backslashreplace"))
    if parsed.json:
        told = {"runs": found.names, "options": found.options, "metrics": found.metrics, "page": str(out)}
        kinds = {"language_models": found.language_models, "generative_models": found.generative_models}
        print_json(told | {kind: [line._asdict() for line in lines] for kind, lines in kinds.items() if lines})
        return 0
    if found.options:
        print_table(("option", *found.names), found.option_rows(), title="options that differ")
        print()
    print_table(("metric", *found.names), [(name, *values) for name, values in found.metrics.items()], title="results")
    if found.language_models:
        print()
        columns = [name.replace("_", " ") for name in found.language_models[0]._fields]
        print_table(columns, found.language_models, title="language models, on their test text")
    if found.generative_models:
        print()
        print_table(HEADINGS, found.generative_models, title="samples of generative models, beside test examples")
        if told := caution(found.generative_models):
            print(f"\n{told}")
    print(f"\ncurves: {out}")
    return 0


def _write(path: Path, page: str) -> None:
    try:
        path.write_text(page, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise Mistake(f"{path} could not be written ({error.strerror}): choose another place with --out") from None
