"""Named convolutional networks: how many parameters they have."""

import torch

from quoin.models import num_parameters, vgg16
from quoin.notes.claims.claim import Evidence, claim


@claim(
    "M1", "VGG-16 for 224 x 224 colour images and 1000 classes has 14,714,688 + 123,642,856 = 138,357,544 parameters"
)
def vgg16_has_138_million_parameters(generator: torch.Generator) -> Evidence:
    with torch.device("meta"):  # counting needs shapes, not numbers
        model = vgg16()
    off = abs(num_parameters(model.features) - 14_714_688) + abs(num_parameters(model.head) - 123_642_856)
    off += abs(num_parameters(model) - 138_357_544)
    return Evidence(
        "parameters too many or too few, in the convolutions, the dense layers and all", off, 0, "exact", cases=3
    )
