"""The evaluation classifier of sampled images: trained on real ones, its features and classes measure all models alike.

With `--classifier RUN` it is that finished run's model. Without, a small LeNet learns the classes of the training
images in a few seconds, from weights and batches that are the same for every recipe: runs on the same data with the
same seed have the same one. Metrics compare models only where the evaluation classifier is the same.
"""

import dataclasses
from collections.abc import Callable

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from quoin.data import ImageInfo, ImageSplits, keyed_generator
from quoin.errors import UserError
from quoin.losses import cross_entropy
from quoin.metrics import accuracy, sample_quality
from quoin.models import small_lenet
from quoin.optim import one_cycle
from quoin.tasks.supervised import eval_batch_size
from quoin.train import DeviceContext, GradientUpdater, Metrics, load_state_dict_strict
from quoin.train.processes import alone

__all__ = ["EvaluationClassifier", "Evaluator", "OpenClassifier", "train_evaluation_classifier"]

NUM_STEPS = 600  # of its own training: two seconds for digits, and a test accuracy of 98 to 99%
BATCH_SIZE = 32
LR = 0.003


class EvaluationClassifier:
    """A classifier of images in [0, 1]; `scaled` brings them to the scale it learnt on."""

    def __init__(self, model: nn.Module, scaled: Callable[[Tensor], Tensor]) -> None:
        layers = [layer for layer in model.modules() if isinstance(layer, nn.Linear)]
        if not layers:
            raise UserError(
                "expected a classifier that ends in a dense layer, whose inputs are the features, got one without; "
                "give another"
            )
        self.model, self._scaled, self._last = model.eval(), scaled, layers[-1]

    @torch.no_grad()
    def logits(self, images: Float[Tensor, "samples channels height width"]) -> Float[Tensor, "samples classes"]:
        """The scores of the classes."""
        return torch.cat([self.model(self._scaled(some)) for some in images.split(eval_batch_size(images))])

    def features(self, images: Float[Tensor, "samples channels height width"]) -> Float[Tensor, "samples features"]:
        """What the last dense layer reads: in these numbers images of one class lie together."""
        found: list[Tensor] = []
        hook = self._last.register_forward_pre_hook(lambda layer, given: found.append(given[0].flatten(1)))
        try:
            self.logits(images)
        finally:
            hook.remove()
        return torch.cat(found)

    def classes(self, images: Float[Tensor, "samples channels height width"]) -> Int[Tensor, "samples"]:
        """The most probable class of each image."""
        return self.logits(images).argmax(dim=-1)

    def accuracy(self, images: Float[Tensor, "samples channels height width"], labels: Int[Tensor, "samples"]) -> float:
        """The fraction of images that are classified as the class they were conditioned on."""
        return accuracy(self.classes(images), labels)

    def class_fractions(self, images: Float[Tensor, "samples channels height width"]) -> Float[Tensor, "classes"]:
        """The fraction of each class among the images: a model that forgot a class has none of it."""
        logits = self.logits(images)
        return torch.bincount(logits.argmax(dim=-1), minlength=logits.shape[-1]) / len(images)


OpenClassifier = Callable[
    [str, ImageInfo, DeviceContext], EvaluationClassifier
]  # the folder of a run, what the images are, where to compute


def train_evaluation_classifier(data: ImageSplits, device_context: DeviceContext) -> EvaluationClassifier:
    """A classifier trained on the training images alone, always from the same weights and with the same batches.

    A run trains it when its first checkpoint is due, which is a matter of the clock: torch's own generators, which
    dropout samples from, stay where they were. Of several processes, each that needs it trains it by itself, to the
    same weights.
    """
    device_context = dataclasses.replace(device_context, rank=0, world_size=1, shard=False)
    with (
        alone(),
        torch.enable_grad(),
        torch.random.fork_rng([device_context.device] if device_context.device.type == "cuda" else []),
    ):
        classifier, generator = _new(data.data_info, device_context), keyed_generator("judge", "batches")
        classifier.model.train()
        adam = torch.optim.Adam(classifier.model.parameters(), LR)
        updater = GradientUpdater(
            classifier.model,
            adam,
            total_steps=NUM_STEPS,
            device_context=device_context,
            schedule=one_cycle,
            name="the evaluation classifier's loss",
        )
        images, labels = data.train.features, data.train.targets
        for _ in range(NUM_STEPS):
            rows = torch.randint(len(labels), (BATCH_SIZE,), generator=generator).to(device_context.device)
            updater.update(
                [(images[rows], labels[rows])],
                lambda x, y: cross_entropy(classifier.model(x), y),
                weight=1 / BATCH_SIZE,
            )
        classifier.model.eval()
    return classifier


class Evaluator:
    """The evaluator of one run: `classifier`, opened at once, or one of its own, trained when first needed and kept
    with the run.

    A given classifier is a run, and runs stand above tasks: what opens one is handed in.
    """

    def __init__(
        self, classifier: str, data: ImageSplits, device_context: DeviceContext, *, open_classifier: OpenClassifier
    ) -> None:
        self.data, self.device_context = data, device_context
        self._given = open_classifier(classifier, data.data_info, device_context) if classifier else None
        self._own = (
            None if classifier else _new(data.data_info, device_context)
        )  # refuses images too small for it before the run begins
        self._trained = False

    @property
    def classifier(self) -> EvaluationClassifier:
        if self._own is None:
            assert self._given is not None
            return self._given
        if not self._trained:
            self._own, self._trained = train_evaluation_classifier(self.data, self.device_context), True
        return self._own

    def quality(self, samples: Float[Tensor, "samples channels height width"]) -> Metrics:
        """`sample_quality` beside the test images, by the classifier's features."""
        data = self.data
        return sample_quality(
            samples, data.test.features, self.classifier.features, train=data.train.features
        )._asdict()

    def state_dict(self) -> dict[str, Shaped[Tensor, "..."]]:
        """The weights of the run's own classifier; those of a given one stay in its folder."""
        return {} if self._own is None else self.classifier.model.state_dict()

    def load_state_dict(self, state: dict[str, Shaped[Tensor, "..."]]) -> None:
        if self._own is not None:
            load_state_dict_strict(self._own.model, state)
            self._trained = True


def _new(data_info: ImageInfo, device_context: DeviceContext) -> EvaluationClassifier:
    channels, height, width = data_info.image_shape
    try:
        net = small_lenet(
            (channels, height, width), data_info.num_classes, generator=keyed_generator("judge", "weights")
        )
    except UserError as error:
        raise UserError(
            f"the small classifier that evaluates samples {error}, or give another as --classifier"
        ) from None
    return EvaluationClassifier(net.to(device_context.device), lambda images: images)
