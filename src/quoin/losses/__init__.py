"""Loss functions: likelihoods, margins, penalties, ELBO, adversarial, denoising."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.losses.adversarial import (
        InputGradients,
        adversarial_value,
        gradient_penalty,
        input_gradients,
        input_gradients_definition,
        interpolate_examples,
        minimax_value,
        minimax_value_definition,
        non_saturating_loss,
        non_saturating_loss_definition,
        optimal_discriminator,
        r1_penalty,
        saturating_loss,
    )
    from quoin.losses.cross_entropy import balanced_class_weights, cross_entropy, cross_entropy_definition
    from quoin.losses.denoising import (
        DiffusionVLB,
        denoising_kl,
        denoising_kl_definition,
        denoising_loss,
        diffusion_vlb,
        flow_matching_loss,
        prior_kl,
        reconstruction_log_prob,
        sampled_diffusion_vlb,
    )
    from quoin.losses.elbo import ElboGroupings, elbo_definition, elbo_groupings
    from quoin.losses.elbo_gradients import (
        BonnetPriceGradients,
        bonnet_price_gradients,
        elbo_analytic_kl,
        elbo_bonnet_price,
        elbo_reinforce,
        elbo_reinforce_baseline,
        elbo_reparameterized,
        score_function_gradient_definition,
    )
    from quoin.losses.language import token_nll, token_nll_definition
    from quoin.losses.likelihood import conditional_nll, cross_entropy_from_probs, density_nll, expected_nll, nll_loss
    from quoin.losses.margin import (
        hinge_loss,
        kernel_svm_objective,
        logistic_loss,
        logistic_loss_definition,
        svm_objective,
    )
    from quoin.losses.penalty import input_dropout_penalty, l1_penalty, l2_penalty, l2_regularized_loss
    from quoin.losses.regression import gaussian_nll, mae, mean_power_error, mse, squared_loss
    from quoin.losses.sequence import sequence_cross_entropy, sequence_cross_entropy_definition
    from quoin.losses.vae import GaussianVAELoss, gaussian_vae_loss, gaussian_vae_loss_definition, kl_warmup, vae_losses

__all__ = [
    "BonnetPriceGradients",
    "DiffusionVLB",
    "ElboGroupings",
    "GaussianVAELoss",
    "InputGradients",
    "adversarial_value",
    "balanced_class_weights",
    "bonnet_price_gradients",
    "conditional_nll",
    "cross_entropy",
    "cross_entropy_definition",
    "cross_entropy_from_probs",
    "denoising_kl",
    "denoising_kl_definition",
    "denoising_loss",
    "density_nll",
    "diffusion_vlb",
    "elbo_analytic_kl",
    "elbo_bonnet_price",
    "elbo_definition",
    "elbo_groupings",
    "elbo_reinforce",
    "elbo_reinforce_baseline",
    "elbo_reparameterized",
    "expected_nll",
    "flow_matching_loss",
    "gaussian_nll",
    "gaussian_vae_loss",
    "gaussian_vae_loss_definition",
    "gradient_penalty",
    "hinge_loss",
    "input_dropout_penalty",
    "input_gradients",
    "input_gradients_definition",
    "interpolate_examples",
    "kernel_svm_objective",
    "kl_warmup",
    "l1_penalty",
    "l2_penalty",
    "l2_regularized_loss",
    "logistic_loss",
    "logistic_loss_definition",
    "mae",
    "mean_power_error",
    "minimax_value",
    "minimax_value_definition",
    "mse",
    "nll_loss",
    "non_saturating_loss",
    "non_saturating_loss_definition",
    "optimal_discriminator",
    "prior_kl",
    "r1_penalty",
    "reconstruction_log_prob",
    "sampled_diffusion_vlb",
    "saturating_loss",
    "score_function_gradient_definition",
    "sequence_cross_entropy",
    "sequence_cross_entropy_definition",
    "squared_loss",
    "svm_objective",
    "token_nll",
    "token_nll_definition",
    "vae_losses",
]

export_lazily(__name__)
