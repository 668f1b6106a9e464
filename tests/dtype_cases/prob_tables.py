"""Cases for `quoin.prob`, distributions on finitely many outcomes: tables, chains, hidden chains, divergences.

`sure` cases have distributions of zeros and ones, which integers can write down; the others have halves and quarters.
"""

import torch
from torch.distributions import Normal

from quoin.prob import (
    BinaryModel,
    CategoricalEmission,
    CategoricalModel,
    FiniteLatentModel,
    GaussianEmission,
    HiddenMarkovModel,
    InhomogeneousChain,
    MarkovChain,
    MulticlassModel,
    MultivariateNormal,
    ProbabilitySpace,
    RandomVariable,
    SequenceModel,
    absorption,
    are_independent,
    augment_history,
    baum_welch,
    baum_welch_step,
    bayes_rule,
    bayes_rule_definition,
    bayes_rule_from_log,
    binary_decision,
    binary_log_prob,
    binary_log_prob_definition,
    chain_distribution,
    chain_distribution_definition,
    check_joint_probs,
    check_probs,
    check_probs_pair,
    check_signs,
    check_stochastic,
    closed_classes,
    condition_discrete,
    conditional_table,
    convert_base,
    density_kl_divergence_definition,
    distribution_cross_entropy,
    distribution_of,
    function_distribution,
    history_chain,
    hitting_probability,
    hitting_time,
    hmm_backward_definition,
    hmm_forward_definition,
    hmm_log_prob,
    hmm_posterior,
    hmm_posterior_definition,
    iid_distribution,
    iid_sum_distribution,
    iid_sum_distribution_definition,
    independence_gap,
    jensen_shannon_divergence,
    joint_from_conditional,
    joint_table,
    joint_variable,
    kl_divergence,
    kl_divergence_definition,
    kolmogorov_distance,
    lp_distance,
    lp_distance_definition,
    lumpability_test,
    margin,
    markov_gaps,
    markov_test,
    next_distribution,
    prokhorov_distance,
    prokhorov_distance_definition,
    reachable,
    stationary_distribution,
    stationary_distributions,
    total_variation_distance,
    total_variation_distance_definition,
    viterbi,
)

P, Q = [0.25, 0.5, 0.25], [0.5, 0.25, 0.25]
SURE_P, SURE_Q = [0, 1, 0], [1, 0, 0]
STEP = [[0.5, 0.5, 0], [0.25, 0.5, 0.25], [0, 0.5, 0.5]]
SURE_STEP = [[0, 1, 0], [0, 0, 1], [0, 0, 1]]
TABLE = [[0.25, 0.125, 0.125], [0.25, 0.25, 0]]
SURE_TABLE = [[0, 1, 0], [0, 0, 0]]
PAST = [[[0.25, 0.125], [0.125, 0]], [[0.125, 0.125], [0, 0.25]]]
SURE_PAST = [[[0, 0], [0, 1]], [[0, 0], [0, 0]]]
TARGET = torch.tensor([False, False, True])
FAR = [[0, 1, 200], [1, 0, 3], [200, 3, 0]]
SCORES, SIGNS = [3, 1, -2, 100], [1, -1, 1, -1]
LOG_STEP, LOG_SAID = [[0, -1], [-2, -100]], [[0, -1], [-100, -2], [-1, -1]]


def _both(name, call, part, sure):
    """`call` of the numbers `part`, and of the distributions of zeros and ones `sure`."""
    return {name: lambda x: call(*map(x, part)), f"{name} sure": lambda x: call(*map(x, sure))}


def _of_pair(name, call):
    return _both(name, call, (P, Q), (SURE_P, SURE_Q))


def _of_chain(name, call):
    return _both(name, call, (P, STEP), (SURE_P, SURE_STEP))


def _of_step(name, call):
    return _both(name, call, (STEP,), (SURE_STEP,))


def _of_table(name, call):
    return _both(name, call, (TABLE,), (SURE_TABLE,))


def _of_past(name, call):
    return _both(name, call, (PAST,), (SURE_PAST,))


def _hidden(start, step, said):
    return HiddenMarkovModel(MarkovChain(start, step), CategoricalEmission(said))


def _known():
    return _hidden(torch.tensor(P), torch.tensor(STEP), torch.tensor(STEP))


def _of_hidden(name, call):
    said = torch.tensor([[0, 1, 2, 1], [2, 2, 1, 0]])
    certain = torch.tensor([[1, 2, 2, 2]])
    return {
        name: lambda x: call(_hidden(x(P), x(STEP), x(STEP)), said),
        f"{name} sure": lambda x: call(_hidden(x([1, 0, 0]), x(SURE_STEP), x(SURE_STEP)), certain),
    }


