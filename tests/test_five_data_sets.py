"""Five data sets as users have them, through the commands of the page on them: trained, killed, resumed,
evaluated, predicted for, each to the same numbers as a run that nobody interrupted."""

import csv
import json
import os
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import polars
import pytest
from PIL import Image

from pages import blocks

pytestmark = pytest.mark.deep

BLOCKS = {
    block.first.split()[2]: block.text.splitlines() for block in blocks("docs/howto/data.md") if block.language == "sh"
}


def customers(folder):
    rng = np.random.default_rng(0)
    for name, rows in (("customers", 900), ("customers-2", 200), ("new-customers", 20)):
        age, city = rng.normal(40, 12, rows).round(1), rng.choice(["Bonn", "Oslo", "Rome", "Kyiv"], rows)
        member = rng.random(rows) < 0.4
        churn = np.where((age - 40) / 12 + 2 * (city == "Oslo") - 1.5 * member + rng.normal(size=rows) > 0, "yes", "no")
        with (folder / f"{name}.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["customer_id", "age", "city", "joined", "member", "note, or remark", "churn"])
            for i in range(rows):
                table.writerow(
                    [
                        f"C{1000 + i}",
                        "" if rng.random() < 0.1 else age[i],
                        "NA" if rng.random() < 0.05 else "Lima" if name == "new-customers" and i < 3 else city[i],
                        f"20{rng.integers(10, 25)}-0{rng.integers(1, 10)}-1{rng.integers(10)}",
                        member[i],
                        rng.choice(['says "yes"', "none", "a, b"]),
                        churn[i],
                    ]
                )


def sensors(folder):
    rng = np.random.default_rng(1)
    for name, rows in (("sensors", 1_000_000), ("sensors-2", 5000), ("new-sensors", 100)):
        x = rng.normal(size=(rows, 8)).astype(np.float32)
        state = np.array(["idle", "run", "stop"])[np.stack([x[:, 0], x[:, 1] + x[:, 2], -x[:, 3]]).argmax(0)]
        frame = polars.DataFrame({f"s{at}": x[:, at] for at in range(8)} | {"state": state})
        if name == "new-sensors":
            frame.drop("state").write_csv(folder / f"{name}.csv")
        else:
            frame.write_parquet(folder / f"{name}.parquet")


def pets(folder):
    rng = np.random.default_rng(2)
    for name, each in (("pets", 90), ("other-pets", 20), ("holiday", 10)):
        for which, kind in enumerate(("cat", "dog")):
            inside = folder / name / kind if name != "holiday" else folder / name
            inside.mkdir(parents=True, exist_ok=True)
            for number in range(each):
                size = (40, 48) if number % 2 else (64, 52)
                pixels = rng.integers(0, 120, (size[1], size[0], 3), dtype=np.uint8)
                stripes = slice(None, None, 8)
                pixels[(stripes, slice(None)) if which else (slice(None), stripes)] = 250
                picture = Image.fromarray(pixels)
                if number % 3 == 0:
                    picture = picture.convert("L")
                picture.save(inside / f"{kind}-{number}.{'png' if number % 2 else 'jpg'}")


def reviews(folder):
    rng = np.random.default_rng(3)
    words = {"good": ["fine", "lovely", "great", "warm"], "bad": ["dull", "broken", "cold", "poor"]}
    for name, rows in (("reviews", 400), ("reviews-2", 60), ("new-reviews", 12)):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["stars", "review", "sentiment"])
            for i in range(rows):
                kind = ("good", "bad")[i % 2]
                said = rng.choice(["the", "room", "was", "and", "staff", *words[kind]], rng.integers(4, 9))
                table.writerow([3 + (kind == "good"), f"{' '.join(said)}, {rng.choice(words[kind])}", kind])


def events(folder):
    rng = np.random.default_rng(4)
    for name, sessions in (("events", 60), ("events-2", 12), ("new-events", 5)):
        rows = []
        for session in range(sessions):
            state = 0
            for step in range(rng.integers(8, 20)):
                state = 1 - state if rng.random() < 0.2 else state
                event = rng.choice(
                    ["open", "read", "buy", "leave"], p=[[0.6, 0.3, 0.05, 0.05], [0.1, 0.1, 0.5, 0.3]][state]
                )
                rows.append((f"u{session}", f"2026-01-0{1 + step // 10}T10:{step:02d}:00", event))
        order = rng.permutation(len(rows))  # a log is sorted by no one
        lines = ["session,time,event", *(",".join(rows[at]) for at in order)]
        (folder / f"{name}.csv").write_text("\n".join(lines))


MADE = {
    "mlp": customers,
    "softmax-regression": sensors,
    "lenet": pets,
    "sequence-classification": reviews,
    "hmm": events,
}


def quoin(words, folder, **others):
    command = [sys.executable, "-m", "quoin.cli", *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **others
    )


def done(words, folder):
    process = quoin(words, folder)
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out


def killed(words, folder, run):
    """Train until a checkpoint is there, then kill; a run that was quicker is finished, and resuming must say so."""
    process = quoin(words, folder)
    while process.poll() is None:
        if any((run / "checkpoints").glob("*/manifest.json")) or any((run / "checkpoints").glob("[0-9]*")):
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.02)
    process.communicate()
    return process.returncode == -signal.SIGKILL


def test_the_page_has_all_five():
    assert set(BLOCKS) == set(MADE)


@pytest.mark.parametrize("recipe", sorted(MADE))
def test_by_the_commands_of_the_page(recipe, tmp_path):
    MADE[recipe](tmp_path)
    train, resume, evaluate, predict = (shlex.split(line)[1:] for line in BLOCKS[recipe])
    quick = ["--num-threads", "1"]
    run = tmp_path / "runs" / f"{recipe}-1"
    assert killed([*train, *quick, "--checkpoint-every", "5"], tmp_path, run), "finished before it could be killed"
    assert not (run / "result.json").exists()
    done(resume, tmp_path)
    result = json.loads((run / "result.json").read_text())
    assert "<svg" in (run / "report.html").read_text()
    done([*train, *quick, "--checkpoint-every", "5", "--runs", "whole"], tmp_path)
    assert result["metrics"] == json.loads((tmp_path / "whole" / run.name / "result.json").read_text())["metrics"]
    assert done(evaluate, tmp_path)
    done(predict, tmp_path)
    with (tmp_path / "predicted.csv").open() as file:
        predicted = list(csv.DictReader(file))
    expected = {"mlp": 20, "softmax-regression": 100, "lenet": 20, "sequence-classification": 12, "hmm": 5}
    assert len(predicted) == expected[recipe]
    better = {"mlp": 0.75, "softmax-regression": 0.85, "lenet": 0.9, "sequence-classification": 0.9}
    if recipe in better:  # well above what the most frequent class would have
        assert result["metrics"]["test_accuracy"] > better[recipe]
    else:
        assert result["metrics"]["test_nll"] < result["metrics"]["test_nll_iid"]  # there is something to learn
