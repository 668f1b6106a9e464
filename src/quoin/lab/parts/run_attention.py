"""Where a trained model attends, on what a reader gives it: every head on a text, on a picture, from a translation to
its source."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from quoin.data import BOS, EOS, SpecialTokenTokenizer, pad_sequences
from quoin.errors import UserError
from quoin.inspect import AttentionMaps, attention_entropy, attention_maps, has_attention
from quoin.lab.parts.controls import Choice, Control, Slider, Text
from quoin.lab.parts.exhibit import Exhibit, Number, View
from quoin.lab.parts.given_picture import PictureInput
from quoin.lab.parts.picture import Picture
from quoin.lab.parts.run_data import test_sources
from quoin.lab.parts.run_exhibit import run_exhibit
from quoin.lab.parts.run_texts import typed_sentence, typed_text
from quoin.lab.parts.text_models import align
from quoin.models import Seq2Seq
from quoin.runs import Run
from quoin.runs.inspect_text import token_names
from quoin.runs.kinds.language_modeling import TrainedLanguageModel
from quoin.runs.kinds.sequence_classification import TrainedTextClassifier
from quoin.runs.kinds.tabular import TrainedTabular
from quoin.runs.kinds.translation import TrainedTranslator
from quoin.tasks.translation import longest, translate

__all__ = ["attention_exhibits", "key_grid", "translation_maps"]

MOST_TOKENS = 60
NAMED = 42  # tokens that stand at their rows and columns
MOST_HEADS = 16


def attention_exhibits(run: Run) -> list[Exhibit]:
    """What a run's heads attend to, if it has any: one exhibit, or none."""
    match run.trained:
        case TrainedLanguageModel() if has_attention(run.model):
            return [_of_text(run, lambda text: _language_maps(run, text), typed_text(run))]
        case TrainedTextClassifier() if has_attention(run.model):
            example = next(iter(test_sources(run)), "")
            return [_of_text(run, lambda text: _class_maps(run, text), Text("text", "your text", example, 1000, 3))]
        case TrainedTranslator() if isinstance(run.model, Seq2Seq) or has_attention(run.model):
            return [_of_text(run, lambda text: translation_maps(run, text), typed_sentence(run))]
        case TrainedTabular() if has_attention(run.model) and len(run.data_info.feature_shape) == 3:
            return [_of_picture(run)]
    return []


# ---- texts -------------------------------------------------------------------------------------------------------


def _bounded(tokens: Tensor, least: int, most: int) -> Tensor:
    if not least <= len(tokens) <= most:
        raise UserError(f"expected a text of {least} to {most} tokens, got {len(tokens)}; change it")
    return tokens


def _language_maps(run: Run, text: str) -> list[AttentionMaps]:
    trained: Any = run.trained
    # As it generates: the end of a text that is longer than its context.
    tokens = trained.tokenizer.encode(text)[-min(trained.window or MOST_TOKENS, MOST_TOKENS) :]
    _bounded(tokens, 2, MOST_TOKENS)
    return attention_maps(run.model, tokens[None], tokens=token_names(trained.tokenizer, tokens))


def _class_maps(run: Run, text: str) -> list[AttentionMaps]:
    trained: Any = run.trained
    tokens = _bounded(trained.data_info.tokenizer.encode(text), 2, MOST_TOKENS)
    return attention_maps(run.model, *pad_sequences([tokens]), tokens=token_names(trained.data_info.tokenizer, tokens))


