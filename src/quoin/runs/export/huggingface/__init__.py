"""The Hugging Face form: a folder that `transformers` or `diffusers` opens, with the same numbers and a model card.

Neither library is needed to write it, only to compare: where one is missing, a note says so.
"""

from collections.abc import Callable
from pathlib import Path

from quoin.runs.export.written import Written
from quoin.runs.kinds import LANGUAGE_MODELING
from quoin.runs.run import Run

__all__ = ["write_huggingface"]


def write_huggingface(run: Run, folder: Path) -> Written:
    """Fill `folder`, which is empty, open it with the other library and compare.

    A model without a counterpart there raises `CannotExportError`, which says which form it has instead.
    """
    run.check_single()
    return _writer(run)(run, folder)


def _writer(run: Run) -> Callable[[Run, Path], Written]:
    """What writes runs of this kind."""
    if run.kind == LANGUAGE_MODELING:
        from quoin.runs.export.huggingface.language import write_language

        return write_language
    if run.kind in ("classification", "regression"):
        from quoin.runs.export.huggingface.images import write_images
        from quoin.runs.export.huggingface.rows import write_rows

        is_image = len(run.data_info.feature_shape) == 3 and run.data_info.class_names is not None
        return write_images if is_image else write_rows
    from quoin.runs.export.huggingface.diffusion import is_diffusers_model, write_diffusion
    from quoin.runs.export.huggingface.graphs import write_graph

    if run.kind == "image-generation" and is_diffusers_model(run.model):
        return write_diffusion
    return write_graph
