"""Functions run in several processes that form a gloo group, as torchrun would start them."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

SRC = Path(__file__).parents[1] / "src"
BODY = """
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
from quoin.runs.launch import end_process
from quoin.train.processes import join_processes, leave_processes
join_processes()
module, _, name = sys.argv[2].partition(":")
found = getattr(importlib.import_module(module), name)(*json.loads(sys.argv[3]))
leave_processes()
print("\\n" + json.dumps(found))
end_process(0)
"""


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def process_environment(rank: int, world_size: int, port: int) -> dict[str, str]:
    """What torchrun puts into the environment of a process."""
    return os.environ | {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world_size),
        "LOCAL_WORLD_SIZE": str(world_size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(SRC),
    }


def in_processes(world_size: int, function: str, *arguments: Any, timeout: float = 300) -> list[Any]:
    """What `module:function` of this folder gives in each of `world_size` processes; arguments and results are JSON."""
    port, words = free_port(), [str(Path(__file__).parent), function, json.dumps(arguments)]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", BODY, *words],
            env=process_environment(rank, world_size, port),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(world_size)
    ]
    try:
        printed = [each.communicate(timeout=timeout) for each in started]
    finally:
        for each in started:
            each.kill()
    for each, (_, errors) in zip(started, printed):
        assert each.returncode == 0, errors
    return [json.loads(out.strip().splitlines()[-1]) for out, _ in printed]
