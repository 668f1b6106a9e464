"""Named architectures, one family a file, flat: linear models, perceptrons, convolutional and residual networks, graph networks."""

from quoin.models.alexnet import alexnet, load_torchvision_alexnet, small_alexnet
from quoin.models.binary import LinearScore
from quoin.models.classifiers import SoftmaxRegression, one_hot_regression, softmax_regression_definition
from quoin.models.closed_form import LinearFit, least_squares, least_squares_by_qr, normal_equations, ridge
from quoin.models.densenet import DenseLayer, DenseNet, dense_block_definition, densenet121, load_torchvision_densenet, small_densenet
from quoin.models.dropout_mlp import DropoutMLP
from quoin.models.exchange import export_dense, import_dense
from quoin.models.foreign import load_foreign, read_safetensors
from quoin.models.gcn import GCN, NodeClassifier
from quoin.models.generative import Drawn, GenerativeClassifier, bayes_rule_definition, gaussian_log_density_definition
from quoin.models.googlenet import Inception, googlenet, load_torchvision_googlenet, small_googlenet
from quoin.models.image_classifier import ImageClassifier
from quoin.models.image_start import start_image_weights
from quoin.models.interpolant import relu_interpolant
from quoin.models.lenet import lenet, small_lenet
from quoin.models.linear import LinearGaussian, LinearRegression, linear_regression_definition
from quoin.models.mlp import MLP, MLPForward, mlp_definition, one_hidden_layer_definition
from quoin.models.monomials import monomial_features, num_monomials, num_monomials_up_to
from quoin.models.nin import nin, nin_block, small_nin
from quoin.models.parametrised import num_parameters, parameter_vector, realisation
from quoin.models.polynomial import PolynomialRegression, fit_polynomial, polynomial_features
from quoin.models.population import best_affine_predictor, conditional_expectation
from quoin.models.resnet import ResNet, cifar_resnet18, load_torchvision_resnet, resnet18, resnet34, resnet50, resnet101, small_resnet
from quoin.models.resnext import resnext50, small_resnext
from quoin.models.tied import TiedMLP
from quoin.models.vgg import load_torchvision_vgg, small_vgg, vgg11, vgg16, vgg19, vgg_block

__all__ = [
    "GCN",
    "MLP",
    "DenseLayer",
    "DenseNet",
    "Drawn",
    "DropoutMLP",
    "GenerativeClassifier",
    "ImageClassifier",
    "Inception",
    "LinearFit",
    "LinearGaussian",
    "LinearRegression",
    "LinearScore",
    "MLPForward",
    "NodeClassifier",
    "PolynomialRegression",
    "ResNet",
    "SoftmaxRegression",
    "TiedMLP",
    "alexnet",
    "bayes_rule_definition",
    "best_affine_predictor",
    "cifar_resnet18",
    "conditional_expectation",
    "dense_block_definition",
    "densenet121",
    "export_dense",
    "fit_polynomial",
    "gaussian_log_density_definition",
    "googlenet",
    "import_dense",
    "least_squares",
    "least_squares_by_qr",
    "lenet",
    "linear_regression_definition",
    "load_foreign",
    "load_torchvision_alexnet",
    "load_torchvision_densenet",
    "load_torchvision_googlenet",
    "load_torchvision_resnet",
    "load_torchvision_vgg",
    "mlp_definition",
    "monomial_features",
    "nin",
    "nin_block",
    "normal_equations",
    "num_monomials",
    "num_monomials_up_to",
    "num_parameters",
    "one_hidden_layer_definition",
    "one_hot_regression",
    "parameter_vector",
    "polynomial_features",
    "read_safetensors",
    "realisation",
    "relu_interpolant",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnext50",
    "ridge",
    "small_alexnet",
    "small_densenet",
    "small_googlenet",
    "small_lenet",
    "small_nin",
    "small_resnet",
    "small_resnext",
    "small_vgg",
    "softmax_regression_definition",
    "start_image_weights",
    "vgg11",
    "vgg16",
    "vgg19",
    "vgg_block",
]
