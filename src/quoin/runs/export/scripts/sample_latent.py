"""Samples of the exported decoder beside this file: python sample.py -n 16 --out samples.npy

Needs numpy, and onnxruntime or torch. The part `decoder` makes an example of a latent of normal numbers.
"""

from quoin.runs.export.scripts.opened import open_part, read_info
from quoin.runs.export.scripts.writing import first_noise, sampling_parser, save


def main() -> None:
    """Sample and write."""
    told = read_info()["sampling"]
    asked = sampling_parser("Samples of an exported decoder.").parse_args()
    save(open_part("decoder")(first_noise(asked, [told["latent_dim"]], told["dtype"]))[0], asked.out)


if __name__ == "__main__":
    main()
