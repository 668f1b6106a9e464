"""Every mistake of words and data that a user can make: exit code 2, one line that says what came and what to do,
nothing made.

Damaged runs and full disks are in test_cli_damage.py.
"""

import dataclasses
import math

import numpy as np
import pytest
import torch

from commands import contents, refused, tried
from quoin.options import flag_name
from quoin.runs import find_recipe, recipe_names

QUICK = ["--max-steps", "4", "--checkpoint-every", "2", "--num-threads", "1"]


# ---- words ------------------------------------------------------------------------------------------------------

WORDS = {
    "trian": ["'trian'", "did you mean 'train'?"],
    "train mpl": ["'mpl'", "did you mean 'mlp'?"],
    "train mlp --lrr 0.1": ["'--lrr'", "did you mean '--lr'?"],
    "train mlp --lrr=0.1": ["'--lrr'", "did you mean '--lr'?"],
    "train mlp extra": ["'extra'"],
    "train --lr 0.1 linear-regression": ["quoin train linear-regression"],
    "train mlp --data digit": ["'digit'", "did you mean 'digits'?"],
    "train mlp --data csvv:a": ["'csvv:a'", "did you mean 'csv'?"],
    "train mlp --data flowers.csv": ["'flowers.csv'", "csv:PATH"],
    "train mlp --data csv:": ["'csv:'", "csv:PATH"],
    "train mlp --data mnist": ["mnist is not in the cache", "quoin fetch mnist", "idx:FOLDER"],
    "train mlp --lr": ["--lr", "expected one argument"],
    "train mlp --lr fast": ["--lr", "'fast'", "a number"],
    "train mlp --epochs 1.5": ["--epochs", "'1.5'", "a whole number"],
    "train mlp --lr nan": ["--lr", "finite", "nan"],
    "train mlp --lr inf": ["--lr", "finite", "inf"],
    "train mlp --lr 1e300": ["--lr", "1e+300"],
    "train mlp --lr 0": ["--lr", "above 0"],
    "train mlp --hidden-dims 8 0": ["--hidden-dims", "at least 1", "got 0"],
    "train mlp --hidden-dims": ["--hidden-dims", "at least one argument"],
    "train mlp --momentum 1": ["--momentum", "below 1", "got 1"],
    "train mlp --optimizer adan": ["--optimizer", "'adan'", "did you mean 'adam'?"],
    "train mlp --optim adam": ["'--optim'", "did you mean '--optimizer'?"],
    "train mlp --optimizer adam --momentum 0.9": ["--momentum", "momentum or nesterov", "got adam", "leave --momentum"],
    "train mlp --rho 0.5": ["--rho", "adadelta", "got momentum", "leave --rho out"],
    "train mlp --schedule cosinus": ["--schedule", "'cosinus'", "did you mean 'cosine'?"],
    "train mlp --precision float33": ["'float33'", "did you mean 'float32'?"],
    "train mlp --precision float16 --device cpu": ["float16", "GPU"],
    "train mlp --seeds 1": ["--seeds", "2", "'1'"],
    "train mlp --seeds 2 --folds 2": ["--seeds", "--folds", "choose one"],
    f"train mlp --seeds 2 --seed {2**62}": ["--seed", str(2**62)],
    "train mlp --fold 5/5": ["5", "0 to 4"],
    "train mlp --fold five": ["--fold", "'five'", "0/5"],
    "train mlp --fold 0/5 --folds 5": ["--fold", "--folds 5", "leave one out"],
    "train linear-regression --patience 3": ["--patience 3", "no metric", "--monitor validation_loss"],
    "train mlp --data diabetes": ["classes", "numbers", "regression"],
    "train linear-regression --data iris": ["numbers", "'setosa'", "classification"],
    "train mlp --target x": ["--target", "csv:PATH"],
    "train mlp --ignore x": ["--ignore", "csv:PATH"],
    "train mlp --ignore": ["--ignore", "at least one argument"],
    "train mlp --data wine --require-target": ["--require-target", "default data"],
    "train mlp --hidden-dims 1000000 1000000": ["memory", "fewer units"],
    "train mlp --device cuda:999": ["cuda:999", "say cpu"],
    "train mlp --device gpu": ["'gpu'", "cuda"],
    "train mlp --device cuda:²": ["'cuda:²'"],
    "train mlp --device cpu:1": ["cpu:1", "say cpu"],
    "train mlp --num-threads 5000": ["--num-threads", "1024", "5000"],
    "eval": ["RUN"],
    "eval runs/nothing": ["runs/nothing", "quoin train"],
    "predict runs/nothing a.csv": ["runs/nothing"],
    "compare runs/nothing runs/nothing": ["runs/nothing"],
    "compare runs/nothing": ["two or more", "1"],
    "check Z9.999": ["'Z9.999'"],
    "check --num-workers 0": ["--num-workers", "at least 1"],
    "check --seed -1": ["--seed", "-1"],
    "check --seed x": ["--seed", "'x'", "a whole number"],
    "map nowhere-at-all": ["'nowhere-at-all'", "nothing here has it"],
    "figure Z3.9": ["'Z3.9'", "figure"],
    "figure --format sgv": ["'sgv'", "did you mean 'svg'?"],
    "bench nothing-like-it": ["nothing-like-it"],
    "--verbose": ["'--verbose'"],
}


