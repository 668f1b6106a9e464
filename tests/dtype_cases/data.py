"""Cases for `quoin.data`: see tests/dtypes.py. Most of it takes texts, files, rows and sizes."""

from types import SimpleNamespace

import numpy as np
import torch

from dtypes import whole
from quoin import data as q
from seeds import seeded

IMAGES = whole(3, 1, 4, 4)
TOKENS = [3, 0, 5, 1, 2, 4, 0, 3, 1]
COLUMNS = (q.Column("size"), q.Column("grade", "category", ("a", "b", "c")))
CELLS = [[100, 2], [200, 0], [3, 1]]
ENCODER = q.TableEncoder(
    (q.ColumnEncoding("size", "number", mean=3.5, has_missing=True), q.ColumnEncoding("grade", "category", ("a", "c")))
)


def scale(x):
    return q.StandardScaler.fit(x([[0, 100], [200, 7], [3, 90]]))


def padded(x):
    return q.pad_sequences([x([200, 3, 7]), x([100])], padding=1)


CASES = {
    "StandardScaler.fit": scale,
    "StandardScaler.transform": lambda x: scale(x).transform(x([[0, 100], [200, 3]])),
    "StandardScaler.inverse_transform": lambda x: scale(x).inverse_transform(x([[0, 1], [2, -1]])),
    "background": lambda x: q.background(q.StandardScaler(x([[[100]]]), x([[[3]]]))),
    "random_shift": lambda x: q.random_shift(x(IMAGES), seeded(), 1, fill=0.5),
    "random_shift colours": lambda x: q.random_shift(x(IMAGES), seeded(), 1, fill=x([[[7]]])),
    "random_resized_crop": lambda x: q.random_resized_crop(x(IMAGES), seeded(), 2),
    "random_horizontal_flip": lambda x: q.random_horizontal_flip(x(IMAGES), seeded()),
    "random_cutout": lambda x: q.random_cutout(x(IMAGES), seeded(), 2, fill=0.5),
    "mixup": lambda x: q.mixup(x(IMAGES), x([[0, 1], [1, 0], [0, 1]]), seeded(), 1.0),
    "TableEncoder.fit": lambda x: q.TableEncoder.fit(COLUMNS, x(CELLS), torch.tensor([0, 2]), "mean"),
    "TableEncoder.transform": lambda x: ENCODER.transform(COLUMNS, x(CELLS)),
    "pad_sequences": padded,
    "MarkovSource": lambda x: q.MarkovSource(x([[0.5, 0.5], [0.25, 0.75]])).chain.transition,
    "MarkovSource whole": lambda x: q.MarkovSource(x([[0, 1], [1, 0]])).sample(5, generator=seeded()).diff().abs(),
    "read_windows": lambda x: q.read_windows(x(TOKENS), torch.tensor([0, 4]), 3),
    "RandomWindows.read": lambda x: q.RandomWindows(x(TOKENS), 2, 2, seed=0).read(torch.tensor([0, 4])),
    "BPTTWindows.read": lambda x: q.BPTTWindows(x(TOKENS), 2, 2, seed=0).read(torch.tensor([0, 4])),
}

# name -> how many roundings it may lose, where the mathematics makes it worse than dtypes.ROUNDINGS
ROUNDINGS: dict[str, float] = {}

