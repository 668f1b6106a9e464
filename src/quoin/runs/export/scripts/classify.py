"""The class of texts by the exported model beside this file: python classify.py "a text" "another"

Needs numpy, and onnxruntime or torch.
"""

import argparse
from pathlib import Path

import numpy as np

from quoin.runs.export.scripts.opened import open_part, read_info
from quoin.runs.export.scripts.recurrent import read_both_ways
from quoin.runs.export.scripts.tokenizer import JSONTokenizer


def main() -> None:
    """Classify each text and print its class with the probability."""
    parser = argparse.ArgumentParser(description="The class of texts.")
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--out", type=Path, help=".npy file for the probabilities of all classes")
    asked = parser.parse_args()
    info = read_info()
    tokenizer, layers, found = JSONTokenizer(info["vocabulary"]), info["layers"], []
    for text in asked.texts:
        tokens = tokenizer.encode(text)
        if not tokens:
            raise SystemExit("expected texts of a token or more: leave out the empty ones")
        if layers is None:
            probabilities = open_part("model")(np.array([tokens]), np.array([len(tokens)]))[0]
        else:
            probabilities = open_part("head")(read_both_ways(tokens, layers)[0].mean(axis=1))[0]
        found.append(probabilities[0])
        best = int(found[-1].argmax())
        print(f"{info['class_names'][best]}\t{found[-1][best]:.4f}")
    if asked.out is not None:
        np.save(asked.out, np.stack(found))


if __name__ == "__main__":
    main()
