"""Cases for `quoin.objectives`: see tests/dtypes.py. What measures samples, bounds and diffusion is in objectives_generative.py."""

import torch

from dtype_cases import objectives_generative
from quoin import objectives as q
from quoin.prob import PredictNoise
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


CASES = objectives_generative.CASES | {
    # classification
    "cross_entropy": lambda x: q.cross_entropy(x(SCORES), LABELS),
    "cross_entropy soft": lambda x: q.cross_entropy(x(SCORES), x(LAWS)),
    "cross_entropy weights": lambda x: q.cross_entropy(x(SCORES), LABELS, class_weights=x([1, 2, 3])),
    "cross_entropy_definition": lambda x: q.cross_entropy_definition(x(SCORES), LABELS),
    "cross_entropy_definition soft": lambda x: q.cross_entropy_definition(x(SCORES), x(LAWS)),
    "cross_entropy_definition weights": lambda x: q.cross_entropy_definition(x(SCORES), LABELS, class_weights=x([1, 2, 3])),
    "cross_entropy_of_probabilities": lambda x: q.cross_entropy_of_probabilities(x(LAWS)[0], x([0.0, 0.25, 0.75])),
    "cross_entropy_of_probabilities labels": lambda x: q.cross_entropy_of_probabilities(x([[0.5, 0.25, 0.25], [1, 0, 0]]), LABELS),
    "nll_loss": lambda x: q.nll_loss(x([[0, -150, -130], [-3, -1, -2]]), LABELS),
    "zero_one_loss": lambda x: q.zero_one_loss(x([1, 2, 3]), x([1, 3, 2])),
    "accuracy": lambda x: q.accuracy(x([1, 2, 3, 0]), x([1, 3, 2, 0])),
    "predictive_entropy": lambda x: q.predictive_entropy(x(LAWS)),
    "decide": lambda x: q.decide(x(LAWS), x([[0, 100, 3], [1, 0, 60]])),
    "decide whole costs": lambda x: q.decide(torch.tensor(LAWS, dtype=torch.float64), x([[0, 100, 3], [1, 0, 60]])),
    "calibration_curve": lambda x: q.calibration_curve(x([0.25, 0.5, 1, 0]), x([0, 1, 1, 0]), num_bins=2),
    "expected_calibration_error": lambda x: q.expected_calibration_error(x(LAWS), LABELS),
    "roc_curve": lambda x: q.roc_curve(x([0, 150, 130, 3]), torch.tensor([0, 1, 0, 1])),
    "roc_auc": lambda x: q.roc_auc(x([0, 150, 130, 3]), torch.tensor([0, 1, 0, 1])),
    "roc_auc_definition": lambda x: q.roc_auc_definition(x([0, 150, 130, 3]), torch.tensor([0, 1, 0, 1])),
    # regression
    "squared_loss": lambda x: q.squared_loss(x(SEEN), x(RIGHT)),
    "squared_loss floats": lambda x: q.squared_loss(torch.tensor([0.0, 100.0]), x([150, 20])),
    "gaussian_nll": lambda x: q.gaussian_nll(x(SEEN), x(RIGHT), 2.0),
    "mean_power_error": lambda x: q.mean_power_error(x(SEEN), x(RIGHT), 1.5),
    "mae": lambda x: q.mae(x(SEEN), x(RIGHT)),
    "mse": lambda x: q.mse(x(SEEN), x(RIGHT)),
    "root_mean_squared_error": lambda x: q.root_mean_squared_error(x(SEEN), x(RIGHT)),
    "root_mean_squared_error far": lambda x: q.root_mean_squared_error(x([0, 10]), x([255, 20])),
    "r_squared": lambda x: q.r_squared(x(SEEN), x(RIGHT)),
    # margins and penalties
    "log_loss": lambda x: q.log_loss(x(SEEN)),
    "log_loss_definition": lambda x: q.log_loss_definition(x(SEEN)),
    "hinge_loss": lambda x: q.hinge_loss(x([0, 100, 255, 2])),
    "svm_objective": lambda x: q.svm_objective(x([0, 100, 255, 2]), x([10, 100]), 0.5),
    "kernel_svm_objective": lambda x: q.kernel_svm_objective(x([1, 2]), x([[100, 3], [3, 50]]), x([1, -1]), 0.5),
    "kernel_svm_objective bias": lambda x: q.kernel_svm_objective(x([1, 2]), x([[100, 3], [3, 50]]), x([1, -1]), 0.5, bias=x(7)),
    "l2_penalty": lambda x: q.l2_penalty([x([10, 100]), x([3])], 0.5),
    "l1_penalty": lambda x: q.l1_penalty([x([10, 100]), x([200])], 0.5),
    "penalised_loss": lambda x: q.penalised_loss(x(7), x([10, 100]), 0.5),
    "input_dropout_penalty": lambda x: q.input_dropout_penalty(x([[1, 20], [3, 4]]), x([10, 3]), 0.5),
    # likelihood and language
    "conditional_nll": lambda x: q.conditional_nll(Bell(), x(SEEN), x(RIGHT)),
    "expected_nll": lambda x: q.expected_nll(Bell(), x(SEEN), x(RIGHT)),
    "density_nll": lambda x: q.density_nll(Bell(), x(SEEN)),
    "token_nll": lambda x: q.token_nll(x(SCORES), LABELS),
    "token_nll_definition": lambda x: q.token_nll_definition(x(LAWS[0])),
    "sliding_token_nll": lambda x: q.sliding_token_nll(lambda seen: x([SCORES]), torch.tensor([0, 2, 1]), window=2, fresh=2),
    "perplexity": lambda x: q.perplexity(x([0, 3, 8])),
    "bits_per_character": lambda x: q.bits_per_character(x([0, 150, 255]), 3),
    "sequence_cross_entropy": lambda x: q.sequence_cross_entropy(x([SCORES]), LABELS[None], torch.tensor([2])),
    "sequence_cross_entropy_definition": lambda x: q.sequence_cross_entropy_definition(x([SCORES]), LABELS[None], torch.tensor([2])),
    # risks, of models and losses that take numbers as they come
    "empirical_risk": lambda x: q.empirical_risk(q.squared_loss, x(SEEN), x(RIGHT)),
    "empirical_risk whole": lambda x: q.empirical_risk(torch.maximum, x(SEEN), x(RIGHT)),
    "held_out_loss": lambda x: q.held_out_loss(torch.abs, q.squared_loss, x([0, 100]), x([150, 20])),
    "held_out_loss whole": lambda x: q.held_out_loss(torch.clone, torch.maximum, x([0, 100]), x([150, 20])),
    "expected_risk": lambda x: q.expected_risk(torch.clone, q.squared_loss, q.Population(x([0, 100]), x([150, 20]), x([0.5, 0.5]))),
    "expected_risk whole": lambda x: q.expected_risk(
        torch.clone, torch.maximum, q.Population(x([0, 100]), x([150, 20]), torch.tensor([0.5, 0.5]))
    ),
    "estimated_risk": lambda x: q.estimated_risk(torch.clone, q.squared_loss, x(SEEN), x(RIGHT)),
    "sampled_risk": lambda x: q.sampled_risk(torch.clone, torch.maximum, lambda n, _: (x(SEEN), x(RIGHT)), 4, generator=torch.Generator()),
    "generalisation_gap": lambda x: q.generalisation_gap(torch.clone, torch.maximum, (x([0, 9]), x([7, 3])), (x(SEEN), x(RIGHT))),
    "cross_validate": lambda x: q.cross_validate(
        constant_fit, q.squared_loss, x(SEEN), x(RIGHT), [(torch.tensor([0, 1]), torch.tensor([2, 3]))]
    ),
    "learning_curve": lambda x: q.learning_curve(constant_fit, q.squared_loss, (x(SEEN), x(RIGHT)), (x([1, 2]), x([0, 120])), [1, 3]),
}

