"""Metrics and panels of the models of sequences and texts, computed again by numpy, scikit-learn, and by summing over
every path: what a report says and draws is what happened."""

import itertools
import math
import re
from typing import Any

import numpy
import pytest
import torch
from sklearn.metrics import confusion_matrix, log_loss, roc_auc_score

from panel_calls import shown, trained
from test_wiring import build

pytestmark = pytest.mark.usefixtures("one_thread")


def close(found: Any, expected: Any, rel: float = 1e-9) -> None:
    numpy.testing.assert_allclose(numpy.asarray(found, float), numpy.asarray(expected, float), rtol=rel, atol=1e-12)


def test_a_hidden_markov_model_by_all_its_paths():
    """The likelihood as a sum over every path of the states."""
    task, _ = build("hmm", num_sequences=2, sequence_length=6, num_init=3, pseudo_count=0.1)
    trained(task, 2)
    hidden = task.fitted()
    start, step, emit = (
        each.numpy() for each in (hidden.chain.initial, hidden.chain.transition, hidden.emission.probabilities)
    )

    def log_prob(symbols: Any, start: Any, step: Any, emit: Any) -> float:
        total = 0.0
        for path in itertools.product(range(3), repeat=len(symbols)):
            first = start[path[0]] * math.prod(step[a, b] for a, b in itertools.pairwise(path))
            total += first * math.prod(emit[state, symbol] for state, symbol in zip(path, symbols))
        return math.log(total)

    truth = (
        task.truth.chain.initial.numpy(),
        task.truth.chain.transition.numpy(),
        task.truth.emission.probabilities.numpy(),
    )
    nats = {}
    for split in ("train", "test"):
        sequences = numpy.split(task.splits[split].values.numpy(), 2)
        nats[split] = -sum(log_prob(each, start, step, emit) for each in sequences) / 12
        real = -sum(log_prob(each, *truth) for each in sequences) / 12
        told = task.evaluate(split)
        assert told["nll"] == pytest.approx(nats[split])
        assert told["bits_per_symbol"] == pytest.approx(nats[split] / math.log(2))
        assert told["perplexity"] == pytest.approx(math.exp(nats[split]))
        assert told["nll_gap"] == pytest.approx(nats[split] - real)
    distances = []
    for order in itertools.permutations(range(3)):
        rows = numpy.abs(step[numpy.ix_(order, order)] - truth[1]).sum(1) / 2
        distances.append(max(rows.max(), (numpy.abs(emit[list(order)] - truth[2]).sum(1) / 2).max()))
    assert told["max_total_variation"] == pytest.approx(min(distances))
    panels = shown(task.panels())
    curve = panels["Negative log-likelihood by iteration"]
    assert curve.how["reference_lines"]["the true model"] == pytest.approx(
        -sum(log_prob(each, *truth) for each in numpy.split(task.splits["train"].values.numpy(), 2)) / 12
    )
    for which, (steps, values) in enumerate(curve.lines.values()):
        close((steps, values), (range(2), task.history[:, which]))
    bars = panels["Test likelihood"].values[0]
    close((bars["hidden Markov model"], bars["the true model"]), (nats["test"] / math.log(2), real / math.log(2)))
    table = panels["True and fitted transition and emission"]
    cells, order = numpy.asarray(table.values[0]), list(itertools.permutations(range(3)))[int(numpy.argmin(distances))]
    close(cells[::2], numpy.concatenate(truth[1:], 1).round(3))
    close(cells[1::2], numpy.concatenate([step[numpy.ix_(order, order)], emit[list(order)]], 1).round(3), 1e-6)
    assert re.search(rf"Initialisation {task.best}, .* {min(distances):.3f}\.$", table.caption)


def test_a_chain_by_its_counts():
    task, options = build("markov-chain", num_sequences=30, sequence_length=20, num_symbols=4, batch_size=5)
    losses = [float(task.step(rows)["loss"]) for rows in task.batches]
    splits = {name: numpy.split(each.values.numpy(), len(each)) for name, each in task.splits.items()}
    starts, steps = numpy.full(4, options.pseudo_count), numpy.full((4, 4), options.pseudo_count)
    for number, row in enumerate(splits["train"], 1):
        starts[row[0]] += 1
        numpy.add.at(steps, (row[:-1], row[1:]), 1)
        if number == 5:  # the loss of the first batch is by the chain that has just seen it
            first = nats_of(splits["train"][:5], starts / starts.sum(), steps / steps.sum(1, keepdims=True))
    assert losses[0] == pytest.approx(5 * first)
    chain = starts / starts.sum(), steps / steps.sum(1, keepdims=True)
    symbols = numpy.bincount(numpy.concatenate(splits["train"]), minlength=4)
    truth = task.truth.initial.numpy(), task.truth.transition.numpy()
    vector = numpy.linalg.matrix_power(chain[1].T, 4000)[:, 0]
    rate = -(vector[:, None] * chain[1] * numpy.log2(chain[1])).sum()
    for split, rows in splits.items():
        told = task.evaluate(split)
        assert told["nll"] == pytest.approx(nats_of(rows, *chain))
        assert told["nll_gap"] == pytest.approx(nats_of(rows, *chain) - nats_of(rows, *truth))
        assert told["entropy_rate"] == pytest.approx(rate)
        assert told["max_total_variation"] == pytest.approx(numpy.abs(chain[1] - truth[1]).sum(1).max() / 2)
        assert "nll_markov" not in told  # that is what it is itself
        probable = numpy.log(symbols / symbols.sum())
        assert told["nll_iid"] == pytest.approx(-numpy.mean(probable[numpy.concatenate(rows)]), rel=2e-3)
    panels = shown(task.panels())
    close(panels["Transition probabilities"].values[0], chain[1].round(3))
    assert panels["Transition probabilities"].how["show_values"]
    close(list(panels["Stationary distribution"].values[0].values()), vector, 1e-6)
    assert f"has an entropy of {rate:.3g} bits" in panels["Stationary distribution"].caption
    bars = panels["Test likelihood"].values[0]
    assert list(bars) == ["fitted chain", "independent observations", "the true model"]
    close(list(bars.values()), [told[name] / math.log(2) for name in ("nll", "nll_iid")]
          + [nats_of(splits["test"], *truth) / math.log(2)])  # fmt: skip
    assert panels["Test likelihood"].caption.startswith(f"Of {len(splits['test'])} test sequences with ")


