"""Samples of the exported diffusion model beside this file: python sample.py -n 16 --out samples.npy

Needs numpy, and onnxruntime or torch. The part `denoise` predicts the data and the noise; DDIM steps lead from noise to
data.
"""

import itertools

import numpy as np

from quoin.runs.export.scripts.opened import open_part, read_info
from quoin.runs.export.scripts.writing import class_numbers, first_noise, sampling_parser, save


def main() -> None:
    """Sample and write."""
    info = read_info()
    told = info["sampling"]
    parser = sampling_parser("Samples of an exported diffusion model.")
    parser.add_argument("--num-steps", type=int, default=told["num_steps"])
    if told["guided"]:
        parser.add_argument("--class", dest="label", help="of all samples (default: each class in turn)")
        parser.add_argument("--guidance-scale", type=float, default=told["guidance_scale"])
    asked = parser.parse_args()
    denoise, signal, noise = open_part("denoise"), told["signal"], told["noise"]
    state = first_noise(asked, told["shape"], told["dtype"])
    given: list[np.ndarray] = []
    if told["guided"]:
        labels = class_numbers(asked.label, info["class_names"], len(state))
        given = [labels, np.array([asked.guidance_scale], told["dtype"])]
    longest = len(signal) - 1
    times = [longest * left // asked.num_steps for left in range(asked.num_steps, -1, -1)]
    for time, earlier in itertools.pairwise(times):
        clean, predicted = denoise(state, np.full(len(state), time), *given)
        state = signal[earlier] * clean + noise[earlier] * predicted
    loc, scale = (np.array(told[name], told["dtype"]) for name in ("loc", "scale"))
    save(loc + scale * state, asked.out)


if __name__ == "__main__":
    main()