def _space(x, numbers):
    return ProbabilitySpace("abc", x(numbers))


def _variables(x, numbers):
    space = _space(x, numbers)
    return RandomVariable(space, lambda w: w == "a"), RandomVariable(space, lambda w: w == "b")


def _f64(numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def _mixture(x):
    return FiniteLatentModel(x([0.25, 0.75]), MultivariateNormal(x([[0], [3]]), x([[[1]], [[4]]])))


def _emission(x):
    return GaussianEmission(x([[0], [100]]), x([[[4]], [[9]]]))


def _sequence(x):
    return SequenceModel(lambda inputs, y: inputs.unsqueeze(1).expand(-1, 2, -1), num_tokens=2, length=2)


CASES = {
    **_of_pair("kl_divergence", kl_divergence),
    **_of_pair("kl_divergence_definition", kl_divergence_definition),
    **_of_pair("distribution_cross_entropy", distribution_cross_entropy),
    "density_kl_divergence_definition": lambda x: density_kl_divergence_definition(
        Normal(x(30), x(20)), Normal(x(100), x(17))
    ),
    "convert_base": lambda x: convert_base(x([0, 3, 200]), 2),
    **_of_pair("jensen_shannon_divergence", jensen_shannon_divergence),
    **_of_pair("total_variation_distance", total_variation_distance),
    **_of_pair("total_variation_distance_definition", total_variation_distance_definition),
    **_of_pair("lp_distance", lambda p, q: lp_distance(p, q, 2)),
    **_of_pair("lp_distance_definition", lambda p, q: lp_distance_definition(p, q, 2)),
    **_of_pair("check_probs_pair", check_probs_pair),
    **_both("bayes_rule", bayes_rule, (P, Q), (SURE_P, [1, 1, 0])),
    "bayes_rule_definition": lambda x: bayes_rule_definition(x([0.5, 0.5]), x([0.25, 1])),
    "bayes_rule_definition whole": lambda x: bayes_rule_definition(torch.tensor([0.5, 0.5]), x([100, 200])),
    **_both("bayes_rule_from_log", bayes_rule_from_log, (P, [-100, -1, -2]), (SURE_P, [-100, -1, -2])),
    **_both("check_probs", lambda p: check_probs(p, "p"), (P,), (SURE_P,)),
    **_both(
        "prokhorov_distance", lambda p, q, far: prokhorov_distance(p, q, far).output, (P, Q, FAR), (SURE_P, SURE_Q, FAR)
    ),
    **_both("prokhorov_distance_definition", prokhorov_distance_definition, (P, Q, FAR), (SURE_P, SURE_Q, FAR)),
    **_both("iid_distribution", lambda p: iid_distribution(p, 3), (P,), (SURE_P,)),
    **_both("iid_sum_distribution", lambda p: iid_sum_distribution(p, 3), (P,), (SURE_P,)),
    **_both("iid_sum_distribution_definition", lambda p: iid_sum_distribution_definition(p, 3), (P,), (SURE_P,)),
    **_both(
        "kolmogorov_distance",
        lambda v, p: kolmogorov_distance(v, p, torch.sigmoid),
        ([0, 1, 200], P),
        ([0, 1, 200], SURE_P),
    ),
    **_of_table("check_joint_probs", check_joint_probs),
    **_of_table("condition_discrete", lambda joint: condition_discrete(joint, 1)),
    **_of_table("conditional_table", lambda joint: conditional_table(joint, fallback=joint[:, 1] / joint[:, 1].sum())),
    **_of_table("independence_gap", independence_gap),
    **_both("joint_from_conditional", joint_from_conditional, (STEP, P), (SURE_STEP, SURE_P)),
    **_of_past("next_distribution", lambda joint: next_distribution(joint, [0, 1])),
    **_of_past("markov_test", lambda joint: markov_test(joint).output),
    **_of_past("markov_gaps", lambda joint: [gap.output for gap in markov_gaps(joint)]),
    **_of_past(
        "history_chain", lambda joint: [history_chain(joint).output.initial, history_chain(joint).output.transition]
    ),
    **_of_chain("chain_distribution", lambda start, step: chain_distribution(start, step, 5)),
    **_of_chain(
        "chain_distribution_definition",
        lambda start, step: chain_distribution_definition(start, torch.stack([step, step])),
    ),
    **_of_chain(
        "MarkovChain.log_prob",
        lambda start, step: MarkovChain(start, step).log_prob(torch.tensor([[1, 2, 2], [0, 0, 1]])),
    ),
    **_of_chain("MarkovChain.distribution", lambda start, step: MarkovChain(start, step).distribution(3)),
    **_of_chain("MarkovChain.joint_distribution", lambda start, step: MarkovChain(start, step).joint_distribution(2)),
    **_of_chain(
        "InhomogeneousChain.distribution",
        lambda start, step: InhomogeneousChain(start, torch.stack([step, step])).distribution(2),
    ),
    **_of_chain(
        "function_distribution",
        lambda start, step: function_distribution(MarkovChain(start, step), torch.tensor([0, 1, 1]), 2),
    ),
    **_of_chain(
        "lumpability_test",
        lambda start, step: lumpability_test(MarkovChain(start, step), torch.tensor([0, 1, 1])).output,
    ),
    **_of_step("check_stochastic", lambda step: check_stochastic(step, "A")),
    **_of_step("absorption", absorption),
    **_of_step("closed_classes", closed_classes),
    **_of_step("hitting_probability", lambda step: hitting_probability(step, TARGET)),
    **_of_step("hitting_time", lambda step: hitting_time(step, TARGET)),
    **_of_step("reachable", reachable),
    **_of_step("stationary_distribution", stationary_distribution),
    **_of_step("stationary_distributions", stationary_distributions),
    **_both("ProbabilitySpace", lambda p: ProbabilitySpace("abc", p).probability(lambda w: w != "c"), (P,), (SURE_P,)),
    **_both(
        "ProbabilitySpace.given",
        lambda p: ProbabilitySpace("abc", p).given(lambda w: w != "c").probabilities,
        (P,),
        (SURE_P,),
    ),
    "RandomVariable": lambda x: distribution_of(_variables(x, P)[0]).probabilities,
    "RandomVariable sure": lambda x: distribution_of(_variables(x, SURE_P)[1]).probabilities,
    "distribution_of": lambda x: distribution_of(_variables(x, SURE_P)[0]).probabilities,
    "joint_table": lambda x: joint_table(*_variables(x, P)),
    "joint_table sure": lambda x: joint_table(*_variables(x, SURE_P)),
    "are_independent": lambda x: are_independent(*_variables(x, P)),
    "are_independent sure": lambda x: are_independent(*_variables(x, SURE_P)),
    "joint_variable": lambda x: distribution_of(joint_variable(*_variables(x, SURE_P))).probabilities,
    "augment_history": lambda x: augment_history(x([0, 200, 1])),
    "function_distribution labels": lambda x: function_distribution(
        MarkovChain(torch.tensor(P), torch.tensor(STEP)), x([0, 1, 1]), 2
    ),
    "lumpability_test labels": lambda x: (
        lumpability_test(MarkovChain(torch.tensor(P), torch.tensor(STEP)), x([0, 1, 1])).output
    ),
    "MarkovChain.log_prob path": lambda x: MarkovChain(torch.tensor(P), torch.tensor(STEP)).log_prob(
        x([[1, 2, 2], [0, 0, 1]])
    ),
    "binary_decision": lambda x: binary_decision(x(SCORES)),
    "margin": lambda x: margin(x(SCORES), x(SIGNS)),
    "margin scores": lambda x: margin(x(SCORES), torch.tensor(SIGNS)),
    "margin signs": lambda x: margin(torch.tensor(SCORES, dtype=torch.float64), x(SIGNS)),
    "binary_log_prob": lambda x: binary_log_prob(x(SCORES), torch.tensor(SIGNS)),
    "binary_log_prob ones": lambda x: binary_log_prob(x([3, 1, 200, 100]), x([1, 1, 1, 1])),
    "binary_log_prob_definition": lambda x: binary_log_prob_definition(x(SCORES), torch.tensor(SIGNS)),
    "binary_log_prob_definition ones": lambda x: binary_log_prob_definition(x([3, 1, 200, 100]), x([1, 1, 1, 1])),
    "check_signs": lambda x: check_signs(x(SIGNS)),
    "BinaryModel.log_prob": lambda x: BinaryModel(lambda inputs: inputs).log_prob(torch.tensor(SIGNS), x(SCORES)),
    "BinaryModel.predict": lambda x: BinaryModel(lambda inputs: inputs).predict(x(SCORES)),
    "CategoricalModel.log_prob": lambda x: CategoricalModel(3).log_prob(x([0, 2, 1])),
    "MulticlassModel.log_prob": lambda x: MulticlassModel(lambda inputs: inputs).log_prob(
        torch.tensor([0]), x([[0, 200, 3]])
    ),
    "MulticlassModel.log_prob labels": lambda x: MulticlassModel(lambda inputs: inputs).log_prob(
        x([2]), torch.eye(3)[:1]
    ),
    "MulticlassModel.probabilities": lambda x: MulticlassModel(lambda inputs: inputs).probabilities(
        x([[0, 200, 3], [0, 1, 1]])
    ),
    "MulticlassModel.predict": lambda x: MulticlassModel(lambda inputs: inputs).predict(x([[0, 200, 3], [100, 1, 1]])),
    "SequenceModel.log_prob": lambda x: _sequence(x).log_prob(
        torch.tensor([[0, 1], [1, 2]]), x([[0, 200, 3], [1, 2, 0]])
    ),
    "SequenceModel.log_prob labels": lambda x: _sequence(x).log_prob(x([[0, 1], [1, 2]]), torch.eye(3)[:2]),
    "FiniteLatentModel.log_evidence": lambda x: _mixture(x).log_evidence(x([[0], [2]])),
    "FiniteLatentModel.log_posterior": lambda x: _mixture(x).log_posterior(torch.tensor([1, 0]), x([[0], [2]])),
    "FiniteLatentModel.log_likelihoods": lambda x: _mixture(x).log_likelihoods(x([[0], [2]])),
    "FiniteLatentModel.log_evidence points": lambda x: _mixture(_f64).log_evidence(x([[0], [200]])),
    "FiniteLatentModel.log_posterior points": lambda x: _mixture(_f64).log_posterior(
        torch.tensor([1, 0]), x([[0], [200]])
    ),
    "FiniteLatentModel.log_likelihoods points": lambda x: _mixture(_f64).log_likelihoods(x([[0], [200]])),
    "FiniteLatentModel.log_prior": lambda x: _mixture(_f64).log_prior(x([1, 0])),
    "CategoricalEmission.log_prob": lambda x: CategoricalEmission(x(STEP)).log_prob(torch.tensor([0, 2])),
    "CategoricalEmission.log_prob sure": lambda x: CategoricalEmission(x(SURE_STEP)).log_prob(torch.tensor([0, 2])),
    "CategoricalEmission.log_prob symbols": lambda x: CategoricalEmission(torch.tensor(STEP)).log_prob(x([0, 2])),
    "GaussianEmission.log_prob": lambda x: _emission(x).log_prob(x([[3], [90]])),
    "GaussianEmission.sufficient_statistics": lambda x: _emission(x).sufficient_statistics(
        x([[3], [90]]), x([[0.25, 0.75], [0.5, 0.5]])
    ),
    **_of_hidden("HiddenMarkovModel.log_prob", lambda model, said: model.log_prob(said)),
    **_of_hidden("HiddenMarkovModel.posterior", lambda model, said: model.posterior(said)),
    **_of_hidden("HiddenMarkovModel.viterbi", lambda model, said: model.viterbi(said).log_prob),
    **_of_hidden("baum_welch", lambda model, said: baum_welch(model, said, max_iter=1).log_probs[:1]),
    **_of_hidden("baum_welch_step", lambda model, said: baum_welch_step(model, said).output.chain.transition),
    "HiddenMarkovModel.log_prob symbols": lambda x: _known().log_prob(x([[0, 1, 2, 1]])),
    "HiddenMarkovModel.log_prob lengths": lambda x: _known().log_prob(torch.tensor([[0, 1, 2]]), x([2])),
    "hmm_forward_definition": lambda x: hmm_forward_definition(x([0, -1]), x(LOG_STEP), x(LOG_SAID)),
    "hmm_backward_definition": lambda x: hmm_backward_definition(x(LOG_STEP), x(LOG_SAID)),
    "hmm_log_prob": lambda x: hmm_log_prob(x([0, -1]), x(LOG_STEP), x(LOG_SAID)),
    "hmm_posterior": lambda x: hmm_posterior(x([0, -1]), x(LOG_STEP), x(LOG_SAID)),
    "hmm_posterior_definition": lambda x: hmm_posterior_definition(x([0, -1]), x(LOG_STEP), x(LOG_SAID)),
    "viterbi": lambda x: viterbi(x([0, -1]), x(LOG_STEP), x(LOG_SAID)),
}

# Labels, symbols, paths, lengths: the int64 answer is the right one.
WHOLE = {
    "augment_history",
    "function_distribution labels",
    "lumpability_test labels",
    "MarkovChain.log_prob path",
    "CategoricalModel.log_prob",
    "MulticlassModel.log_prob labels",
    "SequenceModel.log_prob labels",
    "FiniteLatentModel.log_prior",
    "CategoricalEmission.log_prob symbols",
    "HiddenMarkovModel.log_prob symbols",
    "HiddenMarkovModel.log_prob lengths",
}
