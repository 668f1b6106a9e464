"""Compression: the mix against its definition, the coders against the distributions they are given, archives against
damage, and the commands."""

import bz2
import errno
import json
import lzma
import math
import os
import random
import stat
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import refused, tried
from quoin.bench import Measurement, select_benchmarks
from quoin.bench.compress import help_texts
from quoin.bench.targets import FigureAboveFirst
from quoin.errors import UserError
from quoin.info import (
    AdaptiveModel,
    ContextMixer,
    ContextMixingCodec,
    ContextModel,
    ModelCodec,
    RANSDecoder,
    VectorizedContextMixer,
    arithmetic_decode,
    arithmetic_encode,
    compress,
    context_mixing_decode,
    context_mixing_encode,
    decompress,
    huffman_lengths,
    model_fingerprint,
    rans_encode,
    rans_encode_definition,
    read_header,
    write_atomic,
)
from quoin.info import archive as archives
from quoin.info import context_mixing as contexts
from quoin.info import rans as laning
from quoin.info.code_trees import CodeTrees
from quoin.info.context_paths import cut_streams, mixed_probs

PROSE = " ".join(
    str(each.__doc__) for each in (list, dict, str, int, float, bytes, str.format, str.split, math.exp, os.replace)
).encode()


def bits_of(content: bytes) -> list[int]:
    return np.unpackbits(np.frombuffer(content, np.uint8)).tolist()


