"""The benchmarks: which implementations are compared, and what is asked of the outcome. Imports neither torch nor a
peer.

An implementation (benchmark.py) is a function of `worker.Repeats` in a file of this package. It leaves its work to
`repeats.timed`, or calls `repeats.end()` at the end of each itself, and gives back its figures of quality. The first of
a benchmark is the one that ratios are taken to.
"""

from collections.abc import Sequence

from quoin.bench.attention_benchmarks import ATTENTION_BENCHMARKS
from quoin.bench.benchmark import TORCH_STEPS, Benchmark, Implementation
from quoin.bench.command_benchmarks import COMMAND_BENCHMARKS
from quoin.bench.decode_benchmarks import DECODE_BENCHMARKS
from quoin.bench.export_benchmarks import EXPORT_BENCHMARKS
from quoin.bench.gpu_benchmarks import GPU_BENCHMARKS
from quoin.bench.language_benchmarks import LANGUAGE_BENCHMARKS
from quoin.bench.processes_benchmarks import PROCESSES_BENCHMARKS
from quoin.bench.targets import (
    Both,
    FigureAboveFirst,
    FigureAtLeast,
    FigureAtMost,
    MemoryWithin,
    NoMoreMemoryThan,
    RatioAtLeast,
    SecondsAtMost,
    TimesAsQuickAs,
)
from quoin.bench.unet_benchmarks import UNET_BENCHMARKS
from quoin.errors import UserError, did_you_mean, format_value

__all__ = ["BENCHMARKS", "Benchmark", "Implementation", "select_benchmarks"]


_TORCH, _PEERS, _START, _CHECKPOINT = (
    f"quoin.bench.{name}" for name in ("loop_torch", "loop_peers", "start", "checkpoint")
)
_CSV = "quoin.bench.csv_table"

_TRACE, _HUFFMAN = "quoin.bench.trace", "quoin.bench.huffman"
_KL = "quoin.bench.kl_tables"
_HMM, _HMM_PEERS = "quoin.bench.hmm_quoin", "quoin.bench.hmm_peers"
_LINEAR, _LINEAR_PEERS = "quoin.bench.linear_quoin", "quoin.bench.linear_peers"
_IMAGES, _IMAGES_TORCH, _IMAGES_PEERS = (f"quoin.bench.images_{name}" for name in ("quoin", "torch", "peers"))

_FOLDER = "quoin.bench.image_folder"

_LOADER = "torch DataLoader, Pillow"

_COMPRESS = "quoin.bench.compress"

_RULES = "quoin.bench.rules"

_REGIONS = "quoin.bench.regions"

_GAUSSIAN = "quoin.bench.gaussian_implementations"

_POOLING = "quoin.bench.kernel_pooling"

_NGRAMS = "quoin.bench.ngram_count"

_MIXTURE = "quoin.bench.mixture_implementations"

_VAE = "quoin.bench.vae_implementations"


def _on_images(network: str, compiled: float) -> tuple[Implementation, ...]:
    """The same implementations for either network; the best of the peers is the one that Quoin must be as quick as."""
    on_jax, on_torch = (("KERAS_BACKEND", "jax"),), (("KERAS_BACKEND", "torch"),)
    return (
        Implementation("Quoin", _IMAGES, f"{network}_quoin", NoMoreMemoryThan("torch")),
        Implementation("Quoin --compile", _IMAGES, f"{network}_compiled", TimesAsQuickAs("torch", compiled)),
        Implementation("torch", _IMAGES_TORCH, f"{network}_eager", RatioAtLeast(1.0)),
        Implementation("torch, channels last", _IMAGES_TORCH, f"{network}_channels_last", RatioAtLeast(1.0)),
        Implementation(
            "Keras on JAX", _IMAGES_PEERS, f"{network}_keras_jax", RatioAtLeast(1.0), ("keras", "jax"), on_jax
        ),
        Implementation(
            "Keras on torch", _IMAGES_PEERS, f"{network}_keras_torch", RatioAtLeast(1.0), ("keras",), on_torch
        ),
    )


def _hidden(function: str, min_ratio: float) -> tuple[Implementation, ...]:
    return (
        Implementation("Quoin", _HMM, function),
        Implementation("hmmlearn, scaling", _HMM_PEERS, function, RatioAtLeast(min_ratio), ("hmmlearn",)),
    )


