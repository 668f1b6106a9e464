"""Pairs of sentences: what is generated beside a second reading of it, parts that share no source, batches beside their
slow twin."""

import datetime
import json
import re

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quoin.data import (
    BOS,
    EOS,
    PAD,
    CharTokenizer,
    PairInfo,
    Pairs,
    SpecialTokenTokenizer,
    TokenPairs,
    WordTokenizer,
    check_source_name,
    load,
    load_pair_corpus,
    load_pairs,
    number_words,
    pad_sequences,
    pair_info,
    split_pairs,
)
from quoin.data.written_dates import DATE_STYLES
from quoin.errors import UserError

IN_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
SENTENCES = st.text("abc é", min_size=1, max_size=12)
PAIRS = st.lists(st.tuples(SENTENCES, SENTENCES), min_size=1, max_size=40)


def one_line(mistake):
    assert len(str(mistake.value).splitlines()) == 1
    return str(mistake.value)


def as_pairs(rows, name="made"):
    return Pairs(name, tuple(row[0] for row in rows), tuple(row[1] for row in rows))


# ---- numbers and dates ------------------------------------------------------------------------------------------

ONES = dict(zip(["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"], range(1, 10)))
TEENS = dict(
    zip(
        ["ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"],
        range(10, 20),
    )
)
TENS = dict(zip(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], range(20, 100, 10)))


def read_number(words):
    """What a listener makes of it: small numbers add up, a hundred multiplies them, a thousand closes a group."""
    total = group = 0
    for word in words.replace("-", " ").replace(" and ", " ").split():
        if word in ("thousand", "million"):
            total, group = total + group * {"thousand": 1000, "million": 10**6}[word], 0
        elif word == "hundred":
            group *= 100
        else:
            group += (ONES | TEENS | TENS | {"zero": 0})[word]
    return total + group


@given(st.integers(0, 10**9 - 1) | st.integers(0, 2000))
def test_number_words_are_heard_as_the_number(number):
    words = number_words(number)
    assert read_number(words) == number
    assert not re.search(r"  | and$|^and|\band and\b| $", words)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "zero"),
        (100, "one hundred"),
        (101, "one hundred and one"),
        (1001, "one thousand and one"),
        (1100, "one thousand one hundred"),
        (21_000, "twenty-one thousand"),
        (999_999, "nine hundred and ninety-nine thousand nine hundred and ninety-nine"),
        (1_000_100, "one million one hundred"),
    ],
)
def test_numbers_as_the_british_say_them(number, words):
    assert number_words(number) == words


@pytest.mark.parametrize("number", [-1, 10**9])
def test_a_number_out_of_reach_is_refused(number):
    with pytest.raises(UserError, match="999,999,999"):
        number_words(number)


FORMS = (
    "%d %B %Y",
    "%B %d, %Y",
    "%d %b %Y",
    "%d %b '%y",
    "%A, %d %B %Y",
    "%a %b %d %Y",
    "%d of %B %Y",
    "%d.%m.%Y",
    "%d.%m.%y",
    "%m/%d/%Y",
    "%m/%d/%y",
    "%d-%b-%Y",
    "%Y%m%d",
)


def read_date(text):
    """The day by the standard library's reader, and the weekday that is named, if any."""
    plain = re.sub(r"(?<=\d)(st|nd|rd|th)\b", "", text.removeprefix("the "))
    found = set()
    for form in FORMS:
        try:
            found.add(datetime.datetime.strptime(plain, form).date())
        except ValueError:
            continue
    (day,) = found  # one reading only
    return day


def test_dates_are_read_back_by_the_standard_library():
    pairs = load_pairs("dates", num_pairs=1500, seed=3)
    for source, target in zip(pairs.sources, pairs.targets, strict=True):
        day = datetime.date.fromisoformat(target)
        assert datetime.date(1970, 1, 1) <= day <= datetime.date(2069, 12, 31)
        if day.year != 2069:  # which in two digits the standard library takes for 1969
            assert read_date(source) == day
        if named := re.match("(Mon|Tue|Wed|Thu|Fri|Sat|Sun)", source):
            assert day.strftime("%a") == named[0]


