"""Run a notebook with a kernel of this very Python: python run_notebook.py NOTEBOOK.ipynb, which is written anew with
its outputs. In a process of its own, for the sockets and loops of a kernel's client end with it."""

import sys
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient


class ThisPython(KernelSpecManager):
    """The kernel of the Python that runs the tests, whatever kernels the user has installed."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        return KernelSpec(
            argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], language="python"
        )


def main(path: Path) -> None:
    book = nbformat.read(path, as_version=4)
    manager = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=ThisPython())
    resources = {"metadata": {"path": str(path.parent)}}
    NotebookClient(book, km=manager, timeout=300, allow_errors=True, resources=resources).execute()
    nbformat.write(book, path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