@pytest.mark.parametrize("words", WORDS)
def test_wrong_words(words, here):
    message = refused(*words.split())
    assert all(part in message for part in WORDS[words]), message
    assert contents(here) == {}


@pytest.mark.skipif(torch.cuda.is_available(), reason="the device is there")
@pytest.mark.parametrize("device", ["cuda", "cuda:0"])
def test_a_gpu_that_is_not_there(device, here):
    assert "0 CUDA device(s)" in refused("train", "mlp", "--device", device)
    assert contents(here) == {}


@pytest.mark.parametrize("recipe", recipe_names())
def test_every_bound_of_every_option_is_held(recipe, here):
    """One past each declared bound is refused by name, before a folder is made."""
    tried = 0
    for each in dataclasses.fields(find_recipe(recipe).options):
        for words, bound in each.metadata.get("bounds", {}).items():
            towards = -math.inf if words == "at least" else math.inf
            past = (
                math.nextafter(bound, towards) if isinstance(bound, float) else bound + int(math.copysign(1, towards))
            )
            outside = past if words.startswith("at") else bound
            message = refused("train", recipe, f"{flag_name(each.name)}={outside}")
            assert flag_name(each.name) in message
            assert f"{words} {bound}" in message
            tried += 1
    assert tried >= 5  # seed, epochs and patience, which every recipe has, come to so many
    assert contents(here) == {}


# ---- data files -------------------------------------------------------------------------------------------------

GOOD = "a,b,label\n" + "".join(f"{i},{i * i},{'xy'[i % 2]}\n" for i in range(20))
CSV = {
    "missing": (None, ["cannot be reached", "check the path"]),
    "empty": ("", ["empty"]),
    "header-only": ("a,b,label\n", ["rows", "none"]),
    "ragged": (GOOD + "1,2\n", ["line 22", "3 cells", "got 2"]),
    "too-wide": (GOOD + "1,2,x,y\n", ["line 22", "got 4"]),
    "text": (GOOD + "1,two,x\n", ["line 22", "'b'", "'two'"]),
    "blank-cell": (GOOD + "1,,x\n", ["line 22", "'b'", "no value"]),
    "nan": (GOOD + "1,NaN,x\n", ["line 22", "'b'", "no value"]),
    "infinite": (GOOD + "1,-inf,x\n", ["line 22", "'-inf'"]),
    "huge": (GOOD + "1,1e39,x\n", ["line 22", "'1e39'"]),
    "huge-label": (GOOD + "1,2,1e39\n", ["line 22", "'label'", "'1e39'"]),
    "nan-label": (GOOD + "1,2,nan\n", ["line 22", "'label'"]),
    "no-label": (GOOD + "1,2,\n", ["line 22", "'label'", "no value"]),
    "one-class": ("a,b,label\n" + "1,2,x\n" * 20, ["two or more classes", "'x'"]),
    "few-rows": ("a,b,label\n1,2,x\n3,4,y\n", ["at least 6 rows", "has 2"]),
    "measured": (
        "a,b,label\n" + "".join(f"1,2,{i * i}\n" for i in range(30)),
        ["30 different", "quoin train mlp-regression"],
    ),
    "text-column": (
        "town,label\n" + "".join(f"T{i},{'xy'[i % 2]}\n" for i in range(40)),
        ["identifier", "40", "--ignore town"],
    ),
    "no-target": ("a,b,c\n1,2,x\n", ["--target"]),
    "no-header": ("1,2,3\n4,5,6\n", ["header"]),
    "twice": ("a,a,label\n1,2,x\n", ["'a'", "twice"]),
    "quotes": ('a,b,label\n1,"2,x\n', ["well-formed"]),
    "binary": (b"a,b,label\n\x00\x01,2,x\n", ["NUL"]),
    "latin": ("a,b,label\n1,2,é\n".encode("latin-1"), ["UTF-8"]),
    "truncated-utf8": (GOOD.encode() + b"1,2,\xe2\x82", ["UTF-8"]),
}