def nats_of(rows: Any, initial: Any, transition: Any) -> float:
    """-ln P of a symbol, step by step."""
    total = sum(
        math.log(initial[row[0]]) + sum(math.log(transition[a, b]) for a, b in itertools.pairwise(row)) for row in rows
    )
    return -total / sum(map(len, rows))


def test_every_order_of_an_ngram_is_the_run_of_that_order():
    """What the panel says of a shorter n-gram is what a run with that --order says of itself."""
    task, _ = build("ngram", order=3, epochs=2)
    panel = shown(trained(task, 2).panels())["Bits per character by order"]
    for order in (1, 2, 3):
        other, _ = build("ngram", order=order, epochs=1)
        trained(other)
        for split in ("validation", "test"):
            told = other.evaluate(split)
            assert panel.lines[split][0][order - 1] == order
            assert panel.lines[split][1][order - 1] == pytest.approx(told["bits_per_character"])
            assert told["perplexity"] == pytest.approx(math.exp(told["loss"]))
            text = getattr(other.text, split)
            predicted = len(text.tokens)  # the one before them stands in the split before
            assert told["loss"] * predicted / text.num_characters == pytest.approx(
                told["bits_per_character"] * math.log(2)
            )
    level = panel.how["reference_lines"]["uniform distribution"]
    assert level == pytest.approx(math.log2(task.text.tokenizer.vocab_size))  # a token is a character
    assert task.evaluate("anything else") == {}


