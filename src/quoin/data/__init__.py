"""Data loading: built-in, generated and file sources; texts, pairs and tokenizers; splits and folds; resumable batch
samplers."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.data.augment import background, random_cutout, random_horizontal_flip, random_resized_crop, random_shift
    from quoin.data.batches import BatchSampler, epoch_permutation
    from quoin.data.bpe import BPETokenizer
    from quoin.data.cache import CacheEntry, cache_entries, cache_folder, remove_entry
    from quoin.data.chains import MarkovSource, make_hmm_source, make_markov_source, make_symbol_corpus
    from quoin.data.copying import CopySequences, make_copy_sequences
    from quoin.data.corpus import Corpus, CorpusSplit, fit_tokenizer, load_corpus, tokenize_text
    from quoin.data.dataset import Dataset, as_classes, as_regression
    from quoin.data.encoding import ColumnEncoding, TableEncoder
    from quoin.data.fetched import REMOTE_DATASETS, RemoteDataset, RemoteFile, fetched_folder, is_fetched
    from quoin.data.fetching import fetch
    from quoin.data.folds import Fold, kfold
    from quoin.data.generated import make_blobs, make_circles, make_linear, make_moons, make_polynomial
    from quoin.data.glyphs import Glyphs, make_glyphs
    from quoin.data.graphs import LabeledGraph, load_karate_club
    from quoin.data.image_splits import ImageInfo, ImageSplits, split_images
    from quoin.data.labeled_files import load_labeled_pairs, read_texts
    from quoin.data.labeled_texts import (
        LabeledBatch,
        LabeledCorpus,
        LabeledTextInfo,
        LabeledTexts,
        encode_texts,
        labeled_text_info,
        load_labeled_corpus,
    )
    from quoin.data.mixup import MixedExamples, mixup
    from quoin.data.padding import Padded, pad_sequences
    from quoin.data.pair_corpus import PairCorpus, PairInfo, load_pair_corpus, pair_info
    from quoin.data.pair_tokens import BOS, EOS, PAD, PairBatch, SpecialTokenTokenizer, TokenPairs
    from quoin.data.pairs import Pairs, PairSplits, load_pairs, split_pairs
    from quoin.data.pictures import make_segment_digits, make_tiny_images
    from quoin.data.points import PointInfo, PointSet, PointSplits, load_points, split_points
    from quoin.data.predicting import FeatureRows, load_like, read_features, read_pictures_like, read_rows, read_signals
    from quoin.data.prepared import PreparedData, TabularInfo, prepare
    from quoin.data.row_noise import RowNoise
    from quoin.data.scaling import StandardScaler
    from quoin.data.seeds import keyed_generator, keyed_seed
    from quoin.data.sequences import SequenceInfo, sequence_info
    from quoin.data.shapes import Shapes, make_shapes
    from quoin.data.signals import as_signals
    from quoin.data.sources import (
        ALL_SOURCES,
        SOURCES,
        TokenizerName,
        check_source_name,
        load,
    )
    from quoin.data.splits import Split, fold, split
    from quoin.data.spoken_numbers import number_words
    from quoin.data.stored_images import StoredImages
    from quoin.data.table_columns import Column
    from quoin.data.test_set import with_test_set
    from quoin.data.text import Text, TextSplits, load_text
    from quoin.data.text_info import TextInfo, text_info
    from quoin.data.text_stream import TextStream
    from quoin.data.token_batches import BPTTWindows, RandomWindows, StoredTokens, TokenBatch, read_windows
    from quoin.data.token_file import TokenFile, TokenFileSplit, TokenWriter, open_tokens
    from quoin.data.tokenizers import (
        ByteTokenizer,
        CharTokenizer,
        Tokenizer,
        WordTokenizer,
        check_same_tokenizer,
        tokenizer_fingerprint,
        tokenizer_from_json,
    )
    from quoin.data.tokenizing import Tokenized, tokenize_file
    from quoin.data.walk_directions import WalkDirections, make_walk_directions
    from quoin.data.waves import make_waves

__all__ = [
    "ALL_SOURCES",
    "BOS",
    "EOS",
    "PAD",
    "REMOTE_DATASETS",
    "SOURCES",
    "BPETokenizer",
    "BPTTWindows",
    "BatchSampler",
    "ByteTokenizer",
    "CacheEntry",
    "CharTokenizer",
    "Column",
    "ColumnEncoding",
    "CopySequences",
    "Corpus",
    "CorpusSplit",
    "Dataset",
    "FeatureRows",
    "Fold",
    "Glyphs",
    "ImageInfo",
    "ImageSplits",
    "LabeledBatch",
    "LabeledCorpus",
    "LabeledGraph",
    "LabeledTextInfo",
    "LabeledTexts",
    "MarkovSource",
    "MixedExamples",
    "Padded",
    "PairBatch",
    "PairCorpus",
    "PairInfo",
    "PairSplits",
    "Pairs",
    "PointInfo",
    "PointSet",
    "PointSplits",
    "PreparedData",
    "RandomWindows",
    "RemoteDataset",
    "RemoteFile",
    "RowNoise",
    "SequenceInfo",
    "Shapes",
    "SpecialTokenTokenizer",
    "Split",
    "StandardScaler",
    "StoredImages",
    "StoredTokens",
    "TableEncoder",
    "TabularInfo",
    "Text",
    "TextInfo",
    "TextSplits",
    "TextStream",
    "TokenBatch",
    "TokenFile",
    "TokenFileSplit",
    "TokenPairs",
    "TokenWriter",
    "Tokenized",
    "Tokenizer",
    "TokenizerName",
    "WalkDirections",
    "WordTokenizer",
    "as_classes",
    "as_regression",
    "as_signals",
    "background",
    "cache_entries",
    "cache_folder",
    "check_same_tokenizer",
    "check_source_name",
    "encode_texts",
    "epoch_permutation",
    "fetch",
    "fetched_folder",
    "fit_tokenizer",
    "fold",
    "is_fetched",
    "keyed_generator",
    "keyed_seed",
    "kfold",
    "labeled_text_info",
    "load",
    "load_corpus",
    "load_karate_club",
    "load_labeled_corpus",
    "load_labeled_pairs",
    "load_like",
    "load_pair_corpus",
    "load_pairs",
    "load_points",
    "load_text",
    "make_blobs",
    "make_circles",
    "make_copy_sequences",
    "make_glyphs",
    "make_hmm_source",
    "make_linear",
    "make_markov_source",
    "make_moons",
    "make_polynomial",
    "make_segment_digits",
    "make_shapes",
    "make_symbol_corpus",
    "make_tiny_images",
    "make_walk_directions",
    "make_waves",
    "mixup",
    "number_words",
    "open_tokens",
    "pad_sequences",
    "pair_info",
    "prepare",
    "random_cutout",
    "random_horizontal_flip",
    "random_resized_crop",
    "random_shift",
    "read_features",
    "read_pictures_like",
    "read_rows",
    "read_signals",
    "read_texts",
    "read_windows",
    "remove_entry",
    "sequence_info",
    "split",
    "split_images",
    "split_pairs",
    "split_points",
    "text_info",
    "tokenize_file",
    "tokenize_text",
    "tokenizer_fingerprint",
    "tokenizer_from_json",
    "with_test_set",
]

export_lazily(__name__)
