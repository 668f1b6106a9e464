"""Which public functions and classes decompose, root, invert or solve with a matrix, read off the source.

Followed are calls through what is not public, in whatever file it stands: a public function that calls another public
one is that one's business.
"""

import ast
from pathlib import Path

import quoin

PACKAGES = ("tensor", "prob", "info", "layers", "models", "losses", "metrics")
CALLS = {
    *(
        "eigh",
        "eig",
        "eigvalsh",
        "eigvals",
        "svd",
        "svdvals",
        "qr",
        "cholesky",
        "cholesky_ex",
        "cholesky_solve",
        "cholesky_inverse",
    ),
    *("inv", "inv_ex", "inverse", "pinv", "det", "logdet", "slogdet", "cond", "matrix_exp"),
    *("solve", "solve_ex", "solve_triangular", "lstsq"),
}
ROOT = Path(quoin.__file__).parent


def public_decompositions() -> set[str]:
    """'package.name' for each public function or class that reaches such a call."""
    defined: dict[str, dict[str, ast.AST]] = {}
    imported: dict[str, dict[str, tuple[str, str]]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        module = ".".join(("quoin", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
        tree = ast.parse(path.read_text())
        defined[module] = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        imported[module] = {
            alias.asname or alias.name: (node.module, alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("quoin")
            for alias in node.names
        }
    public = {(package, name) for package in PACKAGES for name in exported(package)}
    homes = {resolve(f"quoin.{package}", name, defined, imported): f"{package}.{name}" for package, name in public}

    def reaches(place: tuple[str, str], seen: set[tuple[str, str]]) -> bool:
        module, name = place
        if place in seen or name not in defined.get(module, {}):
            return False
        seen.add(place)
        for node in ast.walk(defined[module][name]):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in CALLS
                and not of_ours(node.func)
            ):
                return True
            if isinstance(node, ast.Name):
                other = resolve(module, node.id, defined, imported)
                if other is not None and other not in homes and reaches(other, seen):
                    return True
        return False

    return {label for place, label in homes.items() if place is not None and reaches(place, set())}


def of_ours(function: ast.Attribute) -> bool:
    """Whether it is a method of an object of ours by the name of a decomposition, such as `self.solve`."""
    return isinstance(function.value, ast.Name) and function.value.id in {
        "self",
        "cls",
        "space",
        "law",
        "distribution",
        "math",
    }


def resolve(module, name, defined, imported):
    """Where a name that a module uses is defined; None where that is not among ours."""
    while name not in defined.get(module, {}):
        if name not in imported.get(module, {}):
            return None
        module, name = imported[module][name]
    return module, name


def exported(package: str) -> list[str]:
    tree = ast.parse((ROOT / package / "__init__.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return ast.literal_eval(node.value)
    return []
