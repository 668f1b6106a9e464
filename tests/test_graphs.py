"""The karate club from its loader to a run that answers questions, and graphs as pictures."""

import json

import numpy
import pytest
import torch

from quoin import plot
from quoin.cli import main
from quoin.data import load_karate_club
from quoin.errors import UserError
from quoin.runs import Run, find_recipe
from quoin.train import DeviceContext


def test_the_club_is_zacharys():
    """Degrees of the instructor and of the officer, the weight of one tie and of all, and the split, from the published
    matrix."""
    club = load_karate_club()
    degrees = club.edges[0].bincount()
    assert (club.num_nodes, club.edges.shape, int(degrees[0]), int(degrees[33])) == (34, (2, 156), 16, 17)
    assert club.labels[list(club.seed_nodes)].tolist() == [0, 1]
    assert club.labels.bincount().tolist() == [17, 17]
    pairs = {(a, b): weight for (a, b), weight in zip(club.edges.T.tolist(), club.edge_weights.tolist())}
    assert len(pairs) == 156
    assert all(pairs[b, a] == weight for (a, b), weight in pairs.items())
    assert pairs[0, 1] == 4
    assert sum(pairs.values()) == 2 * 231


@pytest.mark.parametrize("per_class", [1, 3, 16])
def test_labelled_nodes_are_as_many_of_each_class_with_its_leader(per_class):
    club = load_karate_club()
    chosen = club.labeled_nodes(per_class, seed=5)
    assert club.labels[chosen].bincount().tolist() == [per_class, per_class]
    assert set(club.seed_nodes) <= set(chosen.tolist())
    assert torch.equal(chosen, club.labeled_nodes(per_class, seed=5))
    data = club.prepared(chosen)
    train, test = (part.features[:, 0].long() for part in (data.train, data.test))
    assert sorted([*train.tolist(), *test.tolist()]) == list(range(34))
    assert torch.equal(train, chosen)
    assert torch.equal(data.test.targets, club.labels[test])
    assert data.validation.num_rows == 0


def test_seeds_draw_other_nodes():
    club = load_karate_club()
    assert not torch.equal(club.labeled_nodes(8, seed=0), club.labeled_nodes(8, seed=1))
    for bad in (0, 17):
        with pytest.raises(UserError, match=f"1 to 16 labelled nodes of each class of karate-club, got {bad}"):
            club.labeled_nodes(bad, seed=0)


def test_training_sees_no_label_but_the_leaders():
    """With all other labels turned round, the weights after some steps are the same to the last bit."""
    recipe = find_recipe("gcn")

    def weights(turned: bool) -> dict[str, torch.Tensor]:
        task = recipe.build(recipe.options(), DeviceContext())  # type: ignore[attr-defined]
        if turned:
            task.data.test.targets.copy_(1 - task.data.test.targets)  # type: ignore[attr-defined]
        for _ in range(5):
            for rows in task.batches:
                task.step(rows)
        return task.state_dict()["model"]["weights"]

    plain, turned = weights(False), weights(True)
    assert all(torch.equal(plain[name], turned[name]) for name in plain)


def test_a_run_of_gcn_is_evaluated_and_asked_for_members(tmp_path, capsys):
    words = ["train", "gcn", "--seed", "100", "--num-threads", "1", "--runs", str(tmp_path), "--json"]
    assert main(words) == 0
    run = tmp_path / "gcn-1"
    result = json.loads((run / "result.json").read_text())
    assert result["target"]["met"]
    page = (run / "report.html").read_text()
    assert "True and predicted factions" in page
    assert "Feature propagation by layer" in page
    capsys.readouterr()
    assert main(["eval", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["test_accuracy"] == result["metrics"]["test_accuracy"]

    (tmp_path / "members.csv").write_text("member\n33\n0\n16\n")
    assert main(["predict", str(run), str(tmp_path / "members.csv")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "faction,p(Mr. Hi),p(Officer)"
    assert [line.split(",")[0] for line in lines[1:]] == ["Officer", "Mr. Hi", "Mr. Hi"]
    assert Run.open(run).model(torch.tensor([[33.0]])).argmax() == 1

    (tmp_path / "members.csv").write_text("member\n34\n")
    assert main(["predict", str(run), str(tmp_path / "members.csv")]) == 2
    told = capsys.readouterr().err
    assert "from 0 to 33, got 34" in told
    assert told.count("\n") == 1
    assert main(["eval", str(run), "--data", "digits"]) == 2
    assert "expected 1 features as in training, but 'digits' has 64" in capsys.readouterr().err
    assert main(["train", "gcn", "--num-labels-per-class", "17", "--runs", str(tmp_path)]) == 2
    assert "1 to 16 labelled nodes" in capsys.readouterr().err


def test_a_graph_is_drawn_once_for_each_set_of_values():
    edges = torch.tensor([[0, 1, 3], [1, 2, 4]])  # two pieces
    drawing = plot.node_values(edges, {"one": torch.rand(5), "two": -torch.rand(5)}, names=list("abcde"), ringed=[1])
    first, second = drawing.figure.axes
    assert [text.get_text() for text in first.texts] == list("abcde")
    assert (first.get_title(), second.get_title()) == ("one", "two")
    places = [numpy.asarray(axes.collections[1].get_offsets()) for axes in (first, second)]
    numpy.testing.assert_array_equal(places[0], places[1])
    assert len(first.collections[0].get_segments()) == 3  # pyright: ignore[reportAttributeAccessIssue]
    assert "<svg" in drawing.svg()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((torch.tensor([[0], [1]]), {}), "at least once, got none"),
        ((torch.tensor([[0], [2]]), {"a": [1.0, 2.0]}), "between nodes 0 to 1"),
        ((torch.tensor([[0], [1]]), {"a": [1.0, 2.0], "b": [1.0]}), "each of 2 nodes"),
        ((torch.tensor([[0], [1]]), {"a": [1.0] * 501}), "at most 500 nodes to plot, got 501"),
    ],
)
def test_a_graph_that_cannot_be_drawn_is_told(arguments, words):
    with pytest.raises(UserError, match=words):
        plot.node_values(*arguments)
