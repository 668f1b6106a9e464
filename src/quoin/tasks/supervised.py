"""Learning from examples: the step that most recipes take, and its two kinds, classification and regression.

Batches are rows of tensors that already lie on the device.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor, nn

from quoin.data import BatchSampler, PreparedData, RowNoise, TabularInfo, keyed_generator
from quoin.data.mixup import sample_mixup
from quoin.metrics import roc_auc_ovr
from quoin.optim import Schedule, constant
from quoin.plot import Panel
from quoin.tasks import supervised_panels
from quoin.tasks.own_training import OwnLoss
from quoin.tensor import as_floating, one_hot
from quoin.train import DeviceContext, GradientTask, MeanMetrics, Metrics
from quoin.train.fractions import own_batches
from quoin.train.global_batch import BatchPiece
from quoin.train.processes import fraction_of, gather_rows

__all__ = [
    "Classification",
    "Regression",
    "SupervisedTask",
    "auc_metrics",
    "eval_batch_size",
    "in_squared_unit",
    "predict_in_batches",
    "predict_labels",
]

# Per forward pass without gradients, the lesser of the two: large enough to be fast, small enough for a laptop. Of
# large images a convolutional network keeps many times their numbers, so that rows alone would be no measure.
EVALUATION_ROWS = 4096
EVALUATION_NUMBERS = 2**20


def eval_batch_size(features: Real[Tensor, "samples ..."]) -> int:
    """How many rows of `features` to send through a model together when no gradient is wanted."""
    return max(1, min(EVALUATION_ROWS, EVALUATION_NUMBERS // max(1, features.shape[1:].numel())))


@torch.no_grad()
def predict_in_batches(
    model: Callable[[Tensor], Tensor], features: Real[Tensor, "samples ..."]
) -> Float[Tensor, "samples *outputs"]:
    """The outputs of `model` for all rows, some at a time.

    They go into one tensor that is there from the start: small ones that stay, each allocated between large ones that
    go, would leave holes in the heap which the next large one does not fit into, and memory would grow by every batch.
    """
    outputs, done, rows = torch.empty(0, device=features.device), 0, eval_batch_size(features)
    if len(features) == 0:
        return outputs
    if len(features) <= rows:  # for a few rows the copy would take as long as a small network
        return model(features)
    for piece in features.split(rows):
        found = model(piece)
        if done == 0:
            outputs = found.new_empty((len(features), *found.shape[1:]))
        outputs[done : done + len(found)] = found
        done += len(found)
    return outputs


class SupervisedTask(GradientTask):
    """A model, an objective (one loss per example), an optimizer and prepared data.

    `augment` changes the features of training rows, and of no others, each by its own noise. That is a function of the
    seed, the step and the row of the global batch: no state to save, and a resumed run samples what it would have
    sampled.

    Args:
        loss_fn: By which every split is evaluated.
        train_loss_fn: What the steps minimise; `loss_fn` unless given.
        mixup: The alpha of mixup, by which the examples of a training batch are mixed after `augment`; 0 for none.
    """

    test_name = "test"  # what the reports call the test split; "held-out fold" in a cross-validation

    def __init__(
        self,
        model: nn.Module,
        loss_fn: Callable[[Tensor, Tensor], Tensor],
        optimizer: torch.optim.Optimizer,
        data: PreparedData,
        *,
        batch_size: int,
        epochs: int,
        seed: int,
        device_context: DeviceContext,
        schedule: Schedule = constant,
        max_grad_norm: float = 0.0,
        micro_batch_size: int = 0,
        augment: Callable[[Tensor, RowNoise], Tensor] | None = None,
        train_loss_fn: Callable[[Tensor, Tensor], Tensor] | None = None,
        mixup: float = 0.0,
    ) -> None:
        batches = BatchSampler(
            data.train.num_rows,
            batch_size,
            seed=seed,
            rank=device_context.rank,
            world_size=device_context.world_size,
            device=device_context.device,
        )
        super().__init__(
            model,
            optimizer,
            batches,
            device_context,
            epochs=epochs,
            schedule=schedule,
            max_grad_norm=max_grad_norm,
            micro_batch_size=micro_batch_size,
        )  # fmt: skip
        self.loss_fn, self.data, self.augment = loss_fn, data, augment
        self.train_loss_fn, self.mixup = train_loss_fn, mixup
        self.data_info: TabularInfo | None = data.data_info
        self.memory_format = (
            torch.contiguous_format
        )  # of batches of images; `set_memory_format` changes it together with the kernels
        self._step_losses = device_context.compiled(self.losses, self.full_rows)

    @abstractmethod
    def compute_metrics(
        self, outputs: Float[Tensor, "batch *outputs"], targets: Real[Tensor, "batch"]
    ) -> dict[str, Float[Tensor, "batch"]]:
        """What to watch beside the loss, one value per example."""

    def pieces(
        self, rows: Int[Tensor, "batch"]
    ) -> Iterable[tuple[Float[Tensor, "piece ..."], Real[Tensor, "piece *classes"]]]:
        """Features, augmented and mixed where the options say so, and targets of training rows."""
        for piece in self.cut(rows):
            features, targets = self._mixed(piece, rows) if self.mixup else self._augmented(piece)
            # By the piece, which costs less than a thousandth of a step; laid out once, the data would be held twice
            # meanwhile.
            yield features.contiguous(memory_format=self.memory_format), targets

    def _augmented(self, piece: BatchPiece) -> tuple[Tensor, Tensor]:
        features, targets = (each.index_select(0, piece.rows) for each in self._train)
        if self.augment is not None:
            features = self.augment(features, piece.noise("augment", self.batches.seed, self.step_count))
        return features, targets

    def _mixed(self, piece: BatchPiece, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The rows of a piece, each mixed with its partner in the global batch, which may be another rank's."""
        generator = keyed_generator("mixup", self.batches.seed, self.step_count)
        partners, weight = sample_mixup(piece.num_rows, generator, self.mixup)
        features, targets = self._augmented(piece)
        if len(piece.rows) == piece.num_rows:
            other_features, other_targets = (each[partners.to(each.device)] for each in (features, targets))
        else:
            own = partners[piece.start : piece.stop]
            other_rows = self.batch_rows(rows)[own.to(rows.device)]
            other_features, other_targets = (each.index_select(0, other_rows) for each in self._train)
            if self.augment is not None:
                noise = piece.noise("augment", self.batches.seed, self.step_count).select(own)
                other_features = self.augment(other_features, noise)
        num_classes = self.data.data_info.num_classes
        ours, theirs = (one_hot(each, num_classes, dtype=features.dtype) for each in (targets, other_targets))
        return torch.lerp(other_features, features, weight), torch.lerp(theirs, ours, weight)

    @property
    def _train(self) -> tuple[Any, Any]:
        return self.data.train.features, self.data.train.targets

    def losses(
        self, features: Float[Tensor, "batch ..."], targets: Real[Tensor, "batch *classes"]
    ) -> Float[Tensor, "batch"]:
        """One loss for each training example."""
        return (self.train_loss_fn or self.loss_fn)(self.model(features), targets)

    def losses_of(
        self, features: Float[Tensor, "batch ..."], targets: Real[Tensor, "batch *classes"]
    ) -> Float[Tensor, "batch"]:
        return self._step_losses(features, targets)

    @torch.no_grad()
    def evaluate(self, split: str) -> Metrics:
        """Means over the whole of a split, each example counted once, by one of the processes."""
        data = getattr(self.data, split)
        if data.num_rows == 0:
            return {}
        totals = MeanMetrics()
        self.model.eval()
        batch_size = eval_batch_size(data.features)
        for rows in own_batches(data.num_rows, batch_size):
            targets = data.targets[rows]
            outputs = self.model(data.features[rows])
            values = {"loss": self.loss_fn(outputs, targets), **self.compute_metrics(outputs, targets)}
            totals.add({name: value.sum() for name, value in values.items()}, len(targets))
        means = totals.over_processes().compute()
        if not all(map(math.isfinite, means.values())):
            raise self.updater.diverged(lambda: self.model(data.features[:batch_size]))
        return self.finalize_metrics(means)

    def finalize_metrics(self, means: Metrics) -> Metrics:
        """Last touches on the means of a split, such as the root of a mean square."""
        return means

    def predict_split(self, split: str) -> Float[Tensor, "samples *outputs"]:
        """The model's outputs on a split, in its order; each process computes a fraction, and all have the whole."""
        self.model.eval()
        features = getattr(self.data, split).features
        return gather_rows(predict_in_batches(self.model, features[fraction_of(len(features))]))

    def model_state(self) -> dict[str, Any]:
        return super().model_state() | {"scales": self.data.scale_state()}