def test_no_two_days_are_written_alike_and_every_style_comes():
    written: dict[str, int] = {}
    first = datetime.date(1970, 1, 1)
    for number in range(0, 36_525, 5):
        for style in DATE_STYLES:
            assert written.setdefault(style(first + datetime.timedelta(number)), number) == number
    ordinal = DATE_STYLES[6]
    endings = [ordinal(datetime.date(2011, 11, day)) for day in (1, 2, 3, 4, 11, 12, 13, 21, 22, 23, 30)]
    assert [re.search(r"\d+(..)", each)[1] for each in endings] == [
        "st",
        "nd",
        "rd",
        "th",
        "th",
        "th",
        "th",
        "st",
        "nd",
        "rd",
        "th",
    ]


@pytest.mark.parametrize("source", ["dates", "numbers"])
def test_generated_pairs_are_different_and_a_function_of_the_seed(source):
    pairs = load_pairs(source, num_pairs=3000, seed=1)
    assert len(pairs) == len(set(pairs.sources)) == 3000
    assert pairs == load_pairs(source, num_pairs=3000, seed=1)
    assert (
        pairs.fingerprint
        == load_pairs(source, num_pairs=3000, seed=1).fingerprint
        != load_pairs(source, seed=2).fingerprint
    )


@pytest.mark.parametrize("count", [0, 10**6])
def test_a_number_of_pairs_that_cannot_be_drawn(count):
    with pytest.raises(UserError, match="from 1 to 100000"):
        load_pairs("dates", num_pairs=count)


# ---- parts ------------------------------------------------------------------------------------------------------


@given(PAIRS, st.integers(0, 100))
def test_no_source_is_in_two_parts_and_nothing_is_lost(rows, seed):
    pairs = as_pairs(rows)
    different = len(set(pairs.sources))
    if different < 10:
        with pytest.raises(UserError, match="10 different sources"):
            split_pairs(pairs, seed)
        return
    parts = split_pairs(pairs, seed)
    assert sorted(pair for part in parts for pair in zip(part.sources, part.targets)) == sorted(rows)
    sets = [set(part.sources) for part in parts]
    assert sum(map(len, sets)) == different
    assert len(sets[1]) == len(sets[2]) == different // 10
    assert parts == split_pairs(pairs, seed)


def test_another_seed_gives_other_parts():
    pairs = load_pairs("numbers", num_pairs=500)
    assert set(split_pairs(pairs, 0).test.sources) != set(split_pairs(pairs, 1).test.sources)


# ---- tokens -----------------------------------------------------------------------------------------------------


@given(st.text("abc é", max_size=20))
def test_a_sentence_comes_back_from_its_tokens(text):
    for inner in (CharTokenizer.fit("abc é"), WordTokenizer.fit(["ab é ab"], 8, alphabet="abc é")):
        vocabulary = SpecialTokenTokenizer(inner)
        tokens = vocabulary.encode(text)
        assert tokens[-1] == EOS
        assert bool((tokens[:-1] > max(PAD, BOS, EOS)).all())
        assert vocabulary.vocab_size == inner.vocab_size + 3
        padded = [BOS, *tokens.tolist(), PAD, 3, EOS]  # what stands behind the end is not said
        assert vocabulary.decode(padded) == text
        again = SpecialTokenTokenizer.from_json(json.loads(json.dumps(vocabulary.as_json())))
        assert again.encode(text).equal(tokens)


def test_tokens_and_characters_that_do_not_exist():
    vocabulary = SpecialTokenTokenizer(CharTokenizer.fit("ab"))
    with pytest.raises(UserError, match="from 0 to 4, got 5"):
        vocabulary.decode([3, 5])
    with pytest.raises(UserError, match="'z'"):
        vocabulary.encode("abz")


