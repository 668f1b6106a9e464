"""A run written in another form, read back by the other runtime and compared: `export_run`.

The folder appears whole or not at all: it is written under another name, compared there, and renamed.
"""

import contextlib
import gc
import os
import secrets
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from quoin.callbacks import ProgressCallback, current_listener
from quoin.errors import UserError, did_you_mean, format_value
from quoin.runs.export.place import check_out, default_out
from quoin.runs.export.written import Difference, Written

if TYPE_CHECKING:
    from quoin.runs.run import Run

__all__ = ["FORMS", "Form", "export_run"]

Form = Literal["onnx", "torch", "huggingface", "safetensors"]
FORMS: tuple[str, ...] = get_args(Form)
TICK = 0.5  # seconds between two looks at the clock, while one long step is under way


def export_run(run: "Run", to: str, out: Path | None = None, *, force: bool = False) -> Written:
    """Write `run` as `to` into the folder `out`, open it with the other runtime and compare.

    A difference above the tolerance is in what comes back, and the files stay where they are.
    """
    if to not in FORMS:
        raise UserError(f"--to {format_value(to)}: {did_you_mean(to, FORMS)}")
    if to == "onnx":
        from quoin.runs.export.onnx_form import check_extra

        check_extra()
    run.check_single()
    out = default_out(run.path, to) if out is None else out
    check_out(out, force=force)
    partial = out.absolute().with_name(f".{out.absolute().name}.{secrets.token_hex(4)}.partial")
    try:
        partial.mkdir()
        written = _write(run, to, partial)
        _rename(partial, out)
    except OSError as error:
        raise UserError(
            f"{format_value(str(out))} cannot be written ({error.strerror}): choose another place with -o"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    files = tuple(out / path.relative_to(partial) for path in written.files)
    return Written(files, written.differences, (*_state_notes(run), *written.notes))


def _write(run: "Run", to: str, folder: Path) -> Written:
    if to == "huggingface":
        return _huggingface(run, folder)
    if to == "safetensors":
        return _safetensors(run, folder)
    return _graphs(run, to, folder)


def _huggingface(run: "Run", folder: Path) -> Written:
    from quoin.runs.export.huggingface import write_huggingface

    # Trained runs keep what was saved with the model; as long as its weights are kept, their file stays mapped.
    run.trained.saved.pop("weights", None)
    with current_listener().progress(f"exporting {run.path.name}") as update, _ticking(update, 0, 1):
        return write_huggingface(run, folder)


def _safetensors(run: "Run", folder: Path) -> Written:
    from quoin.runs.export.beside import describe_run, write_info
    from quoin.runs.export.safetensors_form import compare_safetensors, saved_beside, write_safetensors

    files = write_safetensors(run, folder)
    files.append(write_info(describe_run(run) | {"saved": saved_beside(run)}, folder))
    return Written(tuple(files), (compare_safetensors(run, folder),))


def _graphs(run: "Run", to: str, folder: Path) -> Written:
    import quoin.runs.export.onnx_form as onnx_form
    import quoin.runs.export.torch_form as torch_form
    from quoin.runs.export.beside import describe_parts, describe_run, write_info, write_scripts
    from quoin.runs.export.compare import compare_part, compare_script
    from quoin.runs.export.parts import exportable_of

    exportable = exportable_of(run)
    run.trained.saved.pop("weights", None)  # the model has them; as long as they are kept, their file stays mapped
    write, opened = (
        (onnx_form.write_onnx, onnx_form.open_onnx) if to == "onnx" else (torch_form.write_torch, torch_form.open_torch)
    )
    files: list[Path] = []
    found: list[Difference | str] = []
    with current_listener().progress(f"exporting {run.path.name}") as update:
        total = 2 * len(exportable.parts) + len(exportable.loops) + len(exportable.checks)
        for number, part in enumerate(exportable.parts):
            with _ticking(update, number, total):
                files += write(part, exportable, folder)
                gc.collect()  # a traced program refers to itself, and so would outlive its use, weights included
        files.append(write_info(describe_run(run) | exportable.info | {"parts": describe_parts(exportable)}, folder))
        files += write_scripts(exportable, folder)
        for number, part in enumerate(exportable.parts, len(exportable.parts)):
            with _ticking(update, number, total):
                found += compare_part(part, opened(folder, part.name))
                gc.collect()
        for number, loop in enumerate(exportable.loops, 2 * len(exportable.parts)):
            with _ticking(update, number, total):
                found += compare_part(loop, loop.opened(lambda name: opened(folder, name)))
        for number, check in enumerate(exportable.checks, total - len(exportable.checks)):
            with _ticking(update, number, total):
                found.append(compare_script(check, folder))
    differences = tuple(each for each in found if isinstance(each, Difference))
    notes = tuple(dict.fromkeys(each for each in found if isinstance(each, str)))
    return Written(tuple(files), differences, (*exportable.notes, *notes))


@contextlib.contextmanager
def _ticking(update: ProgressCallback, done: int, total: int) -> Iterator[None]:
    """Inside, which may take minutes without a word, the bar is shown that `done` of `total` steps are done."""
    over = threading.Event()

    def tick() -> None:
        while not over.wait(TICK):
            update(done, total)

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        yield
    finally:
        over.set()
        ticker.join()


def _rename(partial: Path, out: Path) -> None:
    """Put the finished folder in place; an older export steps aside first and is removed last."""
    old = partial.with_name(partial.name.removesuffix("partial") + "old")
    if out.exists():
        os.rename(out, old)
    try:
        os.rename(partial, out)
    except OSError:
        if old.exists():
            os.rename(old, out)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _state_notes(run: "Run") -> tuple[Any, ...]:
    if run.folder.result is not None:
        return ()
    return (
        f"{run.path} is not finished: this is its best model so far, from the checkpoint of step {run.trained.step}",
    )