ROUNDINGS = objectives_generative.ROUNDINGS

RESULT = "a result, built by the functions that are tried"
WORDS = "takes texts"
NO_NUMBERS = objectives_generative.NO_NUMBERS | {
    "CalibrationCurve": RESULT,
    "CrossValidation": RESULT,
    "Decision": RESULT,
    "Gap": RESULT,
    "LearningCurve": RESULT,
    "RiskEstimate": RESULT,
    "RocCurve": RESULT,
    "EarlyStop": RESULT,
    "Population": "tensors held by name; expected_risk is what computes with them",
    "early_stop": "takes a list of Python floats",
    "population_of_density": "takes a function and Python floats; its nodes are float64",
    "bleu": WORDS,
    "exact_match": WORDS,
}

# Labels, tokens, lengths and times: whole numbers, held against int64.
FLOATS = torch.tensor([[0.0, 150.0, 130.0], [3.0, 1.0, 2.0]])
KNOWN = torch.tensor(LAWS)
MARKED = {
    "balanced_class_weights": lambda x: q.balanced_class_weights(x([0, 1, 1, 0, 1]), 2),
    "confusion_matrix": lambda x: q.confusion_matrix(x([0, 1, 1, 99]), x([1, 1, 0, 99]), 100),
    "cross_entropy labels": lambda x: q.cross_entropy(FLOATS, x([2, 0])),
    "cross_entropy_definition labels": lambda x: q.cross_entropy_definition(FLOATS, x([2, 0])),
    "cross_entropy_of_probabilities marked": lambda x: q.cross_entropy_of_probabilities(KNOWN, x([2, 1])),
    "nll_loss labels": lambda x: q.nll_loss(-FLOATS, x([2, 0])),
    "expected_calibration_error labels": lambda x: q.expected_calibration_error(KNOWN, x([2, 1])),
    "roc_curve labels": lambda x: q.roc_curve(torch.tensor([0.0, 3.0, 1.0, 2.0]), x([0, 1, 0, 1])),
    "roc_auc labels": lambda x: q.roc_auc(torch.tensor([0.0, 3.0, 1.0, 2.0]), x([0, 1, 0, 1])),
    "roc_auc_definition labels": lambda x: q.roc_auc_definition(torch.tensor([0.0, 3.0, 1.0, 2.0]), x([0, 1, 0, 1])),
    "token_nll tokens": lambda x: q.token_nll(FLOATS, x([2, 0])),
    "sliding_token_nll tokens": lambda x: q.sliding_token_nll(lambda seen: FLOATS[None], x([0, 2, 1]), window=2, fresh=2),
    "sequence_cross_entropy target": lambda x: q.sequence_cross_entropy(FLOATS[None], x([[2, 0]]), torch.tensor([1])),
    "sequence_cross_entropy lengths": lambda x: q.sequence_cross_entropy(FLOATS[None], LABELS[None], x([1])),
    "sequence_cross_entropy_definition target": lambda x: q.sequence_cross_entropy_definition(FLOATS[None], x([[2, 0]]), torch.tensor([1])),
    "sequence_cross_entropy_definition lengths": lambda x: q.sequence_cross_entropy_definition(FLOATS[None], LABELS[None], x([1])),
    "cross_validate rows": lambda x: q.cross_validate(
        constant_fit, q.squared_loss, torch.tensor([0.0, 3.0]), torch.tensor([1.0, 7.0]), [(x([0]), x([1]))]
    ),
    "mode_coverage modes": lambda x: q.mode_coverage(x([0, 0, 2, 1]), torch.tensor([0.5, 0.25, 0.25])),
    "denoising_kl times": lambda x: q.denoising_kl(objectives_generative.SCHEDULE, torch.ones(2, 2), torch.zeros(2, 2), x([2, 4])),
    "denoising_loss times": lambda x: q.denoising_loss(
        lambda noisy, t: noisy, objectives_generative.SCHEDULE, PredictNoise(), torch.ones(2, 2), x([2, 4]), torch.ones(2, 2)
    ),
}
CASES |= MARKED
WHOLE = set(MARKED)