@given(PAIRS, st.data())
def test_batches_are_padded_as_their_slow_twin(rows, data):
    pairs = as_pairs(rows)
    vocabulary = SpecialTokenTokenizer(CharTokenizer.fit("abc é"))
    tokens = TokenPairs(pairs, vocabulary, vocabulary)
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=6))
    batch = tokens.read(torch.tensor(chosen))
    source = pad_sequences([vocabulary.encode(rows[row][0]) for row in chosen], PAD)
    target = pad_sequences([vocabulary.encode(rows[row][1]) for row in chosen], PAD)
    inputs = pad_sequences([[BOS, *vocabulary.encode(rows[row][1])[:-1].tolist()] for row in chosen], PAD)
    assert batch.source.equal(source.tokens)
    assert batch.source_lengths.equal(source.lengths)
    assert batch.targets.equal(target.tokens)
    assert batch.target_lengths.equal(target.lengths)
    assert batch.inputs.equal(inputs.tokens)
    assert len(tokens) == len(rows)


def test_a_corpus_has_its_facts_and_they_survive_json():
    corpus = load_pair_corpus("numbers", target_tokenizer="word", num_pairs=300, seed=5)
    data_info = pair_info(corpus)
    again = PairInfo.from_json(json.loads(json.dumps(data_info.as_json())))
    assert again == data_info
    assert data_info.num_pairs == 300
    batch = corpus.train.read(torch.arange(len(corpus.train)))
    assert data_info.longest_target == batch.targets.shape[1]
    said = [again.target_tokenizer.decode(row) for row in batch.targets]
    heard = [again.source_tokenizer.decode(row) for row in batch.source]
    assert [number_words(int(each)) for each in heard] == said
    with pytest.raises(UserError, match=r"restore the file"):
        PairInfo.from_json({"source": "numbers"})


# ---- files ------------------------------------------------------------------------------------------------------


def write(folder, content):
    path = folder / "pairs.tsv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return f"tsv:{path}"


@IN_FOLDER
@given(st.lists(st.tuples(SENTENCES.filter(str.strip), SENTENCES.filter(str.strip)), min_size=1, max_size=20))
def test_a_file_of_pairs_is_read_once_each(tmp_path, rows):
    rows = [(source.strip(), target.strip()) for source, target in rows]
    content = "".join(f"{source}\t{target}\n" for source, target in rows)
    found = load_pairs(write(tmp_path, content))
    assert list(zip(found.sources, found.targets)) == list(dict.fromkeys(rows))
    assert found.fingerprint == load_pairs(write(tmp_path, content.replace("\n", "\r\n"))).fingerprint
    with_credits = load_pairs(
        write(tmp_path, content.replace("\n", "\tby whom\n\n"))
    )  # as collections of sentences come
    assert with_credits.sources == found.sources


def test_only_a_line_feed_ends_a_line(tmp_path):
    assert load_pairs(write(tmp_path, "a\u2028b\tc\x0bd\n")).sources == ("a\u2028b",)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("a\tb\nc d\n", "line 2 of .* no tab in 'c d'"),
        ("a\tb\n\n\tb\n", "line 3 of .* its source is empty"),
        ("a\t \n", "line 1 of .* its target is empty"),
        (b"a\tb\nc\xff\td\n", "byte 0xff at position 5"),
        ("\n \n", "all its lines are blank"),
        ("", "the file is empty"),
    ],
)
def test_a_file_that_is_no_file_of_pairs(tmp_path, content, told):
    with pytest.raises(UserError, match=told) as mistake:
        load_pairs(write(tmp_path, content))
    one_line(mistake)


def test_names_of_pairs(tmp_path):
    for name in ("dates", "numbers", "tsv:some.tsv"):
        check_source_name(name)
    with pytest.raises(UserError, match="did you mean 'dates'"):
        check_source_name("date")
    with pytest.raises(UserError, match="write tsv:PATH"):
        check_source_name("tsv:")
    with pytest.raises(UserError, match="pairs of sentences"):
        load("dates")
    with pytest.raises(UserError, match="give dates, numbers, tsv:PATH, csv:PATH"):
        load_pairs("topics")
    with pytest.raises(UserError, match="cannot be reached"):
        load_pairs(f"tsv:{tmp_path / 'none.tsv'}")