@torch.no_grad()
def translation_maps(run: Run, sentence: str) -> list[AttentionMaps]:
    """Of a sentence and its translation by greedy search: a Transformer's every layer, a recurrent decoder's one."""
    if isinstance(run.model, Seq2Seq):
        said = align(run, sentence)
        return [AttentionMaps("decoder", said.weights[None], tuple(said.target), tuple(said.source))]
    if not sentence.strip():
        raise UserError("expected a sentence to translate, got an empty one; type one")
    info = run.data_info
    source = _bounded(info.source_tokenizer.encode(sentence), 1, MOST_TOKENS)[None]
    lengths = torch.tensor([source.shape[1]])
    found = translate(run.model, source, lengths, num_beams=1, max_tokens=min(longest(info), MOST_TOKENS)).tokens[0]
    read = torch.cat([torch.tensor([BOS]), found[:-1]])[None]
    names = _names(info.source_tokenizer, source[0]), _names(info.target_tokenizer, found)
    labeled = []
    for each in attention_maps(run.model, source, read):
        queries = names[0] if each.layer.startswith("encoder") else names[1]
        labeled.append(each.labeled(queries, names[0] if each.layer.endswith("cross_attention") else queries))
    return labeled[::-1]  # the decoder's last, which is read as an alignment, first


def _names(tokenizer: SpecialTokenTokenizer, tokens: Tensor) -> list[str]:
    return ["EOS" if token == EOS else tokenizer.decode([token]).replace(" ", "␣") for token in tokens.tolist()]


def _of_text(run: Run, ask: Callable[[str], list[AttentionMaps]], given: Text) -> Exhibit:
    """One head at a time, with the tokens at its rows and columns."""

    def _view(text: str, layer: str, head: int) -> View:
        chosen = _chosen(ask(text), layer)
        head = min(head, len(chosen.weights))
        weights = chosen.weights[head - 1]
        named = max(weights.shape) <= NAMED
        tall = max(420, 14 * len(weights)) if named else 420  # 14: what the name of a row needs
        picture = Picture(f"Attention weights of head {head} of {chosen.layer}.", height=tall + 50)
        axes = picture.axes(bare=True, box=(96 if named else 16, 10, 530 if named else 610, tall))
        rows, columns = chosen.query_labels if named else (), chosen.key_labels if named else ()
        axes.cells(weights, most=1.0, rows=[name[:12] for name in rows], columns=[name[:6] for name in columns])
        entropy = float(attention_entropy(weights[None].double())[0])
        return View(picture, [Number("entropy of a row, mean", entropy, "nats")])

    def who_attends(text: str, layer: str = "", head: int = 1) -> View:
        return _view(text, layer, head)

    def where_it_attends(sentence: str, layer: str = "", head: int = 1) -> View:
        return _view(sentence, layer, head)

    maps = _probe(ask, given.default)
    show = who_attends if given.name == "text" else where_it_attends
    intro = "Rows attend to columns: each row sums to 1."
    if given.name == "sentence":
        intro = "Rows, the tokens of the translation, attend to columns; each row sums to 1."
    return run_exhibit(show, "Who attends to what?", intro, (given, *_layers_and_heads(maps)), [run])


def _probe(ask: Callable[[str], list[AttentionMaps]], text: str) -> list[AttentionMaps]:
    """The maps of some text, to learn which layers and heads there are; none where no text can be read."""
    try:
        return ask(text)
    except UserError:
        return []


def _layers_and_heads(maps: Sequence[AttentionMaps]) -> list[Control]:
    found: list[Control] = []
    if len(maps) > 1:
        found.append(Choice("layer", "layer", tuple(each.layer for each in maps)))
    heads = max((len(each.weights) for each in maps), default=1)
    if heads > 1:
        found.append(Slider("head", "head", 1, heads, 1, step=1))
    return found


def _chosen(maps: Sequence[AttentionMaps], layer: str) -> AttentionMaps:
    return next((each for each in maps if each.layer == layer), maps[0])


# ---- pictures ----------------------------------------------------------------------------------------------------


