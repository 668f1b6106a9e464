"""Sequences of symbols and numbers from a user's files, and the Markov models that are fitted to them."""

import csv
import json
import math

import pytest
import torch

from commands import tried
from quoin.data.sequences import (
    NamedSequence,
    Sequences,
    encode_sequences,
    read_sequences,
    sequence_info,
    split_sequences,
)
from quoin.errors import UserError
from quoin.prob import CategoricalEmission, HiddenMarkovModel, MarkovChain, baum_welch_step
from quoin.prob.hmm_fit import expected_counts, maximize_counts
from quoin.tasks.sequence_modeling import chain_from_counts, chain_log_prob, count_steps, log_prob_by_sequence

WORDS = [["a", "b", "a"], ["b"], ["a", "a", "b", "c"]]


def encoded(rows, **how) -> Sequences:
    return encode_sequences("here", [NamedSequence(str(i), list(row)) for i, row in enumerate(rows)], **how)


def test_lines_json_lists_and_event_logs_are_the_same_sequences(tmp_path):
    (tmp_path / "a.txt").write_text("a b a\n\nb\na a  b c\n")
    (tmp_path / "b.txt").write_text('a, b ,a\n["b"]\na,a,b,c\n')
    # Events in another order than their times, of numbers and of dates.
    events = [("1", 2, "b"), ("3", 4, "c"), ("1", 1, "a"), ("2", 1, "b"), ("3", 1, "a"), ("3", 2, "a"), ("3", 3, "b")]
    events += [("1", 10, "a")]
    lines = [f"{case},{time},{symbol}" for case, time, symbol in events]
    (tmp_path / "a.csv").write_text("\n".join(["case_id,time,activity", *lines]))
    dated = [{"id": case, "date": f"2024-01-{time:02}", "event": symbol} for case, time, symbol in events]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, dated)))
    for source in ("sequences:a.txt", "sequences:b.txt", "csv:a.csv", "jsonl:a.jsonl"):
        form, _, name = source.partition(":")
        found, _ = read_sequences(f"{form}:{tmp_path / name}")
        assert sorted((each.words for each in found), key=len) == sorted(WORDS, key=len), source
    assert [each.words for each in read_sequences(f"sequences:{tmp_path / 'a.txt'}")[0]] == WORDS


def test_symbols_are_in_the_order_of_numbers_or_of_the_alphabet():
    assert encoded([["10", "9", "-1"]]).symbols == ("-1", "9", "10")
    assert encoded([["b", "a", "10"]]).symbols == ("10", "a", "b")
    numbers = encoded([["1.5", "-2"], ["3"]], numbers=True)
    assert numbers.values.tolist() == [[1.5], [-2.0], [3.0]]


def test_counts_and_likelihood_by_hand():
    sequences = encoded(WORDS)
    counts = count_steps(sequences, 3)
    assert counts.starts.tolist() == [2, 1, 0]
    assert counts.steps.tolist() == [[1, 2, 0], [1, 0, 1], [0, 0, 0]]
    chain = chain_from_counts(counts, 0.5)
    assert chain.transition[0].tolist() == pytest.approx([1.5 / 4.5, 2.5 / 4.5, 0.5 / 4.5])
    found = log_prob_by_sequence(chain, sequences)
    expected = torch.stack([chain.log_prob(row) for row in sequences.rows])  # the definition, one by one
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)
    assert float(found[1]) == pytest.approx(math.log(1.5 / 4.5))
    padded = torch.tensor([[0, 1, 0, 0], [1, 0, 0, 0]])
    torch.testing.assert_close(chain_log_prob(chain, padded, torch.tensor([3, 1])), expected[:2], rtol=1e-12, atol=0)


