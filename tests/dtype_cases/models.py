"""Cases for `quoin.models`: see tests/dtypes.py. Networks are in models_networks.py; here is what is solved, counted or
written out."""

import torch

from dtype_cases import models_networks
from dtypes import in_dtype, whole
from quoin import models as q
from quoin.prob import FullNormals, GaussianMixtureDistribution
from quoin.tensor import as_floating, rbf_kernel

ROWS, TARGETS = [[0, 10], [12, 7], [3, 9], [11, 2], [9, 6]], [20, 3, 10, 7, 9]
LABELS = torch.tensor([0, 1, 0, 1, 0])
TOKENS = torch.tensor([0, 1, 2, 1, 0, 1, 2, 2, 0, 1])
COUNTS = [[120, 100, 100], [0, 0, 0], [1, 127, 2]]
SQUARE = [[4, 1], [1, 9]]


def generator():
    return torch.Generator().manual_seed(0)


def solved(f, *more):
    return lambda x: f(x(ROWS), x(TARGETS), *more)


def fitted_kernel(x):
    return q.kernel_ridge(lambda a, b: rbf_kernel(as_floating(a), as_floating(b), 0.01), x(ROWS), x(TARGETS), 0.5)


def fourier(x):
    model = in_dtype(lambda: q.FourierRegression(2, 3, 0.01), x)
    model.fit(x(ROWS), x(TARGETS), 0.5, projection=x([[1, 0], [0, 1], [1, 1]]), phases=x([0, 1, 2]))
    return model(x(ROWS))


def classifier(x):
    return q.GaussianDiscriminant(x([0.5, 0.5]), x([[0.0, 100.0], [20.0, 3.0]]), x([[[4.0, 1.0], [1.0, 9.0]]] * 2))


def around(x):
    return q.GaussianDiscriminant.from_prototypes(x([[0, 100], [90, 3]]), 30.0)


def fit_classifier(x):
    return q.GaussianDiscriminant.fit(x(ROWS), LABELS, 2, reg_covar=0.5).posterior(x(ROWS))


def mixture(x):
    return GaussianMixtureDistribution(x([0.5, 0.5]), FullNormals(x([[0, 9], [10, 3]]), x([SQUARE, SQUARE])))


def law(found):
    return found.weights, found.components.means, found.components.covariances


def smoothed(x):
    return q.GaussianKDE(x(ROWS), 3.0)


def ppca(x):
    return q.PPCA(x([[1, 0], [2, 1], [0, 3]]), x([100, 3, 7]), 2.0)


class Uniform:
    """A model of tokens with the same logits everywhere."""

    vocab_size = 3

    def __init__(self, x):
        self.logits = x([0.0, 3.0, 1.0])

    def __call__(self, tokens):
        return self.logits.expand(*tokens.shape, 3)

    def init_cache(self, batch_size, max_seq_len):
        return None

    def decode_step(self, cache, tokens):
        return self(tokens), cache


class Translator(Uniform):
    def __call__(self, source, target, *, source_lengths=None, target_lengths=None):
        return self.logits.expand(*target.shape, 3)


LAWS = [[0.5, 0.25, 0.25]], [[0.5, 0.5, 0], [0.25, 0.25, 0.5], [0, 0.5, 0.5]]


def markov(x):
    return [x(LAWS[0][0]), x(LAWS[1])]


