"""Texts and vocabularies: the corpus beside a second reading of it, encoders beside slow twins, and every text back as
it was."""

import gzip
import hashlib
import json
import re
import sys
from collections import Counter
from itertools import pairwise

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import quoin.data.text
from quoin.data import (
    BPETokenizer,
    ByteTokenizer,
    CharTokenizer,
    Text,
    Tokenizer,
    WordTokenizer,
    check_same_tokenizer,
    load,
    load_corpus,
    load_text,
    tokenizer_fingerprint,
    tokenizer_from_json,
)
from quoin.data.bpe import pieces_of
from quoin.data.text import split_sizes, text_pieces
from quoin.errors import UserError

WORDS = st.text("ab \n't1.,é", max_size=200)
ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
IN_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def one_line(mistake):
    assert len(str(mistake.value).splitlines()) == 1
    return str(mistake.value)


# ---- texts ------------------------------------------------------------------------------------------------------


def paragraphs(text):
    """Runs of lines with something on them."""
    found, lines = [], []
    for line in [*text.split("\n"), ""]:
        if line.strip(" \t"):
            lines.append(line)
        elif lines:
            found.append("\n".join(lines))
            lines = []
    return found


def test_topics_are_the_help_texts_with_each_paragraph_once():
    from pydoc_data.topics import topics

    text = load_text("topics")
    ours = paragraphs(text.content)
    assert len(ours) == len(set(ours))
    assert set(ours) == {each for topic in topics.values() for each in paragraphs(topic)}
    assert len(text.content) < sum(map(len, topics.values()))
    assert text.fingerprint == hashlib.sha256(text.content.encode()).hexdigest()


def test_a_python_without_its_help_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    with pytest.raises(UserError, match="text:PATH") as caught:
        load_text("topics")
    one_line(caught)


@settings(deadline=None)
@given(st.text(max_size=300))
def test_the_parts_are_the_text_and_the_last_two_are_a_tenth_each(content):
    parts = Text("any", content).splits()
    assert "".join(parts) == content
    assert len(parts.test) == len(parts.validation) == len(content) // 10
    assert split_sizes(len(content)) == tuple(map(len, parts))


@IN_FOLDER
@given(ANY, st.integers(1, 9), st.booleans(), st.booleans())
def test_a_file_is_read_in_pieces_as_it_is_at_once(tmp_path, content, piece, zipped, marked):
    path = tmp_path / ("text.gz" if zipped else "text.txt")
    written = content.encode("utf-8-sig" if marked else "utf-8")
    expected = written.decode("utf-8-sig")  # takes one mark off, whoever wrote it
    path.write_bytes(gzip.compress(written) if zipped else written)
    if not path.stat().st_size:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quoin.data.text, "_PIECE", piece)
        told = []
        assert "".join(text_pieces(path, lambda *at: told.append(at))) == expected
    assert told == sorted(told)
    assert not told or told[-1][0] == told[-1][1] == path.stat().st_size
    if expected:
        assert load_text(f"text:{path}").content == expected


@IN_FOLDER
@given(ANY, ANY, st.sampled_from([b"\xff", b"\xc3(", b"\xed\xa0\x80", b"\xf5"]), st.integers(1, 9))
def test_what_is_no_utf8_is_told_with_its_place(tmp_path, before, after, bad, piece):
    path = tmp_path / "text.txt"
    path.write_bytes(before.encode() + bad + after.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quoin.data.text, "_PIECE", piece)
        with pytest.raises(UserError) as caught:
            load_text(f"text:{path}")
    assert f"0x{bad[0]:02x} at position {len(before.encode())}:" in one_line(caught)


def test_a_character_cut_off_at_the_end_is_told(tmp_path):
    (tmp_path / "cut.txt").write_bytes("wörté".encode()[:-1])
    with pytest.raises(UserError, match="0xc3 at position 5"):
        load_text(f"text:{tmp_path / 'cut.txt'}")


def test_files_that_are_no_texts_cost_one_line(tmp_path):
    (tmp_path / "empty.txt").touch()
    (tmp_path / "empty.gz").write_bytes(gzip.compress(b""))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"a text" * 100)[:-12])
    (tmp_path / "plain.gz").write_bytes(b"no gzip at all")
    hints = {
        "empty.txt": "is empty",
        "empty.gz": "there is none",
        "cut.gz": "cut short",
        "plain.gz": "damaged",
        "none.txt": "cannot be reached",
        "folder": "txt files in the folder",
    }
    (tmp_path / "folder").mkdir()
    for name, hint in hints.items():
        with pytest.raises(UserError, match=hint) as caught:
            load_text(f"text:{tmp_path / name}")
        one_line(caught)
    for source in ("digits", "text:", "csv:a.csv", ""):
        with pytest.raises(UserError, match="text:PATH") as caught:
            load_text(source)
        one_line(caught)
    for source in ("topics", "text:a.txt", "tokens:a"):
        with pytest.raises(UserError, match="is a text") as caught:
            load(source)
        one_line(caught)


# ---- vocabularies -----------------------------------------------------------------------------------------------


