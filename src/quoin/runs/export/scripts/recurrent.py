"""The loop over the positions of a recurrent encoder, layer by layer, from both ends."""

from typing import Any

import numpy as np

from quoin.runs.export.scripts.opened import open_part


def read_both_ways(tokens: list[int], told: dict[str, Any]) -> tuple[np.ndarray, list[list[np.ndarray]]]:
    """The last layer's output at each position, (1, length, 2 hidden), and the last states of each layer."""
    x, last = open_part("embed")(np.array([tokens]))[0], []
    for layer in range(told["num_layers"]):
        step, count = open_part(f"layer_{layer}"), x.shape[1]
        state = [np.zeros((1, 1, told["hidden_dim"]), "float32") for _ in range(told["num_states"])]
        ahead, back = [], []
        for at in range(count):
            one, other, *state = step(x[:, at : at + 1], x[:, count - 1 - at : count - at], *state)
            ahead.append(one)
            back.append(other)
        x = np.concatenate([np.concatenate(ahead, axis=1), np.concatenate(back[::-1], axis=1)], axis=2)
        last.append(state)
    return x, last