@pytest.mark.parametrize("name", CSV)
@pytest.mark.parametrize("more", [[], ["--seeds", "2"]], ids=["run", "study"])
def test_bad_tables(name, more, here):
    content, parts = CSV[name]
    if content is not None:
        (here / "bad.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    before = contents(here)
    message = refused("train", "mlp", "--data", "csv:bad.csv", *QUICK, *more)
    assert "bad.csv" in message
    assert all(part in message for part in parts), message
    assert {path for path in contents(here) if not path.endswith("/runs")} == set(before)


def test_fewer_rows_than_folds(here):
    (here / "few.csv").write_text("\n".join(GOOD.splitlines()[:5]) + "\n")
    message = refused("train", "mlp", "--data", "csv:few.csv", "--folds", "5", *QUICK)
    assert "5 folds" in message
    assert "has 4" in message
    assert "fewer folds" in message
    assert not list(here.glob("runs/*"))


def test_a_target_that_is_not_there_is_told_with_the_nearest_first(here):
    (here / "good.csv").write_text(GOOD)
    message = refused("train", "mlp", "--data", "csv:good.csv", "--target", "lable")
    assert "'lable'" in message
    assert "did you mean 'label'?" in message


def test_bad_archives(here):
    np.savez("good.npz", features=np.zeros((20, 2)), targets=np.arange(20) % 2)
    whole = (here / "good.npz").read_bytes()
    np.savez("object.npz", features=np.array([[{}, {}]]), targets=np.zeros(1))
    np.savez("nan.npz", features=np.full((20, 2), np.nan), targets=np.arange(20) % 2)
    np.savez("short.npz", features=np.zeros((20, 2)), targets=np.zeros(19))
    np.savez("names.npz", a=np.zeros(1))
    flipped = bytearray(whole)
    flipped[len(whole) // 3] ^= 1
    bad = {
        "cut.npz": whole[: len(whole) // 2],
        "flipped.npz": bytes(flipped),
        "text.npz": b"not an archive",
        "empty.npz": b"",
    }
    for name, content in bad.items():
        (here / name).write_bytes(content)
    before = contents(here)
    for name in [*bad, "object.npz", "nan.npz", "short.npz", "names.npz", "none.npz"]:
        assert name in refused("train", "mlp", "--data", f"npz:{name}", *QUICK)
    assert contents(here) == before
    assert (
        tried("train", "mlp", "--data", "npz:good.npz", *QUICK)[0] == 0
    )  # so each was refused for what is wrong with it


def test_bad_image_folders(here):
    (here / "idx").mkdir()
    assert "idx" in refused("train", "mlp", "--data", "idx:idx", *QUICK)
    (here / "idx" / "train-images-idx3-ubyte.gz").write_bytes(b"\x1f\x8b cut")
    assert "idx" in refused("train", "mlp", "--data", "idx:idx", *QUICK)
    assert "cifar-10-binary" in refused("train", "mlp", "--data", "cifar10:idx", *QUICK)
    assert "nowhere" in refused("train", "mlp", "--data", "cifar10:nowhere", *QUICK)
