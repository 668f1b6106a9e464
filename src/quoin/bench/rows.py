"""The rows of the bench: who runs against whom, and what is asked of the outcome. Imports neither torch nor a peer.

A contestant (row.py) is a function of `worker.Laps` in a file of this room. It works lap after lap, calls `laps.end()` at the end of
each, and gives back its figures of quality. The first of a row is the one that ratios are taken to.
"""

from collections.abc import Sequence

from quoin.bench.attention_rows import ATTENTION_ROWS
from quoin.bench.decode_rows import DECODE_ROWS
from quoin.bench.language_rows import LANGUAGE_ROWS
from quoin.bench.measured import FigureAboveFirst, FigureAtMost, NoMoreMemoryThan, RatioAtLeast, SecondsAtMost, TimesAsQuickAs
from quoin.bench.row import Contestant, Row
from quoin.bench.unet_rows import UNET_ROWS
from quoin.errors import Mistake, nearest, shown

__all__ = ["ROWS", "Contestant", "Row", "choose_rows"]


_TORCH, _PEERS, _START, _CHECKPOINT = (f"quoin.bench.{name}" for name in ("loop_torch", "loop_peers", "start", "checkpoint"))
_TRACE, _HUFFMAN = "quoin.bench.trace", "quoin.bench.huffman"
_KL = "quoin.bench.kl_tables"
_HMM, _HMM_PEERS = "quoin.bench.hmm_quoin", "quoin.bench.hmm_peers"
_LINEAR, _LINEAR_PEERS = "quoin.bench.linear_quoin", "quoin.bench.linear_peers"
_IMAGES, _IMAGES_TORCH, _IMAGES_PEERS = (f"quoin.bench.images_{name}" for name in ("quoin", "torch", "peers"))

_COMPRESS = "quoin.bench.compress"

_RULES = "quoin.bench.rules"

_REGIONS = "quoin.bench.regions"

_GAUSSIAN = "quoin.bench.gaussian_sides"

_POOLING = "quoin.bench.kernel_pooling"

_NGRAMS = "quoin.bench.ngram_count"

_MIXTURE = "quoin.bench.mixture_sides"

_VAE = "quoin.bench.vae_sides"

# Of the same work in the same kernels half the ratios fall below 1 by chance: as quick means this close to it.
AS_QUICK = 0.97


def _on_images(network: str) -> tuple[Contestant, ...]:
    """The same contestants for either network; the best of the peers is the one that Quoin must be as quick as."""
    on_jax, on_torch = (("KERAS_BACKEND", "jax"),), (("KERAS_BACKEND", "torch"),)
    return (
        Contestant("Quoin", _IMAGES, f"{network}_quoin", NoMoreMemoryThan("torch")),
        Contestant("Quoin --compile", _IMAGES, f"{network}_compiled", TimesAsQuickAs("torch", 1.3)),
        Contestant("torch", _IMAGES_TORCH, f"{network}_eager", RatioAtLeast(AS_QUICK)),
        Contestant("torch, channels last", _IMAGES_TORCH, f"{network}_channels_last", RatioAtLeast(AS_QUICK)),
        Contestant("Keras on JAX", _IMAGES_PEERS, f"{network}_keras_jax", RatioAtLeast(1.0), ("keras", "jax"), on_jax),
        Contestant("Keras on torch", _IMAGES_PEERS, f"{network}_keras_torch", RatioAtLeast(1.0), ("keras",), on_torch),
    )


def _hidden(function: str, share: float) -> tuple[Contestant, ...]:
    return (
        Contestant("Quoin", _HMM, function),
        Contestant("hmmlearn, scaling", _HMM_PEERS, function, RatioAtLeast(share), ("hmmlearn",)),
    )


