"""The process that trains a model for a page: `python -m quoin.lab.parts.train_model DRAFT JSON`."""

import json
import os
import sys
import time
from pathlib import Path

__all__ = ["main"]


INTERRUPTED = 130  # the exit code of a training that was stopped


def main(draft: Path, recipe_name: str, options: dict, out: Path) -> int:
    """Train into `draft`, telling the progress in a file there, and move the whole to `out`; the exit code.

    One that is interrupted stays a draft: under its name it would pass for a model.
    """
    from quoin.runs.catalog import find_recipe
    from quoin.runs.fit import fit_recipe
    from quoin.runs.run_config import RunConfig
    from quoin.runs.run_label import RunLabel
    from quoin.train.events import RunEvent

    recipe = find_recipe(recipe_name)
    chosen = recipe.options(**{name: tuple(v) if isinstance(v, list) else v for name, v in options.items()})
    told = 0.0

    def tell(event: RunEvent) -> None:
        nonlocal told
        if time.monotonic() - told > 0.2:
            told = time.monotonic()
            (draft / "next").write_text(f"{event.epoch / max(getattr(chosen, 'epochs', 1), 1):.4f}")
            os.replace(draft / "next", draft / "progress")

    label = RunLabel(name="run")
    ended = fit_recipe(recipe, chosen, RunConfig(), draft, label=label, callbacks=[tell], show_progress=False)
    if ended.result is None:
        return INTERRUPTED
    for name in ("progress", "next"):
        (draft / name).unlink(missing_ok=True)
    if not out.exists():  # another process may have been quicker
        draft.rename(out)
    return 0


if __name__ == "__main__":
    given = json.loads(sys.argv[2])
    sys.exit(main(Path(sys.argv[1]), given["recipe"], given["options"], Path(given["out"])))