def of_all_kinds(text):
    return [
        CharTokenizer.fit(text),
        WordTokenizer.fit([text], len(set(text)) + 5),
        ByteTokenizer(),
        BPETokenizer.fit([text], 280),
    ]


def kind(vocabulary):
    return type(vocabulary).__name__


@settings(deadline=None, max_examples=40)
@given(ANY.filter(len), st.data())
def test_every_text_comes_back_and_its_tokens_are_in_range(text, data):
    other = "".join(data.draw(st.lists(st.sampled_from(text), max_size=30)))  # the same characters in another order
    for vocabulary in of_all_kinds(text):
        assert isinstance(vocabulary, Tokenizer)
        for each in (text, other, ""):
            tokens = vocabulary.encode(each)
            assert tokens.dtype == torch.int64
            assert tokens.ndim == 1
            assert not len(tokens) or (tokens.min() >= 0 and tokens.max() < vocabulary.vocab_size)
            assert vocabulary.decode(tokens) == vocabulary.decode(tokens.tolist()) == each, kind(vocabulary)


@settings(deadline=None, max_examples=20)
@given(ANY.filter(len))
def test_a_vocabulary_comes_back_from_json(text):
    for vocabulary in of_all_kinds(text):
        again = tokenizer_from_json(json.loads(json.dumps(vocabulary.as_json())))
        assert tokenizer_fingerprint(again) == tokenizer_fingerprint(vocabulary)
        assert again.vocab_size == vocabulary.vocab_size
        assert again.encode(text).equal(vocabulary.encode(text))


@settings(deadline=None)
@given(WORDS.filter(len), WORDS)
def test_characters_and_words_beside_their_slow_twins(text, more):
    letters = sorted(set(text))
    kept = "".join(each for each in more if each in letters)
    assert CharTokenizer.fit(text).encode(kept).tolist() == [letters.index(each) for each in kept]
    vocabulary = WordTokenizer.fit([text], len(letters) + 2)
    counts = Counter(word for word in re.findall(r"\w+", text) if len(word) > 1)
    assert len(vocabulary.words) == min(2, len(counts))
    if counts:
        assert min(counts[word] for word in vocabulary.words) >= max(
            [counts[w] for w in counts if w not in vocabulary.words], default=0
        )
    pieces = [*letters, *vocabulary.words]
    expected = []
    for word in re.split(r"(\W)", kept):
        expected += [pieces.index(word)] if word in vocabulary.words else [letters.index(each) for each in word]
    assert vocabulary.encode(kept).tolist() == expected


def merged(word, merges, spelt):
    """Byte pairs as the paper has it: of all pairs that are there, the one learnt first is merged, everywhere, until
    there is none."""
    tokens = list(word)
    rank = {pair: place for place, pair in reversed(list(enumerate(merges)))}
    while pairs := [pair for pair in pairwise(tokens) if pair in rank]:
        best, after = min(pairs, key=rank.__getitem__), []
        while tokens:
            if tuple(tokens[:2]) == best:
                after.append(spelt.index(spelt[best[0]] + spelt[best[1]]))
                tokens = tokens[2:]
            else:
                after.append(tokens.pop(0))
        tokens = after
    return tokens


SPLIT = re.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?[a-zé]+| ?[0-9]+| ?[^\sa-zé0-9]+|\s+(?!\S)|\s+"
)  # GPT-2's, for these letters


@settings(deadline=None, max_examples=40)
@given(st.lists(WORDS.filter(len), min_size=1, max_size=3), WORDS, st.integers(256, 290))
def test_byte_pairs_beside_the_papers_rule(texts, more, size):
    vocabulary = BPETokenizer.fit(texts, size)
    assert vocabulary.vocab_size <= size
    counts = Counter()
    for word in (match.encode() for text in texts for match in SPLIT.findall(text)):
        counts.update(pairwise(word))
    most = max(counts.values(), default=0)
    assert bool(vocabulary.merges) == (size > 256 and most > 1)
    assert not vocabulary.merges or counts[vocabulary.merges[0]] == most
    spelt = [bytes([byte]) for byte in range(256)]
    for left, right in vocabulary.merges:
        if spelt[left] + spelt[right] not in spelt:
            spelt.append(spelt[left] + spelt[right])
    assert len(spelt) == vocabulary.vocab_size
    expected = [token for word in SPLIT.findall(more) for token in merged(word.encode(), vocabulary.merges, spelt)]
    assert vocabulary.encode(more).tolist() == expected


@settings(deadline=None, max_examples=60)
@given(ANY | st.lists(st.sampled_from(["a", " ", "   ", "    ", "\n\n"]), max_size=30).map("".join), st.integers(1, 6))
def test_cutting_a_text_into_pieces_changes_no_byte_pair(text, piece):
    vocabulary = BPETokenizer.fit([load_text("topics").content[:3000], text], 400)
    whole = vocabulary._merger.encode(text).ids
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("quoin.data.bpe._PIECE", piece)
        assert "".join(pieces_of(text)) == text
        assert vocabulary.encode(text).tolist() == whole


def test_byte_pairs_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(UserError, match=r"pip install 'quoin\[text\]'") as caught:
        BPETokenizer([])
    one_line(caught)


