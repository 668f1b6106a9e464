"""Seeing inside attention: asking changes nothing, the page holds the weights that were asked for, and mistakes are one
line."""

import base64
import copy
import io
import itertools
import json
import math
import re
import shutil
import subprocess
import zlib
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torch import Tensor, nn

from quoin import inspect, plot
from quoin.errors import UserError
from quoin.inspect import (
    AttentionMaps,
    attention_distance,
    attention_entropy,
    attention_maps,
    capture_attention,
    plot_attention_maps,
)
from quoin.layers import ExactAttention, FeatureMapAttention, MultiHeadAttention, PerformerFeatures, SelfAttention
from quoin.plot import AttentionLayer
from seeds import seeded

NASTY = [
    "<b>",
    "&amp;",
    '"quoted"',
    "it's",
    "</script><script>alert(1)</script>",
    "\u2028",
    "{{layers}}",
    "$x^{",
    "🙂",
    "",
]


class Block(nn.Module):
    """Attention with dropout on its weights, and a perceptron with dropout after it."""

    def __init__(self, core: nn.Module, *, causal: bool, seed: int = 0):
        super().__init__()
        self.attention = MultiHeadAttention(8, 2, inner_attention=core, generator=seeded(seed))  # type: ignore[arg-type]
        self.perceptron, self.causal = nn.Sequential(nn.Linear(8, 8), nn.ReLU(inplace=True), nn.Dropout(0.5)), causal

    def forward(self, x: Tensor) -> Tensor:
        return x + self.perceptron(self.attention(x, causal=self.causal))


def blocks() -> nn.Sequential:
    """Exact attention with dropout, and attention of linear cost whose features are drawn anew for each training
    pass."""
    features = PerformerFeatures(4, 16, generator=seeded(3), redraw_interval=1)
    return nn.Sequential(
        Block(ExactAttention(dropout=0.3), causal=True), Block(FeatureMapAttention(features), causal=False, seed=1)
    )


class Twice(nn.Module):
    """Cross attention by torch's layer, sequences first, twice through the same weights."""

    def __init__(self) -> None:
        super().__init__()
        self.look = nn.MultiheadAttention(8, 4)

    def forward(self, target: Tensor, source: Tensor) -> Tensor:
        once, _ = self.look(target, source, source, need_weights=False)
        return self.look(once, source, value=source)[0]


# ---- asking


def test_the_weights_are_those_that_the_layers_use():
    model, x = blocks().eval(), torch.randn(1, 6, 8, generator=seeded(2))
    first, second = attention_maps(model, x)
    assert (first.layer, second.layer) == ("0.attention", "1.attention")
    for found, block, inputs in ((first, model[0], x), (second, model[1], model[0](x))):
        layer: Any = block.attention
        _, _, v = layer._heads(inputs, None, None)
        rebuilt = layer.out_proj((found.weights @ v[0]).transpose(0, 1).flatten(1))
        assert torch.allclose(rebuilt, layer(inputs, causal=block.causal)[0], atol=1e-5)
    assert first.weights.triu(1).abs().max() == 0  # causal
    assert torch.allclose(first.weights.sum(-1), torch.ones(2, 6))


@pytest.mark.parametrize("training", [False, True])
def test_asking_changes_no_bit_of_the_outputs_and_leaves_the_model_as_it_was(training):
    x = torch.randn(1, 6, 8, generator=seeded(2), requires_grad=True)

    def two_passes(model: nn.Module) -> list[Tensor]:
        torch.manual_seed(0)
        outputs = [model(x), model(x)]
        return [*outputs, torch.autograd.grad(torch.cat(outputs).square().sum(), x)[0], *model.state_dict().values()]

    untouched = blocks().train(training)
    plain, model = two_passes(copy.deepcopy(untouched)), copy.deepcopy(untouched)
    with capture_attention(model) as found:
        watched = two_passes(model)
    assert len(found) == 4
    assert all(torch.equal(one, other) for one, other in zip(plain, watched, strict=True))
    assert all(module.training == training for module in model.modules())
    assert not any(module._forward_hooks for module in model.modules())
    model = copy.deepcopy(untouched)
    attention_maps(model, x)
    assert all(module.training == training for module in model.modules())
    assert all(torch.equal(one, other) for one, other in zip(plain, two_passes(model), strict=True))


