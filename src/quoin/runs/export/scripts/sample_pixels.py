"""Samples of the exported pixel model beside this file: python sample.py -n 16 --out samples.npy

Needs numpy, and onnxruntime or torch. The part `pixels` gives logits of the level of each pixel from those before it;
one call for each pixel, row by row.
"""

import numpy as np

from quoin.runs.export.scripts.opened import open_part, read_info
from quoin.runs.export.scripts.writing import class_numbers, sampling_parser, save


def main() -> None:
    """Sample and write."""
    info = read_info()
    told = info["sampling"]
    parser = sampling_parser("Samples of an exported pixel model.")
    parser.add_argument("--temperature", type=float, default=1.0, help="0 for the most probable level")
    if told["num_classes"]:
        parser.add_argument("--class", dest="label", help="of all samples (default: each class in turn)")
    asked = parser.parse_args()
    pixels, generator = open_part("pixels"), np.random.default_rng(asked.seed)
    images = np.zeros((asked.num_samples, *told["shape"]), "float32")
    given = [class_numbers(asked.label, info["class_names"], len(images))] if told["num_classes"] else []
    for row, column in np.ndindex(*told["shape"][1:]):
        logits = pixels(images, *given)[0][:, :, row, column].astype("float64")
        if asked.temperature:  # the largest of logits with Gumbel noise is a sample
            logits = logits / asked.temperature + generator.gumbel(size=logits.shape)
        images[:, 0, row, column] = logits.argmax(axis=1).astype("float32") / np.float32(told["num_levels"] - 1)
    save(images, asked.out)


if __name__ == "__main__":
    main()