class Classification(SupervisedTask):
    """Outputs are logits, targets are labels; the metrics are accuracy and, of the splits in `auc_splits`, the AUC.

    With `choose_threshold`, for two classes, every evaluation of the validation split chooses the threshold anew. It is
    kept with the weights, so the best weights keep theirs.
    """

    kind = "classification"
    gives_probabilities = True  # whether the softmax of the outputs is one; a margin's is not
    auc_splits: tuple[str, ...] = ("test",)
    threshold: float | None = None  # the probability from which on the second of two classes is predicted
    choose_threshold: Callable[[Tensor, Tensor], float] | None = None

    def compute_metrics(
        self, outputs: Float[Tensor, "batch classes"], targets: Int[Tensor, "batch"]
    ) -> dict[str, Float[Tensor, "batch"]]:
        return {"accuracy": (predict_labels(outputs, self.threshold) == targets).float()}

    def evaluate(self, split: str) -> Metrics:
        if split == "validation" and self.choose_threshold is not None:
            probabilities = self.predict_split(split).double().softmax(-1)[:, 1]
            self.threshold = self.choose_threshold(probabilities.cpu(), self.data.validation.targets.cpu())
        found = super().evaluate(split)
        if found and split in self.auc_splits:
            found |= auc_metrics(self.predict_split(split), getattr(self.data, split).targets)
        return found

    def model_state(self) -> dict[str, Any]:
        chosen = {} if self.choose_threshold is None else {"threshold": self.threshold}
        return super().model_state() | chosen

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        if self.choose_threshold is not None:
            self.threshold = state["model"]["threshold"]

    def panels(self) -> list[Panel]:
        outputs = self.predict_split("test").cpu()
        return supervised_panels.classifier_panels(
            outputs,
            predict_labels(outputs, self.threshold),
            self.data,
            gives_probabilities=self.gives_probabilities,
            test_name=self.test_name,
            threshold=self.threshold,
        )