def test_a_watched_pass_that_fails_leaves_no_hooks():
    model = blocks()
    with pytest.raises(UserError), capture_attention(model):
        model(torch.zeros(1, 6, 9))
    assert not any(module._forward_hooks for module in model.modules())


def test_torchs_own_layers_are_asked_too():
    model, target, source = (
        Twice(),
        torch.randn(3, 1, 8, generator=seeded(0)),
        torch.randn(5, 1, 8, generator=seeded(1)),
    )
    found = attention_maps(model, target, source)
    assert [(each.layer, tuple(each.weights.shape)) for each in found] == [("look", (4, 3, 5))] * 2
    _, weights = model.look(target, source, source, average_attn_weights=False)
    assert torch.allclose(found[0].weights, weights[0])
    alone = attention_maps(model, target[:, 0], source[:, 0])  # without a batch
    assert torch.allclose(alone[0].weights, found[0].weights, atol=1e-6)


def test_torchs_encoder_shows_the_weights_that_padding_leaves():
    layer = nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=8, batch_first=True)
    model = nn.TransformerEncoder(layer, num_layers=2)
    padding = torch.tensor([[False, False, False, True]])
    with torch.no_grad(), capture_attention(model.eval()) as found:
        model(torch.randn(1, 4, 8, generator=seeded(0)), src_key_padding_mask=padding)
    assert [each.layer for each in found] == ["layers.0.self_attn", "layers.1.self_attn"]
    assert all(each.weights[:, :, 3].abs().max() == 0 for each in found)
    assert torch.backends.mha.get_fastpath_enabled()  # as it was


def test_a_core_alone_is_asked():
    [found] = attention_maps(SelfAttention(4, head_dim=3, out_features=2), torch.randn(5, 4, generator=seeded(0)))
    assert (found.layer, tuple(found.weights.shape)) == ("attention.inner_attention", (1, 5, 5))


