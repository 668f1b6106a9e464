"""Data sets as a notebook shows them: what they are in a line, and their first images or rows."""

import base64
import html
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from quoin.display import Markup, line_chart, table

if TYPE_CHECKING:
    from quoin.data.dataset import Dataset

__all__ = ["dataset_html", "describe_dataset", "image_strip"]

_ROWS, _IMAGES, _COLUMNS = 5, 10, 12
_PIXELS = 56  # height of a small image on the page


def describe_dataset(data: "Dataset") -> str:
    """Name, rows, what a row is and what its target is."""
    if (shape := data.image_shape) is not None:
        row = f"images {shape[1]} × {shape[2]}" + (f" × {shape[0]}" if shape[0] > 1 else "")
    elif data.features.ndim == 3:
        row = f"signals of {data.features.shape[1]} × {data.features.shape[2]} numbers"
    else:
        row = f"{data.num_features} features"
    target = f"{len(data.class_names)} classes" if data.class_names is not None else f"target {data.target_name}"
    return f"{data.num_rows} rows, {row}, {target}"


def dataset_html(data: "Dataset") -> str:
    """Its first images with their classes, its first signals, or the first rows of its table."""
    title = f"{data.name}: {describe_dataset(data)}"
    if data.features.ndim == 4:
        images = data.features[:_IMAGES].detach().cpu().double().numpy()
        return image_strip(images, [_target(data, row) for row in range(len(images))], title)
    if data.features.ndim == 3:
        curves = [data.features[row, 0].tolist() for row in range(min(3, data.num_rows))]
        charts = "".join(line_chart(range(len(curve)), curve, title=_target(data, n)) for n, curve in enumerate(curves))
        return f"<div><strong>{html.escape(title)}</strong></div><div>{charts}</div>"
    names = [*data.feature_names[:_COLUMNS], *(["…"] if data.num_features > _COLUMNS else [])]
    rows = [
        [
            *map(float, data.features[row, :_COLUMNS]),
            *(["…"] if data.num_features > _COLUMNS else []),
            _target(data, row),
        ]
        for row in range(min(_ROWS, data.num_rows))
    ]
    return table(
        [*names, data.target_name], rows, caption=title, footer=f"the first {len(rows)} of {data.num_rows} rows"
    )


def image_strip(images: np.ndarray, captions: Sequence[str], title: str) -> Markup:
    """Images (n, channels, height, width) of numbers from 0 to 1 side by side, each over its caption."""
    cells = "".join(
        f'<figure style="display:inline-block;margin:0 6px 6px 0;text-align:center">{_image(image)}'
        f"<figcaption><small>{html.escape(caption)}</small></figcaption></figure>"
        for image, caption in zip(images, captions)
    )
    return Markup(f"<div><strong>{html.escape(title)}</strong></div>\n<div>{cells}</div>")


def _image(image: np.ndarray) -> str:
    from PIL import Image

    levels = (np.clip(np.nan_to_num(image), 0, 1) * 255).round().astype(np.uint8)
    # one channel is grey and three are colours; of any other count the first stands for all
    picture = Image.fromarray(levels.transpose(1, 2, 0)) if len(levels) == 3 else Image.fromarray(levels[0])
    written = io.BytesIO()
    picture.save(written, format="PNG")
    address = f"data:image/png;base64,{base64.b64encode(written.getvalue()).decode('ascii')}"
    return f'<img src="{address}" height="{_PIXELS}" style="image-rendering:pixelated" alt="">'


def _target(data: "Dataset", row: int) -> str:
    target = data.targets[row]
    if data.class_names is not None:
        return data.class_names[int(target)]
    return ", ".join(f"{float(each):.4g}" for each in target.reshape(-1))
