"""Cases for `quoin.losses`: see tests/dtypes.py. What measures samples, bounds and diffusion is in
losses_generative.py."""

import torch

from dtype_cases import losses_generative
from quoin import losses as q
from quoin.prob import EpsilonPrediction
from quoin.tensor import as_floating

LABELS = torch.tensor([2, 0])
SCORES = [[0, 150, 130], [3, 1, 2]]
LAWS = [[0.5, 0.25, 0.25], [0.0, 0.125, 0.875]]
SEEN, RIGHT = [0, 100, 7, 2], [150, 20, 3, 9]  # what uint8 takes 0 - 150 for is 106


def constant_fit(x, y):
    """A model that says the first target seen, of whatever dtype."""
    return lambda some: y[0].expand(len(some))


class Bell:
    """-(y - x)² as the logarithm of a density."""

    def log_prob(self, y, x=None):
        y = as_floating(y)
        return -((y if x is None else y - as_floating(x)).square())


CASES = losses_generative.CASES | {
    # classification
    "cross_entropy": lambda x: q.cross_entropy(x(SCORES), LABELS),
    "cross_entropy soft": lambda x: q.cross_entropy(x(SCORES), x(LAWS)),
    "cross_entropy weights": lambda x: q.cross_entropy(x(SCORES), LABELS, class_weights=x([1, 2, 3])),
    "cross_entropy_definition": lambda x: q.cross_entropy_definition(x(SCORES), LABELS),
    "cross_entropy_definition soft": lambda x: q.cross_entropy_definition(x(SCORES), x(LAWS)),
    "cross_entropy_definition weights": lambda x: q.cross_entropy_definition(
        x(SCORES), LABELS, class_weights=x([1, 2, 3])
    ),
    "cross_entropy_from_probs": lambda x: q.cross_entropy_from_probs(x(LAWS)[0], x([0.0, 0.25, 0.75])),
    "cross_entropy_from_probs labels": lambda x: q.cross_entropy_from_probs(x([[0.5, 0.25, 0.25], [1, 0, 0]]), LABELS),
    "nll_loss": lambda x: q.nll_loss(x([[0, -150, -130], [-3, -1, -2]]), LABELS),
    # regression
    "squared_loss": lambda x: q.squared_loss(x(SEEN), x(RIGHT)),
    "squared_loss floats": lambda x: q.squared_loss(torch.tensor([0.0, 100.0]), x([150, 20])),
    "gaussian_nll": lambda x: q.gaussian_nll(x(SEEN), x(RIGHT), 2.0),
    "mean_power_error": lambda x: q.mean_power_error(x(SEEN), x(RIGHT), 1.5),
    "mae": lambda x: q.mae(x(SEEN), x(RIGHT)),
    "mse": lambda x: q.mse(x(SEEN), x(RIGHT)),
    # margins and penalties
    "logistic_loss": lambda x: q.logistic_loss(x(SEEN)),
    "logistic_loss_definition": lambda x: q.logistic_loss_definition(x(SEEN)),
    "hinge_loss": lambda x: q.hinge_loss(x([0, 100, 255, 2])),
    "svm_objective": lambda x: q.svm_objective(x([0, 100, 255, 2]), x([10, 100]), 0.5),
    "kernel_svm_objective": lambda x: q.kernel_svm_objective(x([1, 2]), x([[100, 3], [3, 50]]), x([1, -1]), 0.5),
    "kernel_svm_objective bias": lambda x: q.kernel_svm_objective(
        x([1, 2]), x([[100, 3], [3, 50]]), x([1, -1]), 0.5, bias=x(7)
    ),
    "l2_penalty": lambda x: q.l2_penalty([x([10, 100]), x([3])], 0.5),
    "l1_penalty": lambda x: q.l1_penalty([x([10, 100]), x([200])], 0.5),
    "l2_regularized_loss": lambda x: q.l2_regularized_loss(x(7), x([10, 100]), 0.5),
    "input_dropout_penalty": lambda x: q.input_dropout_penalty(x([[1, 20], [3, 4]]), x([10, 3]), 0.5),
    # likelihood and language
    "conditional_nll": lambda x: q.conditional_nll(Bell(), x(SEEN), x(RIGHT)),
    "expected_nll": lambda x: q.expected_nll(Bell(), x(SEEN), x(RIGHT)),
    "density_nll": lambda x: q.density_nll(Bell(), x(SEEN)),
    "token_nll": lambda x: q.token_nll(x(SCORES), LABELS),
    "token_nll_definition": lambda x: q.token_nll_definition(x(LAWS[0])),
    "sequence_cross_entropy": lambda x: q.sequence_cross_entropy(x([SCORES]), LABELS[None], torch.tensor([2])),
    "sequence_cross_entropy_definition": lambda x: q.sequence_cross_entropy_definition(
        x([SCORES]), LABELS[None], torch.tensor([2])
    ),
    # risks, of models and losses that take numbers as they come
}

ROUNDINGS = losses_generative.ROUNDINGS

RESULT = "a result, built by the functions that are tried"
WORDS = "takes texts"
NO_NUMBERS = losses_generative.NO_NUMBERS | {}

# Labels, tokens, lengths and times: whole numbers, held against int64.
FLOATS = torch.tensor([[0.0, 150.0, 130.0], [3.0, 1.0, 2.0]])
KNOWN = torch.tensor(LAWS)
MARKED = {
    "balanced_class_weights": lambda x: q.balanced_class_weights(x([0, 1, 1, 0, 1]), 2),
    "cross_entropy labels": lambda x: q.cross_entropy(FLOATS, x([2, 0])),
    "cross_entropy_definition labels": lambda x: q.cross_entropy_definition(FLOATS, x([2, 0])),
    "cross_entropy_from_probs marked": lambda x: q.cross_entropy_from_probs(KNOWN, x([2, 1])),
    "nll_loss labels": lambda x: q.nll_loss(-FLOATS, x([2, 0])),
    "token_nll tokens": lambda x: q.token_nll(FLOATS, x([2, 0])),
    "sequence_cross_entropy target": lambda x: q.sequence_cross_entropy(FLOATS[None], x([[2, 0]]), torch.tensor([1])),
    "sequence_cross_entropy lengths": lambda x: q.sequence_cross_entropy(FLOATS[None], LABELS[None], x([1])),
    "sequence_cross_entropy_definition target": lambda x: q.sequence_cross_entropy_definition(
        FLOATS[None], x([[2, 0]]), torch.tensor([1])
    ),
    "sequence_cross_entropy_definition lengths": lambda x: q.sequence_cross_entropy_definition(
        FLOATS[None], LABELS[None], x([1])
    ),
    "denoising_kl times": lambda x: q.denoising_kl(
        losses_generative.SCHEDULE, torch.ones(2, 2), torch.zeros(2, 2), x([2, 4])
    ),
    "denoising_loss times": lambda x: q.denoising_loss(
        lambda noisy, t: noisy,
        losses_generative.SCHEDULE,
        EpsilonPrediction(),
        torch.ones(2, 2),
        x([2, 4]),
        torch.ones(2, 2),
    ),
}
CASES |= MARKED
WHOLE = set(MARKED)
