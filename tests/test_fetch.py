"""`quoin fetch` against a server on loopback: whole, cut, altered, slow, refusing; and what it leaves for `--data`."""

import gzip
import hashlib
import io
import itertools
import json
import os
import re
import struct
import sys
import tarfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

import numpy as np
import pytest

from commands import tried
from quoin.data import REMOTE_DATASETS, RemoteFile, fetch, fetched_folder, is_fetched, load, load_corpus, load_text
from quoin.data import fetching as module
from quoin.errors import UserError


class Request(NamedTuple):
    path: str
    range: str | None


class Server(ThreadingHTTPServer):
    """Serves `files` by name, as well or badly as it is told to."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.asked: list[Request] = []
        self.cut_after: int | None = None  # bytes of an answer after which the connection breaks
        self.cuts = 10**9  # how often
        self.pause = 0.0  # seconds before each piece of 1,000 bytes
        self.status = 200
        self.knows_ranges = True
        self.wrong_range = False
        self.url = f"http://127.0.0.1:{self.server_port}/some/folder"

    def handle_error(self, request, client_address):
        """A client that went away is what the tests are about; the server would print it among the command's lines."""


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self):
        server, wanted = self.server, self.headers.get("Range")
        server.asked.append(Request(self.path, wanted))
        content = server.files.get(self.path.removeprefix("/some/folder/"))
        if content is None or server.status != 200:
            self.send_error(404 if content is None else server.status)
            return
        begin = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and server.knows_ranges else 0
        self.send_response(206 if begin else 200)
        if begin:
            told = 0 if server.wrong_range else begin
            self.send_header("Content-Range", f"bytes {told}-{len(content) - 1}/{len(content)}")
        rest = content[begin:]
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        if server.cut_after is not None and server.cuts > 0:
            server.cuts -= 1
            rest = rest[: server.cut_after]
        for start in range(0, len(rest), 1000):
            time.sleep(server.pause)
            self.wfile.write(rest[start : start + 1000])
        self.close_connection = True

    def log_message(self, format, *arguments):
        pass


def idx(array: np.ndarray) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return gzip.compress(header + array.tobytes(), mtime=0)


IMAGES = np.random.default_rng(0).integers(0, 256, (70, 28, 28), dtype=np.uint8)
LABELS = np.arange(70, dtype=np.uint8) % 10
MNIST = {
    "train-images-idx3-ubyte.gz": idx(IMAGES[:60]),
    "train-labels-idx1-ubyte.gz": idx(LABELS[:60]),
    "t10k-images-idx3-ubyte.gz": idx(IMAGES[60:]),
    "t10k-labels-idx1-ubyte.gz": idx(LABELS[60:]),
}
RECORDS = np.random.default_rng(1).integers(0, 10, (6, 2, 3073), dtype=np.uint8)
TEXT = "To be, or not to be, that is the question.\n" * 20