def test_an_epoch_of_an_ngram_counts_twice_as_much():
    task, _ = build("ngram", order=2, epochs=3)
    whole, sizes = len(task.text.train.tokens), []
    for _ in range(3):
        sizes.append(len(task.counted()))
        trained(task)
    assert sizes == [whole // 4, whole // 2, whole]


def test_texts_by_scikit_learn():
    task, _ = build("sequence-classification", num_texts=120, epochs=1, batch_size=16)
    trained(task)
    labels = {split: getattr(task.corpus, split).labels.numpy() for split in ("train", "validation", "test")}
    for split, true in labels.items():
        texts, told = getattr(task.corpus, split), task.evaluate(split)
        logits = {name: task.logits(name, texts).double() for name in ("recurrent", "transformer", "bag-of-words")}
        own = logits[task.primary].softmax(-1).numpy()
        assert told["accuracy"] == pytest.approx(numpy.mean(own.argmax(1) == true))
        assert told["loss"] == pytest.approx(log_loss(true, own, labels=[0, 1]), rel=1e-5)
        for name in set(logits) - {task.primary}:
            value = numpy.mean(logits[name].argmax(1).numpy() == true)
            assert told[f"accuracy_{name.replace('-', '_')}"] == pytest.approx(value)
        best = numpy.mean(task.posterior(texts.pairs.sources).argmax(-1).numpy() == true)
        assert (told["bayes_accuracy"], told["bayes_accuracy_gap"]) == pytest.approx((best, best - told["accuracy"]))
        if split == "test":
            assert told["auc"] == pytest.approx(roc_auc_score(true, own[:, 1]))
        else:
            assert "auc" not in told
    one = task.corpus.test.read(torch.tensor([3]))  # by itself, and with what is longer
    with torch.no_grad():
        alone = task.updaters["recurrent"].model(one.tokens, one.lengths)
    close(task.logits("recurrent", task.corpus.test)[3], alone[0], 1e-4)
    panels, lengths = shown(task.panels()), task.corpus.test.lengths.numpy()
    by_length = panels["Accuracy by length"]
    order = numpy.argsort(lengths, kind="stable")
    for name, (x, y) in by_length.lines.items():
        guess = task.posterior(task.corpus.test.pairs.sources) if name == "Bayes classifier" else logits[name]
        right = guess.argmax(-1).numpy() == true
        groups = numpy.array_split(order, len(x))
        close(x, [lengths[group].mean() for group in groups])
        close(y, [right[group].mean() for group in groups])
        assert f"{name} {right.mean():.3g}" in by_length.caption
    close(by_length.how["reference_lines"]["majority class"], max(numpy.mean(true), 1 - numpy.mean(true)))
    matrix = panels["Confusion matrix"]
    close(matrix.values[0], confusion_matrix(true, own.argmax(1), labels=[0, 1]))
    wrong = numpy.flatnonzero(own.argmax(1) != true)
    assert f"; {len(wrong)} of {len(true)} test texts are wrong." in matrix.caption
    if len(wrong):
        worst = wrong[numpy.argmax(own[wrong].max(1))]
        assert f"errors: {task.corpus.test.pairs.sources[worst][:40]}" in matrix.caption


@pytest.mark.parametrize("name", ["translate-dates", "translate-numbers"])
def test_translations_one_by_one(name):
    task, _ = build(name, epochs=1, num_pairs=60)
    trained(task)
    for split in ("train", "validation", "test"):
        pairs, told = getattr(task.corpus, split), task.evaluate(split)
        count = min(len(pairs), len(task.corpus.test)) if split == "train" else len(pairs)
        with torch.no_grad():
            batches = [pairs.read(torch.tensor([row])) for row in range(count)]
            nats = sum(float(task.losses(batch).sum()) for batch in batches)
        tokens = sum(int(batch.target_lengths.sum()) for batch in batches)
        assert told["loss"] == pytest.approx(nats / tokens, rel=1e-4)
        found = [task.translations(pairs, [row])[0] for row in range(count)]
        right = [a == b for a, b in zip(found, pairs.pairs.targets)]
        assert told["exact_match"] == pytest.approx(numpy.mean(right))
    # A model that gives every other target, whatever the source: bars are of what is right at each length.
    targets = list(task.corpus.test.pairs.targets)
    task.translations = lambda split, rows: [targets[row] if row % 2 else "nothing" for row in rows]
    panel = shown(task.panels())["Exact match by source length"]
    lengths = numpy.array([len(source) for source in task.corpus.test.pairs.sources])
    odd, seen = numpy.arange(len(lengths)) % 2 == 1, 0
    for bar, value in panel.values[0].items():
        low, high, many = re.fullmatch(r"(\d+)(?: to (\d+))? \((\d+)\)", bar).groups()
        inside = (lengths >= int(low)) & (lengths <= int(high or low))
        assert inside.sum() == int(many)
        assert value == pytest.approx(odd[inside].mean())
        seen += int(many)
    assert seen == len(lengths)
    assert panel.caption.startswith(f"{odd.sum()} of {len(odd)} test translations are exact matches.")
    assert f"Correct: {task.corpus.test.pairs.sources[1]} → {targets[1]}" in panel.caption
    assert f"Wrong: {task.corpus.test.pairs.sources[0]} → nothing for {targets[0]}" in panel.caption


@pytest.mark.parametrize("name", ["gru-lm", "transformer-lm", "markov-source"])
def test_a_language_model_by_its_tokens(name):
    small = {"sequence_length": 4000, "context_length": 16, "embed_dim": 16, "hidden_dim": 16, "num_heads": 2}
    task, _ = build(name, epochs=1, **small)
    rows = next(iter(task.batches))
    step = task.step(rows)
    assert float(step["bits_per_character"]) == pytest.approx(float(step["loss"]) / math.log(2), rel=1e-6)
    assert abs(float(step["loss"]) / len(rows) - math.log(task.text.tokenizer.vocab_size)) < 1.0  # it knows nothing yet
    for split in ("validation", "test"):
        text, told = getattr(task.text, split), task.evaluate(split)
        before = task.text.train if split == "validation" else task.text.validation
        tokens = torch.cat([torch.as_tensor(before.tokens[-1:]), torch.as_tensor(text.tokens)])
        nats = task.token_nll(tokens).double()
        assert len(nats) == len(text.tokens)
        assert told["loss"] == pytest.approx(float(nats.mean()))
        assert told["perplexity"] == pytest.approx(math.exp(told["loss"]))
        assert told["bits_per_character"] == pytest.approx(float(nats.sum()) / math.log(2) / text.num_characters)
        if name == "markov-source":
            assert told["relative_redundancy"] == pytest.approx(told["bits_per_character"] / told["entropy_rate"] - 1)
    last = torch.as_tensor(task.text.train.tokens[-len(task.text.test.tokens) - 1 :])  # as many as the test has
    assert task.evaluate("train")["loss"] == pytest.approx(float(task.token_nll(last).double().mean()))
    panels = shown(task.panels())
    written, costs = panels["Bits per token on the test text"].values
    text = task.text.tokenizer.decode(task.text.test.tokens[: len(written)].tolist())
    assert "".join(written) == text
    close(costs, (nats[: len(costs)] / math.log(2)).float(), 1e-6)
    caption = panels["Bits per token on the test text"].caption
    assert caption.startswith(f"{float(costs.mean()):.2f} bits per token on this excerpt")
    assert panels["Sample"].values[0]
