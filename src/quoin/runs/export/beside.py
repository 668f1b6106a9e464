"""What stands beside the parts of an export: quoin.json and the scripts."""

import importlib.resources
import json
import math
import re
from pathlib import Path
from typing import Any

import quoin
from quoin.runs.export.exportable import Axis, Exportable
from quoin.runs.run import Run

__all__ = ["describe_run", "script_text", "write_info", "write_scripts"]

INFO = "quoin.json"
_IMPORT = re.compile(r"^from quoin\.runs\.export\.scripts\.(\w+) import .*$", re.MULTILINE)


def describe_run(run: Run) -> dict[str, Any]:
    """Where an export comes from."""
    config = run.folder.config
    return {
        "quoin": quoin.__version__,
        "recipe": run.recipe_name,
        "kind": run.kind,
        "run": run.path.name,
        "step": run.trained.step,
        "options": config["options"],
        "data": config["data"],
        "metrics": run.metrics,
    }


def describe_parts(exportable: Exportable) -> dict[str, Any]:
    """Inputs and outputs of the parts: free axes by name, others by size."""
    return {
        part.name: {
            "inputs": {
                each.name: {
                    "shape": [axis.name if isinstance(axis, Axis) else axis for axis in each.axes],
                    **({"meaning": each.meaning} if each.meaning else {}),
                }
                for each in part.inputs
            },
            "outputs": list(part.outputs),
            "at_most": {axis.name: axis.at_most for axis in part.free_axes if axis.at_most is not None},
        }
        for part in exportable.parts
    }


def write_info(info: dict[str, Any], folder: Path) -> Path:
    """Write quoin.json: strict JSON, in which a number that is not finite is text."""
    path = folder / INFO
    path.write_text(json.dumps(_finite(info), indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    return path


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _finite(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def write_scripts(exportable: Exportable, folder: Path) -> list[Path]:
    """Write the scripts, each in one file that needs no other."""
    for name, script in exportable.scripts.items():
        (folder / name).write_text(script_text(script), encoding="utf-8")
    return [folder / name for name in exportable.scripts]


def script_text(name: str) -> str:
    """A script of scripts/ with what it imports from there in its place."""
    files = importlib.resources.files("quoin.runs.export.scripts")

    def inlined(found: re.Match[str]) -> str:
        text = files.joinpath(f"{found[1]}.py").read_text(encoding="utf-8")
        return re.sub(r'\A""".*?"""\n+', "", _IMPORT.sub(inlined, text), flags=re.DOTALL).strip() + "\n"

    return _IMPORT.sub(inlined, files.joinpath(f"{name}.py").read_text(encoding="utf-8"))
