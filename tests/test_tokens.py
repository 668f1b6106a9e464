"""Windows of tokens: which are read and when, that a resumed epoch goes on as if never stopped, and that a file gives
what memory gives."""

import json
import os
import stat

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import quoin.data.text
import quoin.data.token_file
from commands import refused, tried
from quoin.data import (
    BPTTWindows,
    ByteTokenizer,
    CharTokenizer,
    RandomWindows,
    StoredTokens,
    TokenFile,
    TokenWriter,
    load_corpus,
    load_text,
    open_tokens,
    read_windows,
    tokenize_file,
)
from quoin.errors import UserError

IN_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
LENGTHS, SIZES, SEEDS = st.integers(1, 12), st.integers(1, 7), st.integers(0, 10**6)


def whole(tokens):
    return read_windows(tokens, torch.tensor([0]), len(tokens))[0]


def epoch(batches):
    return [batches.read(starts) for starts in batches]


# ---- batches ----------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.integers(0, 100), LENGTHS, SIZES, SEEDS)
def test_random_windows_read_no_token_twice_and_leave_few_out(more, length, batch_size, seed):
    tokens = torch.arange(length + 1 + more)
    batches = RandomWindows(tokens, length, batch_size, seed=seed)
    for number in range(3):
        assert (batches.epoch, batches.position) == (number, 0)
        seen = epoch(batches)
        assert len(seen) == batches.num_batches
        assert all(each.inputs.shape[1] == length and each.targets.equal(each.inputs + 1) for each in seen)
        inputs = torch.cat([each.inputs for each in seen])
        assert inputs.equal(inputs[:, :1] + torch.arange(length))  # a window is what stands side by side
        read = inputs.flatten().sort().values
        assert read.equal(
            read[0] + torch.arange(len(read))
        )  # none twice, and none left out between the first and the last
        assert len(tokens) - 1 - len(read) < 2 * length


def test_over_the_epochs_every_token_is_read_and_the_order_is_another():
    for batches in (RandomWindows(torch.arange(108), 10, 4, seed=1), BPTTWindows(torch.arange(108), 3, 10, seed=1)):
        epochs = [torch.cat([each.inputs.flatten() for each in epoch(batches)]) for _ in range(200)]
        assert torch.cat(epochs).unique().tolist() == list(range(107))
        assert len({tuple(each.tolist()) for each in epochs}) > 10
        again = type(batches)(batches.tokens, *((10, 4) if isinstance(batches, RandomWindows) else (3, 10)), seed=1)
        assert torch.cat([each.inputs.flatten() for each in epoch(again)]).equal(epochs[0])


@settings(deadline=None)
@given(st.integers(0, 300), SIZES, LENGTHS, SEEDS)
def test_lanes_go_on_where_they_ended(more, lanes, length, seed):
    tokens = torch.arange(lanes * length + 1 + more)
    batches = BPTTWindows(tokens, lanes, length, seed=seed)
    for _ in range(2):
        seen, anew = [], []
        for starts in batches:
            seen.append(batches.read(starts))
            anew.append(batches.resets_state)
        assert anew == [True] + [False] * (len(seen) - 1)
        rows = torch.cat([each.inputs for each in seen], dim=1)  # (lanes, tokens of a lane)
        assert rows.shape == (lanes, len(seen) * length)
        read = rows.flatten()
        assert read.equal(
            read[0] + torch.arange(len(read))
        )  # along each lane, and from the end of one to the beginning of the next
        assert torch.cat([each.targets for each in seen], dim=1).equal(rows + 1)
        assert len(tokens) - 1 - len(read) < (lanes + 1) * length


def made(kind, tokens, size, length, seed, rank=0, world_size=1):
    if kind is RandomWindows:
        return RandomWindows(tokens, length, size, seed=seed, rank=rank, world_size=world_size)
    return BPTTWindows(tokens, size, length, seed=seed, rank=rank, world_size=world_size)


@settings(deadline=None)
@given(st.sampled_from([RandomWindows, BPTTWindows]), st.integers(0, 200), SIZES, LENGTHS, SEEDS, st.data())
def test_a_resumed_epoch_goes_on_as_if_never_stopped(kind, more, size, length, seed, data):
    tokens = torch.arange(size * length + 1 + more)
    batches = made(kind, tokens, size, length, seed)
    expected = [each for _ in range(3) for each in epoch(batches)]
    stop = data.draw(st.integers(0, len(expected) - 1))
    first, seen = made(kind, tokens, size, length, seed), []
    while len(seen) < stop:
        for starts in first:
            seen.append(first.read(starts))
            if len(seen) == stop:
                break
    second = made(kind, tokens, size, length, seed)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    while len(seen) < len(expected):
        seen += epoch(second)
    assert len(seen) == len(expected)
    assert all(a.inputs.equal(b.inputs) and a.targets.equal(b.targets) for a, b in zip(seen, expected))