def key_grid(rows: int, columns: int, keys: int) -> tuple[int, int, int] | None:
    """How keys lie over a picture: rows and columns of patches, and how many keys (a class token) go before them.

    A key for each row of pixels is one column of patches. None where they lie in no such way.
    """
    for before in (0, 1):
        if keys - before == rows:
            return rows, 1, before
        for size in range(1, min(rows, columns) + 1):
            if rows % size == 0 and columns % size == 0 and (rows // size) * (columns // size) == keys - before:
                return rows // size, columns // size, before
    return None


def _of_picture(run: Run) -> Exhibit:
    """All heads of a layer, each as a map over the picture of what one patch attends to."""
    given = PictureInput(run)
    trained: Any = run.trained

    def look(features: Tensor) -> list[AttentionMaps]:
        return attention_maps(run.model, trained.feature_scaler.transform(features[None]))

    def where_it_looks(
        source: str,
        query: int,
        layer: str = "",
        row: int = 1,
        file: bytes | None = None,
        image: Sequence[int] = (),
    ) -> View:
        found = given.read(source, row, file, image)
        chosen = _chosen(look(found.features), layer)
        at = min(query, chosen.weights.shape[1]) - 1
        weights = chosen.weights[:MOST_HEADS, at].double()
        picture = Picture(f"What patch {at + 1} attends to in {chosen.layer}, head by head.", height=340)
        axes = given.draw(picture, found, 16, 30, 260)
        grid = key_grid(*given.shape[1:], chosen.weights.shape[2])
        if grid is not None and at >= grid[2]:
            _outline(axes, at - grid[2], grid, given.shape)
        _draw_heads(picture, weights, grid, at, given.shape)
        prediction = trained.predict(found.features[None])
        names = [str(name) for name in trained.data_info.class_names]
        numbers = [Number("prediction", names[int(prediction.values[0])])]
        if found.truth:
            numbers.insert(0, Number("class", found.truth))
        entropy = float(torch.special.entr(weights).sum(-1).mean())
        numbers.append(Number("entropy, mean of heads", entropy, "nats"))
        return View(picture, numbers, note="" if grid is None or not grid[2] or at else "Query 1 is the class token.")

    maps = look(torch.zeros(given.shape))
    queries = max(each.weights.shape[1] for each in maps)
    first: list[Control] = [Slider("query", "query patch", 1, max(queries, 2), queries // 2, step=1)]
    layers = [each for each in _layers_and_heads(maps) if each.name == "layer"]
    intro = "The framed patch asks; the bluer a patch in a head's map, the more it attends there."
    return run_exhibit(where_it_looks, "Who attends to what?", intro, [*given.controls, *layers, *first], [run])


def _outline(axes: Any, patch: int, grid: tuple[int, int, int], shape: tuple[int, int, int]) -> None:
    """The frame of a patch over its picture, whose axes count pixels, y upwards."""
    down, across = shape[1] / grid[0], shape[2] / grid[1]
    row, column = divmod(patch, grid[1])
    left, right, top, bottom = (
        column * across,
        (column + 1) * across,
        shape[1] - row * down,
        shape[1] - (row + 1) * down,
    )
    axes.line([left, right, right, left, left], [top, top, bottom, bottom, top], "hand", width=3.5)


def _draw_heads(
    picture: Picture, weights: Tensor, grid: tuple[int, int, int] | None, at: int, shape: tuple[int, int, int]
) -> None:
    """A small map for each head, right of the picture; in each the frame of the patch that asks."""
    count = len(weights)
    columns = max(1, math.ceil(math.sqrt(count)))
    width = 340 / columns
    for number, row in enumerate(weights):
        left, top = 296 + width * (number % columns), 30 + (width + 14) * (number // columns)
        side = width - 14
        tall = side * shape[1] / max(shape[1:]) if grid else 16
        wide = side * shape[2] / max(shape[1:]) if grid else side
        axes = picture.axes((0, shape[2]), (0, shape[1]), bare=True, box=(left, top, wide, tall))
        table = row[None] if grid is None else row[grid[2] :].reshape(grid[0], grid[1])
        axes.cells(table, most=float(weights.max()) or 1.0)
        if grid is not None and at >= grid[2]:
            _outline(axes, at - grid[2], grid, shape)
        picture.text(left, top - 5, f"head {number + 1}", role="faint", size=12)
    picture.height = max(picture.height, 40 + int((width + 14) * math.ceil(count / columns)))
