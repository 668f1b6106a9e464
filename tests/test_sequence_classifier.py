"""Classifiers of sequences and of patches: each equals its definition, padding is never read, and Bayes' rule is the
best there is."""

import itertools
import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from quoin.cli import main
from quoin.data import Pairs, WalkDirections, load_labeled_corpus, make_walk_directions
from quoin.errors import UserError
from quoin.layers import RotaryEmbedding, transformer_block
from quoin.models import (
    BagOfWordsEncoder,
    PatchEmbedding,
    RecurrentTextEncoder,
    SequenceClassifier,
    TransformerTextEncoder,
    ViT,
    patch_embedding_definition,
    sequence_classifier_definition,
)
from quoin.prob import MarkovChain
from quoin.runs import Run

TOLERANCE: dict[torch.dtype, dict[str, float]] = {
    torch.float32: {"rtol": 1e-4, "atol": 1e-5},
    torch.float64: {"rtol": 1e-10, "atol": 1e-12},
}


def readers(generator):
    return {
        "bag": BagOfWordsEncoder(7, 8, generator=generator),
        "gru": RecurrentTextEncoder(nn.GRU, 7, 4, 5, num_layers=2, generator=generator),
        "lstm": RecurrentTextEncoder(nn.LSTM, 7, 4, 5, generator=generator),
        "transformer": TransformerTextEncoder(
            7, [transformer_block(8, 2, rotary=RotaryEmbedding(4), generator=generator)], generator=generator
        ),
    }


@pytest.mark.parametrize("name", ["bag", "gru", "lstm", "transformer"])
def test_a_padded_batch_is_judged_as_its_sequences_are_one_by_one(name):
    @settings(max_examples=15, deadline=None, derandomize=True)
    @given(
        st.lists(st.integers(1, 9), min_size=1, max_size=4), st.sampled_from(list(TOLERANCE)), st.integers(0, 10_000)
    )
    def holds(sizes, dtype, seed):
        generator = torch.Generator().manual_seed(seed)
        model = SequenceClassifier(readers(generator)[name], 3, generator=generator).to(dtype)
        lengths = torch.tensor(sizes)
        tokens = torch.randint(
            7, (len(sizes), max(sizes) + 2), generator=generator
        )  # what stands at the padding is any token
        ours = model(tokens, lengths)
        theirs = sequence_classifier_definition(model.encoder, tokens, lengths, model.head.weight, model.head.bias)
        torch.testing.assert_close(ours, theirs, **TOLERANCE[dtype])
        upstream = torch.randn(ours.shape, generator=generator, dtype=dtype)
        weights = list(model.parameters())
        slopes = [torch.autograd.grad(each, weights, upstream, allow_unused=True) for each in (ours, theirs)]
        for one, other in zip(*slopes, strict=True):
            torch.testing.assert_close(one, other, **TOLERANCE[dtype])

    holds()


def test_only_a_bag_forgets_the_order():
    tokens = torch.tensor([[0, 1, 2, 3, 4]])
    for name, reader in readers(torch.Generator().manual_seed(0)).items():
        model = SequenceClassifier(reader, 3).double()
        change = (model(tokens) - model(tokens.flip(1))).abs().max().item()
        assert (change < 1e-12) == (name == "bag"), name


