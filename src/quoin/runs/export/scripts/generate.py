"""Text from the exported language model beside this file: python generate.py "Once upon" --max-tokens 100

Needs numpy, and onnxruntime or torch; a tokenizer that was imported needs `tokenizers` too. The step reads one or more
tokens and gives logits and its new state.
"""

import argparse
from typing import Any

import numpy as np

from quoin.runs.export.scripts.opened import open_part, read_info
from quoin.runs.export.scripts.tokenizer import open_tokenizer


class Model:
    """The step, its state, and the window: when it is full, it begins anew with the latter part of it."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.told, self.step = told, open_part("step")
        self.begin()

    def begin(self) -> None:
        """Nothing read yet."""
        self.read: list[int] = []
        self.state = [
            np.broadcast_to(np.array(each["start"], each["dtype"]), each["shape"]).copy() for each in self.told["state"]
        ]

    def __call__(self, tokens: list[int]) -> np.ndarray:
        """Read tokens; the logits after the last."""
        window, logits = self.told["window"], np.zeros(0)
        while tokens:
            if window is not None and len(self.read) == window:
                kept = self.read[self.told["stride"] :]
                self.begin()
                if kept:
                    self(kept)
            free = len(tokens) if window is None else window - len(self.read)
            new, tokens = tokens[:free], tokens[free:]
            size = len(new) if self.told["takes_many"] else 1
            for start in range(0, len(new), size):
                logits = self._step(new[start : start + size])
        return logits

    def _step(self, tokens: list[int]) -> np.ndarray:
        position = [np.array([len(self.read)])] if self.told["takes_position"] else []
        logits, *self.state = self.step(np.array([tokens]), *position, *self.state)
        self.read += tokens
        return logits[0, -1]


def choose(logits: np.ndarray, temperature: float, top_p: float, generator: np.random.Generator) -> int:
    """The most probable token at temperature 0, else one that is sampled from the nucleus of probability `top_p`."""
    if temperature == 0:
        return int(logits.argmax())
    scaled = logits.astype(np.float64) / temperature
    probs = np.exp(scaled - scaled.max())
    probs /= probs.sum()
    order = np.argsort(-probs, kind="stable")
    kept = order[np.cumsum(probs[order]) - probs[order] < top_p]
    return int(generator.choice(kept, p=probs[kept] / probs[kept].sum()))


def main() -> None:
    """Read the words of the command and print the prompt with what follows it."""
    parser = argparse.ArgumentParser(description="Text from an exported language model.")
    parser.add_argument("prompt", nargs="?", default="")
    parser.add_argument("--max-tokens", type=int, default=300)
    parser.add_argument("--temperature", type=float, default=1.0, help="0 for the most probable token")
    parser.add_argument("--top-p", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    info = read_info()
    tokenizer, model = open_tokenizer(info["vocabulary"]), Model(info["generation"])
    logits = model(tokenizer.encode(asked.prompt) or info["generation"]["first_tokens"])
    generator, found = np.random.default_rng(asked.seed), []
    for _ in range(asked.max_tokens):
        found.append(choose(logits, asked.temperature, asked.top_p, generator))
        logits = model(found[-1:])
    print(asked.prompt + tokenizer.decode(found))


if __name__ == "__main__":
    main()
