"""Translations by the exported model beside this file, greedily: python translate.py "a sentence" "another"

Needs numpy, and onnxruntime or torch.
"""

import argparse
from typing import Any

import numpy as np

from quoin.runs.export.scripts.opened import open_part, read_info
from quoin.runs.export.scripts.recurrent import read_both_ways
from quoin.runs.export.scripts.tokenizer import JSONTokenizer


def encode(tokens: list[int], info: dict[str, Any]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """What every step reads of the source, and the decoder's first state."""
    if info["layers"] is None:
        memory = open_part("encoder")(np.array([tokens]), np.array([len(tokens)]))
        state = [np.zeros(shape, "float32") for shape in info["state"]]
        return [np.array([len(tokens)]), *memory], state
    memory, last = read_both_ways(tokens, info["layers"])
    joined = [np.concatenate([layer[kind] for layer in last]) for kind in range(len(last[0]))]
    return [memory], open_part("bridge")(*joined)


def main() -> None:
    """Translate each sentence and print it."""
    parser = argparse.ArgumentParser(description="Translations of sentences.")
    parser.add_argument("sentences", nargs="+")
    asked = parser.parse_args()
    info = read_info()
    source, target = JSONTokenizer(info["source_vocabulary"]), JSONTokenizer(info["target_vocabulary"])
    step, (_, bos, eos) = open_part("step"), info["special_tokens"]
    for sentence in asked.sentences:
        memory, state = encode([*source.encode(sentence), eos], info)
        found, token = [], bos
        for _ in range(info["max_tokens"]):
            logits, *state = step(np.array([[token]]), *memory, *state)
            token = int(logits[0, -1].argmax())
            if token == eos:
                break
            found.append(token)
        print(target.decode(found))


if __name__ == "__main__":
    main()
