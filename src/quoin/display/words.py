"""How a measured number and the name of a metric are shown to a reader, in reports and in terminal tables.

Every package may import this file, and it imports none. Options are not measured: they are shown as they were given.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence

__all__ = ["FAMILIES", "METRICS", "SPLITS", "capitalized", "format_number", "metric_words", "short_names"]

SPLITS = {"train": "training", "validation": "validation", "held_out_fold": "held-out fold", "test": "test"}

# What a metric is called, by its name without the split.
METRICS = {
    "accuracy": "accuracy",
    "aic": "AIC",
    "auc": "area under the ROC curve",
    "baseline_accuracy": "accuracy of the baseline",
    "baseline_auc": "area under the ROC curve of the baseline",
    "baseline_generalization_gap": "generalisation gap of the baseline",
    "baseline_loss": "loss of the baseline",
    "bayes_accuracy": "accuracy of the Bayes classifier",
    "bayes_accuracy_gap": "accuracy below the Bayes classifier",
    "best_convergence_rate": "best convergence rate",
    "best_convergence_rate_no_momentum": "best convergence rate without momentum",
    "bic": "BIC",
    "bits_per_character": "bits per character",
    "bits_per_dimension": "bits per dimension",
    "bits_per_symbol": "bits per symbol",
    "bleu": "BLEU",
    "boxcar_rmse": "RMSE with the boxcar kernel",
    "class_conditional_accuracy": "accuracy of samples in the class asked for",
    "class_total_variation": "total variation between classes of samples and data",
    "cnn_error": "error of the CNN",
    "cnn_error_reduction": "error of the CNN below the MLP's",
    "constructed_sup_error": "largest error of the constructed network",
    "convergence_exponent": "exponent of convergence",
    "convergence_rate_error": "error of the predicted convergence rate",
    "coverage": "coverage",
    "degree": "degree chosen",
    "density": "density",
    "discriminator_fake": "discriminator on samples",
    "discriminator_real": "discriminator on data",
    "effective_sample_size": "effective sample size",
    "elbo": "ELBO",
    "elbo_gap": "ELBO gap",
    "elbo_gap_to_mle": "ELBO gap to maximum likelihood",
    "entropy_rate": "entropy rate",
    "epanechnikov_rmse": "RMSE with the Epanechnikov kernel",
    "error_bound_ratio": "error over its bound",
    "exact_match": "exact match",
    "f1": "F1",
    "forward_kl": "KL(p ‖ q), forward",
    "frechet": "Fréchet distance",
    "gaussian_rmse": "RMSE with the Gaussian kernel",
    "generalization_gap": "generalisation gap",
    "generalization_gap_reduction": "reduction of the generalisation gap",
    "gradient_bias": "bias of the gradient",
    "iwae_bits_per_dimension": "bits per dimension by the IWAE bound",
    "kernel_prediction_rmse": "RMSE against the kernel's predictions",
    "kernel_rmse": "RMSE of the kernel",
    "kl": "KL divergence",
    "linear_rmse": "RMSE of linear regression",
    "linear_rmse_ratio": "RMSE over that of linear regression",
    "log_evidence": "log evidence",
    "log_likelihood": "log-likelihood",
    "log_likelihood_gap": "log-likelihood below the true distribution's",
    "loss": "loss",
    "loss_ratio": "loss over the baseline's",
    "mae": "mean absolute error",
    "max_abs_z_score": "largest |z| of a weight",
    "max_relative_error": "largest relative error",
    "max_total_variation": "largest total variation",
    "mean_baseline_rmse": "RMSE of the mean",
    "min_accuracy": "lowest accuracy",
    "min_class_ratio": "rarest class, samples over data",
    "mlp_error": "error of the MLP",
    "mmd": "MMD²",
    "mse": "mean squared error",
    "nll": "negative log-likelihood",
    "nll_bound": "bound on the negative log-likelihood",
    "nll_gap": "negative log-likelihood above the true source's",
    "nll_iid": "negative log-likelihood of independent symbols",
    "nll_markov": "negative log-likelihood of a Markov chain",
    "nn_distance_ratio": "nearest-neighbour distance ratio",
    "no_decay_rmse": "RMSE without weight decay",
    "perplexity": "perplexity",
    "quadratic_logits_kl": "KL divergence with quadratic logits",
    "r2": "R²",
    "reconstruction_nll": "reconstruction, negative log-likelihood",
    "region_growth": "growth of the number of linear regions",
    "regions": "linear regions",
    "relative_redundancy": "relative redundancy",
    "reverse_kl": "KL(q ‖ p), reverse",
    "rmse": "RMSE",
    "rmse_ratio": "RMSE over that without weight decay",
    "scrambled_cnn_error": "error of the CNN on scrambled pixels",
    "scrambled_cnn_error_reduction": "error of the CNN below the MLP's, on scrambled pixels",
    "scrambled_mlp_error": "error of the MLP on scrambled pixels",
    "slowest_over_bound": "slowest cost over its bound",
    "stable_fraction": "fraction that is stable",
    "step_away": "largest step away from the minimum",
    "suboptimality": "suboptimality",
    "suboptimality_bound_ratio": "suboptimality over its bound",
    "sup_error": "largest error",
    "triangular_rmse": "RMSE with the triangular kernel",
    "value": "value of the game",
}

# Metrics of one thing among several, such as accuracy_adam: the metric, and in the table below the thing.
FAMILIES = {
    "accuracy_baseline": "accuracy of the baseline, batch size {}",
    "accuracy_norm": "accuracy with batch normalisation, batch size {}",
    "accuracy": "accuracy of {}",
    "elbo_gap": "ELBO gap by {}",
    "gradient_variance": "variance of the gradient by {}",
    "loss_ratio": "loss over the baseline's, batch size {}",
    "loss": "loss of {}",
    "lr": "learning rate of {}",
    "steps_to_threshold": "steps to the threshold by {}",
    "swapped": "accuracy of the exact weights under {} features",
    "whole": "whole sequences right by {}",
}
_THINGS = {
    "adam": "Adam",
    "adamw": "AdamW",
    "analytic_kl": "reparameterisation with the analytic KL",
    "bag_of_words": "the bag of words",
    "bonnet_price": "the formulas of Bonnet and Price",
    "exact": "exact attention",
    "linear": "linear attention",
    "nesterov": "Nesterov's momentum",
    "paths": "reparameterisation",
    "performer": "the Performer",
    "rmsprop": "RMSprop",
    "score": "the score function",
    "score_baseline": "the score function with a baseline",
    "sgd": "SGD",
    "transformer": "the Transformer",
}

# Words of a name that are no words.
_WORDS = {
    "abs": "absolute",
    "acc": "accuracy",
    "auc": "AUC",
    "bayes": "Bayes",
    "bleu": "BLEU",
    "cnn": "CNN",
    "elbo": "ELBO",
    "em": "EM",
    "f1": "F1",
    "frechet": "Fréchet",
    "gan": "GAN",
    "gmm": "Gaussian mixture",
    "gru": "GRU",
    "hmm": "HMM",
    "js": "Jensen–Shannon",
    "kl": "KL",
    "lr": "learning rate",
    "lstm": "LSTM",
    "mae": "mean absolute error",
    "max": "largest",
    "min": "smallest",
    "mle": "maximum likelihood",
    "mlp": "MLP",
    "mmd": "MMD",
    "mse": "mean squared error",
    "nll": "negative log-likelihood",
    "num": "number of",
    "pca": "PCA",
    "r2": "R²",
    "rbf": "RBF",
    "rmse": "RMSE",
    "rnn": "RNN",
    "sgd": "SGD",
    "std": "standard deviation",
    "vae": "VAE",
    "vlb": "variational bound",
    "xor": "XOR",
}


def metric_words(name: str) -> str:
    """A metric in words.

    >>> metric_words("test_accuracy"), metric_words("validation_rmse"), metric_words("held_out_fold_elbo_gap")
    ('test accuracy', 'validation RMSE', 'held-out fold ELBO gap')
    >>> metric_words("test_accuracy_adam"), metric_words("my_mean_mse")
    ('test accuracy of Adam', 'my mean mean squared error')
    """
    split = next((each for each in SPLITS if name.startswith(f"{each}_")), "")
    own = name.removeprefix(f"{split}_") if split else name
    words = METRICS.get(own) or _of_family(own) or _word_by_word(own)
    return f"{SPLITS[split]} {words}" if split else words


def _of_family(own: str) -> str | None:
    """What the metric of one thing among several is called, if it is one."""
    if found := re.fullmatch(r"degree_(\d+)_rmse", own):
        return f"RMSE of degree {found[1]}"
    for family, words in FAMILIES.items():
        if own.startswith(f"{family}_"):
            thing = own.removeprefix(f"{family}_")
            return words.format(_THINGS.get(thing) or _word_by_word(thing))
    return None


def _word_by_word(own: str) -> str:
    return " ".join(_WORDS.get(word, word) for word in own.split("_") if word)


def capitalized(text: str) -> str:
    """With a capital first letter, and the rest as it is.

    >>> capitalized("validation RMSE")
    'Validation RMSE'
    """
    return text[:1].upper() + text[1:]


def format_number(value: float) -> str:
    """Three significant digits, without zeros that say nothing; whole where it is large, a power of ten where it is
    huge or tiny. What is below 1 is never shown as 1: an accuracy of 0.9998 is none of 1.

    >>> format_number(0.98765), format_number(12.5), format_number(12345.6), format_number(1e-7), format_number(0.5)
    ('0.988', '12.5', '12346', '1e-07', '0.5')
    >>> format_number(0.99984), format_number(0.999999), format_number(1.0)
    ('0.9998', '0.999999', '1')
    """
    if not math.isfinite(value):
        return str(value)
    if 0.9995 <= value < 1:
        return next(text for digits in range(4, 18) if (text := f"{value:.{digits}g}") != "1")
    return f"{value:.0f}" if 999.5 <= abs(value) < 999_999.5 else f"{value:.3g}"


def short_names(names: Sequence[str], longest: int) -> list[str]:
    """Names of classes or symbols as a plot has space for them. Those that begin alike are told apart by their ends or,
    where these are alike too, by their numbers.

    >>> short_names(["cat", "a very long name", "the same start, one", "the same start, two"], 10)
    ['cat', 'a very lo…', 'the s…one', 'the s…two']
    >>> short_names(["the same start and end", "the same long start and end"], 10)
    ['the sam…1', 'the sam…2']
    """
    found = [name if len(name) <= longest else f"{name[: longest - 1]}…" for name in names]
    half = longest // 2
    for again in (
        lambda name, number: f"{name[:half]}…{name[half + 1 - longest :].strip()}",
        lambda name, number: f"{name[: longest - 2 - len(str(number))]}…{number}",
    ):
        many = Counter(found)
        found = [
            again(name, number) if many[short] > 1 and len(name) > longest else short
            for number, (name, short) in enumerate(zip(names, found), 1)
        ]
    return found
