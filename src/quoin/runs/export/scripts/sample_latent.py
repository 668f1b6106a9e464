"""Samples of the exported decoder beside this file: python sample.py -n 16 --out samples.npy

Needs numpy, and onnxruntime or torch. The part `decoder` makes an example of a latent of normal numbers, and of noise
beside it where examples have noise of their own.
"""

import numpy as np

from quoin.runs.export.scripts.opened import open_part, read_info
from quoin.runs.export.scripts.writing import first_noise, sampling_parser, save


def main() -> None:
    """Sample and write."""
    told = read_info()["sampling"]
    asked = sampling_parser("Samples of an exported decoder.").parse_args()
    sizes = [told["latent_dim"], told["noise_dim"]]
    drawn = first_noise(asked, [sum(sizes)], told["dtype"])
    given = [drawn[:, : sizes[0]], drawn[:, sizes[0] :]] if sizes[1] else [drawn]
    save(open_part("decoder")(*map(np.ascontiguousarray, given))[0], asked.out)


if __name__ == "__main__":
    main()
