"""The benchmark `ngram-count`: how often every run of one, two and three tokens occurs in the words of Python's help
texts.

nltk's `NgramCounter` is what its language models count with; it is handed plain tuples, without the padding and the
vocabulary look-up of `fit`, which only cost it time.
"""

from quoin.bench.worker import Repeats

__all__ = ["by_nltk", "by_quoin"]

ORDER = 3
VOCAB_SIZE = 4000
PRIME = 2_147_483_647


def by_quoin(repeats: Repeats) -> dict[str, float]:
    import torch

    from quoin.data import load_corpus
    from quoin.models import NgramCounts, ngram_counts

    torch.set_num_threads(repeats.threads)
    corpus = load_corpus("topics", "word", VOCAB_SIZE)
    tokens, m = corpus.train.in_memory(), corpus.tokenizer.vocab_size

    def count_ngrams() -> tuple[NgramCounts, float]:
        began = repeats.clock()
        found = ngram_counts(tokens, m, ORDER)
        return found, repeats.clock() - began

    found, seconds = repeats.timed(count_ngrams)
    words = torch.zeros_like(found.keys)  # the tokens of each n-gram, as the digits of a number to base m + 1
    for begin, end in zip(found.begins[1:], found.begins[2:]):
        words[begin:end] = words[found.parents[begin:end]] * (m + 1) + found.tokens[begin:end] + 1
    counted = zip(words[1:].tolist(), found.counts[1:].tolist())
    return _figures(counted, len(found.keys) - 1, len(tokens) / seconds)


def by_nltk(repeats: Repeats) -> dict[str, float]:
    from nltk.lm import NgramCounter  # pyright: ignore[reportMissingImports]
    from nltk.util import everygrams  # pyright: ignore[reportMissingImports]

    from quoin.data import load_corpus

    corpus = load_corpus("topics", "word", VOCAB_SIZE)
    tokens, m = corpus.train.in_memory().tolist(), corpus.tokenizer.vocab_size

    def count_ngrams() -> tuple[NgramCounter, float]:
        began = repeats.clock()
        found = NgramCounter([everygrams(tokens, max_len=ORDER)])
        return found, repeats.clock() - began

    found, seconds = repeats.timed(count_ngrams)
    counted = [(word + 1, count) for word, count in found.unigrams.items()]
    for length in range(2, ORDER + 1):
        for context, following in found[length].items():  # pyright: ignore[reportOptionalMemberAccess]
            number = 0
            for word in context:
                number = number * (m + 1) + word + 1
            counted += [(number * (m + 1) + word + 1, count) for word, count in following.items()]
    return _figures(counted, len(counted), len(tokens) / seconds)


def _figures(counted, num_different: int, speed: float) -> dict[str, float]:
    """Both implementations must give the same first two: how many n-grams differ, and a sum over what each is and how
    often it comes.
    """
    total = sum(pow(number % PRIME, 2, PRIME) * count for number, count in counted) % PRIME
    return {"different n-grams": float(num_different), "checksum": float(total), "tokens a second": speed}