CASES = models_networks.CASES | {
    # least squares and relatives
    "normal_equations": solved(q.normal_equations),
    "least_squares_by_qr": solved(q.least_squares_by_qr),
    "least_squares": solved(q.least_squares),
    "ridge": solved(q.ridge, 0.5),
    "one_hot_regression": lambda x: q.one_hot_regression(x(ROWS), LABELS, 2),
    "LinearFit.predict": lambda x: q.LinearFit(x([100, 3]), x(7)).predict(x(ROWS)),
    "kernel_ridge": lambda x: fitted_kernel(x).weights,
    "KernelFit.predict": lambda x: fitted_kernel(x).predict(x(ROWS)),
    "FourierRegression": fourier,
    "linear_regression_definition": lambda x: q.linear_regression_definition(x(ROWS), x([100, 3]), x(7)),
    "softmax_regression_definition": lambda x: q.softmax_regression_definition(
        x([[1, 0], [2, 1]]), x(SQUARE), x([0, 200])
    ),
    "polynomial_features": lambda x: q.polynomial_features(x([0, 3, 9]), 3),
    "monomial_features": lambda x: q.monomial_features(x(ROWS), 2),
    "fit_monomials": lambda x: q.fit_monomials(x(ROWS), x(TARGETS), 1),
    "scaled_monomial_features": lambda x: q.scaled_monomial_features(x(ROWS), 2),
    "fit_polynomial": lambda x: q.fit_polynomial(x([0, 1, 2, 3]), x([7, 3, 9, 1]), 1),
    "relu_interpolant": lambda x: q.relu_interpolant(x([[0], [3], [9]]), x([[100], [7], [20]]), generator=generator())(
        x([[0], [3], [9]])
    ),
    "conditional_expectation": lambda x: q.conditional_expectation(x([[0.25, 0.25], [0, 0.5]]), x([100, 3])),
    "best_affine_predictor": lambda x: q.best_affine_predictor(x([100, 3]), x(7), x(SQUARE), x([3, 1])),
    # distributions of classes, mixtures, hidden numbers
    "GaussianDiscriminant.posterior": lambda x: classifier(x).posterior(x([[0, 90], [30, 3]])),
    "GaussianDiscriminant.log_density": lambda x: classifier(x).log_density(x([[0, 90], [30, 3]])),
    "GaussianDiscriminant.log_prob": lambda x: classifier(x).log_prob(torch.tensor([0, 1]), x([[0, 90], [30, 3]])),
    "GaussianDiscriminant.from_prototypes": lambda x: around(x).log_joint(x([[0, 90], [30, 3]])),
    "GaussianDiscriminant.fit": fit_classifier,
    "GaussianMixture.log_prob": lambda x: q.GaussianMixture(mixture(x)).log_prob(x(ROWS)),
    "GaussianMixture.responsibilities": lambda x: q.GaussianMixture(mixture(x)).responsibilities(x(ROWS)),
    "GaussianMixture.bic": lambda x: q.GaussianMixture(mixture(x)).bic(x(ROWS)),
    "MixtureCandidates": lambda x: q.MixtureCandidates([q.GaussianMixture(mixture(x))]).log_prob(x(ROWS)),
    "em_step": lambda x: law(q.em_step(mixture(x), x(ROWS)).output),
    "em_step_definition": lambda x: q.em_step_definition(
        x(ROWS), x([0.5, 0.5]), x([[0, 9], [10, 3]]), x([[[4, 0], [0, 9]]] * 2)
    ),
    "em": lambda x: law(q.em(mixture(x), x(ROWS), max_iter=2, tol=0.0, min_variance=0.5).output),
    "em_with_restarts": lambda x: law(
        q.em_with_restarts(x(ROWS), 1, generator=generator(), num_init=1, min_variance=0.5).output
    ),
    "init_mixture": lambda x: law(q.init_mixture(x(ROWS), 1, generator=generator(), min_variance=0.5)),
    "kmeans_plus_plus": lambda x: (
        q.kmeans_plus_plus(x([[0, 100], [0, 100], [90, 3]]), 2, generator=generator()).sort(dim=0).values
    ),
    "GaussianKDE.log_prob": lambda x: smoothed(x).log_prob(x([[0, 9], [20, 3]])),
    "GaussianKDE.fit": lambda x: q.GaussianKDE.fit(x(ROWS), x([[0, 9], [20, 3]]), x([1, 3])).bandwidth,
    "PPCA.log_evidence": lambda x: ppca(x).log_evidence(x([[90, 0, 9], [100, 9, 3]])),
    "PPCA.log_likelihood": lambda x: ppca(x).log_likelihood(x([[90, 0, 9]]), x([[1, 2]])),
    "PPCA.log_prior": lambda x: ppca(x).log_prior(x([[1, 20]])),
    "PPCA.posterior": lambda x: ppca(x).posterior(x([[90, 0, 9]])).mean,
    "PPCA.fit": lambda x: q.PPCA.fit(x(ROWS), 1).log_evidence(x(ROWS)),
    "ppca_log_evidence_definition": lambda x: q.ppca_log_evidence_definition(
        x([[90, 0, 9]]), x([[1, 0], [2, 1], [0, 3]]), x([100, 3, 7]), x(2)
    ),
    "ppca_posterior_definition": lambda x: q.ppca_posterior_definition(
        x([[90, 0, 9]]), x([[1, 0], [2, 1], [0, 3]]), x([100, 3, 7]), x(2)
    ),
    "scale_tril_from_entries": lambda x: q.scale_tril_from_entries(x([1, 200, 3]), 2),
    "covariance_definition": lambda x: q.covariance_definition(x([1, 20, 3]), 2),
    # tokens
    "laplace_probs": lambda x: q.laplace_probs(x(COUNTS), 2.0, torch.full((3, 3), 1 / 3, dtype=torch.float64)),
    "laplace_probs shorter": lambda x: q.laplace_probs(torch.tensor(COUNTS), 2.0, x([[0.5, 0.25, 0.25]] * 3)),
    "laplace_unigram": lambda x: q.laplace_unigram(x([200, 100, 3]), 2.0),
    "laplace_bigram": lambda x: q.laplace_bigram(x(COUNTS), torch.full((3,), 1 / 3, dtype=torch.float64), 2.0),
    "laplace_trigram": lambda x: q.laplace_trigram(x([COUNTS] * 3), torch.full((3,), 1 / 3, dtype=torch.float64), 2.0),
    "kneser_ney_discounts": lambda x: q.kneser_ney_discounts(x([1, 1, 1, 2, 2, 3, 3, 4, 120])),
    "kneser_ney_probs": lambda x: q.kneser_ney_probs(
        torch.tensor(COUNTS), x([0, 0.5, 1, 1.5]), torch.full((3, 3), 1 / 3, dtype=torch.float64)
    ),
    "kneser_ney_probs counts": lambda x: q.kneser_ney_probs(
        x(COUNTS), torch.tensor([0, 0.5, 1, 1.5]), torch.full((3, 3), 1 / 3, dtype=torch.float64)
    ),
    "relative_frequencies": lambda x: q.relative_frequencies(x([[200, 100, 3], [0, 0, 7]])),
    "MarkovModel": lambda x: q.MarkovModel(markov(x))(torch.tensor([[0, 1, 2]])),
    "markov_log_prob_definition": lambda x: q.markov_log_prob_definition(markov(x), torch.tensor([0, 1, 2])),
    "chain_rule_log_prob": lambda x: q.chain_rule_log_prob(Uniform(x), TOKENS[None], x([0, 1, 3])),
    "chain_rule_log_prob_definition": lambda x: q.chain_rule_log_prob_definition(
        Uniform(x), TOKENS[None], x([0, 1, 3])
    ),
    "next_token_log_probs": lambda x: q.next_token_log_probs(Translator(x), TOKENS[None], TOKENS[None, :3]),
    "translation_log_prob": lambda x: q.translation_log_prob(
        Translator(x), TOKENS[None], TOKENS[None, :3], bos_token_id=0
    ),
    # pixels
    "quantize": lambda x: q.quantize(x([[[[0, 1, 0.25]]]]), 5),
    "quantize bytes": lambda x: q.quantize(x([[[[0, 1]]]]), 256),
    "quantize many": lambda x: q.quantize(x([[[[0, 1]]]]), 257),
    "dequantize": lambda x: q.dequantize(x([[[0, 3, 200]]]), 256),
    "pixel_log_prob": lambda x: q.pixel_log_prob(x(whole(1, 3, 2, 2, most=5)), torch.tensor([[[0, 1], [2, 0]]])),
    "pixel_log_prob_definition": lambda x: q.pixel_log_prob_definition(
        lambda seen: x(whole(1, 3, 2, 2, most=5)), x([[[[0, 1], [0.5, 0]]]]), 3
    ),
    # written out
    "mlp_definition": lambda x: q.mlp_definition(x(ROWS), [x([[1, 20], [3, 1]]), x([[2, 3]])], [x([200, 0]), x([7])]),
    "one_hidden_layer_definition": lambda x: q.one_hidden_layer_definition(
        x(ROWS), x([[1, 20], [3, 1]]), x([200, 0]), x([[2], [3]]), x([7])
    ),
    "dense_block_definition": lambda x: q.dense_block_definition(x(whole(1, 2, 2, 2)), [torch.tanh, torch.tanh]),
    "resize_position_embedding": lambda x: q.resize_position_embedding(x(whole(5, 2)), (3, 1)),
    "patch_embedding_definition": lambda x: q.patch_embedding_definition(
        x(whole(1, 1, 4, 4)), x(whole(3, 1, 2, 2, most=9)), x([200, 0, 7])
    ),
    "conv_block1d_definition": lambda x: q.conv_block1d_definition(
        x(whole(1, 2, 5, most=9)), x(whole(3, 2, 3, most=9)), x([3, 0, 7]), x([4, 1, 9])
    ),
    "signal_patch_embedding_definition": lambda x: q.signal_patch_embedding_definition(
        x(whole(1, 2, 5)), x(whole(3, 2, 2, most=9)), x([200, 0, 7])
    ),
    "signal_classifier_definition": lambda x: q.signal_classifier_definition(
        lambda signals: x(whole(1, 3, 2)), x(whole(1, 1, 4)), x([[1, 20], [3, 1]]), x([200, 0])
    ),
    "bahdanau_decoder_definition": models_networks.bahdanau_definition,
    "unet_block_definition": models_networks.unet_definition,
    "sequence_classifier_definition": lambda x: q.sequence_classifier_definition(
        lambda tokens: x(whole(1, 3, 2))[:, : tokens.shape[1]],
        TOKENS[None, :3],
        torch.tensor([2]),
        x([[1, 20], [3, 1]]),
        x([200, 0]),
    ),
    "timestep_embedding": lambda x: q.timestep_embedding(x([0, 3, 100]), 4),
}

