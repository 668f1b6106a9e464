"""Samples of the exported flow beside this file: python sample.py -n 1000 --out samples.npy

Needs numpy, and onnxruntime or torch. The part `velocity` is followed from noise at time 0 to data at time 1 by
midpoints.
"""

import numpy as np

from quoin.runs.export.scripts.opened import open_part, read_info
from quoin.runs.export.scripts.writing import first_noise, sampling_parser, save


def main() -> None:
    """Sample and write."""
    told = read_info()["sampling"]
    parser = sampling_parser("Samples of an exported flow.")
    parser.add_argument("--num-steps", type=int, default=told["num_steps"])
    asked = parser.parse_args()
    velocity, step = open_part("velocity"), 1 / asked.num_steps
    state = first_noise(asked, told["shape"], told["dtype"])

    def slope(at: np.ndarray, time: float) -> np.ndarray:
        return velocity(at, np.full(len(at), time, told["dtype"]))[0]

    for number in range(asked.num_steps):
        halfway = state + step / 2 * slope(state, number * step)
        state = state + step * slope(halfway, number * step + step / 2)
    loc, scale = (np.array(told[name], told["dtype"]) for name in ("loc", "scale"))
    save(loc + scale * state, asked.out)


if __name__ == "__main__":
    main()