ROWS = (
    Row(
        "loop",
        "one epoch of an MLP 784-256-10: 20,000 rows in memory, batches of 256, plain SGD",
        (
            Contestant("Quoin", _TORCH, "quoin"),
            Contestant("bare torch loop", _TORCH, "bare", RatioAtLeast(0.95)),
            Contestant("torch DataLoader", _TORCH, "data_loader", RatioAtLeast(1.4)),
            Contestant("Keras on JAX", _PEERS, "keras_jax", RatioAtLeast(0.95), ("keras", "jax"), (("KERAS_BACKEND", "jax"),)),
            Contestant("Keras on torch", _PEERS, "keras_torch", RatioAtLeast(2.5), ("keras",), (("KERAS_BACKEND", "torch"),)),
            Contestant("scikit-learn", _PEERS, "sklearn_mlp"),
        ),
        rounds=25,
    ),
    Row(
        "start",
        "a fresh process from start to end",
        (
            Contestant("python -c pass", _START, "floor"),
            Contestant("import quoin", _START, "importing", SecondsAtMost(0.1)),
            Contestant("quoin --help", _START, "helping", SecondsAtMost(0.3)),
            Contestant("quoin list", _START, "listing", SecondsAtMost(0.3)),
        ),
        rounds=15,
        warm_up=1,
    ),
    Row(
        "checkpoint",
        "a whole run of the recipe mlp, saving as it does by default, and only at its end",
        (
            Contestant("saving by default", _CHECKPOINT, "saving", FigureAtMost("share of saving", 0.05)),
            Contestant("saving at the end", _CHECKPOINT, "not_saving", RatioAtLeast(0.95)),
        ),
        rounds=7,
        warm_up=1,
    ),
    Row("lenet-28", "40 training steps of LeNet on 128 images of 1 x 28 x 28, SGD with momentum", _on_images("lenet"), rounds=15),
    Row("resnet18-cifar", "4 training steps of ResNet-18 on 32 images of 3 x 32 x 32, SGD with momentum", _on_images("resnet"), rounds=7),
    Row(
        "trace",
        "100 steps of an MLP 64-128-10 on 64 rows, forward and backward, with and without a record of every value and adjoint",
        (
            Contestant("traced", _TRACE, "traced"),
            Contestant("plain step", _TRACE, "plain", RatioAtLeast(1 / 20)),
        ),
        rounds=15,
        threads=1,
    ),
    Row(
        "rules",
        "100 steps of each of six update rules on the parameters of an MLP 784-256-10, gradients ready",
        (
            Contestant("Quoin's definitions", _RULES, "definitions"),
            Contestant("torch.optim, foreach=False", _RULES, "unfused", RatioAtLeast(1 / 3)),
            Contestant("torch.optim, fused", _RULES, "fused"),
            Contestant("both, rule by rule", _RULES, "rule_by_rule", FigureAtMost("slowest rule", 3.0)),
        ),
        rounds=9,
        threads=1,
    ),
    Row(
        "regions",
        "every linear region of random ReLU networks of the plane in a window; a grid of 500 x 500 points counts those it meets",
        (
            Contestant("Quoin, 2-64-64-1", _REGIONS, "narrow", SecondsAtMost(5.0)),
            Contestant("Quoin, 2-128-128-1", _REGIONS, "wide"),
            Contestant("grid, 2-64-64-1", _REGIONS, "grid"),
        ),
        rounds=5,
        warm_up=1,
    ),
    Row(
        "lstsq",
        "least squares: 20,000 pictures of 784 pixels in float32, one number each",
        (
            Contestant("Quoin", _LINEAR, "lstsq"),
            Contestant("scikit-learn Ridge, Cholesky, alpha 0", _LINEAR_PEERS, "ridge_cholesky", RatioAtLeast(1.0)),
            Contestant("scikit-learn LinearRegression", _LINEAR_PEERS, "linear_regression", RatioAtLeast(1.0)),
        ),
        rounds=9,
        warm_up=1,
    ),
    Row(
        "logreg",
        "logistic regression of odd against even digits: 20,000 pictures of 784 pixels in float32, C = 1",
        (
            Contestant("Quoin", _LINEAR, "logreg"),
            Contestant("scikit-learn, L-BFGS", _LINEAR_PEERS, "logistic_lbfgs", RatioAtLeast(1.0)),
            Contestant("scikit-learn, Newton-CG", _LINEAR_PEERS, "logistic_newton_cg", RatioAtLeast(1.0)),
        ),
        rounds=9,
        warm_up=1,
    ),
    Row(
        "svm",
        "linear support vector machine of odd against even digits: 20,000 pictures of 784 pixels in float32, hinge loss, C = 1",
        (
            Contestant("Quoin", _LINEAR, "svm"),
            Contestant("scikit-learn LinearSVC, 300 passes", _LINEAR_PEERS, "linear_svc", RatioAtLeast(1.0)),
        ),
        rounds=5,
        warm_up=1,
    ),
    Row(
        "softmax",
        "softmax regression of ten digits: 20,000 pictures of 784 pixels in float32, C = 1",
        (
            Contestant("Quoin", _LINEAR, "softmax"),
            Contestant("scikit-learn, L-BFGS", _LINEAR_PEERS, "softmax_lbfgs", RatioAtLeast(1.0)),
            Contestant("scikit-learn, Newton-CG", _LINEAR_PEERS, "softmax_newton_cg", RatioAtLeast(1.0)),
        ),
        rounds=5,
        warm_up=1,
    ),
    Row(
        "huffman",
        "Huffman's code of 1 MB: count, build, encode, decode",
        (
            Contestant("Quoin", _HUFFMAN, "quoin"),
            Contestant("heapq, decoded word by word", _HUFFMAN, "by_dict", RatioAtLeast(3.0)),
            Contestant("heapq, decoded by a pattern", _HUFFMAN, "by_pattern", RatioAtLeast(3.0)),
        ),
        rounds=9,
        warm_up=1,
        threads=1,
    ),
    Row(
        "compress",
        "the help texts of CPython, each paragraph once: bytes of the archive, and the speed of making it and of undoing it",
        (
            Contestant("Quoin", _COMPRESS, "compressing"),
            Contestant("Quoin, back again", _COMPRESS, "decompressing"),
            Contestant("xz -9e", _COMPRESS, "xz", FigureAboveFirst("bytes")),
            Contestant("bzip2 -9", _COMPRESS, "bzip2", FigureAboveFirst("bytes")),
        ),
        rounds=5,
        warm_up=1,
        threads=1,
    ),
    Row(
        "gaussian-conditioning",
        "10,000 normal laws on 20 coordinates in float32, each conditioned on 10 of them",
        (
            Contestant("Quoin, input checked", _GAUSSIAN, "quoin"),
            Contestant("torch, cholesky_solve, as GPyTorch", _GAUSSIAN, "torch_cholesky", RatioAtLeast(1.0)),
            Contestant("torch, triangular solves", _GAUSSIAN, "torch_triangular"),
            Contestant("NumPy, batched solve", _GAUSSIAN, "numpy_batched", RatioAtLeast(1.0)),
            Contestant("NumPy, loop", _GAUSSIAN, "numpy_loop", RatioAtLeast(3.0)),
            Contestant("SciPy, loop of cho_solve", _GAUSSIAN, "scipy_loop", RatioAtLeast(3.0)),
        ),
        rounds=15,
    ),
    Row(
        "kl-tables",
        "the Kullback-Leibler divergence of 100,000 pairs of laws on 100 outcomes in float64",
        (
            Contestant("Quoin, input checked", _KL, "quoin"),
            Contestant("scipy.stats.entropy", _KL, "scipy_entropy", RatioAtLeast(2.0)),
            Contestant("scipy.special.rel_entr, summed", _KL, "scipy_rel_entr", RatioAtLeast(1.0)),
            Contestant("torch kl_div, summed", _KL, "torch_kl_div", RatioAtLeast(1.0)),
        ),
        rounds=15,
    ),
    Row(
        "nadaraya-watson",
        "Gaussian kernel regression of 20,000 values at 20,000 places in 4 dimensions in float32, in pieces that fit into memory",
        (
            Contestant("Quoin", _POOLING, "quoin"),
            Contestant("NumPy, broadcast", _POOLING, "numpy_broadcast", RatioAtLeast(5.0)),
            Contestant("scikit-learn rbf_kernel", _POOLING, "sklearn_matrix", RatioAtLeast(1.0)),
            Contestant("statsmodels, a tenth of it", _POOLING, "statsmodels_regression", RatioAtLeast(1.0), ("statsmodels",)),
        ),
        rounds=3,
        warm_up=1,
    ),
    Row("hmm", "3 steps of Baum-Welch, 20 states, 10 symbols: one sequence of 10,000 in float64", _hidden("one", 0.7), rounds=15),
    Row("hmm-64", "3 steps of Baum-Welch, 20 states, 10 symbols: 64 sequences of 10,000 in float64", _hidden("many", 3.0), rounds=5),
    Row(
        "hmm-gaussian-64",
        "3 steps of Baum-Welch, 20 states, Gaussians in the plane with full covariances: 64 sequences of 10,000 in float64",
        _hidden("gaussian_many", 3.0),
        rounds=5,
        warm_up=1,
    ),
    Row(
        "gmm-em",
        "3 steps of EM, 20 normal laws with full covariances: 200,000 points of 16 coordinates in float64",
        (
            Contestant("Quoin", _MIXTURE, "quoin"),
            Contestant("Quoin, points in float32", _MIXTURE, "quoin_float32"),
            Contestant("scikit-learn GaussianMixture", _MIXTURE, "sklearn_mixture", RatioAtLeast(3.0)),
        ),
        rounds=5,
        warm_up=1,
    ),
    Row(
        "vae-step",
        "40 training steps of a variational autoencoder 784-400-20-400-784 on 128 binary images, Adam",
        (
            Contestant("Quoin", _VAE, "quoin"),
            Contestant("torch", _VAE, "by_hand", RatioAtLeast(AS_QUICK)),
            Contestant("torch, fused Adam", _VAE, "by_hand_fused", RatioAtLeast(AS_QUICK)),
        ),
        rounds=15,
    ),
    Row(
        "ngram-count",
        "count every n-gram of 1 to 3 tokens in the words of Python's help texts",
        (
            Contestant("Quoin", _NGRAMS, "by_quoin"),
            Contestant("nltk.lm, NgramCounter", _NGRAMS, "by_nltk", RatioAtLeast(50.0), ("nltk",)),
        ),
        rounds=9,
        threads=1,
    ),
    *ATTENTION_ROWS,
    *LANGUAGE_ROWS,
    *DECODE_ROWS,
    *UNET_ROWS,
)


def choose_rows(names: Sequence[str]) -> list[Row]:
    """The rows of these names, or of the groups of these names, in the order given; all if none is given."""
    known = {row.name: [row] for row in ROWS}
    for row in ROWS:
        if row.group:
            known.setdefault(row.group, []).append(row)
    for name in names:
        if name not in known:
            # A group stands for its rows, which are too many to list; one that is meant by its own name is still found.
            near = nearest(name, known)
            hint = near if near.startswith("did you mean") else nearest(name, {row.group or row.name for row in ROWS})
            raise Mistake(f"there is no bench row {shown(name)}: {hint}")
    return [row for name in names for row in known[name]] or list(ROWS)