# name -> how many roundings it may lose, where the mathematics makes it worse than dtypes.ROUNDINGS
ROUNDINGS = models_networks.ROUNDINGS | {}

RESULT = "a result, built by the functions that are tried"
SIZES = "takes sizes only: the class that it builds is tried"
WEIGHTS = "takes a model and weights from files, whose dtype it keeps or refuses"
TOKENS_ALONE = "takes whole tokens and lengths alone, which it or torch's embedding checks"
NO_NUMBERS = {
    "monomial_degrees": "takes plain Python numbers",
    "LinearVAE": "a decoder and an encoder, each with cases of its own",
    "NadarayaWatsonRegression": "computes in float64 whatever comes; the kernels have cases in layers",
}
NO_NUMBERS |= dict.fromkeys(
    ["CausalLM", "DecoderModel", "DensityModel", "GenerativeModel", "DecodingCache"], "a protocol"
)
NO_NUMBERS |= dict.fromkeys(["PixelPredictor", "RecurrentDecoder", "TranslationModel"], "a protocol")
NO_NUMBERS |= dict.fromkeys(
    [
        "BahdanauOutput",
        "BahdanauStepOutput",
        "BahdanauCache",
        "LabeledSample",
        "EM",
        "EMStep",
        "EncoderOutput",
        "TransformerCache",
    ],
    RESULT,
)
NO_NUMBERS |= dict.fromkeys(
    ["MLPForward", "MarkovCache", "NextTokenOutput", "NgramCache", "RecurrentEncoderOutput", "RecurrentState"], RESULT
)
NO_NUMBERS |= dict.fromkeys(["SlidingWindowCache", "DecoderCache", "UNetBlockWeights", "WeightSource"], RESULT)
NO_NUMBERS |= dict.fromkeys(
    ["alexnet", "cifar_resnet18", "densenet121", "googlenet", "lenet", "nin", "nin_block", "resnet18"], SIZES
)
NO_NUMBERS |= dict.fromkeys(
    ["resnet34", "resnet50", "resnet101", "resnext50", "small_alexnet", "small_densenet", "small_googlenet"], SIZES
)
NO_NUMBERS |= dict.fromkeys(
    ["small_lenet", "small_nin", "small_resnet", "small_resnext", "small_vgg", "vgg11", "vgg16", "vgg19"], SIZES
)
NO_NUMBERS |= dict.fromkeys(
    ["vgg_block", "conv_gan", "conv_vae", "mlp_gan", "mlp_vae", "llama_block", "check_num_samples"], SIZES
)
NO_NUMBERS |= dict.fromkeys(
    ["sample_in_batches", "num_monomials", "num_monomials_up_to", "num_parameters", "gpt2_from_config"], SIZES
)
NO_NUMBERS |= dict.fromkeys(
    ["llama_from_config", "init_image_weights", "init_language_weights", "parameter_vector"], SIZES
)
NO_NUMBERS |= dict.fromkeys(
    [
        "load_converted",
        "load_diffusers_unet",
        "load_renamed",
        "load_gpt2_weights",
        "load_llama_weights",
        "load_gpt_neox_weights",
        "gpt_neox_from_config",
        "gpt_neox_from_pretrained",
        "gpt2_from_pretrained",
    ],
    WEIGHTS,
)
NO_NUMBERS |= dict.fromkeys(
    ["load_pretrained_vit", "load_torchvision_alexnet", "load_torchvision_densenet", "load_torchvision_googlenet"],
    WEIGHTS,
)
NO_NUMBERS |= dict.fromkeys(
    ["load_torchvision_resnet", "load_torchvision_vgg", "llama_from_pretrained", "read_safetensors"], WEIGHTS
)
NO_NUMBERS |= dict.fromkeys(["export_dense", "import_dense", "stacked", "transposed"], WEIGHTS)
NO_NUMBERS |= dict.fromkeys(
    ["BagOfWordsEncoder", "BahdanauDecoder", "CopyTransformer", "GPT", "TransformerLanguageModel", "NgramCounts"],
    TOKENS_ALONE,
)
NO_NUMBERS |= dict.fromkeys(
    ["NgramModel", "RNNDecoder", "RecurrentEncoder", "RecurrentLanguageModel", "RecurrentTextEncoder"], TOKENS_ALONE
)
NO_NUMBERS |= dict.fromkeys(
    ["Seq2Seq", "SequenceClassifier", "SlidingWindowModel", "Transformer", "TransformerTextEncoder"], TOKENS_ALONE
)
NO_NUMBERS |= dict.fromkeys(["kneser_ney_counts", "kneser_ney_ngram", "laplace_ngram", "ngram_counts"], TOKENS_ALONE)
NO_NUMBERS |= dict.fromkeys(["ngram_counts_definition"], TOKENS_ALONE)
NO_NUMBERS |= {
    "PixelModel": "the abstract of PixelCNN and GatedPixelCNN",
    "VAEDecoder": "the abstract of the decoders that are tried",
}

