"""Data sets that `quoin fetch` brings: which there are, where they lie in the cache, and reading them from there.

Imports no torch at its top, and opens no connection: that is in fetching.py.
"""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from quoin.data.cache import cache_folder
from quoin.display import shown
from quoin.errors import UserError, did_you_mean, format_value

if TYPE_CHECKING:
    from quoin.data.dataset import Dataset

__all__ = ["REMOTE_DATASETS", "RemoteDataset", "RemoteFile", "fetched_folder", "find_remote", "is_fetched"]


@shown
class RemoteFile(NamedTuple):
    """A file as it must come."""

    name: str
    num_bytes: int
    sha256: str


@shown
class RemoteDataset(NamedTuple):
    """A data set that others publish."""

    what: str
    url: str  # of the folder of its files
    files: tuple[RemoteFile, ...]
    license: str
    other_way: str  # how files that are there already are named
    members: tuple[tuple[str, int], ...] = ()  # of a tar archive: those to unpack, by path, and their sizes

    @property
    def num_bytes(self) -> int:
        """What is fetched."""
        return sum(file.num_bytes for file in self.files)

    @property
    def contents(self) -> dict[str, int]:
        """The files of the folder in the cache, and their sizes."""
        if self.members:
            return {Path(path).name: num_bytes for path, num_bytes in self.members}
        return {file.name: file.num_bytes for file in self.files}


_IDX = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
_FASHION = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
_CIFAR_BATCHES = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")

REMOTE_DATASETS = {
    "mnist": RemoteDataset(
        "handwritten digits, 28 x 28 grey pixels",
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        (
            RemoteFile(_IDX[0], 9_912_422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
            RemoteFile(_IDX[1], 28_881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
            RemoteFile(_IDX[2], 1_648_877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
            RemoteFile(_IDX[3], 4_542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
        ),
        "CC BY-SA 3.0, Y. LeCun and C. Cortes",
        "idx:FOLDER",
    ),
    "fashion-mnist": RemoteDataset(
        "clothes, 28 x 28 grey pixels",
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
        (
            RemoteFile(_IDX[0], 26_421_880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
            RemoteFile(_IDX[1], 29_515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
            RemoteFile(_IDX[2], 4_422_102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
            RemoteFile(_IDX[3], 5_148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
        ),
        "MIT, Zalando",
        "idx:FOLDER",
    ),
    "cifar10": RemoteDataset(
        "photographs, 32 x 32 colour pixels",
        "https://www.cs.toronto.edu/~kriz",
        (
            RemoteFile(
                "cifar-10-binary.tar.gz",
                170_052_171,
                "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            ),
        ),
        "none stated, A. Krizhevsky 2009",
        "cifar10:FOLDER",
        tuple((f"cifar-10-batches-bin/{name}", 30_730_000) for name in _CIFAR_BATCHES),
    ),
    "tiny-shakespeare": RemoteDataset(
        "40,000 lines of Shakespeare",
        "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare",
        (RemoteFile("input.txt", 1_115_394, "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"),),
        "public domain",
        "text:PATH",
    ),
}


def find_remote(name: str) -> RemoteDataset:
    """The data set of this name, or a UserError."""
    if name not in REMOTE_DATASETS:
        raise UserError(
            f"expected a data set to fetch (`quoin fetch` shows all), got {format_value(name)}: "
            f"{did_you_mean(name, REMOTE_DATASETS)}"
        )
    return REMOTE_DATASETS[name]


def fetched_folder(name: str) -> Path:
    """Where `quoin fetch` puts it; it need not be there."""
    return cache_folder() / "fetched" / name


def is_fetched(name: str) -> bool:
    """Whether all its files are there, of the right sizes; their hashes were checked when they came."""
    folder = fetched_folder(name)
    try:
        return all(
            (folder / each).stat().st_size == num_bytes for each, num_bytes in find_remote(name).contents.items()
        )
    except OSError:
        return False


def existing_fetched(name: str) -> Path:
    """The folder of a data set that was fetched, or a UserError that says how to."""
    if not is_fetched(name):
        remote = find_remote(name)
        raise UserError(
            f"{name} is not in the cache ({remote.num_bytes / 1e6:,.1f} MB to fetch): run `quoin fetch {name}` once, "
            f"or give files of your own as {remote.other_way}"
        )
    return fetched_folder(name)


def load_fetched(name: str) -> "Dataset":
    """Images of mnist, fashion-mnist or cifar10, with the test split they were published with."""
    from dataclasses import replace

    folder = str(existing_fetched(name))
    if name == "cifar10":
        from quoin.data.files_cifar import load_cifar10

        return replace(load_cifar10(folder), name=name)
    from quoin.data.files_idx import load_idx

    dataset = replace(load_idx(folder), name=name)
    return replace(dataset, class_names=_FASHION) if name == "fashion-mnist" else dataset