@settings(deadline=None)
@given(st.sampled_from([RandomWindows, BPTTWindows]), SIZES, LENGTHS, SEEDS, st.integers(1, 4))
def test_the_ranks_shares_together_are_the_batch(kind, size, length, seed, world_size):
    tokens = torch.arange(size * length * 3 + 2)
    alone = epoch(made(kind, tokens, size, length, seed))
    shares = [epoch(made(kind, tokens, size, length, seed, rank, world_size)) for rank in range(world_size)]
    for batch, *pieces in zip(alone, *shares):
        assert batch.inputs.equal(torch.cat([each.inputs for each in pieces]))


def test_windows_that_cannot_be_are_refused():
    tokens = torch.arange(100)
    for make, hint in [
        (
            lambda: RandomWindows(tokens[:10], 10, 4, seed=0),
            "at least 11 tokens of training text for a window of 10 .*got 10",
        ),
        (
            lambda: BPTTWindows(tokens, 10, 10, seed=0),
            "at least 101 tokens of training text for 10 streams of 10 .*got 100",
        ),
        (lambda: RandomWindows(tokens, 0, 4, seed=0), "got 0 and 1"),
        (lambda: BPTTWindows(tokens, 0, 10, seed=0), "got 10 and 0"),
        (lambda: RandomWindows(tokens, 10, 0, seed=0), "batch size"),
        (
            lambda: RandomWindows(tokens[:21], 12, 4, seed=0).load_state_dict(
                RandomWindows(tokens[:21], 13, 4, seed=0).state_dict()
            ),
            "length 13",
        ),
        (
            lambda: RandomWindows(tokens[:95], 10, 4, seed=0).load_state_dict(
                RandomWindows(tokens[:92], 10, 4, seed=0).state_dict()
            ),
            "num_tokens 92",
        ),
        (
            lambda: BPTTWindows(tokens, 2, 5, seed=0).load_state_dict(BPTTWindows(tokens, 2, 5, seed=1).state_dict()),
            "seed 1",
        ),
    ]:
        with pytest.raises(UserError, match=hint) as caught:
            make()
        assert len(str(caught.value).splitlines()) == 1


# ---- token files ------------------------------------------------------------------------------------------------


@pytest.fixture
def small_pieces(monkeypatch):
    """Texts and checksums so short that a test meets the ends of their pieces."""
    monkeypatch.setattr(quoin.data.text, "_PIECE", 997)
    monkeypatch.setattr(quoin.data.token_file, "BLOCK", 256)


@pytest.mark.parametrize("name", ["char", "word", "byte", "bpe"])
def test_a_token_file_is_what_memory_gives_bit_for_bit(tmp_path, small_pieces, name):
    text = tmp_path / "text.txt"
    text.write_text(load_text("topics").content[:20_000] + "\u2028 dé\n\n  jà vu\t" * 30, encoding="utf-8")
    target = tmp_path / "text.tokens"
    told = []
    made = tokenize_file(f"text:{text}", target, name, 400, on_progress=lambda *at: told.append(at))
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]
    stored, memory = load_corpus(f"tokens:{target}"), load_corpus(f"text:{text}", name, 400)
    assert stored.tokenizer.as_json() == memory.tokenizer.as_json() == made.tokenizer.as_json()
    assert made.num_characters == len(text.read_text())
    for ours, theirs in zip(
        (stored.train, stored.validation, stored.test), (memory.train, memory.validation, memory.test)
    ):
        assert isinstance(ours.tokens, StoredTokens)
        assert isinstance(theirs.tokens, torch.Tensor)
        assert ours.in_memory().equal(theirs.tokens)
        assert (ours.num_characters, ours.before) == (theirs.num_characters, theirs.before)
    for make in (
        lambda tokens: RandomWindows(tokens, 16, 8, seed=3),
        lambda tokens: BPTTWindows(tokens, 4, 16, seed=3),
    ):
        for ours, theirs in zip(epoch(make(stored.train.tokens)), epoch(make(memory.train.tokens)), strict=True):
            assert ours.inputs.equal(theirs.inputs)
            assert ours.targets.equal(theirs.targets)


