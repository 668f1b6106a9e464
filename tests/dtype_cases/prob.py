"""Cases for `quoin.prob`: see tests/dtypes.py. Tables are in prob_tables.py, real numbers in prob_normals.py."""

from dtype_cases import prob_normals, prob_tables

CASES = prob_tables.CASES | prob_normals.CASES
WHOLE = prob_tables.WHOLE | prob_normals.WHOLE

# name -> how many roundings it may lose, where the mathematics makes it worse than dtypes.ROUNDINGS
ROUNDINGS: dict[str, float] = {}

RESULT = "holds the answer of a function that has a case"
ABSTRACT = "abstract: those that are it have cases"
SIZES = "takes sizes and plain Python numbers"
DRAWS = "draws its own numbers from a generator; the distributions it draws from have cases"

# Public names that take no numbers in tensors, each with its reason.
NO_NUMBERS: dict[str, str] = {
    "Integral": RESULT,
    "Absorption": RESULT,
    "PosteriorStep": RESULT,
    "BaumWelch": RESULT,
    "BaumWelchStep": RESULT,
    "ByParts": RESULT,
    "ConditionalNormal": RESULT,
    "Decorrelation": RESULT,
    "Denoised": RESULT,
    "EvidenceEstimate": RESULT,
    "ExponentialOptimum": RESULT,
    "ViterbiPath": RESULT,
    "HiddenPosterior": RESULT,
    "HiddenSample": RESULT,
    "HistoryChain": RESULT,
    "Level": RESULT,
    "MarkovTest": RESULT,
    "Prokhorov": RESULT,
    "Quadrature": RESULT,
    "TwoSampleTest": RESULT,
    "TotalVariation": RESULT,
    "TypewriterInterval": RESULT,
    "WalkDistribution": RESULT,
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
    "PredictionType": ABSTRACT,
    "Process": ABSTRACT,
    "Proposal": ABSTRACT,
    "ReparameterizedDistribution": ABSTRACT,
    "InitialDistribution": ABSTRACT,
    "TractableLatentModel": ABSTRACT,
    "RandomWalk": SIZES,
    "cosine_beta_schedule": SIZES,
    "linear_beta_schedule": SIZES,
    "pairings": SIZES,
    "sigmoid_beta_schedule": SIZES,
    "iid_sample": DRAWS,
    "importance_log_evidence": DRAWS,
    "mc_log_evidence": DRAWS,
}
