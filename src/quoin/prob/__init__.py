"""Chance: Gaussians, mixtures, Markov chains, limits, divergences between laws."""

from quoin.prob.binary import binary_decision, binary_log_prob, binary_log_prob_definition, check_signs, margin
from quoin.prob.conditional import (
    BinaryModel,
    CategoricalModel,
    ConditionalModel,
    DensityModel,
    MulticlassModel,
    SequenceModel,
)
from quoin.prob.divergence import (
    TotalVariation,
    cross_entropy_of,
    kl,
    lp_distance,
    lp_distance_definition,
    total_variation,
    total_variation_definition,
)
from quoin.prob.law import check_law
from quoin.prob.two_sample import SameLawTest, energy_distance, same_law_test

__all__ = [
    "BinaryModel",
    "CategoricalModel",
    "ConditionalModel",
    "DensityModel",
    "MulticlassModel",
    "SameLawTest",
    "SequenceModel",
    "TotalVariation",
    "binary_decision",
    "binary_log_prob",
    "binary_log_prob_definition",
    "check_law",
    "check_signs",
    "cross_entropy_of",
    "energy_distance",
    "kl",
    "lp_distance",
    "lp_distance_definition",
    "margin",
    "same_law_test",
    "total_variation",
    "total_variation_definition",
]
