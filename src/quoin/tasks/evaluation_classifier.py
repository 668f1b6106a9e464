"""The judge of images that a model draws: a classifier of real ones, by whose features and classes all models are measured alike.

With `--classifier RUN` it is that finished run's model. Without, a small LeNet learns the classes of the training images in a few
seconds, from weights and batches that are the same for every recipe: runs on the same data with the same seed have the same judge.
What a judge says compares models only where the judge is the same.   n images, q classes, d features
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from quoin.data import ImageFacts, ImageParts, keyed_generator
from quoin.errors import Mistake
from quoin.losses import cross_entropy
from quoin.metrics import accuracy, sample_quality
from quoin.models import small_lenet
from quoin.optim import one_cycle
from quoin.tasks.supervised import rows_at_once
from quoin.train import GradientUpdater, Metrics, Place, load_strictly

__all__ = ["Judge", "OpenClassifier", "RunJudge", "train_judge"]

STEPS = 600  # of a judge's own training: two seconds for digits, and 98 to 99 of 100 new ones right
BATCH = 32
RATE = 0.003


class Judge:
    """A classifier of images in [0, 1]; `scaled` brings them to the scale it learnt on."""

    def __init__(self, classifier: nn.Module, scaled: Callable[[Tensor], Tensor]) -> None:
        layers = [layer for layer in classifier.modules() if isinstance(layer, nn.Linear)]
        if not layers:
            raise Mistake("expected a classifier that ends in a dense layer, whose inputs are the features, came one without; give another")
        self.classifier, self._scaled, self._last = classifier.eval(), scaled, layers[-1]

    @torch.no_grad()
    def logits(self, images: Tensor) -> Tensor:  # (n, c, h, w) -> (n, q)
        """The scores of the classes."""
        return torch.cat([self.classifier(self._scaled(some)) for some in images.split(rows_at_once(images))])

    def features(self, images: Tensor) -> Tensor:  # (n, c, h, w) -> (n, d)
        """What the last dense layer reads: in these numbers images of one class lie together."""
        found: list[Tensor] = []
        hook = self._last.register_forward_pre_hook(lambda layer, given: found.append(given[0].flatten(1)))
        try:
            self.logits(images)
        finally:
            hook.remove()
        return torch.cat(found)

    def classes(self, images: Tensor) -> Tensor:  # (n, c, h, w) -> (n,)
        """The likeliest class of each image."""
        return self.logits(images).argmax(dim=-1)

    def agreement(self, images: Tensor, labels: Tensor) -> float:  # (n, c, h, w), (n,)
        """The share of images that are classified as the class they were asked for."""
        return accuracy(self.classes(images), labels)

    def shares(self, images: Tensor) -> Tensor:  # (n, c, h, w) -> (q,)
        """The share of each class among the images: a model that forgot a class has none of it."""
        logits = self.logits(images)
        return torch.bincount(logits.argmax(dim=-1), minlength=logits.shape[-1]) / len(images)


OpenClassifier = Callable[[str, ImageFacts, Place], Judge]  # the folder of a run, what the images are, where to compute


def train_judge(data: ImageParts, place: Place) -> Judge:
    """A judge that learns from the training images alone, always from the same weights and with the same batches.

    A run trains it when its first checkpoint is due, which is a matter of the clock: torch's own generators, which dropout draws from,
    stay where they were.
    """
    with torch.random.fork_rng([place.device] if place.device.type == "cuda" else []):
        judge, generator = _new(data.facts, place), keyed_generator("judge", "batches")
        judge.classifier.train()
        adam = torch.optim.Adam(judge.classifier.parameters(), RATE)
        updater = GradientUpdater(judge.classifier, adam, total_steps=STEPS, place=place, schedule=one_cycle, name="the judge's loss")
        images, labels = data.train.features, data.train.targets
        for _ in range(STEPS):
            rows = torch.randint(len(labels), (BATCH,), generator=generator).to(place.device)
            updater.update([(images[rows], labels[rows])], lambda x, y: cross_entropy(judge.classifier(x), y), weight=1 / BATCH)
        judge.classifier.eval()
    return judge


class RunJudge:
    """The judge of one run: that of `classifier`, opened at once, or one of its own, trained when first asked for and kept with the run.

    A given classifier is a run, and runs stand above tasks: what opens one is handed in.
    """

    def __init__(self, classifier: str, data: ImageParts, place: Place, *, open_classifier: OpenClassifier) -> None:
        self.data, self.place = data, place
        self._given = open_classifier(classifier, data.facts, place) if classifier else None
        self._own = None if classifier else _new(data.facts, place)  # refuses images too small for it before the run begins
        self._trained = False

    @property
    def judge(self) -> Judge:
        if self._own is None:
            assert self._given is not None
            return self._given
        if not self._trained:
            self._own, self._trained = train_judge(self.data, self.place), True
        return self._own

    def quality(self, samples: Tensor) -> Metrics:  # (n, c, h, w)
        """`sample_quality` beside the test images, by the judge's features."""
        data = self.data
        return sample_quality(samples, data.test.features, self.judge.features, train=data.train.features)._asdict()

    def state(self) -> dict[str, Tensor]:
        """The weights of the run's own judge; those of a given one stay in its folder."""
        return {} if self._own is None else self.judge.classifier.state_dict()

    def load(self, state: dict[str, Tensor]) -> None:
        if self._own is not None:
            load_strictly(self._own.classifier, state)
            self._trained = True


def _new(facts: ImageFacts, place: Place) -> Judge:
    channels, height, width = facts.image_shape
    try:
        net = small_lenet((channels, height, width), facts.num_classes, generator=keyed_generator("judge", "weights"))
    except Mistake as mistake:
        raise Mistake(f"the small classifier that judges samples {mistake}, or give another as --classifier") from None
    return Judge(net.to(place.device), lambda images: images)