@settings(IN_FOLDER, max_examples=30)
@given(
    st.lists(st.sampled_from(["a", "bb", " ", "   ", "    ", "\n\n\n"]), min_size=10, max_size=40).map("".join),
    st.integers(1, 9),
)
def test_words_and_spaces_survive_the_ends_of_pieces(tmp_path, content, piece):
    text, target = tmp_path / "text.txt", tmp_path / "text.tokens"
    text.write_text("    a\n\n\n  b" * 8 + content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quoin.data.text, "_PIECE", piece)
        tokenize_file(f"text:{text}", target, "bpe", 270)
    stored, memory = open_tokens(target), load_corpus(f"text:{text}", "bpe", 270)
    assert stored.train.in_memory().equal(memory.train.in_memory())
    assert stored.test.in_memory().equal(memory.test.in_memory())


def test_the_same_text_in_another_place_has_the_same_fingerprint(tmp_path):
    files = []
    for name, more in (("a", ""), ("b", ""), ("c", "!")):
        (tmp_path / name).write_text("to be or not to be" * 10 + more)
        tokenize_file(f"text:{tmp_path / name}", tmp_path / f"{name}.tokens", "byte", 0)
        files.append(open_tokens(tmp_path / f"{name}.tokens"))
    assert files[0].fingerprint == files[1].fingerprint != files[2].fingerprint


def written(path, parts, vocabulary):
    with TokenWriter(path, vocabulary) as writer:
        for part in parts:
            writer.append(part)
            writer.end_split(len(part))
    return path


def test_tokens_take_two_bytes_each_and_four_where_there_are_many(tmp_path):
    parts = [torch.arange(40_000) % 300, torch.tensor([5]), torch.tensor([6, 7])]
    few = CharTokenizer(map(chr, range(300)))
    many = CharTokenizer(map(chr, [*range(0xD800), *range(0xE000, 0xE000 + 20_000)]))
    assert written(tmp_path / "few", parts, few).stat().st_size < 2 * 40_003 + 64 + 3000
    top = many.vocab_size - 1
    assert top > 2**16
    file = TokenFile(written(tmp_path / "many", [torch.tensor([top, 0]), *parts[1:]], many))
    assert whole(file.split("train")).tolist() == [top, 0]
    assert whole(TokenFile(tmp_path / "few").split("test")).tolist() == [6, 7]


def test_windows_outside_their_part_are_refused(tmp_path):
    part = TokenFile(
        written(tmp_path / "t", [torch.arange(10), torch.arange(5), torch.arange(5)], ByteTokenizer())
    ).split("validation")
    assert part.windows(torch.tensor([0, 2]), 3).tolist() == [[0, 1, 2], [2, 3, 4]]
    for start in (-1, 3):
        with pytest.raises(IndexError):
            part.windows(torch.tensor([start]), 3)
    with pytest.raises(ValueError, match="from 0 to 255"), TokenWriter(tmp_path / "u", ByteTokenizer()) as writer:
        writer.append(torch.tensor([256]))


def test_what_fails_leaves_no_file_and_the_old_one_as_it_was(tmp_path):
    old = written(tmp_path / "t", [torch.arange(4)] * 3, ByteTokenizer())
    before = old.read_bytes()

    def failing(kind):
        with TokenWriter(old, ByteTokenizer()) as writer:
            writer.append(torch.arange(100))
            raise kind

    for kind in (RuntimeError, KeyboardInterrupt):
        with pytest.raises(kind):
            failing(kind)
    with pytest.raises(AssertionError), TokenWriter(old, ByteTokenizer()) as writer:
        writer.end_split(0)  # and no more parts
    assert os.listdir(tmp_path) == ["t"]
    assert old.read_bytes() == before


PARTS = [torch.arange(1000) % 200, torch.arange(70) % 11, torch.arange(90) % 7]


@pytest.fixture
def sound(tmp_path, small_pieces):
    return written(tmp_path / "sound", PARTS, CharTokenizer(map(chr, range(200))))


