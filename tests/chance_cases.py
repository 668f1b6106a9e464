"""How every public thing that draws is asked to: a function of a seed that gives back all that was drawn.

Keys are package.name, package.Class for a constructor that takes chance, and package.Class.method. Classes that share a
case by a distribution of names (the constructors of image classifiers) are put in by loops at the end.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, Tensor, nn

from quoin import data, estimators, generate, info, inspect, layers, losses, metrics, models, optim, prob, tensor
from quoin.tasks.mlp import make_mlp
from quoin.tasks.mlp_options import MLPOptions
from quoin.tasks.supervised import Classification, Regression
from quoin.train import DeviceContext

__all__ = ["CASES", "HEAVY", "NO_CHANCE"]

Case = Callable[[int], Any]


def g(seed: int) -> Generator:
    return Generator().manual_seed(seed)


def fixed(*shape: int) -> Tensor:
    """The same numbers whatever the seed: what a case draws from, not what it draws."""
    return torch.randn(*shape, generator=g(99))


def table(rows: int = 30, classes: int = 3) -> data.Dataset:
    names = tuple("abc"[:classes])
    return data.Dataset("table", fixed(rows, 2), torch.arange(rows) % classes, ("x", "y"), names)


def prepared() -> data.PreparedData:
    rows = table()
    return data.prepare(rows, data.split(rows, 0))


def regression() -> data.PreparedData:
    rows = data.Dataset("table", fixed(30, 2), fixed(30), ("x", "y"), None)
    return data.prepare(rows, data.split(rows, 0))


def trained(kind: Any, parts: data.PreparedData, outputs: int, loss: Any, seed: int) -> Any:
    """The rows of an epoch, in the order in which a task with this seed takes them."""
    net = models.MLP([2, outputs], generator=g(0))
    task = kind(
        net,
        loss,
        torch.optim.SGD(net.parameters(), 0.1),
        parts,
        batch_size=4,
        epochs=1,
        seed=seed,
        device_context=DeviceContext(),
    )
    return list(task.batches)


IMAGES = fixed(12, 1, 8, 8)
HALVES = torch.tensor([0.5, 0.5])
CHAIN = prob.MarkovChain(HALVES, torch.tensor([[0.7, 0.3], [0.4, 0.6]]))
SPOKEN = prob.HiddenMarkovModel(CHAIN, prob.CategoricalEmission(torch.tensor([[0.9, 0.1], [0.2, 0.8]])))
NORMAL = prob.MultivariateNormal(torch.zeros(2), torch.eye(2))
SCHEDULE = prob.cosine_beta_schedule(10)
SCALE: dict[str, Any] = {"loc": torch.tensor(0.0), "scale": torch.tensor(1.0)}
MIXTURE = prob.GaussianMixtureDistribution(
    HALVES, prob.FullNormals(torch.tensor([[-1.0, 0.0], [1.0, 0.0]]), torch.eye(2).expand(2, 2, 2))
)
LATENT = prob.FiniteLatentModel(HALVES, prob.MultivariateNormal(torch.tensor([[-1.0], [1.0]]), torch.eye(1)))
CLASSES = models.GaussianDiscriminant(HALVES, torch.tensor([[-1.0], [1.0]]), torch.eye(1))
LINKS = layers.normalized_edges(data.load_karate_club().edges, data.load_karate_club().num_nodes)
STEM: OrderedDict[str, nn.Module] = OrderedDict(conv0=nn.Conv2d(1, 4, 3, padding=1))
LINEAR = models.LinearGaussian(2, scale=0.5)
PAIRS = data.Pairs(
    "pairs", tuple(f"word {number}" for number in range(40)), tuple("ab"[number % 2] for number in range(40))
)


class Still(nn.Module):
    """A network of (y, t) or (y, t, labels) that says a little of everything."""

    def forward(self, y: Tensor, t: Tensor, labels: Tensor | None = None) -> Tensor:
        return 0.1 * y


def denoiser() -> Any:
    return prob.make_denoiser(lambda y, t: 0.1 * y, SCHEDULE, prob.EpsilonPrediction())


def walk(method: Any) -> Case:
    return lambda s: method(denoiser(), SCHEDULE, fixed(3, 2), num_steps=5, generator=g(s))


def sampler(kind: str) -> Any:
    if kind == "FlowSampler":
        return generate.FlowSampler(Still(), (2,), num_steps=3, **SCALE)
    if kind == "DiffusionSampler":
        return generate.DiffusionSampler(Still(), SCHEDULE, prob.EpsilonPrediction(), (2,), num_steps=3, **SCALE)
    return generate.GuidedDiffusionSampler(
        Still(), SCHEDULE, prob.EpsilonPrediction(), (2,), num_classes=3, num_steps=3, **SCALE
    )


def vae() -> models.VAE:
    return models.mlp_vae(
        (1, 2, 2), 2, lambda net: models.GaussianDecoder(net, (1, 2, 2), 0.1), hidden_dims=(4,), generator=g(0)
    )


def rule(make: Any) -> Case:
    return lambda s: make(3, 4, g(s))


def filled(make: Callable[[], nn.Module], fill: Callable[[Any, Generator], Any]) -> Case:
    """What `fill` leaves in a module that was made the same before."""

    def case(seed: int) -> nn.Module:
        with torch.random.fork_rng([]):
            torch.manual_seed(0)
            module = make()
        fill(module, g(seed))
        return module

    return case


def blocks() -> list[Any]:
    return [layers.transformer_block(8, 2, hidden_dim=8, generator=g(0))]


def language_model() -> models.TransformerLanguageModel:
    return models.TransformerLanguageModel(5, blocks(), generator=g(0))


def written(seed: int) -> Any:
    model = models.RecurrentLanguageModel(nn.GRU, 5, 4, 4, generator=g(0)).eval()
    with torch.no_grad():
        return generate.sample_tokens(
            model, model.init_cache(1), torch.tensor([[1, 2]]), max_tokens=20, generator=g(seed)
        )


CASES: dict[str, Case] = {
    "data.BatchSampler": lambda s: list(data.BatchSampler(20, 4, seed=s)),
    "data.BPTTWindows": lambda s: list(data.BPTTWindows(torch.arange(200), 2, 5, seed=s)),
    "data.WalkDirections.sample": lambda s: data.make_walk_directions(4, generator=g(0)).sample(
        9, shortest=3, longest=6, generator=g(s)
    ),
    "data.LabeledGraph.labeled_nodes": lambda s: data.load_karate_club().labeled_nodes(5, s),
    "data.MarkovSource.sample": lambda s: data.make_markov_source(4, generator=g(0)).sample(30, generator=g(s)),
    "data.RandomWindows": lambda s: list(data.RandomWindows(torch.arange(200), 5, 4, seed=s)),
    "data.make_blobs": lambda s: data.make_blobs(9, [(0, 0), (1, 1)], noise=0.1, generator=g(s)),
    "data.make_circles": lambda s: data.make_circles(9, noise=0.1, generator=g(s)),
    "data.make_copy_sequences": lambda s: data.make_copy_sequences(9, 5, 4, generator=g(s)),
    "data.random_resized_crop": lambda s: data.random_resized_crop(IMAGES, g(s), 3),
    "data.RowNoise.draw": lambda s: data.RowNoise(s, num_rows=9).draw(
        (3,), lambda block, chance: block.normal_(generator=chance)
    ),
    "data.random_cutout": lambda s: data.random_cutout(IMAGES, g(s), 3),
    "data.make_walk_directions": lambda s: data.make_walk_directions(4, generator=g(s)).chain.transition,
    "data.random_horizontal_flip": lambda s: data.random_horizontal_flip(IMAGES, g(s)),
    "data.fold": lambda s: data.fold(table(), 3, 1, s),
    "data.make_hmm_source": lambda s: data.make_hmm_source(2, 3, generator=g(s)).chain.transition,
    "data.kfold": lambda s: data.kfold(20, 4, generator=g(s)),
    "data.load_labeled_corpus": lambda s: data.load_labeled_corpus(PAIRS, seed=s).train.pairs,
    "data.make_linear": lambda s: data.make_linear(9, [1.0, 2.0], 0.5, noise=0.1, generator=g(s)),
    "data.load": lambda s: data.load("moons", seed=s),
    "data.load_like": lambda s: data.load_like(
        data.prepare(data.load("moons"), data.split(data.load("moons"), 0)).data_info, "moons", seed=s
    ),
    "data.load_pair_corpus": lambda s: data.load_pair_corpus("dates", num_pairs=50, seed=s).train.pairs,
    "data.load_pairs": lambda s: data.load_pairs("dates", num_pairs=50, seed=s),
    "data.make_markov_source": lambda s: data.make_markov_source(4, generator=g(s)).transition,
    "data.make_moons": lambda s: data.make_moons(9, noise=0.1, generator=g(s)),
    "data.load_points": lambda s: data.load_points("moons", seed=s).values,
    "data.split_points": lambda s: (
        data.split_points(data.PointSet("points", fixed(30, 2).double(), ("x", "y")), s).train
    ),
    "data.with_test_set": lambda s: data.with_test_set(data.load("moons"), "moons", seed=s).features,
    "data.mixup": lambda s: data.mixup(IMAGES, torch.eye(12), g(s), 1.0),
    "data.make_glyphs": lambda s: data.make_glyphs(3, generator=g(s)),
    "data.make_shapes": lambda s: data.make_shapes(3, generator=g(s)),
    "data.epoch_permutation": lambda s: data.epoch_permutation(s, 1, 30),
    "data.split_pairs": lambda s: data.split_pairs(PAIRS, s),
    "data.make_waves": lambda s: data.make_waves(9, length=8, noise=0.1, generator=g(s)),
    "data.make_polynomial": lambda s: data.make_polynomial(9, [1.0, 2.0], noise=0.1, generator=g(s)),
    "data.make_segment_digits": lambda s: data.make_segment_digits(9, generator=g(s)),
    "data.random_shift": lambda s: data.random_shift(IMAGES, g(s), 2),
    "data.split": lambda s: data.split(table(), s),
    "data.make_symbol_corpus": lambda s: (
        data.make_symbol_corpus("symbols", data.make_markov_source(4, generator=g(0)), 300, generator=g(s)).train
    ),
    "data.make_tiny_images": lambda s: data.make_tiny_images(9, generator=g(s)),
    "estimators.RandomKernelFeatures": lambda s: (
        estimators.RandomKernelFeatures(5, random_state=s).fit(fixed(9, 2).numpy()).transform(fixed(9, 2).numpy())
    ),
    "estimators.LinearRegressor": lambda s: (
        estimators.LinearRegressor("sgd", max_iter=2, random_state=s).fit(fixed(40, 2).numpy(), fixed(40).numpy()).coef_
    ),
    "estimators.GaussianMixtureEM": lambda s: (
        estimators.GaussianMixtureEM(3, tol=9.0, random_state=s).fit(fixed(40, 2).numpy()).means_
    ),
    "estimators.GaussianMixtureEM.sample": lambda s: (
        estimators.GaussianMixtureEM(2, random_state=0).fit(fixed(40, 2).numpy()).sample(9, random_state=s)
    ),
    "generate.PixelSampler.sample": lambda s: generate.PixelSampler(
        models.PixelCNN((1, 3, 3), 4, channels=4, num_layers=1, generator=g(0))
    ).sample(4, generator=g(s)),
    "generate.TokenSampler": lambda s: generate.TokenSampler(generator=g(s))(torch.zeros(20, 5)),
    "generate.annealed_langevin": walk(generate.annealed_langevin),
    "generate.sample_ddim": lambda s: generate.sample_ddim(
        denoiser(), SCHEDULE, fixed(3, 2), num_steps=5, eta=1.0, generator=g(s)
    ),
    "generate.sample_ddpm": walk(generate.sample_ddpm),
    "generate.langevin": lambda s: generate.langevin(
        lambda x: -x, fixed(3, 2), step_size=0.1, num_steps=4, generator=g(s)
    ),
    "generate.sample_tokens": written,
    "generate.sample_initial_noise": lambda s: generate.sample_initial_noise((3, 2), generator=g(s)),
    "info.hmm_entropy_rate": lambda s: info.hmm_entropy_rate(SPOKEN, 20, 5, burn_in=3, generator=g(s)),
    "inspect.smoothgrad": lambda s: inspect.smoothgrad(
        models.MLP([2, 3, 2], generator=g(0)), fixed(4, 2), noise=0.3, generator=g(s)
    ),
    "layers.FeedForward": lambda s: layers.FeedForward(4, 5, generator=g(s)),
    "layers.GatedFeedForward": lambda s: layers.GatedFeedForward(4, 5, generator=g(s)),
    "layers.GatedPixelLayer": lambda s: layers.GatedPixelLayer(4, 3, generator=g(s)),
    "layers.GCNConv": lambda s: layers.GCNConv(4, 3, generator=g(s)),
    "layers.LearnedPositionalEmbedding": lambda s: layers.LearnedPositionalEmbedding(4, 3, generator=g(s)),
    "layers.MaskedConv2d": lambda s: layers.MaskedConv2d(2, 3, layers.mask_a(3), generator=g(s)),
    "layers.RelativePositionBias": lambda s: layers.RelativePositionBias(2, generator=g(s)),
    "layers.decoder_block": lambda s: layers.decoder_block(4, 2, generator=g(s)),
    "layers.dropout_mask": lambda s: layers.dropout_mask((5, 5), 0.5, generator=g(s)),
    "layers.torch_default": rule(layers.torch_default),
    "layers.kaiming_normal": rule(layers.kaiming_normal),
    "layers.init_weights": filled(
        lambda: nn.Linear(3, 4),
        lambda model, chance: layers.init_weights(model, layers.kaiming_normal, generator=chance),
    ),
    "layers.small_normal": rule(layers.small_normal),
    "models.llama_block": lambda s: models.llama_block(4, 2, 8, generator=g(s)),
    "layers.transformer_block": lambda s: layers.transformer_block(4, 2, generator=g(s)),
    "layers.xavier_normal": rule(layers.xavier_normal),
    "layers.AdditiveAttention": lambda s: layers.AdditiveAttention(3, 4, 5, generator=g(s)),
    "layers.AdditiveScore": lambda s: layers.AdditiveScore(3, 4, 5, generator=g(s)),
    "layers.Attention": lambda s: layers.Attention(3, 4, 5, 2, 2, generator=g(s)),
    "layers.BilinearScore": lambda s: layers.BilinearScore(3, 4, generator=g(s)),
    "layers.PackedProjections": lambda s: layers.PackedProjections(3, [4, 5], generator=g(s)),
    "layers.MultiHeadAttention": lambda s: layers.MultiHeadAttention(4, 2, generator=g(s)),
    "layers.SelfAttention": lambda s: layers.SelfAttention(3, 4, 5, generator=g(s)),
    "layers.SeparateProjections": lambda s: layers.SeparateProjections([3, 2, 2], [4, 5, 5], generator=g(s)),
    "layers.HyperbolicFeatures": lambda s: layers.HyperbolicFeatures(3, 4, generator=g(s)),
    "layers.RandomProjection": lambda s: layers.RandomProjection(4, 3, generator=g(s)),
    "layers.PerformerAttention": lambda s: layers.PerformerAttention(3, 4, generator=g(s)),
    "layers.PerformerFeatures": lambda s: layers.PerformerFeatures(3, 4, generator=g(s)),
    "layers.PositiveRandomFeatures": lambda s: layers.PositiveRandomFeatures(3, 4, gamma=0.5, generator=g(s)),
    "layers.RandomFourierFeatures": lambda s: layers.RandomFourierFeatures(3, 4, gamma=0.5, generator=g(s)),
    "layers.gaussian_random_matrix": lambda s: layers.gaussian_random_matrix(4, 3, generator=g(s)),
    "layers.antithetic_random_matrix": lambda s: layers.antithetic_random_matrix(4, 3, generator=g(s)),
    "layers.orthogonal_random_matrix": lambda s: layers.orthogonal_random_matrix(4, 3, generator=g(s)),
    "models.GAN.sample_latent": lambda s: models.mlp_gan(2, generator=g(0)).sample_latent(4, generator=g(s)),
    "models.GAN.sample": lambda s: models.mlp_gan(2, generator=g(0)).sample(4, generator=g(s)),
    "models.GCN": lambda s: models.GCN([3, 4, 2], generator=g(s)),
    "models.GPT": lambda s: models.GPT(5, 8, 2, 1, 4, generator=g(s)),
    "models.MLP": lambda s: models.MLP([3, 4, 2], generator=g(s)),
    "models.PPCA.sample": lambda s: models.PPCA(fixed(4, 2), fixed(4), 0.1).sample(3, generator=g(s)),
    "models.PPCA.sample_prior": lambda s: models.PPCA(fixed(4, 2), fixed(4), 0.1).sample_prior((3,), generator=g(s)),
    "models.VAE.sample": lambda s: vae().sample(3, generator=g(s)),
    "models.VAE.sample_prior": lambda s: vae().sample_prior((3,), generator=g(s)),
    "models.AttentionBlock": lambda s: models.AttentionBlock(4, 2, generator=g(s)),
    "models.AttentionClassifier": lambda s: models.AttentionClassifier(
        (1, 4, 4), 3, embed_dim=4, num_heads=2, generator=g(s)
    ),
    "models.BagOfWordsEncoder": lambda s: models.BagOfWordsEncoder(5, 4, generator=g(s)),
    "models.BahdanauDecoder": lambda s: models.BahdanauDecoder(nn.GRU, 5, 4, 4, 4, generator=g(s)),
    "models.BinomialDecoder.sample": lambda s: models.BinomialDecoder(nn.Identity(), (1, 2, 2)).sample(
        fixed(9, 4), generator=g(s)
    ),
    "models.CopyTransformer": lambda s: models.CopyTransformer(5, 4, num_heads=2, num_layers=1, generator=g(s)),
    "models.DeepLatentGaussian.sample": lambda s: models.DeepLatentGaussian(
        2, models.DiagonalNormalNet([2, 3], generator=g(0))
    ).sample(4, generator=g(s)),
    "models.DeepLatentGaussian.sample_prior": lambda s: models.DeepLatentGaussian(
        2, models.DiagonalNormalNet([2, 3], generator=g(0))
    ).sample_prior((4,), generator=g(s)),
    "models.DenseNet": lambda s: models.DenseNet(
        (1, 8, 8), 3, stem=STEM, channels=4, block_config=(2,), growth_rate=2, generator=g(s)
    ),
    "models.DiagonalNormalNet": lambda s: models.DiagonalNormalNet([2, 3], generator=g(s)),
    "models.GatedPixelCNN": lambda s: models.GatedPixelCNN((1, 4, 4), 4, channels=4, num_layers=2, generator=g(s)),
    "models.GaussianDecoder.sample": lambda s: models.GaussianDecoder(nn.Identity(), (1, 2, 2), 0.1).sample(
        fixed(9, 4), generator=g(s)
    ),
    "models.GaussianMixture.fit": lambda s: models.GaussianMixture.fit(
        fixed(30, 2), 3, num_init=1, max_iter=1, generator=g(s)
    ),
    "models.GaussianMixture.sample": lambda s: models.GaussianMixture(MIXTURE).sample(5, generator=g(s)),
    "models.GaussianDiscriminant.sample": lambda s: CLASSES.sample(9, generator=g(s)),
    "models.TransformerLanguageModel": lambda s: models.TransformerLanguageModel(5, blocks(), generator=g(s)),
    "models.LearnedGaussianDecoder.sample": lambda s: models.LearnedGaussianDecoder(
        nn.Identity(), (1, 2, 2), 0.1
    ).sample(fixed(9, 4), generator=g(s)),
    "models.LinearGaussian.sample": lambda s: LINEAR.sample(fixed(4, 2), generator=g(s)),
    "models.MixtureCandidates.sample": lambda s: models.MixtureCandidates([models.GaussianMixture(MIXTURE)]).sample(
        5, generator=g(s)
    ),
    "models.LinearVAE.sample": lambda s: models.LinearVAE(
        models.PPCA(fixed(4, 2), fixed(4), 0.1), nn.utils.skip_init(nn.Linear, 4, 2)
    ).sample(3, generator=g(s)),
    "models.NodeClassifier": lambda s: models.NodeClassifier(LINKS, [4], 2, generator=g(s)),
    "models.PatchEmbedding": lambda s: models.PatchEmbedding((1, 4, 4), 2, 5, generator=g(s)),
    "models.PixelCNN": lambda s: models.PixelCNN((1, 4, 4), 4, channels=4, num_layers=2, generator=g(s)),
    "models.RNNDecoder": lambda s: models.RNNDecoder(nn.GRU, 5, 4, 4, generator=g(s)),
    "models.CopyTransformerBlock": lambda s: models.CopyTransformerBlock(
        4, 2, inner_attention=layers.ExactAttention(), generator=g(s)
    ),
    "models.RecurrentEncoder": lambda s: models.RecurrentEncoder(nn.GRU, 5, 4, 4, generator=g(s)),
    "models.RecurrentLanguageModel": lambda s: models.RecurrentLanguageModel(nn.GRU, 5, 4, 4, generator=g(s)),
    "models.RecurrentTextEncoder": lambda s: models.RecurrentTextEncoder(nn.GRU, 5, 4, 4, generator=g(s)),
    "models.ConvSignalEncoder": lambda s: models.ConvSignalEncoder(2, 4, generator=g(s)),
    "models.RecurrentSignalEncoder": lambda s: models.RecurrentSignalEncoder(nn.GRU, (2, 9), 4, generator=g(s)),
    "models.SignalClassifier": lambda s: models.SignalClassifier(
        models.ConvSignalEncoder(2, 4, generator=g(0)), (2, 9), 3, generator=g(s)
    ),
    "models.SignalPatchEmbedding": lambda s: models.SignalPatchEmbedding((2, 9), 4, 5, generator=g(s)),
    "models.TransformerSignalEncoder": lambda s: models.TransformerSignalEncoder((2, 9), blocks(), generator=g(s)),
    "models.SequenceClassifier": lambda s: models.SequenceClassifier(
        models.BagOfWordsEncoder(5, 4, generator=g(0)), 3, generator=g(s)
    ),
    "models.GaussianKDE.sample": lambda s: models.GaussianKDE(fixed(5, 2), 0.1).sample(4, generator=g(s)),
    "models.TimeMLP": lambda s: models.TimeMLP(2, hidden_dim=4, num_layers=1, time_dim=4, generator=g(s)),
    "models.Transformer": lambda s: models.Transformer(
        5, 6, blocks(), [layers.decoder_block(8, 2, generator=g(0))], generator=g(s)
    ),
    "models.TransformerTextEncoder": lambda s: models.TransformerTextEncoder(5, blocks(), generator=g(s)),
    "models.TriangularNormalNet": lambda s: models.TriangularNormalNet([2, 3], generator=g(s)),
    "models.UNet": lambda s: models.UNet((1, 8, 8), channels=(8, 8), num_groups=2, head_dim=4, generator=g(s)),
    "models.ViT": lambda s: models.ViT(
        (1, 8, 8), 3, patch_size=4, embed_dim=8, num_heads=2, num_layers=1, generator=g(s)
    ),
    "models.cifar_resnet18": lambda s: models.cifar_resnet18(generator=g(s)),
    "models.conv_gan": lambda s: models.conv_gan((1, 8, 8), latent_dim=4, base_channels=8, generator=g(s)),
    "models.conv_vae": lambda s: models.conv_vae(
        (1, 8, 8), 2, lambda net: models.GaussianDecoder(net, (1, 8, 8), 0.1), channels=(4, 4), generator=g(s)
    ),
    "models.em_with_restarts": lambda s: (
        models.em_with_restarts(fixed(30, 2), 3, num_init=1, max_iter=1, generator=g(s)).output.components.means
    ),
    "models.kmeans_plus_plus": lambda s: models.kmeans_plus_plus(fixed(30, 2), 3, generator=g(s)),
    "models.lenet": lambda s: models.lenet(generator=g(s)),
    "models.mlp_gan": lambda s: models.mlp_gan(2, generator=g(s)),
    "models.mlp_vae": lambda s: models.mlp_vae(
        (1, 2, 2), 2, lambda net: models.GaussianDecoder(net, (1, 2, 2), 0.1), hidden_dims=(4,), generator=g(s)
    ),
    "models.relu_interpolant": lambda s: models.relu_interpolant(fixed(5, 2), fixed(5, 1), generator=g(s)),
    "models.init_image_weights": filled(lambda: nn.Linear(3, 4), models.init_image_weights),
    "models.init_language_weights": filled(language_model, models.init_language_weights),
    "models.init_mixture": lambda s: models.init_mixture(fixed(30, 2), 3, generator=g(s)).components.means,
    "losses.diffusion_vlb": lambda s: losses.diffusion_vlb(denoiser(), SCHEDULE, fixed(4, 2), generator=g(s)),
    "losses.interpolate_examples": lambda s: losses.interpolate_examples(fixed(4, 2), -fixed(4, 2), generator=g(s)),
    "losses.sampled_diffusion_vlb": lambda s: losses.sampled_diffusion_vlb(
        denoiser(), SCHEDULE, fixed(4, 2), num_times=3, generator=g(s)
    ),
    "metrics.permutation_test_paired": lambda s: metrics.permutation_test_paired(
        fixed(25), num_permutations=9999, generator=g(s)
    ),
    "metrics.permutation_test_unpaired": lambda s: metrics.permutation_test_unpaired(
        fixed(15), fixed(12), num_permutations=9999, generator=g(s)
    ),
    "metrics.monte_carlo_risk": lambda s: metrics.monte_carlo_risk(
        lambda x: x,
        lambda a, b: (a - b).square(),
        lambda n, chance: (torch.randn(n, generator=chance), torch.zeros(n)),
        9,
        generator=g(s),
    ),
    "optim.MinibatchGradient": lambda s: optim.MinibatchGradient(
        lambda w, rows: (w.sum() - rows.double()).square(), 30, batch_size=4, generator=g(s)
    )(torch.zeros(2, dtype=torch.float64)),
    "optim.is_convex": lambda s: optim.is_convex(
        lambda x: x.sin().sum(-1), fixed(9, 2).double(), generator=g(s), num_cases=20
    ),
    "optim.is_convex_set": lambda s: optim.is_convex_set(
        lambda x: bool(x.norm() > 1.5), 2 * fixed(40, 2).double(), generator=g(s), num_cases=20
    ),
    "prob.BinaryModel.sample": lambda s: prob.BinaryModel(lambda x: x[..., 0]).sample(fixed(20, 2), generator=g(s)),
    "prob.BrownianMotion.sample_paths": lambda s: prob.BrownianMotion().sample_paths(
        torch.tensor([0.0, 1.0, 2.0]), 3, generator=g(s)
    ),
    "prob.CategoricalEmission.sample": lambda s: SPOKEN.emission.sample(
        torch.zeros(20, dtype=torch.long), generator=g(s)
    ),
    "prob.CategoricalModel.sample": lambda s: prob.CategoricalModel(4).sample(20, generator=g(s)),
    "prob.DiagonalNormal.sample_noise": lambda s: prob.DiagonalNormal(fixed(3), fixed(3)).sample_noise(
        (4,), generator=g(s)
    ),
    "prob.DiagonalNormal.sample": lambda s: prob.DiagonalNormal(fixed(3), fixed(3)).sample((4,), generator=g(s)),
    "prob.ExponentialLatent.sample_prior": lambda s: prob.ExponentialLatent(torch.tensor(1.0)).sample_prior(
        (4,), generator=g(s)
    ),
    "prob.Exponential.sample_noise": lambda s: prob.Exponential(torch.tensor(2.0)).sample_noise((4,), generator=g(s)),
    "prob.Exponential.sample": lambda s: prob.Exponential(torch.tensor(2.0)).sample((4,), generator=g(s)),
    "prob.FiniteLatentModel.sample_prior": lambda s: LATENT.sample_prior((20,), generator=g(s)),
    "prob.GaussianEmission.sample": lambda s: prob.GaussianEmission(fixed(2, 1), torch.ones(2, 1, 1)).sample(
        torch.tensor([0, 1]), generator=g(s)
    ),
    "prob.GaussianTransition.sample": lambda s: prob.GaussianTransition(torch.eye(2)).sample(
        fixed(3, 2), generator=g(s)
    ),
    "prob.GaussianRandomWalk.sample_paths": lambda s: prob.GaussianRandomWalk(fixed(2), torch.eye(2)).sample_paths(
        5, 3, generator=g(s)
    ),
    "prob.HiddenMarkovModel.sample": lambda s: SPOKEN.sample(20, 3, generator=g(s)),
    "prob.InhomogeneousChain.sample_paths": lambda s: prob.InhomogeneousChain(
        HALVES, CHAIN.transition.expand(9, 2, 2)
    ).sample_paths(9, 3, generator=g(s)),
    "prob.KernelChain.sample_paths": lambda s: prob.KernelChain(
        NORMAL, prob.GaussianTransition(torch.eye(2))
    ).sample_paths(5, 3, generator=g(s)),
    "prob.KernelDensity.sample": lambda s: prob.KernelDensity(fixed(9, 2), tensor.GaussianKernel(), 0.5).sample(
        (4,), generator=g(s)
    ),
    "prob.MarkovChain.sample_paths": lambda s: CHAIN.sample_paths(20, 3, generator=g(s)),
    "prob.MulticlassModel.sample": lambda s: prob.MulticlassModel(lambda x: x).sample(
        torch.zeros(20, 4), generator=g(s)
    ),
    "prob.MultivariateNormal.sample": lambda s: NORMAL.sample((4,), generator=g(s)),
    "prob.NoiseSchedule.sample_timesteps": lambda s: SCHEDULE.sample_timesteps(20, generator=g(s)),
    "prob.GaussianMixtureDistribution.sample": lambda s: MIXTURE.sample((9,), generator=g(s)),
    "prob.GaussianMixtureDistribution.sample_prior": lambda s: MIXTURE.sample_prior((20,), generator=g(s)),
    "prob.RandomWalk.sample_paths": lambda s: prob.RandomWalk().sample_paths(20, 3, generator=g(s)),
    "prob.SequenceModel.sample": lambda s: prob.SequenceModel(
        lambda x, y: torch.zeros(*y.shape, 4), num_tokens=3, length=5
    ).sample(torch.zeros(9, 1), generator=g(s)),
    "prob.TriangularNormal.sample_noise": lambda s: prob.TriangularNormal(fixed(3), torch.eye(3)).sample_noise(
        (4,), generator=g(s)
    ),
    "prob.TriangularNormal.sample": lambda s: prob.TriangularNormal(fixed(3), torch.eye(3)).sample(
        (4,), generator=g(s)
    ),
    "prob.iid_sample": lambda s: prob.iid_sample(lambda u: u, 3, 2, generator=g(s)),
    "prob.importance_log_evidence": lambda s: prob.importance_log_evidence(
        models.PPCA(fixed(4, 2), fixed(4), 0.5),
        prob.DiagonalNormal(torch.zeros(3, 2), torch.zeros(3, 2)),
        fixed(3, 4),
        num_samples=5,
        generator=g(s),
    ),
    "prob.mc_log_evidence": lambda s: prob.mc_log_evidence(
        models.PPCA(fixed(4, 2), fixed(4), 0.5), fixed(3, 4), num_samples=5, generator=g(s)
    ),
    "prob.energy_test": lambda s: prob.energy_test(fixed(9, 2), fixed(9, 2) ** 2, num_permutations=99, generator=g(s)),
    # Rounded: the last bits of LAPACK's least squares go by where in memory a matrix happens to lie.
    "tensor.cp_decompose": lambda s: (
        tensor.cp_decompose(fixed(3, 3, 3).double(), 2, num_init=1, max_iter=2, generator=g(s))
        .factors[0]
        .round(decimals=6)
    ),
    "tensor.is_norm": lambda s: tensor.is_norm(lambda x: x.norm() if x.norm() < 5 else x.norm() / 0, generator=g(s)),
    "tensor.power_iteration": lambda s: tensor.power_iteration(
        fixed(4, 4).double() + 5 * torch.eye(4).double(), max_iter=2000, generator=g(s)
    ),
    "tasks.make_mlp": lambda s: make_mlp(2, 3, MLPOptions(hidden_dims=(4,)), seed=s),
    "tasks.Classification": lambda s: trained(Classification, prepared(), 3, losses.cross_entropy, s),
    "tasks.Regression": lambda s: trained(Regression, regression(), 1, losses.squared_loss, s),
}

for _kind in ("DiffusionSampler", "FlowSampler", "GuidedDiffusionSampler"):
    for _way in ("sample", "sample_path"):
        CASES[f"generate.{_kind}.{_way}"] = lambda s, kind=_kind, way=_way: getattr(sampler(kind), way)(
            4, generator=g(s)
        )
for _name in ("BoxcarKernel", "EpanechnikovKernel", "GaussianKernel", "TriangularKernel"):
    CASES[f"tensor.{_name}.sample"] = lambda s, name=_name: getattr(tensor, name)().sample(4, 2, generator=g(s))
for _name in ("alexnet", "densenet", "googlenet", "lenet", "nin", "resnet", "resnext", "vgg"):
    CASES[f"models.small_{_name}"] = lambda s, name=_name: getattr(models, f"small_{name}")(
        (1, 8, 8), 3, generator=g(s)
    )
# Tens of millions of weights each: for `make deep`.
_LARGE = ("alexnet", "densenet121", "googlenet", "nin", "resnet18", "resnet34", "resnet50", "resnet101", "resnext50")
_LARGE += ("vgg11", "vgg16", "vgg19")
for _name in _LARGE:
    CASES[f"models.{_name}"] = lambda s, name=_name: getattr(models, name)(3, generator=g(s))
HEAVY = {f"models.{name}" for name in (*_LARGE, "cifar_resnet18")}

NO_CHANCE: dict[str, str] = {  # has the name or the parameter of a thing that draws, and why it is none
    "notes.claims.Claim.run": "evidence, whose numbers may be the same for every seed",
    "notes.figures.sample_paths": "plots, from a seed of its own, the same each time",
    "notes.figures.samples_against_likelihood": "plots, from a seed of its own, the same each time",
    "notes.claims.check": "the claims' evidence, by processes of its own",
    "generate.sample_dpm_solver_2": "takes a generator as its kin do and draws nothing: a given start has one end",
    "generate.sample_euler": "takes a generator as its kin do and draws nothing: a given start has one end",
    "generate.sample_heun": "takes a generator as its kin do and draws nothing: a given start has one end",
    "models.GAN": "`generator` is the network that forges",
    "models.ResNet": "an argument of stem and blocks: see small_resnet and resnet18",
    "models.sample_in_batches": "asks the function that it is given",
    "runs.Run.generate": "a run on disc: see test_spine.py",
    "metrics.sample_quality": "measures samples that it is given",
    "tensor.cp_rank": "bounds, which are the same for every seed",
    "train.describe_environment": "writes the seed down",
}
