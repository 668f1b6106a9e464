"""Columns of a table by name: those to leave out in training, and those a trained run takes from other data."""

import csv
import io
import json

import numpy as np
import pytest
import torch

from quoin.cli import main
from quoin.data import TabularInfo, load, load_like
from quoin.errors import UserError
from quoin.runs import Run

TABLE = "id,city,label,u,v\n" + "".join(
    f"{i},town {i},{'no' if i % 3 else 'yes'},{i % 3}.5,{i % 7}\n" for i in range(40)
)


@pytest.fixture
def put(tmp_path):
    def write(content, name="t.csv"):
        path = tmp_path / name
        path.write_text(content)
        return f"csv:{path}"

    return write


def data_info(*names, target="label"):
    return TabularInfo("t", "", 40, names, (len(names),), (target,), ("no", "yes"))


def rearranged(content, columns):
    """The columns of a table in another order, as a second reader sees them."""
    rows = list(csv.DictReader(io.StringIO(content)))
    return "\n".join([",".join(columns), *(",".join(row[name] for name in columns) for row in rows)]) + "\n"


def test_what_is_ignored_is_as_if_it_had_never_been_there(put):
    ours = load(put(TABLE), ignore=("city", "id"))
    assert ours.feature_names == ("u", "v")
    assert ours.fingerprint == load(put(rearranged(TABLE, ["label", "u", "v"]))).fingerprint


def test_a_second_usual_target_may_be_ignored(put):
    source = put("y,label,a\n1,2,3\n")
    assert load(source, ignore=["label"]).target_name == "y"
    assert load(source, ignore=["label"]).feature_names == ("a",)


@pytest.mark.parametrize(
    ("ignore", "target", "match"),
    [
        (("towns",), None, "column 'towns' .* none: did you mean 'town'"),
        (("label",), "label", "spare the target, but 'label' is both"),
        (("label",), None, "no target, label, y among 'town', 'u'"),
        (("town", "u"), None, "feature columns beside the target 'label' .* none"),
    ],
)
def test_what_cannot_be_ignored(put, ignore, target, match):
    with pytest.raises(UserError, match=match) as caught:
        load(put("town,u,label\nx,1,2\n"), ignore=ignore, target=target)
    assert len(str(caught.value).splitlines()) == 1


def test_like_a_model_takes_its_columns_by_name_and_its_own_target(put):
    data = load_like(data_info("v", "u"), put(TABLE))
    whole = load(put(TABLE), ignore=("id", "city"))
    assert data.feature_names == ("v", "u")
    assert torch.equal(data.features, whole.features[:, [1, 0]])
    assert torch.equal(data.targets, whole.targets)
    assert load_like(data_info("v", "u"), put(TABLE), target="city").target_name == "city"
    assert load_like(data_info("v", "u", target="city"), put(TABLE)).target_name == "city"
    assert load_like(data_info("v", "u", target="elsewhere"), put(TABLE)).target_name == "label"  # by its usual name


def test_data_that_are_not_like_it_are_told(put, tmp_path):
    for known, options, match in [
        (data_info("v", "w"), {}, "expected the column 'w' in"),
        (data_info("v", "U"), {}, "differ only in case"),
        (data_info("v", "u"), {"target": "u"}, "'u' is one of its features"),
        (data_info("v", "u"), {"target": "lable"}, "did you mean 'label'"),
        (data_info("v", "city"), {}, "column 'city' .* needs this column as numbers"),
    ]:
        with pytest.raises(UserError, match=match):
            load_like(known, put(TABLE), **options)
    with pytest.raises(UserError, match="expected 2 features as in training, but 'iris' has 4"):
        load_like(data_info("v", "u"), "iris")
    np.savez(tmp_path / "a.npz", x=np.eye(2), y=[0, 1])
    assert load_like(data_info("v", "u"), f"npz:{tmp_path}/a.npz").features.tolist() == [[1, 0], [0, 1]]


def test_a_run_leaves_columns_out_and_is_evaluated_by_name(put, tmp_path, capsys):
    source = put(TABLE)
    words = [
        "train",
        "mlp",
        "--data",
        source,
        "--ignore",
        "id",
        "city",
        "--max-steps",
        "4",
        "--num-threads",
        "1",
        "--runs",
        f"{tmp_path}/runs",
    ]
    assert main(words) == 0
    run = f"{tmp_path}/runs/mlp-1"
    assert json.loads((tmp_path / "runs/mlp-1/config.json").read_text())["options"]["ignore"] == ["id", "city"]
    assert Run.open(run).data_info.feature_names == ("u", "v")
    assert main(["resume", run]) == main(["eval", run]) == 0
    found = []
    orders = [["v", "city", "u", "label"], ["v", "label", "u"]]
    others = [source, *(put(rearranged(TABLE, order), f"{len(order)}.csv") for order in orders)]
    for other in others:
        capsys.readouterr()
        assert main(["eval", run, "--data", other, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1] == found[2]
    swapped = put(rearranged(TABLE, ["v", "u", "label"]).replace("v,u,", "u,v,", 1), "swapped.csv")
    assert main(["eval", run, "--data", swapped, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) != found[0]  # so the order would have told
    capsys.readouterr()
    assert main(["predict", run, others[1]]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 41


def test_ignore_reads_as_text_and_its_help_shows_no_default(capsys):
    assert main(["train", "mlp", "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "--ignore STR [STR ...] columns of a table to leave out --" in told
    assert "--hidden-dims INT [INT ...]" in told