def test_the_commonest_words_have_tokens():
    assert WordTokenizer.fit(["aa bb bb cc cc cc"], 5).words == ("cc",)  # after three letters and the space
    assert WordTokenizer.fit(["aa bb bb cc cc cc"], 6).words == ("bb", "cc")
    assert WordTokenizer.fit(["aa bb bb", "cc bb aa cc cc cc"], 5, alphabet="ac").words == ("cc",)


def test_a_character_without_a_token_is_named_with_its_place():
    strange = {
        "abé": r"'é' \(U\+00E9\) at position 2",
        "a\U0001f600": "position 1",
        "\x00": "position 0",
        "ab\udc80": "position 2",
    }
    for vocabulary in (CharTokenizer.fit("abc"), WordTokenizer.fit(["abc ab"], 6)):
        for text, found in strange.items():
            with pytest.raises(UserError, match=found) as caught:
                vocabulary.encode(text)
            assert "byte or bpe" in one_line(caught)
    for vocabulary in (ByteTokenizer(), BPETokenizer([])):
        assert vocabulary.decode(vocabulary.encode("é\x00\U0001f600")) == "é\x00\U0001f600"
        with pytest.raises(UserError, match=r"half of a character.*position 1"):
            vocabulary.encode("a\ud800")
        assert vocabulary.decode([0xC3]) == "\ufffd"  # half a character, as a model may draw it


@pytest.mark.parametrize("vocabulary", of_all_kinds("to be or not to be"), ids=kind)
def test_numbers_that_are_no_tokens_are_refused(vocabulary):
    for tokens, hint in [
        ([0, vocabulary.vocab_size], f"got {vocabulary.vocab_size} at position 1"),
        (torch.tensor([-1]), "got -1 at position 0"),
        (torch.zeros(2, 2, dtype=torch.long), "ndim 1"),
        (torch.tensor([0.5]), "integers of ndim 1"),
    ]:
        with pytest.raises(UserError, match=hint) as caught:
            vocabulary.decode(tokens)
        one_line(caught)


def test_vocabularies_that_cannot_be_are_refused():
    for make in (
        lambda: CharTokenizer(""),
        lambda: CharTokenizer("aa"),
        lambda: CharTokenizer(["ab"]),
        lambda: CharTokenizer.fit(""),
        lambda: WordTokenizer("ab", ["ab", "ab"]),
        lambda: WordTokenizer("ab", ["a"]),
        lambda: WordTokenizer.fit(["abc"], 2),
        lambda: BPETokenizer([(0, 256)]),
        lambda: BPETokenizer([(-1, 0)]),
        lambda: BPETokenizer.fit(["a"], 255),
        lambda: tokenizer_from_json({}),
        lambda: tokenizer_from_json({"kind": "character"}),
        lambda: tokenizer_from_json({"kind": "word"}),
        lambda: tokenizer_from_json({"kind": "bpe", "merges": [[1]]}),
        lambda: tokenizer_from_json({"kind": "char", "characters": 5}),
        lambda: load_corpus("topics", "letters"),  # pyright: ignore[reportArgumentType]
    ):
        with pytest.raises(UserError) as caught:
            make()
        one_line(caught)


def test_another_vocabulary_than_the_models_is_refused():
    check_same_tokenizer(CharTokenizer.fit("abc"), CharTokenizer("abc"), "the file")
    for other in (CharTokenizer("abd"), CharTokenizer("acb"), WordTokenizer("abc", []), ByteTokenizer()):
        with pytest.raises(UserError, match=r"\(char, 3 tokens, \w{8}\), but the file has another") as caught:
            check_same_tokenizer(CharTokenizer.fit("abc"), other, "the file")
        one_line(caught)


# ---- corpora ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["char", "word", "byte", "bpe"])
def test_a_corpus_is_its_text_in_tokens(name):
    text, corpus = load_text("topics"), load_corpus("topics", name, 500)
    assert corpus.tokenizer.vocab_size == {"char": len(set(text.content)), "word": 500, "byte": 256, "bpe": 500}[name]
    assert corpus.fingerprint == text.fingerprint
    for part, content in zip((corpus.train, corpus.validation, corpus.test), text.splits()):
        assert corpus.tokenizer.decode(part.in_memory()) == content
        assert part.num_characters == len(content)
    assert corpus.train.before is None
    assert corpus.validation.before == corpus.train.in_memory()[-1]
    assert corpus.test.before == corpus.validation.in_memory()[-1]


def test_words_and_byte_pairs_are_learnt_from_the_training_part_alone(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("to be or not " * 40 + "zebra crossings " * 6)
    assert "zebra" not in Text("t", path.read_text()).splits().train
    words = load_corpus(f"text:{path}", "word", 1000).tokenizer
    assert isinstance(words, WordTokenizer)
    assert words.words == ("be", "not", "or", "to")
    pairs = load_corpus(f"text:{path}", "bpe", 1000).tokenizer
    assert len(pairs.encode("zebra")) == 5
    assert len(pairs.encode(" not")) == 1
    path.write_text("too short")
    with pytest.raises(UserError, match="10 characters or more"):
        load_corpus(f"text:{path}")
