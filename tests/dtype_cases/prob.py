"""Cases for `quoin.prob`: see tests/dtypes.py. Tables are in prob_tables.py, real numbers in prob_normals.py."""

from dtype_cases import prob_normals, prob_tables

CASES = prob_tables.CASES | prob_normals.CASES
WHOLE = prob_tables.WHOLE | prob_normals.WHOLE

# name -> how many roundings it may lose, where the mathematics makes it worse than dtypes.ROUNDINGS
ROUNDINGS: dict[str, float] = {}

RESULT = "holds the answer of a function that has a case"
ABSTRACT = "abstract: those that are it have cases"
SIZES = "takes sizes and plain Python numbers"
DRAWS = "draws its own numbers from a generator; the laws it draws from have cases"

# Public names that take no numbers in tensors, each with its reason.
NO_NUMBERS: dict[str, str] = {
    "Integral": RESULT,
    "Absorption": RESULT,
    "BackStep": RESULT,
    "BaumWelch": RESULT,
    "BaumWelchStep": RESULT,
    "ByParts": RESULT,
    "ConditionalNormal": RESULT,
    "Decorrelation": RESULT,
    "Denoised": RESULT,
    "EvidenceEstimate": RESULT,
    "ExponentialOptimum": RESULT,
    "HiddenPath": RESULT,
    "HiddenPosterior": RESULT,
    "HiddenSample": RESULT,
    "HistoryChain": RESULT,
    "Level": RESULT,
    "MarkovTest": RESULT,
    "Prokhorov": RESULT,
    "Quadrature": RESULT,
    "SameLawTest": RESULT,
    "TotalVariation": RESULT,
    "TypewriterInterval": RESULT,
    "WalkLaw": RESULT,
    "WeightedMoments": RESULT,
    "ComponentNormals": ABSTRACT,
    "Components": ABSTRACT,
    "ConditionalModel": ABSTRACT,
    "ContinuousProcess": ABSTRACT,
    "NormalDistribution": ABSTRACT,
    "UnconditionalModel": ABSTRACT,
    "Emission": ABSTRACT,
    "FiniteChain": ABSTRACT,
    "LatentModel": ABSTRACT,
    "Parametrisation": ABSTRACT,
    "Process": ABSTRACT,
    "Proposal": ABSTRACT,
    "ReparametrisedLaw": ABSTRACT,
    "StartLaw": ABSTRACT,
    "TractableLatentModel": ABSTRACT,
    "RandomWalk": SIZES,
    "cosine_schedule": SIZES,
    "linear_schedule": SIZES,
    "pairings": SIZES,
    "sigmoid_schedule": SIZES,
    "iid_sample": DRAWS,
    "importance_log_evidence": DRAWS,
    "mc_log_evidence": DRAWS,
}