@settings(max_examples=30, deadline=None, derandomize=True)
@given(*[st.integers(1, 3)] * 5, st.sampled_from(list(TOLERANCE)), st.integers(0, 10_000))
def test_patches_are_embedded_as_defined_and_as_unfolded(n, c, side, rows, columns, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    block = PatchEmbedding((c, side * rows, side * columns), side, 5, generator=generator).to(dtype)
    weight, bias = block.convolution.weight, block.convolution.bias
    images = torch.randn(n, c, side * rows, side * columns, generator=generator, dtype=dtype).requires_grad_()
    assert bias is not None
    unfolded = nn.functional.unfold(images, side, stride=side).mT @ weight.flatten(1).mT + bias
    upstream = torch.randn(unfolded.shape, generator=generator, dtype=dtype)
    for ours in (block(images), patch_embedding_definition(images, weight, bias)):
        torch.testing.assert_close(ours, unfolded, **TOLERANCE[dtype])
        slopes = [
            torch.autograd.grad(each, [images, weight, bias], upstream, retain_graph=True) for each in (ours, unfolded)
        ]
        torch.testing.assert_close(*slopes, **TOLERANCE[dtype])


def test_a_vit_knows_patches_by_their_positions_alone():
    model = ViT(
        (1, 4, 4), 3, patch_size=2, embed_dim=8, num_heads=2, num_layers=2, generator=torch.Generator().manual_seed(0)
    ).double()
    image = torch.randn(1, 1, 4, 4, dtype=torch.float64)
    swapped = torch.cat([image[:, :, 2:], image[:, :, :2]], dim=2)  # the upper two patches go below
    with torch.no_grad():
        model.position_embedding.weight.normal_()
        assert not torch.allclose(model(image), model(swapped))
        model.position_embedding.weight.zero_()
        torch.testing.assert_close(model(image), model(swapped))


def test_bayes_rule_by_listing_every_text():
    """P(forwards | x) from the joint distribution, and the same symbols are as likely forwards as backwards: no bag of
    them tells."""
    source = make_walk_directions(3, sharpness=2.0, generator=torch.Generator().manual_seed(3))
    forwards = source.chain.joint_distribution(3)  # (3, 3, 3, 3)
    backwards = forwards.permute(3, 2, 1, 0)
    walks = list(itertools.product(range(3), repeat=4))
    posterior = source.posterior(["".join("abc"[symbol] for symbol in walk) for walk in walks])
    expected = (forwards / (forwards + backwards)).flatten()
    torch.testing.assert_close(posterior, torch.stack([1 - expected, expected], dim=1))
    bags = {}
    for walk in walks:
        total = bags.setdefault(tuple(sorted(walk)), torch.zeros(2, dtype=torch.float64))
        total += torch.stack([forwards[walk], backwards[walk]])
    for forwards_likely, backwards_likely in bags.values():
        assert float(forwards_likely) == pytest.approx(float(backwards_likely), abs=1e-14)


def test_drawn_texts_follow_the_chain_in_their_direction():
    source = make_walk_directions(3, sharpness=1.0, generator=torch.Generator().manual_seed(0))
    pairs = source.sample(4000, shortest=2, longest=9, generator=torch.Generator().manual_seed(1))
    lengths = [len(text) for text in pairs.sources]
    assert set(lengths) == set(range(2, 10))
    steps = torch.zeros(3, 3, dtype=torch.float64)
    for text, direction in zip(pairs.sources, pairs.targets):
        walk = [ord(letter) - ord("a") for letter in (text if direction == "forwards" else text[::-1])]
        for one, other in itertools.pairwise(walk):
            steps[one, other] += 1
    law = steps / steps.sum(dim=1, keepdim=True)
    bound = (
        5.5 * (source.chain.transition * (1 - source.chain.transition) / steps.sum(dim=1, keepdim=True)).sqrt()
    )  # 2 in 10^8 beyond
    assert bool(((law - source.chain.transition).abs() < bound).all())
    share = sum(target == "forwards" for target in pairs.targets) / 4000
    assert abs(share - 0.5) < 5.5 * 0.5 / 4000**0.5
    # Where Bayes' rule says 70%, 70% are so: the mean of (hit - posterior) is near 0.
    posterior = source.posterior(pairs.sources)[:, 1]
    hits = torch.tensor([target == "forwards" for target in pairs.targets]).double()
    assert abs(float((hits - posterior).mean())) < 5.5 * float((posterior * (1 - posterior)).sum().sqrt()) / 4000


def test_a_chain_that_only_goes_up_is_told_at_once():
    chain = MarkovChain(torch.full((3,), 1 / 3), torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]))
    assert WalkDirections(chain).posterior(["ab", "cb"]).tolist() == [[0.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda: SequenceClassifier(BagOfWordsEncoder(7, 8), 0), "at least one class"),
        (
            lambda: SequenceClassifier(BagOfWordsEncoder(7, 8), 2)(torch.zeros(2, 0, dtype=torch.long)),
            "a token or more",
        ),
        (
            lambda: SequenceClassifier(BagOfWordsEncoder(7, 8), 2)(
                torch.zeros(2, 3, dtype=torch.long), torch.tensor([0, 3])
            ),
            "lengths from 1 to 3",
        ),
        (
            lambda: SequenceClassifier(BagOfWordsEncoder(7, 8), 2)(
                torch.zeros(2, 3, dtype=torch.long), torch.tensor([4, 3])
            ),
            "lengths from 1 to 3",
        ),
        (lambda: SequenceClassifier(BagOfWordsEncoder(7, 8), 2)(torch.full((2, 3), 7)), "tokens from 0 to 6"),
        (lambda: PatchEmbedding((1, 8, 8), 3, 16), "side divides"),
        (lambda: ViT((1, 8, 8), 10, patch_size=2, num_heads=5), "heads"),
        (lambda: ViT((1, 8, 8), 10, patch_size=2, num_layers=0), "at least one block"),
        (lambda: ViT((1, 8, 8), 10, patch_size=2)(torch.zeros(5, 3, 8, 8)), "expected"),
        (
            lambda: load_labeled_corpus(Pairs("here", tuple("abcdefghijk"), ("one",) * 11)),
            "2 to 1000 different classes, got 1 in 'here', 'one'; add texts of another class",
        ),
        (
            lambda: load_labeled_corpus(Pairs("here", tuple(map(str, range(1001))), tuple(map(str, range(1001))))),
            "got 1001 in 'here'; name the column of the classes with --target",
        ),
        (lambda: load_labeled_corpus(Pairs("here", ("a", "b"), ("one", "two"))), "10 different sources"),
        (
            lambda: make_walk_directions(3, generator=torch.Generator()).sample(
                5, shortest=4, longest=3, generator=torch.Generator()
            ),
            "rising order",
        ),
        (lambda: make_walk_directions(3, generator=torch.Generator()).posterior(["abz"]), "z"),
    ],
)
def test_mistakes_are_told_in_one_line(wrong, told):
    with pytest.raises(UserError, match=told) as found:
        wrong()
    assert "\n" not in str(found.value)