# ---- numbers about a head


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 3), st.integers(1, 7), st.sampled_from([torch.float32, torch.float64]), st.integers(0, 2**31))
def test_the_statistics_are_those_of_loops(heads, n, dtype, seed):
    weights = (3 * torch.randn(heads, n, n, generator=seeded(seed), dtype=dtype)).softmax(-1)
    weights[0, n // 2] = 0  # a query that sees nothing
    for head in range(heads):
        rows = [row.tolist() for row in weights[head] if row.sum() > 0]
        places = [i for i in range(n) if weights[head, i].sum() > 0]
        entropies = [-sum(w * math.log(w) for w in row if w > 0) for row in rows]
        distances = [sum(w * abs(i - j) for j, w in enumerate(row)) for i, row in zip(places, rows)]
        for found, expected in ((attention_entropy(weights), entropies), (attention_distance(weights), distances)):
            assert found.dtype == dtype
            if expected:
                assert float(found[head]) == pytest.approx(sum(expected) / len(expected), abs=1e-5)
            else:
                assert found[head].isnan()


def test_the_entropy_at_its_ends():
    n = 9
    weights = torch.stack([torch.eye(n), torch.full((n, n), 1 / n)])
    assert attention_entropy(weights).tolist() == pytest.approx([0, math.log(n)], abs=1e-6)
    back = torch.cat([torch.zeros(2, n), torch.eye(n)[: n - 2]])[
        None
    ]  # every position two back, the first two see nothing
    assert attention_distance(back).tolist() == [2]
    assert attention_entropy(torch.tensor([[[1.5, -0.5]]])).isnan().all()
    with pytest.raises(UserError, match="2 queries and 3 keys"):
        attention_distance(torch.ones(1, 2, 3))


# ---- the page


class Page:
    """What a browser would find in the page, read by other means than it was written."""

    def __init__(self, text: str):
        self.text = text
        self.layers = json.loads(
            re.findall(r'<script type="application/json" id="layers">(.*?)</script>', text, flags=re.DOTALL)[0]
        )

    def weights(self, number: int) -> np.ndarray:
        layer = self.layers[number]
        [packed] = re.findall(rf'<script type="text/plain" id="weights-{number}">(.*?)</script>', self.text)
        raw = zlib.decompress(base64.b64decode(packed))
        high, low = raw[: len(raw) // 2], raw[len(raw) // 2 :]
        found = [_half(a << 8 | b) for a, b in zip(high, low, strict=True)]
        return np.array(found).reshape(layer["heads"], layer["queries"], layer["keys"])


def _half(bits: int) -> float:
    """IEEE 754 half precision, from its definition."""
    sign, exponent, fraction = bits >> 15, bits >> 10 & 31, bits & 1023
    return (-1) ** sign * (2.0 ** (exponent - 15) * (1 + fraction / 1024) if exponent else 2.0**-14 * fraction / 1024)


def named(weights: object, queries: int, keys: int, name: str = "layer") -> AttentionLayer:
    return AttentionLayer(name, weights, tuple(map(str, range(queries))), tuple(map(str, range(keys))))


@settings(max_examples=8, deadline=None)
@given(
    st.integers(1, 3),
    st.integers(1, 8),
    st.integers(1, 8),
    st.sampled_from(["float32", "float64", "bfloat16"]),
    st.integers(0, 2**31),
)
def test_the_page_holds_the_weights_to_half_precision(heads, queries, keys, dtype, seed):
    weights = (4 * torch.randn(heads, queries, keys, generator=seeded(seed))).softmax(-1).to(getattr(torch, dtype))
    weights[0, 0, 0] *= -1  # features may give negative weights
    found = Page(plot.attention([named(weights, queries, keys)]).html()).weights(0)
    true = weights.double().numpy()
    assert np.all(np.abs(found - true) <= 2.0**-11 * np.abs(true) + 2.0**-25)


def test_labels_are_data_and_never_markup():
    n = len(NASTY)
    layer = AttentionLayer(
        "</script><img src=x>", torch.full((1, n, n), 1 / n), tuple(NASTY), tuple(NASTY[::-1]), ((("<i>", "&"),),)
    )
    page = Page(plot.attention([layer]).html("A < B & {{weights}}"))
    [found] = page.layers
    assert (found["query_labels"], found["key_labels"]) == (NASTY, NASTY[::-1])
    assert (found["name"], found["details"]) == ("</script><img src=x>", [[["<i>", "&"]]])
    assert page.text.count("<h1>A &lt; B &amp; {{weights}}</h1>") == 1
    assert not re.search("<img|<b>|alert", page.text.replace("\\u003cimg", "").replace("\\u003cscript\\u003ealert", ""))
    assert page.text.count("</script>") == 3  # the layers, the weights, the program


def test_the_page_needs_nothing_outside_itself():
    page = plot.attention([named(torch.eye(3)[None], 3, 3)]).html()
    assert "://" not in page
    assert not re.search(r"<link|<iframe|\bsrc=|@import|url\(|fetch\(|XMLHttpRequest|import\(", page)
    assert "default-src 'none'" in page  # and a browser holds it to that
    assert plot.attention([named(torch.eye(3)[None], 3, 3)]).html() == page


def test_512_tokens_are_a_page_of_some_megabytes():
    weights = (3 * torch.randn(2, 512, 512, generator=seeded(0))).softmax(-1)
    page = plot.attention([named(weights, 512, 512)]).html()
    assert len(page) < 2.2 * weights.numel()  # bytes a weight; as numbers in text they would be ten
    assert len(plot.attention([named(weights, 512, 512)]).svg()) < 400_000  # the grid is as coarse as it is small


def test_the_grid_keeps_what_is_thin():
    weights = torch.zeros(1, 600, 600)
    weights[0, range(600), range(600)] = 1.0
    weights[0, 599, 0] = -2.0
    [image] = plot.attention([named(weights, 600, 600)]).figure.axes[0].images
    shown = np.asarray(image.get_array())
    assert max(shown.shape) <= 128
    assert (np.diag(shown) == 1).all()
    assert shown[-1, 0] == -2


def test_the_picture_has_a_map_for_each_head_under_its_details():
    model, x = blocks(), torch.randn(1, 6, 8, generator=seeded(2))
    found = attention_maps(model, x, tokens=list("abcdef"))
    drawing = plot_attention_maps(found, title="Blocks")
    axes: Any = drawing.figure.axes[0]
    shown = [np.asarray(image.get_array()) for image in axes.images]
    expected = torch.cat([each.weights for each in found]).numpy()
    assert all(np.allclose(image, weights) for image, weights in zip(shown, expected, strict=True))
    told = [text.get_text() for text in axes.texts]
    entropy, distance = attention_entropy(found[0].weights), attention_distance(found[0].weights)
    assert f"head 1\n{entropy[0]:.3g} nats\n{distance[0]:.3g} positions" in told
    page = Page(drawing.html())
    assert page.layers[0]["query_labels"] == list("abcdef")
    assert page.layers[1]["details"][1][0][0] == "entropy"
    assert Image.open(io.BytesIO(drawing.png())).width > 900


def test_what_has_no_entropy_or_distance_says_nothing_of_them():
    negative = AttentionMaps("a", torch.tensor([[[1.5, -0.5]]]), ("x",), ("y", "z"))
    assert Page(plot_attention_maps([negative]).html()).layers[0]["details"] == [[]]


def test_a_layer_called_twice_is_there_twice():
    found = attention_maps(
        Twice(), torch.randn(3, 1, 8, generator=seeded(0)), torch.randn(5, 1, 8, generator=seeded(1))
    )
    drawing = plot_attention_maps([each.labeled("abc", "vwxyz") for each in found])
    assert [layer["name"] for layer in Page(drawing.html()).layers] == ["look, call 1", "look, call 2"]
    assert len(drawing.figure.axes[0].images) == 8


HOVER = """<script>setTimeout(() => {
  const map = at("map"), box = map.getBoundingClientRect(), { left, top, cell } = geometry();
  const place = { clientX: box.left + left + 2.5 * cell, clientY: box.top + top + 1.5 * cell, bubbles: true };
  map.dispatchEvent(new PointerEvent("pointermove", place));
  const said = [at("told").textContent];
  map.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
  said.push(at("told").textContent);
  const [red, green, blue] = map.getContext("2d").getImageData(left + 1.5 * cell, top + 0.5 * cell, 1, 1).data;
  const told = JSON.stringify([said, [red, green, blue]]);
  document.body.append(Object.assign(document.createElement("pre"), { id: "said", textContent: told }));
}, 1000)</script></body>"""


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium here")
def test_a_browser_says_the_number_under_the_pointer(tmp_path):
    weights = torch.tensor([[[0.5, 0.5, 0.0], [0.25, 0.125, 0.625], [0.0, 0.0, 1.0]]])
    page = plot.attention([AttentionLayer("only", weights, ("a", "<b>", "c"), ("x", "y", "z & z"))]).html()
    (tmp_path / "page.html").write_text(page.replace("</body>", HOVER), encoding="utf-8")
    words = [
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
    ]
    words += [
        f"--user-data-dir={tmp_path / 'profile'}",
        "--virtual-time-budget=5000",
        "--dump-dom",
        f"file://{tmp_path / 'page.html'}",
    ]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        pytest.skip("the browser did not start in time")
    found = re.search('<pre id="said">(.*?)</pre>', done.stdout)
    if found is None and done.returncode:
        pytest.skip("the browser does not run here")
    assert found is not None, done.stdout[-500:]
    (hovered, moved), color = json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    assert hovered == "query 2 “<b>” looks at key 3 “z & z” with weight 0.625"
    assert moved == "query 3 “c” looks at key 3 “z & z” with weight 1"
    assert color[2] > color[0] + 30  # half of the largest weight is blue on white


# ---- alignments


def test_an_alignment_names_every_token_where_its_weights_are():
    weights = torch.tensor([[0.9, 0.1, 0.0], [0.0, 0.2, 0.8]])
    axes: Any = plot.alignment(weights, ["le", "chat", "$noir"], ["the", "cat"], title="Words").figure.axes[0]
    [image] = axes.images
    assert np.allclose(np.asarray(image.get_array()), weights)
    left, right, bottom, top = image.get_extent()
    where = {text.get_text(): text.get_position() for text in axes.texts}
    assert where["le"][0] == pytest.approx(left + (right - left) / 6)
    assert where["cat"][1] == pytest.approx(top + 0.75 * (bottom - top))
    assert where["le"][1] < top  # the source stands above, the target to the left
    assert where["the"][0] < left
    assert r"\$noir" in where


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 40), (40, 1), (60, 60), (13, 11)])
def test_alignments_of_any_size_keep_their_tokens_apart(rows, columns):
    source, target = [f"source-word-{i}" for i in range(columns)], [f"target{i}" for i in range(rows)]
    figure = plot.alignment(torch.full((rows, columns), 1 / columns), source, target).figure
    figure.draw_without_rendering()
    axes: Any = figure.axes[0]
    boxes = [text.get_window_extent() for text in axes.texts]
    paper = figure.bbox
    assert all(box.x0 >= paper.x0 and box.y0 >= paper.y0 and box.x1 <= paper.x1 and box.y1 <= paper.y1 for box in boxes)
    image = axes.images[0].get_window_extent()
    assert not any(box.overlaps(image) for box in boxes)
    assert all(a.x1 <= b.x0 + 1 for a, b in itertools.pairwise(boxes[:columns]))
    assert all(a.y0 >= b.y1 - 1 for a, b in itertools.pairwise(boxes[columns:]))