# Labels, tokens, times and rows: whole numbers, held against int64.
MARKED = models_networks.MARKED | {
    "one_hot_regression labels": lambda x: q.one_hot_regression(
        torch.tensor(ROWS, dtype=torch.float64), x([0, 1, 0, 1, 0]), 2
    ),
    "GaussianDiscriminant.fit labels": lambda x: (
        q.GaussianDiscriminant.fit(
            torch.tensor([[0.0, 1.0], [2.0, 0.0]]), x([1, 0]), 2, reg_covar=0.5, shared_covariance=True
        ).factors
    ),
    "GaussianDiscriminant.log_prob labels": lambda x: classifier(torch.tensor).log_prob(
        x([0, 1]), torch.tensor([[0.0, 90.0], [30.0, 3.0]])
    ),
    "kneser_ney_discounts counts": lambda x: q.kneser_ney_discounts(x([1, 1, 1, 1, 2, 2, 3, 4])),
    "ngram_counts": lambda x: q.ngram_counts(x(TOKENS.tolist()), 3, 2).counts,
    "ngram_counts_definition": lambda x: q.ngram_counts_definition(x(TOKENS.tolist()), 3, 2),
    "NgramModel": lambda x: q.laplace_ngram(q.ngram_counts(TOKENS, 3, 2), 1.0)(x([[0, 1, 2]])),
    "NgramModel.token_log_probs": lambda x: q.laplace_ngram(q.ngram_counts(TOKENS, 3, 2), 1.0).token_log_probs(
        x([[0, 1, 2]])
    ),
    "MarkovModel tokens": lambda x: q.MarkovModel([torch.tensor(LAWS[0][0]), torch.tensor(LAWS[1])])(x([[0, 1, 2]])),
    "markov_log_prob_definition tokens": lambda x: q.markov_log_prob_definition(
        [torch.tensor(LAWS[0][0]), torch.tensor(LAWS[1])], x([0, 1, 2])
    ),
    "chain_rule_log_prob tokens": lambda x: q.chain_rule_log_prob(
        Uniform(torch.tensor), x([[0, 1, 2]]), torch.tensor([0.0, 1.0, 3.0])
    ),
    "chain_rule_log_prob_definition tokens": lambda x: q.chain_rule_log_prob_definition(
        Uniform(torch.tensor), x([[0, 1, 2]]), torch.tensor([0.0, 1.0, 3.0])
    ),
    "next_token_log_probs tokens": lambda x: q.next_token_log_probs(
        Translator(torch.tensor), x([[0, 1]]), x([[0, 1, 2]])
    ),
    "translation_log_prob tokens": lambda x: q.translation_log_prob(
        Translator(torch.tensor), x([[0, 1]]), x([[0, 1, 2]]), bos_token_id=0
    ),
    "dequantize levels": lambda x: q.dequantize(x([[[0, 3, 120]]]), 256),
    "pixel_log_prob levels": lambda x: q.pixel_log_prob(torch.ones(1, 3, 2, 2), x([[[0, 1], [2, 0]]])),
    "sequence_classifier_definition tokens": lambda x: q.sequence_classifier_definition(
        lambda tokens: torch.ones(1, tokens.shape[1], 2), x([[0, 1, 2]]), x([2]), torch.eye(2), torch.zeros(2)
    ),
}
CASES |= MARKED
WHOLE = set(MARKED)
for name in {each.partition(" ")[0].partition(".")[0] for each in MARKED} & NO_NUMBERS.keys():
    del NO_NUMBERS[name]
