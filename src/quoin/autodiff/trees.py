"""Arguments and results as trees: what stands inside tuples, lists, dicts and slices."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

__all__ = ["leaves", "mapped"]

Kind = TypeVar("Kind")


def leaves(tree: Any, kind: type[Kind]) -> Iterator[Kind]:
    """Everything of one kind inside, in order.

    >>> list(leaves((1, [2.0, {"a": 3}], slice(4, None)), int))
    [1, 3, 4]
    """
    if isinstance(tree, kind):
        yield tree
    elif isinstance(tree, (tuple, list)):
        for value in tree:
            yield from leaves(value, kind)
    elif isinstance(tree, dict):
        for value in tree.values():
            yield from leaves(value, kind)
    elif isinstance(tree, slice):
        yield from leaves((tree.start, tree.stop, tree.step), kind)


def mapped(tree: Any, change: Callable[[Any], Any]) -> Any:
    """`change` on everything inside, in containers built anew, so that what happens to the old ones later does not
    matter.

    >>> mapped((1, [2, slice(3)]), lambda value: value and 10 * value)
    (10, [20, slice(None, 30, None)])
    """
    if isinstance(tree, list):
        return [mapped(value, change) for value in tree]
    if isinstance(tree, dict):
        return {key: mapped(value, change) for key, value in tree.items()}
    if isinstance(tree, slice):
        return slice(*mapped((tree.start, tree.stop, tree.step), change))
    if not isinstance(tree, tuple):
        return change(tree)
    parts = tuple(mapped(value, change) for value in tree)
    if type(tree) is tuple:
        return parts
    if all(new is old for new, old in zip(parts, tree)):
        return tree  # such as torch.Size, which may hold nothing but numbers
    return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
