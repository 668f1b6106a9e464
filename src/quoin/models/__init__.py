"""Architectures, one family per file: linear models, MLPs, convolutional, graph and recurrent networks, n-grams,
Transformers."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.models.alexnet import alexnet, load_torchvision_alexnet, small_alexnet
    from quoin.models.attention_classifier import AttentionBlock, AttentionClassifier
    from quoin.models.bahdanau import (
        BahdanauCache,
        BahdanauDecoder,
        BahdanauOutput,
        BahdanauStepOutput,
        bahdanau_decoder_definition,
    )
    from quoin.models.binary import LinearScore
    from quoin.models.classifiers import SoftmaxRegression, one_hot_regression, softmax_regression_definition
    from quoin.models.closed_form import LinearFit, least_squares, least_squares_by_qr, normal_equations, ridge
    from quoin.models.copy_transformer import CopyTransformer, CopyTransformerBlock
    from quoin.models.deep_latent import (
        DeepLatentGaussian,
        DiagonalNormalNet,
        TriangularNormalNet,
        covariance_definition,
        scale_tril_from_entries,
    )
    from quoin.models.densenet import (
        DenseLayer,
        DenseNet,
        dense_block_definition,
        densenet121,
        load_torchvision_densenet,
        small_densenet,
    )
    from quoin.models.exchange import export_dense, import_dense
    from quoin.models.functional_model import functional_model, num_parameters, parameter_vector
    from quoin.models.gan import GAN, ImageDiscriminator, conv_gan, mlp_gan
    from quoin.models.gaussian_discriminant import (
        GaussianDiscriminant,
        LabeledSample,
    )
    from quoin.models.gcn import GCN, NodeClassifier
    from quoin.models.generative import (
        DecoderModel,
        DensityModel,
        GaussianKDE,
        GenerativeModel,
        check_num_samples,
        sample_in_batches,
    )
    from quoin.models.googlenet import Inception, googlenet, load_torchvision_googlenet, small_googlenet
    from quoin.models.gpt2 import gpt2_from_config, gpt2_from_pretrained, load_gpt2_weights
    from quoin.models.gpt_neox import gpt_neox_from_config, gpt_neox_from_pretrained, load_gpt_neox_weights
    from quoin.models.image_classifier import ImageClassifier
    from quoin.models.image_init import init_image_weights
    from quoin.models.interpolant import relu_interpolant
    from quoin.models.kernel_ridge import FourierRegression, KernelFit, kernel_ridge
    from quoin.models.kneser_ney import kneser_ney_counts, kneser_ney_discounts, kneser_ney_ngram, kneser_ney_probs
    from quoin.models.language_model import CausalLM, DecodingCache, NextTokenOutput
    from quoin.models.language_transformer import GPT, TransformerCache, TransformerLanguageModel, init_language_weights
    from quoin.models.laplace import laplace_bigram, laplace_ngram, laplace_probs, laplace_trigram, laplace_unigram
    from quoin.models.lenet import lenet, small_lenet
    from quoin.models.linear import LinearGaussian, LinearRegression, linear_regression_definition
    from quoin.models.linear_vae import LinearVAE
    from quoin.models.llama import llama_block, llama_from_config, llama_from_pretrained, load_llama_weights
    from quoin.models.markov_model import (
        MarkovCache,
        MarkovModel,
        chain_rule_log_prob,
        chain_rule_log_prob_definition,
        markov_log_prob_definition,
    )
    from quoin.models.mixture import GaussianMixture, MixtureCandidates
    from quoin.models.mixture_em import EM, EMStep, em, em_step, em_step_definition, em_with_restarts
    from quoin.models.mixture_init import init_mixture, kmeans_plus_plus
    from quoin.models.mlp import MLP, MLPForward, mlp_definition, one_hidden_layer_definition
    from quoin.models.monomials import monomial_features, num_monomials, num_monomials_up_to
    from quoin.models.nadaraya_watson_regression import NadarayaWatsonRegression
    from quoin.models.ngram import NgramCache, NgramModel
    from quoin.models.ngram_counts import NgramCounts, ngram_counts, ngram_counts_definition, relative_frequencies
    from quoin.models.nin import nin, nin_block, small_nin
    from quoin.models.pixel_predictor import GatedPixelPredictor, PixelPredictor, WindowPixelPredictor
    from quoin.models.pixelcnn import (
        GatedPixelCNN,
        PixelCNN,
        PixelModel,
        dequantize,
        pixel_log_prob,
        pixel_log_prob_definition,
        quantize,
    )
    from quoin.models.polynomial import (
        PolynomialRegression,
        fit_monomials,
        fit_polynomial,
        monomial_degrees,
        polynomial_features,
        scaled_monomial_features,
    )
    from quoin.models.population import best_affine_predictor, conditional_expectation
    from quoin.models.ppca import PPCA, ppca_log_evidence_definition, ppca_posterior_definition
    from quoin.models.pretrained import (
        WeightSource,
        load_converted,
        load_renamed,
        read_safetensors,
        stacked,
        transposed,
    )
    from quoin.models.recurrent_lm import RecurrentLanguageModel
    from quoin.models.recurrent_parts import RecurrentState
    from quoin.models.resnet import (
        ResNet,
        cifar_resnet18,
        load_torchvision_resnet,
        resnet18,
        resnet34,
        resnet50,
        resnet101,
        small_resnet,
    )
    from quoin.models.resnext import resnext50, small_resnext
    from quoin.models.seq2seq import RecurrentDecoder, RecurrentEncoder, RecurrentEncoderOutput, RNNDecoder, Seq2Seq
    from quoin.models.sequence_classifier import (
        BagOfWordsEncoder,
        RecurrentTextEncoder,
        SequenceClassifier,
        TransformerTextEncoder,
        sequence_classifier_definition,
    )
    from quoin.models.signal_classifier import (
        ConvSignalEncoder,
        RecurrentSignalEncoder,
        SignalClassifier,
        SignalPatchEmbedding,
        TransformerSignalEncoder,
        conv_block1d_definition,
        signal_classifier_definition,
        signal_patch_embedding_definition,
    )
    from quoin.models.sliding_window import SlidingWindowCache, SlidingWindowModel
    from quoin.models.tied import TiedMLP
    from quoin.models.time_mlp import TimeMLP, timestep_embedding
    from quoin.models.transformer import (
        DecoderCache,
        EncoderOutput,
        Transformer,
        TransformerDecoder,
        TransformerEncoder,
    )
    from quoin.models.translation import TranslationModel, next_token_log_probs, translation_log_prob
    from quoin.models.unet import UNet, UNetBlock, UNetBlockWeights, unet_block_definition
    from quoin.models.unet_weights import load_diffusers_unet
    from quoin.models.vae import VAE, VAEEncoder, conv_vae, mlp_vae
    from quoin.models.vae_decoders import BinomialDecoder, GaussianDecoder, LearnedGaussianDecoder, VAEDecoder
    from quoin.models.vgg import load_torchvision_vgg, small_vgg, vgg11, vgg16, vgg19, vgg_block
    from quoin.models.vit import PatchEmbedding, ViT, patch_embedding_definition
    from quoin.models.vit_weights import load_pretrained_vit, resize_position_embedding

__all__ = [
    "EM",
    "GAN",
    "GCN",
    "GPT",
    "MLP",
    "PPCA",
    "VAE",
    "AttentionBlock",
    "AttentionClassifier",
    "BagOfWordsEncoder",
    "BahdanauCache",
    "BahdanauDecoder",
    "BahdanauOutput",
    "BahdanauStepOutput",
    "BinomialDecoder",
    "CausalLM",
    "ConvSignalEncoder",
    "CopyTransformer",
    "CopyTransformerBlock",
    "DecoderCache",
    "DecoderModel",
    "DecodingCache",
    "DeepLatentGaussian",
    "DenseLayer",
    "DenseNet",
    "DensityModel",
    "DiagonalNormalNet",
    "EMStep",
    "EncoderOutput",
    "FourierRegression",
    "GatedPixelCNN",
    "GatedPixelPredictor",
    "GaussianDecoder",
    "GaussianDiscriminant",
    "GaussianKDE",
    "GaussianMixture",
    "GenerativeModel",
    "ImageClassifier",
    "ImageDiscriminator",
    "Inception",
    "KernelFit",
    "LabeledSample",
    "LearnedGaussianDecoder",
    "LinearFit",
    "LinearGaussian",
    "LinearRegression",
    "LinearScore",
    "LinearVAE",
    "MLPForward",
    "MarkovCache",
    "MarkovModel",
    "MixtureCandidates",
    "NadarayaWatsonRegression",
    "NextTokenOutput",
    "NgramCache",
    "NgramCounts",
    "NgramModel",
    "NodeClassifier",
    "PatchEmbedding",
    "PixelCNN",
    "PixelModel",
    "PixelPredictor",
    "PolynomialRegression",
    "RNNDecoder",
    "RecurrentDecoder",
    "RecurrentEncoder",
    "RecurrentEncoderOutput",
    "RecurrentLanguageModel",
    "RecurrentSignalEncoder",
    "RecurrentState",
    "RecurrentTextEncoder",
    "ResNet",
    "Seq2Seq",
    "SequenceClassifier",
    "SignalClassifier",
    "SignalPatchEmbedding",
    "SlidingWindowCache",
    "SlidingWindowModel",
    "SoftmaxRegression",
    "TiedMLP",
    "TimeMLP",
    "Transformer",
    "TransformerCache",
    "TransformerDecoder",
    "TransformerEncoder",
    "TransformerLanguageModel",
    "TransformerSignalEncoder",
    "TransformerTextEncoder",
    "TranslationModel",
    "TriangularNormalNet",
    "UNet",
    "UNetBlock",
    "UNetBlockWeights",
    "VAEDecoder",
    "VAEEncoder",
    "ViT",
    "WeightSource",
    "WindowPixelPredictor",
    "alexnet",
    "bahdanau_decoder_definition",
    "best_affine_predictor",
    "chain_rule_log_prob",
    "chain_rule_log_prob_definition",
    "check_num_samples",
    "cifar_resnet18",
    "conditional_expectation",
    "conv_block1d_definition",
    "conv_gan",
    "conv_vae",
    "covariance_definition",
    "dense_block_definition",
    "densenet121",
    "dequantize",
    "em",
    "em_step",
    "em_step_definition",
    "em_with_restarts",
    "export_dense",
    "fit_monomials",
    "fit_polynomial",
    "functional_model",
    "googlenet",
    "gpt2_from_config",
    "gpt2_from_pretrained",
    "gpt_neox_from_config",
    "gpt_neox_from_pretrained",
    "import_dense",
    "init_image_weights",
    "init_language_weights",
    "init_mixture",
    "kernel_ridge",
    "kmeans_plus_plus",
    "kneser_ney_counts",
    "kneser_ney_discounts",
    "kneser_ney_ngram",
    "kneser_ney_probs",
    "laplace_bigram",
    "laplace_ngram",
    "laplace_probs",
    "laplace_trigram",
    "laplace_unigram",
    "least_squares",
    "least_squares_by_qr",
    "lenet",
    "linear_regression_definition",
    "llama_block",
    "llama_from_config",
    "llama_from_pretrained",
    "load_converted",
    "load_diffusers_unet",
    "load_gpt2_weights",
    "load_gpt_neox_weights",
    "load_llama_weights",
    "load_pretrained_vit",
    "load_renamed",
    "load_torchvision_alexnet",
    "load_torchvision_densenet",
    "load_torchvision_googlenet",
    "load_torchvision_resnet",
    "load_torchvision_vgg",
    "markov_log_prob_definition",
    "mlp_definition",
    "mlp_gan",
    "mlp_vae",
    "monomial_degrees",
    "monomial_features",
    "next_token_log_probs",
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
    "parameter_vector",
    "patch_embedding_definition",
    "pixel_log_prob",
    "pixel_log_prob_definition",
    "polynomial_features",
    "ppca_log_evidence_definition",
    "ppca_posterior_definition",
    "quantize",
    "read_safetensors",
    "relative_frequencies",
    "relu_interpolant",
    "resize_position_embedding",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnext50",
    "ridge",
    "sample_in_batches",
    "scale_tril_from_entries",
    "scaled_monomial_features",
    "sequence_classifier_definition",
    "signal_classifier_definition",
    "signal_patch_embedding_definition",
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
    "timestep_embedding",
    "translation_log_prob",
    "transposed",
    "unet_block_definition",
    "vgg11",
    "vgg16",
    "vgg19",
    "vgg_block",
]

export_lazily(__name__)