def some_file(chance: random.Random, most: int) -> bytes:
    """A file of one of many kinds, empty ones and single bytes among them."""
    size = chance.randint(0, most)
    kind = chance.randrange(7)
    if kind == 0:
        return chance.randbytes(size)
    if kind == 1:
        return bytes([chance.randrange(256)]) * size
    if kind == 2:
        start = chance.randrange(len(PROSE))
        return PROSE[start : start + size]
    if kind == 3:
        return bytes(chance.choices(b"ab", k=size))
    if kind == 4:
        return (chance.randbytes(chance.randint(1, 9)) * size)[:size]
    if kind == 5:
        return "".join(chance.choices("aäπ水🜁 \r\n", k=size // 3)).encode()
    return b"".join(struct.pack("<h", value % 30000) for value in range(0, 37 * (size // 2), 37))


def decoded(code: bytes, laws: np.ndarray) -> np.ndarray:
    decoder = RANSDecoder(code, laws.shape[1])
    bits = np.stack([decoder.pop(law) for law in laws])
    decoder.finish()
    return bits


# ---- the mix ----------------------------------------------------------------------------------------------------


def test_the_tables_are_the_functions():
    """Against another library's exp and log; a rounding that this close call could tip would show."""
    made = contexts.tables()
    scores = np.arange(-contexts.MOST_SCORE, contexts.MOST_SCORE + 1)
    assert made.squash == np.rint(65536 / (1 + np.exp(-scores / 256))).astype(int).tolist()
    assert made.log == np.rint(256 * np.log(np.arange(128) + 1 / 16)).astype(int).tolist()
    assert min(made.squash) == 1
    assert max(made.squash) == contexts.WHOLE - 1


def trees_of(content: bytes, few: bool) -> CodeTrees:
    return CodeTrees(CodeTrees.table_of(np.frombuffer(content, np.uint8)) if few else b"")


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 20), st.integers(4, 14), st.booleans(), st.integers(0, 2**32))
def test_streams_at_once_are_the_definition(num_streams, slot_bits, with_table, seed):
    """Few slots, so that streams and contexts meet in them all the time; and some streams rest, from a while on."""
    chance, draws = random.Random(seed), np.random.default_rng(seed)
    trees = trees_of(some_file(chance, 60) + PROSE * 2, with_table)
    plain, fast = ContextMixer(num_streams, slot_bits, trees), VectorizedContextMixer(num_streams, slot_bits, trees)
    resting = np.zeros(num_streams, bool)
    for step in range(60):
        if step > 40:
            resting |= draws.random(num_streams) < 0.1
        rest = resting if resting.any() else None
        law, expected = fast.probs(rest), np.array(plain.probs())
        assert law[~resting].tolist() == expected[~resting].tolist()
        assert law.min() >= 1
        assert law.max() < contexts.WHOLE
        bits = draws.integers(0, 2, num_streams) if step < 30 else (draws.random(num_streams) < 0.1).astype(np.int64)
        plain.update(bits.tolist(), rest)
        fast.update(bits, rest)
        assert list(plain.nodes) == list(fast.nodes)
    assert plain.content() == fast.content()


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 300), st.integers(8, 14), st.booleans(), st.integers(0, 2**32))
def test_contexts_of_a_whole_text_are_the_definition(quota, slot_bits, with_table, seed):
    """What the encoder computes beforehand against a mixer that is given bit after bit, words and stream starts too."""
    chance = random.Random(seed)
    content = some_file(chance, 200) + PROSE[chance.randrange(500) :][:150] + b"end"
    text, trees = np.frombuffer(content, np.uint8), trees_of(content * 9, with_table)
    streams = cut_streams(text, trees, max(quota, len(content) * 8 // contexts.MOST_STREAMS + 1))
    found = mixed_probs(text, trees, streams, slot_bits, lambda step: None)
    mixer = ContextMixer(streams.bits.shape[1], slot_bits, trees)
    for probs, bits, resting in zip(found, streams.bits, streams.resting):
        assert probs.tolist() == np.where(resting, 0, mixer.probs()).tolist()
        mixer.update(bits, resting)
    assert mixer.content() == content
    assert (streams.counts[:-1] >= streams.quota).all()


def test_the_most_streams_at_one_place_are_the_definition():
    """All streams say the same: every slot is written as often in a step as it can be, and every weight moved."""
    plain, fast = ContextMixer(contexts.MOST_STREAMS, 4), VectorizedContextMixer(contexts.MOST_STREAMS, 4)
    for bit in [0, 1, 1, 1, 1, 0, 0, 1] * 3:
        assert plain.probs() == fast.probs().tolist()
        plain.update([bit] * contexts.MOST_STREAMS)
        fast.update(np.full(contexts.MOST_STREAMS, bit))


def test_counts_grow_and_forget():
    """n_1 ones in a row, then a zero: n_0 = 1, and of the ones half stay, and one; never more than the cap."""
    assert [contexts.after((0, ones), 0) for ones in (0, 1, 2, 3, 10, 127)] == [
        (1, 0),
        (1, 1),
        (1, 2),
        (1, 2),
        (1, 6),
        (1, 64),
    ]
    assert contexts.after((3, 127), 1) == (2, 127)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32))
def test_code_trees_are_huffman_trees(seed):
    """Expected lengths against Huffman's own for the counts that the table keeps; and every path leads to its byte."""
    chance = random.Random(seed)
    content = some_file(chance, 3000) + bytes(chance.choices(b"abcd", weights=[60, 20, 9, 1], k=900))
    text = np.frombuffer(content, np.uint8)
    trees = CodeTrees(CodeTrees.table_of(text))
    lengths, paths = trees.paths
    counts = np.bincount(text, minlength=256)
    kept = {byte: 1 << int(counts[byte]).bit_length() for byte in np.flatnonzero(counts).tolist()}
    if len(kept) > 1:
        weights = torch.tensor([float(each) for each in kept.values()], dtype=torch.float64)
        best = huffman_lengths(weights / weights.sum())
        ours = sum(weight * int(lengths[0, byte]) for byte, weight in kept.items())
        assert ours == sum(weight * (length or 0) for weight, length in zip(kept.values(), best))
    for tree in range(len(trees.children)):
        for byte in kept:
            node = 1
            for decision in paths[tree, byte, : lengths[tree, byte]].tolist():
                assert decision >> 1 == node
                node = trees.children[tree][node][decision & 1]
            assert node == 256 + byte


def test_pairs_that_are_met_often_have_short_paths():
    """After q always comes u: one decision, where the byte alone takes more; and what is no table is told."""
    text = np.frombuffer(bytes(random.Random(2).choices(b"abcdefgh", k=4000)) + b"qu" * 200, np.uint8)
    table = CodeTrees.table_of(text)
    trees = CodeTrees(table)
    lengths = trees.paths[0]
    assert lengths[trees.tree_of[ord("q")], ord("u")] == 1 < lengths[0, ord("u")]
    for wrong in (table[:-3], table + b"a", b"\0" + table, b"\1"):
        with pytest.raises(ValueError, match="no table"):
            CodeTrees(wrong)


def test_longer_contexts_are_learnt():
    """A bit that is the exclusive or of those k bytes before costs one bit to short contexts, and almost nothing to one
    of k bytes."""
    chance = random.Random(1)
    for span in (1, 2, 3, 4):
        content = bytearray(chance.choices(b"01", k=span))
        while len(content) < 800:
            content.append(48 + (content[-1] + content[-span]) % 2 if chance.random() < 0.98 else chance.choice(b"01"))
        floor = 800 * (0.01 * math.log2(100) + 0.99 * math.log2(1 / 0.99)) / 8
        assert (
            floor < len(context_mixing_encode(bytes(content))) < 0.45 * 800 / 8 + 12
        )  # 100 bytes if nothing is learnt but the two characters


# ---- the coders -------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(1, 30), st.integers(0, 2**32))
def test_lane_coding_is_the_definition_and_comes_back(num_streams, num_steps, seed):
    chance = np.random.default_rng(seed)
    laws = np.clip((chance.beta(0.3, 0.3, (num_steps, num_streams)) * 65536).astype(np.int64), 1, 65535)
    bits = (chance.random(laws.shape) * 65536 < laws).astype(np.int64)
    bits ^= chance.random(laws.shape) < 0.05  # the unlikely too
    certain = chance.random(laws.shape) < 0.1
    laws[certain], bits[certain] = 0, 0
    code = rans_encode(bits, laws)
    assert code == rans_encode_definition(bits.tolist(), laws.tolist())
    assert (decoded(code, laws) == bits).all()


def test_lane_coding_spends_what_the_laws_ask():
    """-sum log2 p bits but for a thousandth, and for the states at the ends."""
    chance = np.random.default_rng(8)
    laws = np.clip((chance.beta(0.5, 0.5, (6000, 5)) * 65536).astype(np.int64), 1, 65535)
    bits = (chance.random(laws.shape) * 65536 < laws).astype(np.int64)
    surprise = -np.log2(np.where(bits == 1, laws, 65536 - laws) / 65536).sum()
    assert surprise / 8 <= len(rans_encode(bits, laws)) <= 1.001 * surprise / 8 + 5 * laning.STATE_BYTES


def test_the_mix_spends_what_it_is_surprised():
    mix, surprise, content = ContextMixer(1, 12), 0.0, PROSE[:400]
    for bit in bits_of(content):
        one = mix.probs()[0] / contexts.WHOLE
        surprise -= math.log2(one if bit else 1 - one)
        mix.update([bit])
    assert surprise / 8 <= len(arithmetic_encode(bits_of(content), ContextModel(12))) <= 1.001 * surprise / 8 + 1
    assert (
        surprise / 8 <= len(context_mixing_encode(content)) <= 1.001 * surprise / 8 + laning.STATE_BYTES + 4
    )  # and the block's size


def test_the_mix_drives_the_arithmetic_coder():
    content = PROSE[:200]
    code = arithmetic_encode(bits_of(content), ContextModel(12))
    assert arithmetic_decode(code, ContextModel(12), 8 * len(content)) == bits_of(content)


def test_a_decoder_refuses_what_is_no_code():
    bits, laws = np.ones((9, 3), np.int64), np.full((9, 3), 9000)
    code = rans_encode(bits, laws)
    for wrong in (b"", code[:14], code[:-1], b"\0" * len(code)):
        with pytest.raises(UserError, match="damaged or cut"):
            RANSDecoder(wrong, 3)
    for wrong in (code[:-2], code + b"ab"):
        with pytest.raises(UserError, match="damaged or cut"):
            decoded(wrong, laws)


def test_a_code_too_short_for_its_length_is_refused_before_the_work():
    with pytest.raises(UserError, match="damaged or cut"):
        context_mixing_decode(context_mixing_encode(b"\0" * 300), 2**50)  # would take years


# ---- archives ---------------------------------------------------------------------------------------------------


@pytest.mark.deep
def test_thousands_of_files_come_back(monkeypatch):
    chance = random.Random(5)
    for _ in range(1000):
        content = some_file(chance, 12)
        assert decompress(compress(content)) == content
    for lane, most, block in ((4, 120, 1 << 22), (2, 40, 64)):  # many short lanes, and several blocks
        monkeypatch.setattr(laning, "BYTES_PER_STREAM", lane)
        monkeypatch.setattr(laning, "BLOCK", block)
        for number in range(600):
            monkeypatch.setattr(laning, "TREES_FROM", 1 if number % 2 else 1 << 15)
            content = some_file(chance, most)
            assert (
                context_mixing_decode(context_mixing_encode(content), len(content)) == content
            )  # even where storing it is shorter


@pytest.mark.parametrize("size", [0, 1, 2, 7, 1023, 1024, 3072])
def test_sizes_about_the_edges_come_back(size):
    content = (
        (PROSE * (size // len(PROSE) + 1))[:size] if size % 2 else np.random.default_rng(size).bytes(size // 8) * 8
    )
    archive = compress(content)
    assert decompress(archive) == content
    assert len(archive) <= len(content) + 60  # an archive costs its header at most


@pytest.mark.parametrize("trees_from", [1, 1 << 15])
@pytest.mark.parametrize("size", [255 * 32, 256 * 32 - 1, 256 * 32, 9001])
def test_the_most_streams_come_back(size, trees_from, monkeypatch):
    monkeypatch.setattr(laning, "BYTES_PER_STREAM", 32)
    monkeypatch.setattr(laning, "TREES_FROM", trees_from)
    content = (PROSE * (size // len(PROSE) + 1))[:size]
    archive = compress(content)
    assert len(archive) < 0.8 * size
    assert decompress(archive) == content


@pytest.mark.parametrize("content", [b"a" * 40000, b"\0\1" * 30000, PROSE * 12 + b"\xff" * 5000, b"ab" + b"b" * 70000])
def test_large_files_come_back(content):
    """With code trees, of one byte and of two, and of streams that end long before the others."""
    assert len(content) >= laning.TREES_FROM
    archive = compress(content)
    assert decompress(archive) == content
    assert len(archive) < len(content) / 4


def test_thousands_of_damaged_archives_are_refused():
    chance = random.Random(6)
    sound = [compress(some_file(chance, 200)) for _ in range(20)]
    for number in range(4000):
        whole = sound[number % len(sound)]
        changed, place = bytearray(whole), chance.randrange(len(whole))
        kind = chance.randrange(6)
        if kind == 0:
            changed[place] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del changed[place:]
        elif kind == 2:
            changed += chance.randbytes(chance.randint(1, 20))
        elif kind == 3:
            del changed[place]
        elif kind == 4:
            changed[place:place] = chance.randbytes(1)
        else:
            changed[place : place + 8] = chance.randbytes(8)
        if changed != whole:
            with pytest.raises(UserError):
                decompress(bytes(changed))


def test_a_lie_with_a_right_checksum_is_refused(monkeypatch):
    """Whoever computes the last digest anew passes the first gate; what is decoded must still have the content's
    own."""
    chance = random.Random(7)
    monkeypatch.setattr(laning, "BYTES_PER_STREAM", 8)
    for number in range(100):
        monkeypatch.setattr(laning, "TREES_FROM", 1 if number % 2 else 1 << 15)
        whole = bytearray(compress(PROSE[: chance.randint(80, 200)] * 3)[:-16])
        place = chance.randrange(9, len(whole))
        whole[place] ^= 1 << chance.randrange(8)
        with pytest.raises(UserError):
            decompress(bytes(whole) + archives._digest(bytes(whole)))


def test_archives_of_format_2_stay_readable():
    """Written when the format was made; a change to the mix that forgets to raise FORMAT is seen here."""
    archive = bytes.fromhex(FORMAT_2)
    assert read_header(archive).method == ContextMixingCodec.method
    assert decompress(archive) == b"the cat sat on the mat; the cat sat on the hat; the hat sat on the cat. " * 3


def test_archives_of_format_1_are_refused():
    with pytest.raises(UserError, match="an older Quoin"):
        read_header(bytes.fromhex(FORMAT_2)[:8] + b"\1" + bytes.fromhex(FORMAT_2)[9:])


FORMAT_2 = (
    "8e51756f696e0d0a02010000d80000000000000043000000000000008697f481b661e27bfd2cb6734fa111a73f000000c542ed020094c029941a22"
    "84a429566c037fd94b87bf1f8884ab9ac9240d4cc232e9d11a78d3ebfbddb047451082046f3fb46682d0e5781771993a2735cf09676c3d7267536f"
    "a69a900e8291df58d1"
)


def test_better_than_the_peers_on_prose():
    content = PROSE[:8000]
    assert len(compress(content)) < min(
        len(bz2.compress(content, 9)), len(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))
    )


# ---- models with floats -----------------------------------------------------------------------------------------


def tiny(weight: torch.Tensor) -> ModelCodec:
    """The next byte by a softmax of scores that a matrix gives to the last one."""
    with_weight = {"weight": weight}

    def next_distribution(context):
        return torch.softmax(weight[context[-1] if context else 0].double(), -1)

    return ModelCodec(lambda: AdaptiveModel(next_distribution), model_fingerprint("tiny", with_weight))


def test_a_float_model_codes_where_its_fingerprint_is_the_same():
    weight = torch.randn(256, 256, generator=torch.Generator().manual_seed(0))
    weight[:, PROSE[0] : PROSE[0] + 60] += 6  # else it would be stored
    content = PROSE[:400]
    content = bytes(PROSE[0] + each % 60 for each in content)
    archive = compress(content, tiny(weight))
    assert read_header(archive).method == ModelCodec.method
    assert decompress(archive, tiny(weight)) == content
    with pytest.raises(UserError, match="coded by 'tiny "):
        decompress(archive)
    with pytest.raises(UserError, match="expected the model that coded the archive"):
        decompress(archive, tiny(weight + 1e-6))
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(threads + 1)
        with pytest.raises(UserError, match=f"{threads} threads.*{threads + 1} threads"):
            decompress(archive, tiny(weight))
    finally:
        torch.set_num_threads(threads)
    assert decompress(compress(b"", tiny(weight))) == b""  # stored: no model is needed
    with pytest.raises(UserError, match="fingerprint"):
        ModelCodec(lambda: AdaptiveModel(lambda context: weight[0]), "")


# ---- the commands -----------------------------------------------------------------------------------------------


def test_there_and_back(here):
    (here / "a.txt").write_bytes(PROSE[:700])
    os.chmod("a.txt", 0o600)
    code, out, err = tried("compress", "a.txt")
    assert (code, err) == (0, "")
    assert "a.txt.quoin: 700 bytes became" in out
    assert stat.S_IMODE(os.stat("a.txt.quoin").st_mode) == 0o600  # as private as the file
    assert (here / "a.txt").exists()
    os.remove("a.txt")
    assert tried("decompress", "a.txt.quoin")[0] == 0
    assert (here / "a.txt").read_bytes() == PROSE[:700]
    assert sorted(os.listdir()) == ["a.txt", "a.txt.quoin"]


@pytest.mark.parametrize("content", [b"", b"\0", bytes(range(256))])
def test_json_tells_the_sizes(here, content):
    (here / "in").write_bytes(content)
    found = json.loads(tried("compress", "in", "-o", "out", "--json")[1])
    assert found.keys() == {"file", "content_bytes", "archive_bytes", "seconds"}
    assert (found["file"], found["content_bytes"], found["archive_bytes"]) == (
        "out",
        len(content),
        os.path.getsize("out"),
    )
    back = json.loads(tried("decompress", "out", "--out", "back", "--json")[1])
    assert back.keys() == found.keys()
    assert (here / "back").read_bytes() == content


def test_nothing_is_written_over_unasked(here):
    for name in ("a", "a.quoin"):
        (here / name).write_bytes(b"old")
    assert "--force" in refused("compress", "a")
    assert (here / "a.quoin").read_bytes() == b"old"
    assert tried("compress", "a", "--force")[0] == 0
    assert "--force" in refused("decompress", "a.quoin")
    assert "is the file to read" in refused("compress", "a", "-o", "./a", "--force")
    os.symlink("nowhere", "link")
    assert "--force" in refused("compress", "a", "-o", "link")
    assert (here / "a").read_bytes() == b"old"


def test_a_target_that_cannot_be_is_told_before_the_work(here, monkeypatch):
    (here / "a").write_bytes(b"x")
    monkeypatch.setattr("quoin.info.compress", lambda *_, **__: pytest.fail("the work was begun"))
    for target in ("nowhere/out", "a/out", "n" * 256):
        assert "cannot be written" in refused("compress", "a", "-o", target)
    os.rename("a", "n" * 252)  # whose archive would have too long a name
    assert "cannot be written (File name too long)" in refused("compress", "n" * 252)


def test_mistakes_are_one_line_and_leave_nothing(here):
    (here / "text.quoin").write_text("not an archive at all")
    (here / "empty.quoin").write_bytes(b"")
    (here / "folder").mkdir()
    whole = compress(PROSE[:300])
    (here / "newer.quoin").write_bytes(whole[:8] + b"\3" + whole[9:])
    (here / "cut.quoin").write_bytes(whole[:-30])
    (here / "damaged.quoin").write_bytes(whole[:90] + bytes([whole[90] ^ 4]) + whole[91:])
    (here / "pack").write_bytes(whole)
    os.mkfifo("pipe")
    before = sorted(os.listdir())
    assert "there is no file 'gone'" in refused("compress", "gone")
    assert "there is no file" in refused("decompress", "gone.quoin")
    assert "tar" in refused("compress", "folder")
    assert "folder" in refused("compress", "pack", "-o", "folder")
    assert "no plain file" in refused("compress", "pipe")
    assert "a plain file to write to" in refused(
        "compress", "pack", "-o", "pipe", "--force"
    )  # as /dev/null would be lost
    for nameless in (".", "/", ""):
        assert "tar" in refused("compress", nameless)
    assert "cannot be read (File name too long)" in refused("compress", "n" * 256)
    assert "cannot be written (File name too long)" in refused("compress", "pack", "-o", "n" * 256)
    assert "got bytes that begin with b'not an a'" in refused("decompress", "text.quoin")
    assert "an empty file" in refused("decompress", "empty.quoin")
    assert "newer Quoin" in refused("decompress", "newer.quoin")
    assert "cut" in refused("decompress", "cut.quoin")
    assert "checksum" in refused("decompress", "damaged.quoin")
    assert "-o" in refused("decompress", "pack")
    assert "cannot be written (No such file or directory)" in refused("decompress", "pack", "-o", "nowhere/out")
    assert "cannot be a file's name" in refused("compress", "a\0b")
    assert "FILE" in refused("compress")
    assert "did you mean '--force'" in refused("compress", "pack", "--forse")
    assert sorted(os.listdir()) == before


def test_permissions_are_told(here, monkeypatch):
    (here / "plain").write_bytes(b"x")

    def denied(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as broken:  # simulated: root may read and write everything
        broken.setattr(Path, "read_bytes", denied)
        assert "cannot be read (Permission denied)" in refused("compress", "plain")
    monkeypatch.setattr(archives.tempfile, "mkstemp", denied)
    assert "cannot be written (Permission denied): choose another place with -o" in refused("compress", "plain")


@pytest.mark.parametrize("call", ["replace", "fsync", "chmod"])
@pytest.mark.parametrize("fault", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_file_and_no_draft(here, monkeypatch, call, fault):
    def fail(*_):
        raise fault

    (here / "kept").write_bytes(b"old")
    with monkeypatch.context() as broken:
        broken.setattr(os, call, fail)
        with pytest.raises(type(fault)):
            write_atomic(Path("kept"), b"new")
    assert os.listdir() == ["kept"]
    assert (here / "kept").read_bytes() == b"old"
    write_atomic(Path("kept"), b"new")
    assert (here / "kept").read_bytes() == b"new"


def test_a_full_disk_is_told(here, monkeypatch):
    (here / "a").write_bytes(b"x")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left" in refused("compress", "a")
    assert os.listdir() == ["a"]


# ---- the bench --------------------------------------------------------------------------------------------------


def test_the_bench_asks_for_more_bytes_from_the_peers():
    (row,) = select_benchmarks(["compress"])
    assert {each.name for each in row.implementations if each.target} == {"Quoin", "xz -9e", "bzip2 -9"}
    ours, more, same = (
        Measurement("ours", (1.0,), figures={"bytes": 5.0}),
        Measurement("a", figures={"bytes": 6.0}),
        Measurement("b", figures={"bytes": 5.0}),
    )
    asked = FigureAboveFirst("bytes")
    assert [asked.met(each, (ours, more, same)) for each in (more, same)] == [True, False]
    assert asked.met(Measurement("gone", absent="not installed"), (ours,)) is None


def test_the_help_texts_hold_no_paragraph_twice():
    paragraphs = help_texts().decode().split("\n\n")
    assert len(paragraphs) == len(set(paragraphs)) > 1000
