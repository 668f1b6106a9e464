"""Cases for `quoin.data`: see tests/dtypes.py. Most of it takes texts, files, rows and sizes."""

import torch

from dtypes import whole
from quoin import data as q
from seeds import seeded

IMAGES = whole(3, 1, 4, 4)
TOKENS = [3, 0, 5, 1, 2, 4, 0, 3, 1]


def scale(x):
    return q.Standardiser.fit(x([[0, 100], [200, 7], [3, 90]]))


def padded(x):
    return q.pad_sequences([x([200, 3, 7]), x([100])], padding=1)


CASES = {
    "Standardiser.fit": scale,
    "Standardiser.apply": lambda x: scale(x).apply(x([[0, 100], [200, 3]])),
    "Standardiser.invert": lambda x: scale(x).invert(x([[0, 1], [2, -1]])),
    "background": lambda x: q.background(q.Standardiser(x([[[100]]]), x([[[3]]]))),
    "shift": lambda x: q.shift(x(IMAGES), seeded(), 1, fill=0.5),
    "shift colours": lambda x: q.shift(x(IMAGES), seeded(), 1, fill=x([[[7]]])),
    "crop": lambda x: q.crop(x(IMAGES), seeded(), 2),
    "flip": lambda x: q.flip(x(IMAGES), seeded()),
    "cutout": lambda x: q.cutout(x(IMAGES), seeded(), 2, fill=0.5),
    "pad_sequences": padded,
    "MarkovSource": lambda x: q.MarkovSource(x([[0.5, 0.5], [0.25, 0.75]])).chain.transition,
    "MarkovSource whole": lambda x: q.MarkovSource(x([[0, 1], [1, 0]])).sample(5, generator=seeded()).diff().abs(),
    "read_windows": lambda x: q.read_windows(x(TOKENS), torch.tensor([0, 4]), 3),
    "RandomWindows.read": lambda x: q.RandomWindows(x(TOKENS), 2, 2, seed=0).read(torch.tensor([0, 4])),
    "CarriedLanes.read": lambda x: q.CarriedLanes(x(TOKENS), 2, 2, seed=0).read(torch.tensor([0, 4])),
}

# name -> how many roundings it may lose, where the mathematics makes it worse than dtypes.ROUNDINGS
ROUNDINGS: dict[str, float] = {}

TEXT = "made of texts, not of numbers"
TOKENS_ALONE = "takes texts and whole tokens, which check_tokens holds"
SIZES = "takes sizes, Python floats and a generator"
ROWS = "takes rows of a Dataset, whose numbers are float32 by its own check"
FILES = "takes names of files and sources"
RESULT = "a result, built by functions that are tried or take no numbers"
FACTS = "facts in words and sizes"
NO_NUMBERS = dict.fromkeys(["Dataset", "as_classes", "as_regression", "fold", "split", "prepare", "part_images", "Prepared"], ROWS)
NO_NUMBERS |= dict.fromkeys(["LabelledGraph", "karate_club"], "a graph with whole labels; its weights are read by quoin.layers")
NO_NUMBERS |= dict.fromkeys(["Facts", "ImageFacts", "LabelledFacts", "PairFacts", "TextFacts"], FACTS)
NO_NUMBERS |= dict.fromkeys(["labelled_facts", "pair_facts", "facts_of_text"], FACTS)
NO_NUMBERS |= dict.fromkeys(["Batches", "blobs", "circles", "linear", "moons", "polynomial", "copy_sequences", "directions"], SIZES)
NO_NUMBERS |= dict.fromkeys(["hidden_source", "markov_source", "kfold", "order", "keyed_generator", "number_words"], SIZES)
NO_NUMBERS |= dict.fromkeys(["segment_digits", "tiny_pictures"], SIZES)
NO_NUMBERS |= dict.fromkeys(["BytePairVocabulary", "ByteVocabulary", "CharacterVocabulary", "WordVocabulary"], TOKENS_ALONE)
NO_NUMBERS |= dict.fromkeys(["PairVocabulary", "TextStream", "TokenWriter"], TOKENS_ALONE)
NO_NUMBERS |= dict.fromkeys(["Vocabulary", "StoredTokens"], "a protocol")
NO_NUMBERS |= dict.fromkeys(["CopySequences", "Fold", "ImageParts", "LabelledBatch", "Padded", "PairBatch", "PairParts", "Split"], RESULT)
NO_NUMBERS |= dict.fromkeys(["TextParts", "TokenBatch", "CorpusPart", "TokenFile", "TokenFilePart", "Tokenized"], RESULT)
NO_NUMBERS |= dict.fromkeys(["Corpus", "LabelledCorpus", "LabelledTexts", "PairCorpus", "Pairs", "Text", "TokenPairs"], TEXT)
NO_NUMBERS |= dict.fromkeys(["Directions", "encode_texts", "fit_vocabulary", "label_corpus", "part_pairs", "symbol_corpus"], TEXT)
NO_NUMBERS |= dict.fromkeys(["tokenize_text", "vocabulary_fingerprint", "vocabulary_from_json", "check_same_vocabulary"], TEXT)
NO_NUMBERS |= dict.fromkeys(["check_source_name", "load", "load_corpus", "load_like", "load_pair_corpus", "load_pairs", "load_text"], FILES)
NO_NUMBERS |= dict.fromkeys(["open_tokens", "read_features", "tokenize_file"], FILES)

# Tokens and rows: whole numbers, held against int64.
LETTERS = q.CharacterVocabulary("abc")
TABLE = q.Dataset("table", torch.arange(6.0).reshape(3, 2), torch.tensor([0, 1, 0]), ("one", "two"), ("no", "yes"))
PAIRS = q.Pairs("pairs", ("ab", "c", "aa"), ("a", "b", "a"))


def labelled(x):
    return q.LabelledTexts(PAIRS, LETTERS, ("a", "b")).read(x([2, 0, 1]))


def translated(x):
    known = q.PairVocabulary(LETTERS)
    return q.TokenPairs(PAIRS, known, known).read(x([2, 0, 1]))


def taken(x):
    found = TABLE.take(x([2, 0, 1]))
    return found.features, found.targets


MARKED = {
    "read_windows starts": lambda x: q.read_windows(torch.tensor(TOKENS), x([4, 0]), 3),
    "Dataset.take": taken,
    "LabelledTexts.read": labelled,
    "TokenPairs.read": translated,
    "CharacterVocabulary.decode": lambda x: LETTERS.decode(x([2, 0, 1])),
    "ByteVocabulary.decode": lambda x: q.ByteVocabulary().decode(x([100, 97, 98])),
    "PairVocabulary.decode": lambda x: q.PairVocabulary(LETTERS).decode(x([3, 4, 5])),
}
CASES |= MARKED
WHOLE = set(MARKED)
for name in {each.partition(".")[0] for each in MARKED} & NO_NUMBERS.keys():
    del NO_NUMBERS[name]