BENCHMARKS = (
    Benchmark(
        "loop",
        "one epoch of an MLP 784-256-10: 20,000 rows in memory, batches of 256, plain SGD",
        (
            Implementation("Quoin", _TORCH, "quoin", MemoryWithin("bare torch loop", 100)),
            Implementation("bare torch loop", _TORCH, "bare", RatioAtLeast(1.0)),
            Implementation("torch DataLoader", _TORCH, "data_loader", RatioAtLeast(1.4)),
            Implementation(
                "Keras on JAX", _PEERS, "keras_jax", RatioAtLeast(0.95), ("keras", "jax"), (("KERAS_BACKEND", "jax"),)
            ),
            Implementation(
                "Keras on torch", _PEERS, "keras_torch", RatioAtLeast(2.5), ("keras",), (("KERAS_BACKEND", "torch"),)
            ),
            Implementation("scikit-learn", _PEERS, "sklearn_mlp"),
        ),
        num_repeats=25,
        on_torch=("Quoin", "bare torch loop"),
    ),
    Benchmark(
        "start",
        "a fresh process from start to end",
        (
            Implementation("python -c pass", _START, "floor"),
            Implementation("import quoin", _START, "importing", SecondsAtMost(0.1)),
            Implementation("quoin --help", _START, "helping", SecondsAtMost(0.3)),
            Implementation("quoin list", _START, "listing", SecondsAtMost(0.3)),
        ),
        num_repeats=15,
        num_warmup=1,
    ),
    Benchmark(
        "checkpoint",
        "a whole run of the recipe mlp, saving as it does by default, and only at its end",
        (
            Implementation("saving by default", _CHECKPOINT, "saving", FigureAtMost("saving fraction", 0.05)),
            Implementation("saving at the end", _CHECKPOINT, "not_saving", RatioAtLeast(0.95)),
        ),
        num_repeats=7,
        num_warmup=1,
    ),
    *PROCESSES_BENCHMARKS,
    *COMMAND_BENCHMARKS,
    Benchmark(
        "lenet-28",
        "40 training steps of LeNet on 128 images of 1 x 28 x 28, SGD with momentum",
        _on_images("lenet", 1.3),
        num_repeats=15,
        on_torch=TORCH_STEPS,
    ),
    Benchmark(
        "resnet18-cifar",
        "4 training steps of ResNet-18 on 32 images of 3 x 32 x 32, SGD with momentum",
        _on_images("resnet", 1.1),
        num_repeats=7,
        on_torch=TORCH_STEPS,
    ),
    Benchmark(
        "trace",
        "100 steps of an MLP 64-128-10 on 64 rows, forward and backward, with and without a record of every value "
        "and adjoint",
        (
            Implementation("traced", _TRACE, "traced"),
            Implementation("plain step", _TRACE, "plain", RatioAtLeast(1 / 20)),
        ),
        num_repeats=15,
        threads=1,
    ),
    Benchmark(
        "rules",
        "100 steps of each of six update rules on the parameters of an MLP 784-256-10, gradients ready",
        (
            Implementation("Quoin's definitions", _RULES, "definitions"),
            Implementation("torch.optim, foreach=False", _RULES, "unfused", RatioAtLeast(1 / 3)),
            Implementation("torch.optim, fused", _RULES, "fused"),
            Implementation("both, rule by rule", _RULES, "rule_by_rule", FigureAtMost("slowest rule", 3.0)),
        ),
        num_repeats=9,
        threads=1,
    ),
    Benchmark(
        "regions",
        "every linear region of random ReLU networks of the plane in a window; a grid of 500 x 500 points counts "
        "those it meets",
        (
            Implementation("Quoin, 2-64-64-1", _REGIONS, "narrow", SecondsAtMost(5.0)),
            Implementation("Quoin, 2-128-128-1", _REGIONS, "wide"),
            Implementation("grid, 2-64-64-1", _REGIONS, "grid"),
        ),
        num_repeats=5,
        num_warmup=1,
    ),
    Benchmark(
        "lstsq",
        "least squares: 20,000 images of 784 pixels in float32, one number each",
        (
            Implementation("Quoin", _LINEAR, "lstsq"),
            Implementation("scikit-learn Ridge, Cholesky, alpha 0", _LINEAR_PEERS, "ridge_cholesky", RatioAtLeast(1.0)),
            Implementation("scikit-learn LinearRegression", _LINEAR_PEERS, "linear_regression", RatioAtLeast(1.0)),
        ),
        num_repeats=9,
        num_warmup=1,
    ),
    Benchmark(
        "logreg",
        "logistic regression of odd against even digits: 20,000 images of 784 pixels in float32, C = 1",
        (
            Implementation("Quoin", _LINEAR, "logreg"),
            Implementation("scikit-learn, L-BFGS", _LINEAR_PEERS, "logistic_lbfgs", RatioAtLeast(1.0)),
            Implementation("scikit-learn, Newton-CG", _LINEAR_PEERS, "logistic_newton_cg", RatioAtLeast(1.0)),
        ),
        num_repeats=9,
        num_warmup=1,
    ),
    Benchmark(
        "svm",
        "linear support vector machine of odd against even digits: "
        "20,000 images of 784 pixels in float32, hinge loss, C = 1",
        (
            Implementation("Quoin", _LINEAR, "svm"),
            Implementation("scikit-learn LinearSVC, 300 passes", _LINEAR_PEERS, "linear_svc", RatioAtLeast(1.0)),
        ),
        num_repeats=5,
        num_warmup=1,
    ),
    Benchmark(
        "softmax",
        "softmax regression of ten digits: 20,000 images of 784 pixels in float32, C = 1",
        (
            Implementation("Quoin", _LINEAR, "softmax"),
            Implementation("scikit-learn, L-BFGS", _LINEAR_PEERS, "softmax_lbfgs", RatioAtLeast(1.0)),
            Implementation("scikit-learn, Newton-CG", _LINEAR_PEERS, "softmax_newton_cg", RatioAtLeast(1.0)),
        ),
        num_repeats=5,
        num_warmup=1,
    ),
    Benchmark(
        "csv",
        "1,000,000 rows of 20 numbers and a class (170 MB): from a CSV file to tensors",
        (
            Implementation("Quoin", _CSV, "quoin", FigureAtMost("memory in tensors", 3.0)),
            Implementation("polars.read_csv", _CSV, "polars_alone", RatioAtLeast(1 / 1.3)),
        ),
        num_repeats=7,
        num_warmup=2,
    ),
    Benchmark(
        "huffman",
        "Huffman's code of 1 MB: count, build, encode, decode",
        (
            Implementation("Quoin", _HUFFMAN, "quoin"),
            Implementation("heapq, decoded word by word", _HUFFMAN, "by_dict", RatioAtLeast(3.0)),
            Implementation("heapq, decoded by a pattern", _HUFFMAN, "by_pattern", RatioAtLeast(3.0)),
        ),
        num_repeats=9,
        num_warmup=1,
        threads=1,
    ),
    Benchmark(
        "compress",
        "the help texts of CPython, each paragraph once: bytes of the archive, and the speed of making it and of "
        "undoing it",
        (
            Implementation(
                "Quoin", _COMPRESS, "compressing", Both(FigureAtLeast("kB/s", 1000), FigureAtMost("bytes", 82_168))
            ),
            Implementation("Quoin, back again", _COMPRESS, "decompressing"),
            Implementation("xz -9e", _COMPRESS, "xz", FigureAboveFirst("bytes")),
            Implementation("bzip2 -9", _COMPRESS, "bzip2", FigureAboveFirst("bytes")),
        ),
        num_repeats=5,
        num_warmup=1,
        threads=1,
    ),
    Benchmark(
        "gaussian-conditioning",
        "10,000 normal distributions on 20 coordinates in float32, each conditioned on 10 of them",
        (
            Implementation("Quoin, input checked", _GAUSSIAN, "quoin"),
            Implementation("torch, cholesky_solve, as GPyTorch", _GAUSSIAN, "torch_cholesky", RatioAtLeast(1.0)),
            Implementation("torch, triangular solves", _GAUSSIAN, "torch_triangular"),
            Implementation("NumPy, batched solve", _GAUSSIAN, "numpy_batched", RatioAtLeast(1.0)),
            Implementation("NumPy, loop", _GAUSSIAN, "numpy_loop", RatioAtLeast(3.0)),
            Implementation("SciPy, loop of cho_solve", _GAUSSIAN, "scipy_loop", RatioAtLeast(3.0)),
        ),
        num_repeats=15,
    ),
    Benchmark(
        "kl-tables",
        "the Kullback-Leibler divergence of 100,000 pairs of distributions on 100 outcomes in float64",
        (
            Implementation("Quoin, input checked", _KL, "quoin"),
            Implementation("scipy.stats.entropy", _KL, "scipy_entropy", RatioAtLeast(2.0)),
            Implementation("scipy.special.rel_entr, summed", _KL, "scipy_rel_entr", RatioAtLeast(1.0)),
            Implementation("torch kl_div, summed", _KL, "torch_kl_div", RatioAtLeast(1.0)),
        ),
        num_repeats=15,
    ),
    Benchmark(
        "nadaraya-watson",
        "Gaussian kernel regression of 20,000 values at 20,000 points in 4 dimensions in float32, "
        "in pieces that fit into memory",
        (
            Implementation("Quoin", _POOLING, "quoin"),
            Implementation("NumPy, broadcast", _POOLING, "numpy_broadcast", RatioAtLeast(5.0)),
            Implementation("scikit-learn rbf_kernel", _POOLING, "sklearn_matrix", RatioAtLeast(1.0)),
            Implementation(
                "statsmodels, a tenth of it", _POOLING, "statsmodels_regression", RatioAtLeast(1.0), ("statsmodels",)
            ),
        ),
        num_repeats=3,
        num_warmup=1,
    ),
    Benchmark(
        "hmm",
        "3 steps of Baum-Welch, 20 states, 10 symbols: one sequence of 10,000 in float64",
        _hidden("one", 0.7),
        num_repeats=15,
    ),
    Benchmark(
        "hmm-64",
        "3 steps of Baum-Welch, 20 states, 10 symbols: 64 sequences of 10,000 in float64",
        _hidden("many", 3.5),
        num_repeats=5,
    ),
    Benchmark(
        "hmm-gaussian-64",
        "3 steps of Baum-Welch, 20 states, Gaussians in the plane with full covariances: 64 sequences of 10,000 in "
        "float64",
        _hidden("gaussian_many", 3.0),
        num_repeats=5,
        num_warmup=1,
    ),
    Benchmark(
        "gmm-em",
        "3 steps of EM, 20 normal distributions with full covariances: 200,000 points of 16 coordinates in float64",
        (
            Implementation("Quoin", _MIXTURE, "quoin"),
            Implementation("Quoin, points in float32", _MIXTURE, "quoin_float32"),
            Implementation("scikit-learn GaussianMixture", _MIXTURE, "sklearn_mixture", RatioAtLeast(3.0)),
        ),
        num_repeats=5,
        num_warmup=1,
    ),
    Benchmark(
        "vae-step",
        "40 training steps of a variational autoencoder 784-400-20-400-784 on 128 binary images, Adam",
        (
            Implementation("Quoin", _VAE, "quoin"),
            Implementation("torch", _VAE, "by_hand", RatioAtLeast(1.0)),
            Implementation("torch, fused Adam", _VAE, "by_hand_fused", RatioAtLeast(1.0)),
        ),
        num_repeats=15,
        on_torch=("Quoin", "torch, fused Adam"),
    ),
    Benchmark(
        "ngram-count",
        "count every n-gram of 1 to 3 tokens in the words of Python's help texts",
        (
            Implementation("Quoin", _NGRAMS, "by_quoin"),
            Implementation("nltk.lm, NgramCounter", _NGRAMS, "by_nltk", RatioAtLeast(50.0), ("nltk",)),
        ),
        num_repeats=9,
        threads=1,
    ),
    Benchmark(
        "images",
        "2,000 JPEGs of 320 x 256 to batches of 32 images of 3 x 224 x 224: decoded with as many processes as threads, "
        "or read from the cache",
        (
            Implementation("Quoin, decoding into the cache", _FOLDER, "decoding"),
            Implementation("Quoin, an epoch from the cache", _FOLDER, "epoch", TimesAsQuickAs(_LOADER, 5.0)),
            Implementation(_LOADER, _FOLDER, "data_loader", RatioAtLeast(0.9)),
        ),
        num_repeats=5,
        num_warmup=1,
    ),
    *ATTENTION_BENCHMARKS,
    *LANGUAGE_BENCHMARKS,
    *DECODE_BENCHMARKS,
    *UNET_BENCHMARKS,
    *EXPORT_BENCHMARKS,
    *GPU_BENCHMARKS,
)


def select_benchmarks(names: Sequence[str]) -> list[Benchmark]:
    """The benchmarks of these names, or of the groups of these names, in the order given; all if none is given."""
    known = {benchmark.name: [benchmark] for benchmark in BENCHMARKS}
    for benchmark in BENCHMARKS:
        if benchmark.group:
            known.setdefault(benchmark.group, []).append(benchmark)
    for name in names:
        if name not in known:
            # A group stands for its benchmarks, which are too many to list; one that is meant by its own name is still
            # found.
            near = did_you_mean(name, known)
            hint = (
                near
                if near.startswith("did you mean")
                else did_you_mean(name, {benchmark.group or benchmark.name for benchmark in BENCHMARKS})
            )
            raise UserError(f"there is no benchmark {format_value(name)}: {hint}")
    return [benchmark for name in names for benchmark in known[name]] or list(BENCHMARKS)