def test_buckets_change_nothing(monkeypatch):
    """Sequences of very different lengths, together and apart: the same E-step, and the same likelihood."""
    generator = torch.Generator().manual_seed(0)
    lengths = [1, 2, 3, 5, 8, 60, 61, 200]
    rows = [[str(int(x)) for x in torch.randint(3, (n,), generator=generator)] for n in lengths]
    tables = torch.rand(3, 2, 3, dtype=torch.float64, generator=generator) + 0.1
    chain = MarkovChain(*(torch.tensor(each, dtype=torch.float64) for each in ([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]])))
    model = HiddenMarkovModel(chain, CategoricalEmission(tables[0] / tables[0].sum(-1, keepdim=True)))
    whole = encoded(rows)
    assert len(whole.buckets) == 1
    monkeypatch.setattr("quoin.data.sequences.FEW_OBSERVATIONS", 0)
    apart = encoded(rows)
    assert len(apart.buckets) > 3
    assert sorted(row for bucket in apart.buckets for row in bucket.rows.tolist()) == list(range(8))
    torch.testing.assert_close(log_prob_by_sequence(model, apart), log_prob_by_sequence(model, whole))
    one_by_one = torch.stack([model.log_prob(row) for row in whole.rows])
    torch.testing.assert_close(log_prob_by_sequence(model, whole), one_by_one)
    counts = [expected_counts(model, bucket.observations, bucket.lengths) for bucket in apart.buckets]
    total = counts[0]
    for each in counts[1:]:
        total = total.plus(each)
    (bucket,) = whole.buckets
    step = baum_welch_step(model, bucket.observations, bucket.lengths)
    torch.testing.assert_close(maximize_counts(model, total).chain.transition, step.output.chain.transition)
    torch.testing.assert_close(total.log_prob, step.log_prob)


def test_a_pseudo_count_leaves_no_symbol_impossible():
    tables = torch.tensor([[0.5, 0.25, 0.25], [0.2, 0.4, 0.4]], dtype=torch.float64)
    chain = MarkovChain(torch.tensor([0.5, 0.5]).double(), torch.full((2, 2), 0.5).double())
    model = HiddenMarkovModel(chain, CategoricalEmission(tables))
    seen = torch.tensor([[0, 1, 0, 0, 1]])  # never a 2
    counts = expected_counts(model, seen)
    assert maximize_counts(model, counts).emission.probabilities[:, 2].tolist() == [0, 0]
    smooth = maximize_counts(model, counts, pseudo_count=0.1).emission.probabilities
    times = counts.emission[0].sum(dim=0)  # expected in each state
    torch.testing.assert_close(smooth[:, 2], 0.1 / (times + 0.3))


def test_splits_by_sequence_or_by_place():
    many = split_sequences(encoded([["a", "b"]] * 15 + [["b", "a", "b"]] * 15), seed=1)
    splits = [split for split in many if split is not None]
    assert [len(split) for split in splits] == [24, 3, 3]
    assert sorted(name for split in splits for name in split.names) == sorted(str(i) for i in range(30))
    single = split_sequences(encoded([[str(i % 3) for i in range(105)]]), seed=1)
    splits = [split for split in single if split is not None]
    assert [split.lengths.tolist() for split in splits] == [[85], [10], [10]]
    assert torch.equal(torch.cat([split.values for split in splits]), torch.arange(105) % 3)
    assert sequence_info(single).num_observations == 105


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("a\nb\na\n", "two symbols or more"),
        ("a a a a a a a a a a\n", "from 2 to 1000 different symbols, got 1"),
        (" ".join(map(str, range(1500))), "got 1500"),
        ("a,,b\n", "line 1 .* number 2 of them is empty"),
        ("a b c\n", "10 sequences or more"),
        ("a b\n[]\n", "line 2 .* got none"),
        ("[1, null]\n", "line 1 .* None"),
        ("[1, 2\n", "JSON list in line 1"),
        (" \n\n", "all its lines are blank"),
    ],
)
def test_what_no_model_can_learn_from(tmp_path, content, told):
    (tmp_path / "a.txt").write_text(content)
    source = f"sequences:{tmp_path / 'a.txt'}"
    with pytest.raises(UserError, match=told) as caught:
        split_sequences(encode_sequences(source, read_sequences(source)[0]), seed=0)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("case,time,event\na,1,x\na,b,y\n", "a number as the time in line 3"),
        ("case,time,event\na,03.05.2024,x\n", "a date such as"),
        ("case,time,event\n,1,x\n", "line 2, column 'case'"),
        ("case,user,event\n1,1,x\n", "choose with --id-column"),
        ("case,when,what\n1,1,x\n", "--symbol-column"),
    ],
)
def test_what_is_no_event_log(tmp_path, content, told):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(UserError, match=told):
        read_sequences(f"csv:{tmp_path / 'a.csv'}")


