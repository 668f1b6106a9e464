"""What the convolutional networks share: features of the image, found by convolutions, and a head with one logit for
each class."""

from jaxtyping import Float
from torch import Tensor, nn

from quoin.models.image_init import ImageShape
from quoin.tensor import check_image_batch

__all__ = ["ImageClassifier"]


class ImageClassifier(nn.Module):
    """`head(features(images))` for images of one shape, an MLP on learned features; `vgg16` and others build both.

    The outputs are logits: `quoin.losses.cross_entropy` takes them, and a softmax over the last axis makes them
    probabilities.
    """

    def __init__(self, features: nn.Module, head: nn.Module, image_shape: ImageShape):
        super().__init__()
        self.image_shape = image_shape
        self.features = features
        self.head = head

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch classes"]:
        check_image_batch(images, self.image_shape)
        return self.head(self.features(images))