# ---- mistakes


def maps(queries: int = 2, keys: int = 3) -> AttentionMaps:
    return AttentionMaps("a.b", torch.ones(1, queries, keys), ("0",) * queries, ("0",) * keys)


MISTAKES = {
    "none": (
        lambda: attention_maps(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), torch.ones(1, 2)),
        "Sequential with 1 Linear, 1 ReLU",
    ),
    "a batch": (lambda: attention_maps(blocks(), torch.zeros(3, 6, 8)), "batch of one"),
    "tokens": (
        lambda: attention_maps(blocks(), torch.zeros(1, 6, 8), tokens=["a"]),
        "expected 6 query labels for '0.attention', got 1",
    ),
    "key labels": (lambda: maps().labeled("ab", "cd"), "expected 3 key labels for 'a.b', got 2"),
    "too long": (
        lambda: attention_maps(SelfAttention(1, head_dim=1, out_features=1), torch.zeros(2049, 1)),
        "at most 2048 positions to show, got 2049",
    ),
    "too long to draw": (lambda: plot.attention([named(torch.ones(1, 1, 2049), 1, 2049)]), "at most 2048 positions"),
    "too many": (lambda: plot.attention([named(torch.zeros(5, 2048, 2048), 2048, 2048)]), "fewer layers or positions"),
    "labels": (
        lambda: plot.attention([AttentionLayer("x", torch.ones(1, 2, 2), ("a",), ("a", "b"))]),
        "2 query labels of 'x', got 1",
    ),
    "details": (
        lambda: plot.attention([AttentionLayer("x", torch.ones(2, 1, 1), ("a",), ("a",), ((),))]),
        "details of 2 heads",
    ),
    "not finite": (lambda: plot.attention([named(torch.full((1, 1, 1), math.nan), 1, 1)]), "finite weights"),
    "axes": (lambda: plot.attention([named(torch.ones(2, 2), 2, 2)]), "3 axes"),
    "nothing": (lambda: plot.attention([]), "at least one layer"),
    "source": (lambda: plot.alignment(torch.ones(2, 3), "ab", "abc"), "expected 2 target tokens"),
    "sentence": (lambda: plot.alignment(torch.ones(1, 61), ["a"] * 61, "a"), "at most 60 source tokens"),
    "negative": (lambda: plot.alignment(-torch.ones(1, 1), "a", "a"), "at least 0"),
    "captions": (
        lambda: plot.feature_map_rows({"a": torch.ones(2, 1, 1)}, captions={"a": ["one"]}),
        "a caption for each map of 'a'",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_one_line(name):
    bad, told = MISTAKES[name]
    with pytest.raises(UserError) as caught:
        bad()
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_models_are_known_to_attend_or_not():
    assert inspect.has_attention(blocks())
    assert inspect.has_attention(nn.Sequential(nn.MultiheadAttention(2, 1)))
    assert not inspect.has_attention(nn.LSTM(2, 2))
