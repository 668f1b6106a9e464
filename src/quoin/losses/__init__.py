"""A number to minimise: likelihoods, margins, penalties, ELBO, adversarial, denoising."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.losses.adversarial import (
        InputGradients,
        adversarial_value,
        input_gradients,
        input_gradients_definition,
        minimax_value,
        minimax_value_definition,
        mixed_examples,
        non_saturating_loss,
        non_saturating_loss_definition,
        one_centred_penalty,
        optimal_discriminator,
        saturating_loss,
        zero_centred_penalty,
    )
    from quoin.losses.cross_entropy import balanced_class_weights, cross_entropy, cross_entropy_definition
    from quoin.losses.denoising import (
        DiffusionBound,
        denoising_kl,
        denoising_kl_definition,
        denoising_loss,
        diffusion_bound,
        first_step_log_prob,
        flow_matching_loss,
        noise_kl,
        sampled_diffusion_bound,
    )
    from quoin.losses.elbo import ElboGroupings, elbo_definition, elbo_groupings
    from quoin.losses.elbo_gradients import (
        NormalGradients,
        elbo_by_analytic_kl,
        elbo_by_baseline,
        elbo_by_paths,
        elbo_by_score,
        elbo_by_stochastic_backprop,
        normal_gradients,
        score_gradient_definition,
    )
    from quoin.losses.language import token_nll, token_nll_definition
    from quoin.losses.likelihood import conditional_nll, cross_entropy_of_probabilities, density_nll, expected_nll, nll_loss
    from quoin.losses.margin import hinge_loss, kernel_svm_objective, log_loss, log_loss_definition, svm_objective
    from quoin.losses.penalty import input_dropout_penalty, l1_penalty, l2_penalty, penalised_loss
    from quoin.losses.regression import gaussian_nll, mae, mean_power_error, mse, squared_loss
    from quoin.losses.sequence import sequence_cross_entropy, sequence_cross_entropy_definition
    from quoin.losses.vae import GaussianVAELoss, gaussian_vae_loss, gaussian_vae_loss_definition, kl_warm_up, vae_losses

__all__ = [
    "DiffusionBound",
    "ElboGroupings",
    "GaussianVAELoss",
    "InputGradients",
    "NormalGradients",
    "adversarial_value",
    "balanced_class_weights",
    "conditional_nll",
    "cross_entropy",
    "cross_entropy_definition",
    "cross_entropy_of_probabilities",
    "denoising_kl",
    "denoising_kl_definition",
    "denoising_loss",
    "density_nll",
    "diffusion_bound",
    "elbo_by_analytic_kl",
    "elbo_by_baseline",
    "elbo_by_paths",
    "elbo_by_score",
    "elbo_by_stochastic_backprop",
    "elbo_definition",
    "elbo_groupings",
    "expected_nll",
    "first_step_log_prob",
    "flow_matching_loss",
    "gaussian_nll",
    "gaussian_vae_loss",
    "gaussian_vae_loss_definition",
    "hinge_loss",
    "input_dropout_penalty",
    "input_gradients",
    "input_gradients_definition",
    "kernel_svm_objective",
    "kl_warm_up",
    "l1_penalty",
    "l2_penalty",
    "log_loss",
    "log_loss_definition",
    "mae",
    "mean_power_error",
    "minimax_value",
    "minimax_value_definition",
    "mixed_examples",
    "mse",
    "nll_loss",
    "noise_kl",
    "non_saturating_loss",
    "non_saturating_loss_definition",
    "normal_gradients",
    "one_centred_penalty",
    "optimal_discriminator",
    "penalised_loss",
    "sampled_diffusion_bound",
    "saturating_loss",
    "score_gradient_definition",
    "sequence_cross_entropy",
    "sequence_cross_entropy_definition",
    "squared_loss",
    "svm_objective",
    "token_nll",
    "token_nll_definition",
    "vae_losses",
    "zero_centred_penalty",
]

export_lazily(__name__)