def predict_labels(outputs: Float[Tensor, "batch classes"], threshold: float | None) -> Int[Tensor, "batch"]:
    """The most probable class of each example; with a threshold, the second of two where its probability reaches it."""
    if threshold is None:
        return outputs.argmax(-1)
    return (outputs.double().softmax(-1)[:, 1] >= threshold).long()


def auc_metrics(outputs: Float[Tensor, "samples classes"], labels: Int[Tensor, "samples"]) -> Metrics:
    """The area under the ROC curve, of several classes the macro mean of one-vs-rest; nothing where no class has
    one."""
    # The logarithm ranks as the probability does, but does not round to 0 or 1.
    auc = roc_auc_ovr(outputs.cpu().double().log_softmax(-1), labels.cpu()).output
    return {} if math.isnan(auc) else {"auc": auc}


class Regression(SupervisedTask):
    """Outputs and targets are standardised numbers under a squared loss; all that is reported is in the target's own
    unit.

    The loss is in its square: with (prediction - target)²/2 it is half the square of the root mean squared error beside
    it. A loss of the user's own, whose unit nobody knows, stays that of standardised numbers.
    """

    kind = "regression"

    @property
    def unit(self) -> float:
        """One standard deviation of the training targets."""
        return float(self.data.target_scaler.std) if self.data.target_scaler is not None else 1.0

    @property
    def loss_unit(self) -> float:
        """What the root of the loss is in."""
        return 1.0 if isinstance(self.loss_fn, OwnLoss) else self.unit

    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        return {name: in_squared_unit(total, self.loss_unit) for name, total in super().step(rows).items()}

    def compute_metrics(
        self, outputs: Real[Tensor, "batch"], targets: Real[Tensor, "batch"]
    ) -> dict[str, Float[Tensor, "batch"]]:
        return {"squared_error": (as_floating(outputs, targets) - as_floating(targets, outputs)).square()}

    def finalize_metrics(self, means: Metrics) -> Metrics:
        return {"loss": means["loss"] * self.loss_unit**2, "rmse": math.sqrt(means["squared_error"]) * self.unit}

    def panels(self) -> list[Panel]:
        return supervised_panels.regression_panels(self.predict_split("test").cpu(), self.data, self.test_name)


def in_squared_unit(loss: Float[Tensor, "*shape"], unit: float) -> Float[Tensor, "*shape"]:
    """A squared loss of standardised targets in the square of their own unit; in float64 where there is one, for it may
    be large."""
    return (loss if loss.device.type == "mps" else loss.double()) * unit**2