def test_texts_of_a_file_are_learnt_judged_and_predicted(tmp_path, capsys):
    def run(*words):
        code = main([str(word) for word in words])
        return code, *capsys.readouterr()

    data = tmp_path / "names.tsv"
    data.write_text(
        "".join(
            f"{'ab' * number}{end}\t{kind}\n" for number in range(1, 21) for end, kind in (("x", "odd"), ("y", "even"))
        )
    )
    small = [
        "--embed-dim",
        4,
        "--hidden-dim",
        4,
        "--epochs",
        60,
        "--lr",
        0.05,
        "--batch-size",
        8,
        "--no-baselines",
        "--num-threads",
        1,
    ]
    code, out, err = run(
        "train", "sequence-classification", "--data", f"tsv:{data}", *small, "--runs", tmp_path, "--json"
    )
    assert code == 0, err
    assert json.loads(out)["target"] is None  # it speaks of the generated texts
    folder = tmp_path / "sequence-classification-1"
    lines = tmp_path / "lines.txt"
    lines.write_text("abx\nababy\nabababx\n")
    code, out, _ = run("predict", folder, lines)
    assert code == 0
    rows = [line.split(",") for line in out.splitlines()]
    assert rows[0] == ["class", "p(even)", "p(odd)"]
    assert [row[0] for row in rows[1:]] == ["odd", "even", "odd"]
    model = Run.open(folder).trained
    assert [model.data_info.class_names[label] for label in model.predict(["ababy"]).values] == ["even"]
    code, out, _ = run("eval", folder, "--data", f"tsv:{data}", "--json")
    assert json.loads(out)["accuracy"] == 1.0

    for text, told in (("ab\nabz\n", "text 2, 'abz'"), ("ab\n\nab\n", "text 2"), ("", "is empty")):
        lines.write_text(text)
        code, _, err = run("predict", folder, lines)
        assert (code, err.count("\n")) == (2, 1), err
        assert told in err
    strange = tmp_path / "strange.tsv"
    strange.write_text("abx\tthird\n")
    for words, told in (
        (["eval", folder, "--data", f"tsv:{strange}"], "'third'"),
        (["eval", folder, "--data", "digits"], "csv:PATH, tsv:PATH, jsonl:PATH or texts:FOLDER"),
        (["train", "sequence-classification", "--data", "digits"], "give directions, csv:PATH"),
        (["train", "sequence-classification", "--embed-dim", 30, "--num-heads", 4], "multiple of twice the heads"),
        (["train", "mlp", "--data", "directions"], "sequence-classification"),
    ):
        code, _, err = run(*words)
        assert (code, err.count("\n")) == (2, 1), err
        assert told in err