def tar(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


def pinned(files: dict[str, bytes]) -> tuple[RemoteFile, ...]:
    return tuple(RemoteFile(name, len(each), hashlib.sha256(each).hexdigest()) for name, each in files.items())


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server with small stand-ins, which `REMOTE_DATASETS` takes for the real ones; and an empty cache."""
    monkeypatch.setenv("QUOIN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(module, "TIMEOUT", 5.0)
    batches = [f"data_batch_{number}.bin" for number in range(1, 6)] + ["test_batch.bin"]
    members = {f"cifar-10-batches-bin/{name}": RECORDS[i].tobytes() for i, name in enumerate(batches)}
    archive = tar({"cifar-10-batches-bin/readme.html": b"<p>", "../../outside.txt": b"!", **members})
    stands_in = {
        "mnist": MNIST,
        "fashion-mnist": MNIST,
        "cifar10": {"cifar-10-binary.tar.gz": archive},
        "tiny-shakespeare": {"input.txt": TEXT.encode()},
    }
    made = Server()
    for name, files in stands_in.items():
        inside = tuple((path, len(content)) for path, content in members.items()) if name == "cifar10" else ()
        real = REMOTE_DATASETS[name]
        monkeypatch.setitem(REMOTE_DATASETS, name, real._replace(url=made.url, files=pinned(files), members=inside))
        made.files |= files
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def refused(*words: str) -> str:
    """The one line of a command that fails."""
    code, out, err = tried(*words)
    assert code == 2, (out, err)
    assert out == ""
    assert len(err.splitlines()) == 1
    assert "Traceback" not in err
    return err


def test_pins_are_whole():
    for name, remote in REMOTE_DATASETS.items():
        assert remote.url.startswith("https://"), name
        assert all(re.fullmatch("[0-9a-f]{64}", file.sha256) for file in remote.files), name
    assert len({file.sha256 for remote in REMOTE_DATASETS.values() for file in remote.files}) == 10
    # 50,000 and 10,000 records of a label and 3 x 32 x 32 bytes
    assert sum(num_bytes for _, num_bytes in REMOTE_DATASETS["cifar10"].members) == 60_000 * 3073


def test_before_it_is_fetched_the_error_says_how(server):
    with pytest.raises(UserError, match=r"run `quoin fetch mnist` once, or .* idx:FOLDER"):
        load("mnist")
    assert "quoin fetch fashion-mnist" in refused("train", "lenet", "--data", "fashion-mnist")
    with pytest.raises(UserError, match="cifar10:FOLDER"):
        load("cifar10")
    with pytest.raises(UserError, match=r"quoin fetch tiny-shakespeare.*text:PATH"):
        load_text("tiny-shakespeare")
    assert server.asked == []  # no command but fetch opens a connection


def test_whole_and_then_by_name(server):
    code, out, err = tried("fetch", "mnist", "fashion-mnist", "cifar10", "tiny-shakespeare")
    assert (code, err) == (0, "")
    assert len(out.splitlines()) == 4
    mnist = load("mnist")
    assert mnist.name == "mnist"
    assert mnist.test_start == 60
    assert np.array_equal((mnist.features[:, 0] * 255).round().numpy().astype(np.uint8), IMAGES)
    assert np.array_equal(mnist.targets.numpy(), LABELS)
    clothes = load("fashion-mnist").class_names
    assert clothes is not None
    assert clothes[:2] == ("T-shirt/top", "Trouser")
    photos = load("cifar10")
    assert photos.test_start == 10
    assert np.array_equal((photos.features * 255).round().numpy().reshape(6, 2, -1), RECORDS[:, :, 1:])
    assert load_text("tiny-shakespeare").content == TEXT
    assert load_corpus("tiny-shakespeare").name == "tiny-shakespeare"
    # only what belongs there: no archive, no other name of it
    assert sorted(path.name for path in fetched_folder("cifar10").iterdir()) == sorted(
        REMOTE_DATASETS["cifar10"].contents
    )
    assert not list(fetched_folder("x").parents[2].rglob("outside.txt"))
    assert {path.name for path in fetched_folder("x").parent.iterdir()} == set(REMOTE_DATASETS)
    asked = len(server.asked)
    code, out, _ = tried("fetch", "mnist", "--json")
    assert json.loads(out)[0]["was_there"] is True
    assert len(server.asked) == asked
    assert tried("fetch", "mnist", "--force")[0] == 0
    assert len(server.asked) == asked + 4


def test_the_list_says_what_is_there(server):
    fetch("tiny-shakespeare")
    told = {each["name"]: each for each in json.loads(tried("fetch", "--json")[1])}
    assert {name: each["fetched"] for name, each in told.items()} == {
        name: name == "tiny-shakespeare" for name in REMOTE_DATASETS
    }
    assert told["tiny-shakespeare"]["bytes"] == len(TEXT)
    listed = tried("fetch")[1]
    assert all(name in listed and remote.license in listed for name, remote in REMOTE_DATASETS.items())


def test_cut_in_the_middle_goes_on_from_there(server):
    name = next(iter(MNIST))
    server.cut_after, seen = 20_000, []
    fetch("mnist", on_progress=lambda done, total: seen.append((done, total)))
    assert is_fetched("mnist")
    asked = [request.range for request in server.asked if request.path.endswith(name)]
    assert asked[0] is None
    begins = [0, *(int(each.removeprefix("bytes=").removesuffix("-")) for each in asked[1:] if each)]
    assert len(begins) == len(asked) > 2
    # of what came before a cut, at most one piece is asked for again
    assert all(20_000 - module.PIECE < later - begin <= 20_000 for begin, later in itertools.pairwise(begins))
    total = sum(map(len, MNIST.values()))
    assert seen == sorted(seen)
    assert seen[-1] == (total, total)


def test_what_came_is_kept_for_the_next_command(server):
    name = next(iter(MNIST))
    server.cut_after, server.cuts = 20_000, 1

    def stop(done, total):
        server.status = 503  # from the next request on

    with pytest.raises(UserError, match="503"):
        fetch("mnist", on_progress=stop)
    assert not is_fetched("mnist")
    kept = (fetched_folder("mnist.part") / f"{name}.incomplete").stat().st_size
    assert 20_000 - module.PIECE < kept <= 20_000
    server.status, server.cut_after = 200, None
    assert tried("fetch", "mnist")[0] == 0
    assert [request.range for request in server.asked if request.path.endswith(name)][-1] == f"bytes={kept}-"
    assert load("mnist").num_rows == 70


@pytest.mark.parametrize("wrong_range", [False, True])
def test_a_server_without_ranges_sends_it_all_again(server, wrong_range):
    server.cut_after, server.cuts = 20_000, 1
    server.knows_ranges, server.wrong_range = wrong_range, wrong_range
    if wrong_range:  # it sends other bytes than it says: nothing is put together from them
        assert "the server sent 'bytes 0-" in refused("fetch", "mnist")
        server.wrong_range = False
    assert tried("fetch", "mnist")[0] == 0
    assert load("mnist").num_rows == 70


def flipped(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (flipped, "its SHA-256 is another"),
        (lambda content: content[:-5], "bytes instead of"),
        (lambda content: content + b"more", "it has more than"),
        (lambda content: b"", "0 bytes instead of"),
    ],
)
def test_altered_is_one_line_and_nothing_is_kept(server, change, told):
    name = "t10k-images-idx3-ubyte.gz"
    server.files[name] = change(MNIST[name])
    assert told in refused("fetch", "mnist")
    assert not is_fetched("mnist")
    assert not fetched_folder("mnist").exists()
    kept = {path.name: path.read_bytes() for path in fetched_folder("mnist.part").iterdir()}
    assert kept == {each: MNIST[each] for each in list(MNIST)[:2]}  # what was verified before it
    server.files[name] = MNIST[name]
    asked = len(server.asked)
    assert tried("fetch", "mnist")[0] == 0
    assert len(server.asked) == asked + 2


def test_slow_is_waited_for_and_stalled_is_resumed(server, monkeypatch):
    server.pause = 0.02
    fetch("tiny-shakespeare")
    assert load_text("tiny-shakespeare").content == TEXT
    monkeypatch.setattr(module, "TIMEOUT", 0.1)
    server.pause = 0.4  # each answer stalls before its first byte
    line = refused("fetch", "tiny-shakespeare", "--force")
    assert "no connection to '127.0.0.1" in line
    assert is_fetched("tiny-shakespeare")  # what was there before stays until the new is whole


def test_not_found_and_nobody_there(server):
    server.files.clear()
    assert "the server answered 404" in refused("fetch", "mnist")
    assert "no connection to '127.0.0.1:9'" in refused("fetch", "mnist", "--from", "http://127.0.0.1:9/a")
    assert "check the network" in refused("fetch", "mnist", "--from", "http://[::1]:9")


def test_a_mirror_is_asked_instead(server):
    REMOTE_DATASETS["mnist"] = REMOTE_DATASETS["mnist"]._replace(url="http://127.0.0.1:9")
    assert tried("fetch", "mnist", "--from", server.url + "/")[0] == 0
    assert is_fetched("mnist")


def test_a_cache_that_cannot_be_written(server, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("QUOIN_CACHE", str(tmp_path / "file"))
    assert "set QUOIN_CACHE to another folder" in refused("fetch", "mnist")
    monkeypatch.setenv("QUOIN_CACHE", "/dev/full/x")
    assert "cannot be written" in refused("fetch", "mnist")


def test_a_full_disk(server, monkeypatch):
    def full(descriptor, content):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        assert "No space left on device" in refused("fetch", "mnist")
    assert tried("fetch", "mnist")[0] == 0


def test_one_process_at_a_time(server):
    folder = fetched_folder("mnist.part")
    folder.mkdir(parents=True)
    with module._locked(folder, "mnist"):
        assert "another process is fetching mnist" in refused("fetch", "mnist")
    assert tried("fetch", "mnist")[0] == 0


def test_an_archive_of_other_content_is_refused(server):
    for members in ({"cifar-10-batches-bin/data_batch_1.bin": b"short"}, {"other": b""}):
        archive = {"cifar-10-binary.tar.gz": tar(members)}
        server.files |= archive
        REMOTE_DATASETS["cifar10"] = REMOTE_DATASETS["cifar10"]._replace(files=pinned(archive))
        assert "expected" in refused("fetch", "cifar10")
        assert not is_fetched("cifar10")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("mnits",), "did you mean 'mnist'?"),
        (("mnist", "--from", "my.mirror"), "--from expects the address of a folder"),
        (("mnist", "--from", "ftp://my.mirror"), "--from expects the address of a folder"),
        (("mnist", "--from", "http://[::1"), "--from expects the address of a folder"),
        (("mnist", "cifar10", "--from", "http://my.mirror"), "fetch them one by one"),
        (("--force",), "name it"),
    ],
)
def test_mistakes(server, words, told):
    assert told in refused("fetch", *words)
    assert server.asked == []


def test_without_pooch_the_pip_line(server, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert "pip install 'quoin[fetch]'" in refused("fetch", "mnist")
    assert tried("fetch")[0] == 0


@pytest.mark.deep
def test_train_on_what_was_fetched(server, tmp_path):
    assert tried("fetch", "mnist", "tiny-shakespeare")[0] == 0
    assert tried("train", "lenet", "--data", "mnist", "--epochs", "1", "--runs", tmp_path / "runs")[0] == 0
    words = ("--data", "tiny-shakespeare", "--epochs", "1", "--max-steps", "2", "--context-length", "8")
    assert tried("train", "gru-lm", *words, "--runs", tmp_path / "runs")[0] == 0
    assert tried("eval", tmp_path / "runs" / "lenet-1", "--data", "mnist")[0] == 0