def write_events(path):
    """Sessions of a chain in which b always follows a: the log-likelihood is known."""
    generator = torch.Generator().manual_seed(0)
    rows = []
    for case in range(40):
        symbol = "a"
        for time in range(int(torch.randint(2, 30, (), generator=generator))):
            rows.append((f"case-{case}", time, symbol))
            symbol = "b" if symbol == "a" else "ab"[int(torch.rand((), generator=generator) < 0.5)]
    path.write_text("".join(f"{','.join(map(str, row))}\n" for row in [("case", "time", "event"), *rows]))
    return rows


@pytest.mark.deep
@pytest.mark.parametrize("recipe", ["hmm", "markov-chain"])
def test_event_logs_by_command(tmp_path, recipe):
    rows = write_events(tmp_path / "events.csv")
    small = "--num-states 2 --max-iter 40 --num-init 4" if recipe == "hmm" else "--pseudo-count 0.01"
    words = f"train {recipe} --data csv:{tmp_path / 'events.csv'} {small} --num-threads 1 --runs {tmp_path} --json"
    code, out, err = tried(*words.split())
    assert code == 0, err
    result = json.loads(out)
    assert result["target"] is None  # nobody knows the truth
    assert not any("gap" in name or "variation" in name for name in result["metrics"])
    assert result["metrics"]["test_nll"] < result["metrics"]["test_nll_iid"] - 0.1  # which cannot know what follows a
    code, out, err = tried("predict", result["run"], tmp_path / "events.csv")
    assert code == 0, err
    found = list(csv.DictReader(out.splitlines()))
    assert [row["sequence"] for row in found] == list(dict.fromkeys(case for case, _, _ in rows))
    assert sum(int(row["length"]) for row in found) == len(rows)
    total = sum(float(row["log_likelihood"]) for row in found)
    code, out, err = tried("eval", result["run"], "--data", f"csv:{tmp_path / 'events.csv'}", "--json")
    assert code == 0, err
    assert json.loads(out)["nll"] == pytest.approx(-total / len(rows))
    if recipe == "hmm":
        assert all(len(row["states"].split()) == int(row["length"]) for row in found)
    (tmp_path / "new.txt").write_text("a b a\na z\n")
    code, _, err = tried("predict", result["run"], tmp_path / "new.txt")
    assert (code, err.count("\n")) == (2, 1)
    assert "'z' at place 2 of sequence '2'" in err


@pytest.mark.deep
def test_numbers_have_normal_emissions(tmp_path):
    generator = torch.Generator().manual_seed(1)
    states = torch.arange(2000) // 50 % 2
    values = torch.tensor([20.0, 35.0])[states] + 2 * torch.randn(2000, generator=generator)
    (tmp_path / "a.txt").write_text(" ".join(f"{value:.3f}" for value in values.tolist()))
    words = f"train hmm --data sequences:{tmp_path / 'a.txt'} --emission gaussian --num-states 2 --max-iter 30"
    code, out, err = tried(*words.split(), "--num-threads", 1, "--runs", tmp_path, "--json")
    assert code == 0, err
    result = json.loads(out)
    # The entropy of a normal distribution of std 2, and a little for the rare changes of state.
    assert result["metrics"]["test_nll"] == pytest.approx(0.5 * math.log(2 * math.pi * math.e * 4), abs=0.2)
    code, out, err = tried("predict", result["run"], tmp_path / "a.txt")
    path = [int(state) for state in next(csv.DictReader(out.splitlines()))["states"].split()]
    agree = sum(one == two for one, two in zip(path, states.tolist())) / 2000
    assert max(agree, 1 - agree) > 0.99
