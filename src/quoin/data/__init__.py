"""Bring data in: embedded, generated and file sources; texts, pairs and vocabularies; splits and folds; batches whose position is state."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.data.augment import background, crop, cutout, flip, shift
    from quoin.data.batches import Batches, order
    from quoin.data.byte_pairs import BytePairVocabulary
    from quoin.data.chains import MarkovSource, hidden_source, markov_source, symbol_corpus
    from quoin.data.copying import CopySequences, copy_sequences
    from quoin.data.corpus import Corpus, CorpusPart, fit_vocabulary, load_corpus, tokenize_text
    from quoin.data.dataset import Dataset, as_classes, as_regression
    from quoin.data.folds import Fold, kfold
    from quoin.data.generated import blobs, circles, linear, moons, polynomial
    from quoin.data.graphs import LabelledGraph, karate_club
    from quoin.data.image_parts import ImageFacts, ImageParts, part_images
    from quoin.data.labelled import LabelledBatch, LabelledCorpus, LabelledFacts, LabelledTexts, encode_texts, label_corpus, labelled_facts
    from quoin.data.padding import Padded, pad_sequences
    from quoin.data.pair_corpus import PairCorpus, PairFacts, load_pair_corpus, pair_facts
    from quoin.data.pair_tokens import BOS, EOS, PAD, PairBatch, PairVocabulary, TokenPairs
    from quoin.data.pairs import PairParts, Pairs, load_pairs, part_pairs
    from quoin.data.pictures import segment_digits, tiny_pictures
    from quoin.data.predicting import load_like, read_features
    from quoin.data.prepared import Facts, Prepared, prepare
    from quoin.data.scaling import Standardiser
    from quoin.data.seeds import keyed_generator
    from quoin.data.sources import LABELLED_SOURCES, PAIR_SOURCES, SOURCES, TEXT_SOURCES, VocabularyName, check_source_name, load
    from quoin.data.splits import Split, fold, split
    from quoin.data.spoken_numbers import number_words
    from quoin.data.text import Text, TextParts, load_text
    from quoin.data.text_facts import TextFacts, facts_of_text
    from quoin.data.text_stream import TextStream
    from quoin.data.token_batches import CarriedLanes, RandomWindows, StoredTokens, TokenBatch, read_windows
    from quoin.data.token_file import TokenFile, TokenFilePart, TokenWriter, open_tokens
    from quoin.data.tokenizing import Tokenized, tokenize_file
    from quoin.data.vocabulary import (
        ByteVocabulary,
        CharacterVocabulary,
        Vocabulary,
        WordVocabulary,
        check_same_vocabulary,
        vocabulary_fingerprint,
        vocabulary_from_json,
    )
    from quoin.data.walks import Directions, directions

__all__ = [
    "BOS",
    "EOS",
    "LABELLED_SOURCES",
    "PAD",
    "PAIR_SOURCES",
    "SOURCES",
    "TEXT_SOURCES",
    "Batches",
    "BytePairVocabulary",
    "ByteVocabulary",
    "CarriedLanes",
    "CharacterVocabulary",
    "CopySequences",
    "Corpus",
    "CorpusPart",
    "Dataset",
    "Directions",
    "Facts",
    "Fold",
    "ImageFacts",
    "ImageParts",
    "LabelledBatch",
    "LabelledCorpus",
    "LabelledFacts",
    "LabelledGraph",
    "LabelledTexts",
    "MarkovSource",
    "Padded",
    "PairBatch",
    "PairCorpus",
    "PairFacts",
    "PairParts",
    "PairVocabulary",
    "Pairs",
    "Prepared",
    "RandomWindows",
    "Split",
    "Standardiser",
    "StoredTokens",
    "Text",
    "TextFacts",
    "TextParts",
    "TextStream",
    "TokenBatch",
    "TokenFile",
    "TokenFilePart",
    "TokenPairs",
    "TokenWriter",
    "Tokenized",
    "Vocabulary",
    "VocabularyName",
    "WordVocabulary",
    "as_classes",
    "as_regression",
    "background",
    "blobs",
    "check_same_vocabulary",
    "check_source_name",
    "circles",
    "copy_sequences",
    "crop",
    "cutout",
    "directions",
    "encode_texts",
    "facts_of_text",
    "fit_vocabulary",
    "flip",
    "fold",
    "hidden_source",
    "karate_club",
    "keyed_generator",
    "kfold",
    "label_corpus",
    "labelled_facts",
    "linear",
    "load",
    "load_corpus",
    "load_like",
    "load_pair_corpus",
    "load_pairs",
    "load_text",
    "markov_source",
    "moons",
    "number_words",
    "open_tokens",
    "order",
    "pad_sequences",
    "pair_facts",
    "part_images",
    "part_pairs",
    "polynomial",
    "prepare",
    "read_features",
    "read_windows",
    "segment_digits",
    "shift",
    "split",
    "symbol_corpus",
    "tiny_pictures",
    "tokenize_file",
    "tokenize_text",
    "vocabulary_fingerprint",
    "vocabulary_from_json",
]

export_lazily(__name__)
