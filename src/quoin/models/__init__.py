"""Named architectures, one family a file: linear models, perceptrons, convolutional, graph and recurrent nets, n-grams, Transformers."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.models.alexnet import alexnet, load_torchvision_alexnet, small_alexnet
    from quoin.models.attention_classifier import AttentionBlock, AttentionClassifier
    from quoin.models.autoregressive import AutoregressiveModel, ModelState, NextToken
    from quoin.models.bahdanau import Aligned, AlignedToken, BahdanauDecoder, BahdanauState, bahdanau_decoder_definition
    from quoin.models.binary import LinearScore
    from quoin.models.classifiers import SoftmaxRegression, one_hot_regression, softmax_regression_definition
    from quoin.models.closed_form import LinearFit, least_squares, least_squares_by_qr, normal_equations, ridge
    from quoin.models.copy_reader import CopyReader, ReaderBlock
    from quoin.models.deep_latent import (
        DeepLatentGaussian,
        DiagonalNormalNet,
        TriangularNormalNet,
        covariance_definition,
        triangular_factor,
    )
    from quoin.models.denoiser_mlp import TimeMLP, time_code
    from quoin.models.densenet import DenseLayer, DenseNet, dense_block_definition, densenet121, load_torchvision_densenet, small_densenet
    from quoin.models.dropout_mlp import DropoutMLP
    from quoin.models.exchange import export_dense, import_dense
    from quoin.models.foreign import Origin, load_converted, load_foreign, read_safetensors, stacked, transposed
    from quoin.models.gan import GAN, ImageDiscriminator, conv_gan, mlp_gan
    from quoin.models.gcn import GCN, NodeClassifier
    from quoin.models.generative import GenerativeClassifier, LabeledSample, bayes_rule_definition, gaussian_log_density_definition
    from quoin.models.generative_model import (
        DecoderModel,
        DensityModel,
        GenerativeModel,
        SmoothedSamples,
        check_sample_count,
        draw_in_pieces,
    )
    from quoin.models.googlenet import Inception, googlenet, load_torchvision_googlenet, small_googlenet
    from quoin.models.gpt2 import gpt2_from_config, load_gpt2, open_gpt2
    from quoin.models.image_classifier import ImageClassifier
    from quoin.models.image_start import start_image_weights
    from quoin.models.interpolant import relu_interpolant
    from quoin.models.kernel_ridge import FourierRegression, KernelFit, kernel_ridge
    from quoin.models.kneser_ney import kneser_ney_counts, kneser_ney_discounts, kneser_ney_law, kneser_ney_ngram
    from quoin.models.language_transformer import GPT, LanguageState, LanguageTransformer, start_language_weights
    from quoin.models.laplace import laplace_bigram, laplace_law, laplace_ngram, laplace_trigram, laplace_unigram
    from quoin.models.lenet import lenet, small_lenet
    from quoin.models.linear import LinearGaussian, LinearRegression, linear_regression_definition
    from quoin.models.llama import llama_block, llama_from_config, load_llama, open_llama
    from quoin.models.markov_model import (
        MarkovModel,
        MarkovState,
        chain_rule_log_prob,
        chain_rule_log_prob_definition,
        markov_log_prob_definition,
    )
    from quoin.models.mixture import GaussianMixture, MixtureCandidates
    from quoin.models.mixture_em import EM, EMStep, em, em_from_starts, em_step, em_step_definition
    from quoin.models.mixture_start import kmeans_plus_plus, start_mixture
    from quoin.models.mlp import MLP, MLPForward, mlp_definition, one_hidden_layer_definition
    from quoin.models.monomials import monomial_features, num_monomials, num_monomials_up_to
    from quoin.models.ngram import NgramModel, NgramState
    from quoin.models.ngram_counts import NgramCounts, ngram_counts, ngram_counts_definition, relative_frequencies
    from quoin.models.nin import nin, nin_block, small_nin
    from quoin.models.parametrised import num_parameters, parameter_vector, realisation
    from quoin.models.pixel_reader import GatedPixelReader, PixelReader, WindowReader
    from quoin.models.pixelcnn import (
        GatedPixelCNN,
        PixelCNN,
        PixelModel,
        from_levels,
        pixel_log_prob,
        pixel_log_prob_definition,
        to_levels,
    )
    from quoin.models.polynomial import PolynomialRegression, fit_polynomial, polynomial_features
    from quoin.models.population import best_affine_predictor, conditional_expectation
    from quoin.models.ppca import PPCA, ppca_log_evidence_definition, ppca_posterior_definition
    from quoin.models.recurrent_lm import RecurrentLanguageModel
    from quoin.models.recurrent_parts import RecurrentState
    from quoin.models.resnet import ResNet, cifar_resnet18, load_torchvision_resnet, resnet18, resnet34, resnet50, resnet101, small_resnet
    from quoin.models.resnext import resnext50, small_resnext
    from quoin.models.seq2seq import PlainDecoder, RecurrentDecoder, RecurrentEncoder, RecurrentSource, Seq2Seq
    from quoin.models.sequence_classifier import (
        BagReader,
        RecurrentReader,
        SequenceClassifier,
        TransformerReader,
        sequence_classifier_definition,
    )
    from quoin.models.sliding_context import SlidingContext, SlidingState
    from quoin.models.tied import TiedMLP
    from quoin.models.transformer import EncodedSource, Transformer, TransformerDecoder, TransformerEncoder, TransformerState
    from quoin.models.translation import TranslationModel, step_log_probs, translation_log_prob
    from quoin.models.unet import UNet, UNetBlock, UNetBlockWeights, unet_block_definition
    from quoin.models.unet_weights import load_diffusers_unet
    from quoin.models.vae import VAE, Encoder, conv_vae, mlp_vae
    from quoin.models.vae_decoders import BernoulliDecoder, Decoder, GaussianDecoder, LearnedGaussianDecoder
    from quoin.models.vgg import load_torchvision_vgg, small_vgg, vgg11, vgg16, vgg19, vgg_block
    from quoin.models.vit import PatchEmbedding, ViT, patch_embedding_definition

__all__ = [
    "EM",
    "GAN",
    "GCN",
    "GPT",
    "MLP",
    "PPCA",
    "VAE",
    "Aligned",
    "AlignedToken",
    "AttentionBlock",
    "AttentionClassifier",
    "AutoregressiveModel",
    "BagReader",
    "BahdanauDecoder",
    "BahdanauState",
    "BernoulliDecoder",
    "CopyReader",
    "Decoder",
    "DecoderModel",
    "DeepLatentGaussian",
    "DenseLayer",
    "DenseNet",
    "DensityModel",
    "DiagonalNormalNet",
    "DropoutMLP",
    "EMStep",
    "EncodedSource",
    "Encoder",
    "FourierRegression",
    "GatedPixelCNN",
    "GatedPixelReader",
    "GaussianDecoder",
    "GaussianMixture",
    "GenerativeClassifier",
    "GenerativeModel",
    "ImageClassifier",
    "ImageDiscriminator",
    "Inception",
    "KernelFit",
    "LabeledSample",
    "LanguageState",
    "LanguageTransformer",
    "LearnedGaussianDecoder",
    "LinearFit",
    "LinearGaussian",
    "LinearRegression",
    "LinearScore",
    "MLPForward",
    "MarkovModel",
    "MarkovState",
    "MixtureCandidates",
    "ModelState",
    "NextToken",
    "NgramCounts",
    "NgramModel",
    "NgramState",
    "NodeClassifier",
    "Origin",
    "PatchEmbedding",
    "PixelCNN",
    "PixelModel",
    "PixelReader",
    "PlainDecoder",
    "PolynomialRegression",
    "ReaderBlock",
    "RecurrentDecoder",
    "RecurrentEncoder",
    "RecurrentLanguageModel",
    "RecurrentReader",
    "RecurrentSource",
    "RecurrentState",
    "ResNet",
    "Seq2Seq",
    "SequenceClassifier",
    "SlidingContext",
    "SlidingState",
    "SmoothedSamples",
    "SoftmaxRegression",
    "TiedMLP",
    "TimeMLP",
    "Transformer",
    "TransformerDecoder",
    "TransformerEncoder",
    "TransformerReader",
    "TransformerState",
    "TranslationModel",
    "TriangularNormalNet",
    "UNet",
    "UNetBlock",
    "UNetBlockWeights",
    "ViT",
    "WindowReader",
    "alexnet",
    "bahdanau_decoder_definition",
    "bayes_rule_definition",
    "best_affine_predictor",
    "chain_rule_log_prob",
    "chain_rule_log_prob_definition",
    "check_sample_count",
    "cifar_resnet18",
    "conditional_expectation",
    "conv_gan",
    "conv_vae",
    "covariance_definition",
    "dense_block_definition",
    "densenet121",
    "draw_in_pieces",
    "em",
    "em_from_starts",
    "em_step",
    "em_step_definition",
    "export_dense",
    "fit_polynomial",
    "from_levels",
    "gaussian_log_density_definition",
    "googlenet",
    "gpt2_from_config",
    "import_dense",
    "kernel_ridge",
    "kmeans_plus_plus",
    "kneser_ney_counts",
    "kneser_ney_discounts",
    "kneser_ney_law",
    "kneser_ney_ngram",
    "laplace_bigram",
    "laplace_law",
    "laplace_ngram",
    "laplace_trigram",
    "laplace_unigram",
    "least_squares",
    "least_squares_by_qr",
    "lenet",
    "linear_regression_definition",
    "llama_block",
    "llama_from_config",
    "load_converted",
    "load_diffusers_unet",
    "load_foreign",
    "load_gpt2",
    "load_llama",
    "load_torchvision_alexnet",
    "load_torchvision_densenet",
    "load_torchvision_googlenet",
    "load_torchvision_resnet",
    "load_torchvision_vgg",
    "markov_log_prob_definition",
    "mlp_definition",
    "mlp_gan",
    "mlp_vae",
    "monomial_features",
    "ngram_counts",
    "ngram_counts_definition",
    "nin",
    "nin_block",
    "normal_equations",
    "num_monomials",
    "num_monomials_up_to",
    "num_parameters",
    "one_hidden_layer_definition",
    "one_hot_regression",
    "open_gpt2",
    "open_llama",
    "parameter_vector",
    "patch_embedding_definition",
    "pixel_log_prob",
    "pixel_log_prob_definition",
    "polynomial_features",
    "ppca_log_evidence_definition",
    "ppca_posterior_definition",
    "read_safetensors",
    "realisation",
    "relative_frequencies",
    "relu_interpolant",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnext50",
    "ridge",
    "sequence_classifier_definition",
    "small_alexnet",
    "small_densenet",
    "small_googlenet",
    "small_lenet",
    "small_nin",
    "small_resnet",
    "small_resnext",
    "small_vgg",
    "softmax_regression_definition",
    "stacked",
    "start_image_weights",
    "start_language_weights",
    "start_mixture",
    "step_log_probs",
    "time_code",
    "to_levels",
    "translation_log_prob",
    "transposed",
    "triangular_factor",
    "unet_block_definition",
    "vgg11",
    "vgg16",
    "vgg19",
    "vgg_block",
]

export_lazily(__name__)
