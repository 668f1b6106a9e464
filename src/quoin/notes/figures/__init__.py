"""The notes' figures, plotted from the library: each is called by its name, with the notes' numbers or with others."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.notes.figures.activations import activations
    from quoin.notes.figures.adversarial import adversarial_game
    from quoin.notes.figures.architectures import vgg
    from quoin.notes.figures.coding import code_trees
    from quoin.notes.figures.convexity import below_sets, bound_beside_the_run, chords
    from quoin.notes.figures.convolution import edges_of_digits, kernel_as_matrix, kernel_over_image
    from quoin.notes.figures.descent import learning_rates, momentum_paths, momentum_phase, paths_on_landscapes
    from quoin.notes.figures.diffusion import forth_and_back
    from quoin.notes.figures.feature_maps import layer_by_layer
    from quoin.notes.figures.figure import Figure, collect, figure, plot_all, select
    from quoin.notes.figures.gallery import gallery
    from quoin.notes.figures.gaussians import conditioning_is_a_slice, ellipses_of_equal_density
    from quoin.notes.figures.generalisation import errors_by_degree, errors_by_size, fits_by_degree
    from quoin.notes.figures.graphs import regularized_loss, reverse_mode
    from quoin.notes.figures.hmm import hidden_states
    from quoin.notes.figures.information import entropy_of_a_coin, jensen, kl_both_ways
    from quoin.notes.figures.karate_club import factions_and_propagation
    from quoin.notes.figures.kernel_regression import four_kernels, widths
    from quoin.notes.figures.latent import samples_against_likelihood
    from quoin.notes.figures.limits import distance_by_count, means, sums_become_normal, typewriter_strokes
    from quoin.notes.figures.lookup import lookup_table
    from quoin.notes.figures.losses import decision_by_sign, distances_of_two_outcomes, log_loss_and_hinge_loss
    from quoin.notes.figures.mixture import fitted_mixture, one_hill_or_two
    from quoin.notes.figures.networks import four_hidden_units, linear_regression, random_realizations, two_five_one
    from quoin.notes.figures.normalisation import axes_of_the_means
    from quoin.notes.figures.piecewise import certificate, graph_with_breakpoints, graph_with_network
    from quoin.notes.figures.pixelcnn import receptive_fields
    from quoin.notes.figures.positions import biases_by_distance, rotary_scores, sinusoidal_encodings
    from quoin.notes.figures.probability import (
        distribution_of_the_sum,
        likelihoods_sharpen,
        mass_on_the_diagonal,
        slices_of_a_density,
        what_a_test_says,
    )
    from quoin.notes.figures.processes import distribution_by_step, function_forgets, sample_paths
    from quoin.notes.figures.random_features import error_by_number_of_features, rank_of_features
    from quoin.notes.figures.recurrent import gradients_by_lag
    from quoin.notes.figures.regions import break_lines_of_max, region_maps, sawteeth, units_by_depth, width_two
    from quoin.notes.figures.residual import residual_blocks
    from quoin.notes.figures.samples import what_measures_see

__all__ = [
    "Figure",
    "activations",
    "adversarial_game",
    "axes_of_the_means",
    "below_sets",
    "biases_by_distance",
    "bound_beside_the_run",
    "break_lines_of_max",
    "certificate",
    "chords",
    "code_trees",
    "collect",
    "conditioning_is_a_slice",
    "decision_by_sign",
    "distance_by_count",
    "distances_of_two_outcomes",
    "distribution_by_step",
    "distribution_of_the_sum",
    "edges_of_digits",
    "ellipses_of_equal_density",
    "entropy_of_a_coin",
    "error_by_number_of_features",
    "errors_by_degree",
    "errors_by_size",
    "factions_and_propagation",
    "figure",
    "fits_by_degree",
    "fitted_mixture",
    "forth_and_back",
    "four_hidden_units",
    "four_kernels",
    "function_forgets",
    "gallery",
    "gradients_by_lag",
    "graph_with_breakpoints",
    "graph_with_network",
    "hidden_states",
    "jensen",
    "kernel_as_matrix",
    "kernel_over_image",
    "kl_both_ways",
    "layer_by_layer",
    "learning_rates",
    "likelihoods_sharpen",
    "linear_regression",
    "log_loss_and_hinge_loss",
    "lookup_table",
    "mass_on_the_diagonal",
    "means",
    "momentum_paths",
    "momentum_phase",
    "one_hill_or_two",
    "paths_on_landscapes",
    "plot_all",
    "random_realizations",
    "rank_of_features",
    "receptive_fields",
    "region_maps",
    "regularized_loss",
    "residual_blocks",
    "reverse_mode",
    "rotary_scores",
    "sample_paths",
    "samples_against_likelihood",
    "sawteeth",
    "select",
    "sinusoidal_encodings",
    "slices_of_a_density",
    "sums_become_normal",
    "two_five_one",
    "typewriter_strokes",
    "units_by_depth",
    "vgg",
    "what_a_test_says",
    "what_measures_see",
    "width_two",
    "widths",
]

export_lazily(__name__)