TEXT = "made of texts, not of numbers"
TOKENS_ALONE = "takes texts and whole tokens, which check_token_ids checks"
SIZES = "takes sizes, Python floats and a generator"
ROWS = "takes rows of a Dataset, whose numbers are float32 by its own check"
FILES = "takes names of files and sources"
RESULT = "a result, built by functions that are tried or take no numbers"
FACTS = "facts in words and sizes"
NO_NUMBERS = dict.fromkeys(
    [
        "Dataset",
        "as_classes",
        "as_regression",
        "as_signals",
        "fold",
        "split",
        "prepare",
        "split_images",
        "PreparedData",
    ],
    ROWS,
)
NO_NUMBERS |= dict.fromkeys(
    ["LabeledGraph", "load_karate_club"], "a graph with whole labels; its weights are read by quoin.layers"
)
NO_NUMBERS |= dict.fromkeys(["PointSet", "PointSplits", "split_points"], ROWS)
NO_NUMBERS |= {"load_points": FILES, "PointInfo": FACTS}
NO_NUMBERS |= dict.fromkeys(["TabularInfo", "ImageInfo", "LabeledTextInfo", "PairInfo", "TextInfo"], FACTS)
NO_NUMBERS |= dict.fromkeys(["labeled_text_info", "pair_info", "text_info"], FACTS)
NO_NUMBERS |= dict.fromkeys(
    [
        "BatchSampler",
        "make_blobs",
        "make_circles",
        "make_linear",
        "make_moons",
        "make_polynomial",
        "make_waves",
        "make_copy_sequences",
        "make_walk_directions",
    ],
    SIZES,
)
NO_NUMBERS |= dict.fromkeys(
    ["make_hmm_source", "make_markov_source", "kfold", "epoch_permutation", "keyed_generator", "number_words"], SIZES
)
NO_NUMBERS |= dict.fromkeys(["RowNoise", "keyed_seed"], SIZES)
NO_NUMBERS |= dict.fromkeys(["make_segment_digits", "make_tiny_images", "make_glyphs", "make_shapes"], SIZES)
NO_NUMBERS |= dict.fromkeys(["Glyphs", "Shapes", "RemoteDataset", "RemoteFile", "FeatureRows", "MixedExamples"], RESULT)
NO_NUMBERS |= dict.fromkeys(
    ["cache_folder", "cache_entries", "remove_entry", "fetch", "fetched_folder", "is_fetched"], FILES
)
NO_NUMBERS |= dict.fromkeys(["BPETokenizer", "ByteTokenizer", "CharTokenizer", "WordTokenizer"], TOKENS_ALONE)
NO_NUMBERS |= dict.fromkeys(["SpecialTokenTokenizer", "TextStream", "TokenWriter"], TOKENS_ALONE)
NO_NUMBERS |= dict.fromkeys(["Tokenizer", "StoredTokens"], "a protocol")
NO_NUMBERS |= dict.fromkeys(
    ["CopySequences", "Fold", "ImageSplits", "LabeledBatch", "Padded", "PairBatch", "PairSplits", "Split"], RESULT
)
NO_NUMBERS |= dict.fromkeys(
    ["TextSplits", "TokenBatch", "CorpusSplit", "TokenFile", "TokenFileSplit", "Tokenized"], RESULT
)
NO_NUMBERS |= dict.fromkeys(
    ["Corpus", "LabeledCorpus", "LabeledTexts", "PairCorpus", "Pairs", "Text", "TokenPairs"], TEXT
)
NO_NUMBERS |= dict.fromkeys(
    ["WalkDirections", "encode_texts", "fit_tokenizer", "load_labeled_corpus", "split_pairs", "make_symbol_corpus"],
    TEXT,
)
NO_NUMBERS |= dict.fromkeys(
    ["tokenize_text", "tokenizer_fingerprint", "tokenizer_from_json", "check_same_tokenizer"], TEXT
)
NO_NUMBERS |= dict.fromkeys(
    ["check_source_name", "load", "load_corpus", "load_like", "load_pair_corpus", "load_pairs", "load_text"], FILES
)
NO_NUMBERS |= dict.fromkeys(["with_test_set", "read_pictures_like"], FILES)
NO_NUMBERS |= dict.fromkeys(
    ["load_labeled_pairs", "open_tokens", "read_features", "read_rows", "read_signals", "read_texts", "tokenize_file"],
    FILES,
)
NO_NUMBERS |= dict.fromkeys(["SequenceInfo", "sequence_info", "CacheEntry", "Column", "ColumnEncoding"], FACTS)

# Tokens and rows: whole numbers, held against int64.
LETTERS = q.CharTokenizer("abc")
TABLE = q.Dataset("table", torch.arange(6.0).reshape(3, 2), torch.tensor([0, 1, 0]), ("one", "two"), ("no", "yes"))
PAIRS = q.Pairs("pairs", ("ab", "c", "aa"), ("a", "b", "a"))


def labeled(x):
    return q.LabeledTexts(PAIRS, LETTERS, ("a", "b")).read(x([2, 0, 1]))


def translated(x):
    known = q.SpecialTokenTokenizer(LETTERS)
    return q.TokenPairs(PAIRS, known, known).read(x([2, 0, 1]))


def taken(x):
    found = TABLE.take(x([2, 0, 1]))
    return found.features, found.targets


PIXELS = SimpleNamespace(shape=(1, 2, 2), pixels=np.arange(0, 240, 20, dtype=np.uint8).reshape(3, 1, 2, 2))
STORED = q.StoredImages(PIXELS, torch.tensor([1, 2, 0]))


MARKED = {
    "StoredImages.take": lambda x: STORED.take(x([2, 0, 1]))[:],
    "StoredImages.index_select": lambda x: STORED.index_select(0, x([2, 0, 1])),
    "TableEncoder.fit rows": lambda x: q.TableEncoder.fit(COLUMNS, torch.tensor(CELLS).double(), x([2, 0]), "mean"),
    "read_windows starts": lambda x: q.read_windows(torch.tensor(TOKENS), x([4, 0]), 3),
    "Dataset.take": taken,
    "LabeledTexts.read": labeled,
    "TokenPairs.read": translated,
    "CharTokenizer.decode": lambda x: LETTERS.decode(x([2, 0, 1])),
    "ByteTokenizer.decode": lambda x: q.ByteTokenizer().decode(x([100, 97, 98])),
    "SpecialTokenTokenizer.decode": lambda x: q.SpecialTokenTokenizer(LETTERS).decode(x([3, 4, 5])),
}
CASES |= MARKED
WHOLE = set(MARKED)
for name in {each.partition(".")[0] for each in MARKED} & NO_NUMBERS.keys():
    del NO_NUMBERS[name]
