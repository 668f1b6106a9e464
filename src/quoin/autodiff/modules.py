"""Which module is at work: a stack kept by torch's global module hooks, so that modules inside any function are
seen."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from jaxtyping import Shaped
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

__all__ = ["ModuleStack"]


class ModuleStack:
    """The modules being called, innermost last, under the names that their outermost module knows them by.

    The outermost is called by its class, and not at all if it is `root`, the thing being traced.
    """

    def __init__(self, root: object):
        self._root = root
        self._paths: dict[int, str] = {}
        self._names: dict[int, tuple[str, str]] = {}  # id of a tensor -> (parameter or buffer, its name)
        self._uses: Counter[int] = Counter()
        self._classes: Counter[str] = Counter()
        self._stack: list[tuple[nn.Module, str, int]] = []
        self._kept: list[nn.Module] = []  # an id is a name only while its owner lives

    @contextmanager
    def watching(self) -> Iterator[None]:
        thread = threading.get_ident()  # the hooks are everyone's; other threads' modules are not ours

        def enter(module: nn.Module, args: object) -> None:
            if threading.get_ident() == thread:
                self._enter(module)

        def leave(module: nn.Module, args: object, output: object) -> None:
            if threading.get_ident() == thread and self._stack and self._stack[-1][0] is module:
                self._stack.pop()

        handles = register_module_forward_pre_hook(enter), register_module_forward_hook(leave, always_call=True)
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def here(self) -> tuple[str, int]:
        """The innermost module's path and the number of its calls so far."""
        return self._stack[-1][1:] if self._stack else ("", 1)

    def name_of(self, tensor: Shaped[Tensor, "..."]) -> tuple[str, str] | None:
        """(parameter or buffer, its name) for a tensor that a module seen so far owns."""
        return self._names.get(id(tensor))

    def _enter(self, module: nn.Module) -> None:
        if id(module) not in self._paths:
            self._name(module)
        self._uses[id(module)] += 1
        self._stack.append((module, self._paths[id(module)], self._uses[id(module)]))

    def _name(self, module: nn.Module) -> None:
        """Name a module that no known module owns, and all that it owns."""
        self._kept.append(module)
        if module is self._root:
            path = ""
        else:
            kind = type(module).__name__
            self._classes[kind] += 1
            above = f"{self._stack[-1][1]}." if self._stack and self._stack[-1][1] else ""
            path = above + (kind if self._classes[kind] == 1 else f"{kind}#{self._classes[kind]}")
        for name, inner in module.named_modules(prefix=path):
            self._paths.setdefault(id(inner), name)
        for name, tensor in module.named_buffers(prefix=path):
            self._names.setdefault(id(tensor), ("buffer", name))
        for name, tensor in module.named_parameters(prefix=path):
            self._names.setdefault(id(tensor), ("parameter", name))