@IN_FOLDER
@given(st.data())
def test_a_damaged_file_is_told_and_no_damaged_token_is_ever_read(sound, data):
    content = bytearray(sound.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    other = sound.with_name("damaged")
    other.write_bytes(content)
    with pytest.raises(UserError, match=r"quoin tokenize|this Quoin") as caught:
        [whole(TokenFile(other).split(name)) for name in ("train", "validation", "test")]
    assert len(str(caught.value).splitlines()) == 1


@IN_FOLDER
@given(st.data())
def test_a_file_cut_short_or_grown_is_told(sound, data):
    content = sound.read_bytes()
    size = data.draw(st.integers(1, len(content) - 1))
    other = sound.with_name("cut")
    for changed in (content[:size], content + b"\x00", content[size:], bytes(size)):
        other.write_bytes(changed)
        with pytest.raises(UserError) as caught:
            open_tokens(other)
        assert len(str(caught.value).splitlines()) == 1


def test_only_what_is_read_is_looked_at(sound):
    """A window costs its own blocks and no others: of a corpus larger than memory the rest stays on the disk."""
    content = bytearray(sound.read_bytes())
    content[64 + 2 * 999] ^= 1  # the last token of the training part
    sound.write_bytes(content)
    part = TokenFile(sound).split("train")
    assert part.windows(torch.tensor([0, 500]), 100).equal(torch.stack([PARTS[0][:100], PARTS[0][500:600]]))
    with pytest.raises(UserError, match="not the one that was written"):
        part.windows(torch.tensor([995]), 5)


def test_a_file_that_lies_with_good_checksums_is_told(tmp_path, monkeypatch):
    """Whoever writes a file by hand can make its digests right, but not tokens that the vocabulary has not."""
    letters = CharTokenizer("abc")
    monkeypatch.setattr(CharTokenizer, "vocab_size", 10)
    path = written(tmp_path / "t", [torch.tensor([9])] * 3, letters)
    monkeypatch.undo()
    with pytest.raises(UserError, match="none of the vocabulary"):
        open_tokens(path)


def test_a_file_that_is_none_is_told(tmp_path):
    (tmp_path / "text").write_text("a text and no tokens")
    (tmp_path / "empty").touch()
    for name, hint in {"text": "begins with", "empty": "empty", "none": "cannot be reached", ".": "folder"}.items():
        with pytest.raises(UserError, match=hint):
            load_corpus(f"tokens:{tmp_path / name}")


# ---- the command ------------------------------------------------------------------------------------------------


def test_tokenize_writes_what_it_says(here):
    (here / "text.txt").write_text("to be or not to be " * 20)
    (here / "text.txt").chmod(0o640)
    code, out, err = tried("tokenize", "text.txt", "--tokenizer", "word", "--vocab-size", "12", "--json")
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert said["file"] == "text.txt.tokens"
    corpus = open_tokens("text.txt.tokens")
    assert said["characters"] == 380
    assert said["tokens"] == sum(len(part.tokens) for part in (corpus.train, corpus.validation, corpus.test))
    assert said["vocab_size"] == corpus.tokenizer.vocab_size == 11  # 7 characters and 4 words
    assert said["bytes"] == os.stat("text.txt.tokens").st_size
    assert stat.S_IMODE(os.stat("text.txt.tokens").st_mode) == 0o640
    code, out, _ = tried("tokenize", "topics", "-o", "t.bin")
    assert code == 0
    assert "tokens:t.bin" in out
    assert open_tokens("t.bin").test.in_memory().equal(load_corpus("topics").test.in_memory())


def test_tokenize_refuses_with_one_line(here):
    (here / "text.txt").write_text("to be or not to be " * 20)
    (here / "short.txt").write_text("short")
    (here / "bad.txt").write_bytes(b"abc\xffdefghijklm")
    (here / "folder").mkdir()
    assert "position 3" in refused("tokenize", "bad.txt")
    assert "10 characters or more" in refused("tokenize", "short.txt")
    assert "cannot be reached" in refused("tokenize", "none.txt")
    assert "is a folder" in refused("tokenize", "folder")
    assert "did you mean 'byte'" in refused("tokenize", "text.txt", "--tokenizer", "bytes")
    assert "leave --vocab-size out" in refused("tokenize", "text.txt", "--vocab-size", "300")
    assert "--vocab-size must be" in refused("tokenize", "text.txt", "--tokenizer", "bpe", "--vocab-size", "0")
    assert "256 bytes" in refused("tokenize", "text.txt", "--tokenizer", "bpe", "--vocab-size", "255")
    assert "7 characters" in refused("tokenize", "text.txt", "--tokenizer", "word", "--vocab-size", "3")
    assert "the file to read" in refused("tokenize", "text.txt", "-o", "text.txt", "--force")
    assert "cannot be written" in refused("tokenize", "text.txt", "-o", "nowhere/out")
    assert "the folder" in refused("tokenize", "text.txt", "-o", "folder")
    assert sorted(os.listdir(here)) == ["bad.txt", "folder", "short.txt", "text.txt"]
    assert tried("tokenize", "text.txt")[0] == 0
    assert "--force" in refused("tokenize", "text.txt")
    assert tried("tokenize", "text.txt", "--force")[0] == 0
