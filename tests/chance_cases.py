"""How every public thing that draws is asked to: a function of a seed that gives back all that was drawn.

Keys are package.name, package.Class for a constructor that takes chance, and package.Class.method. Classes that share a case by a law of
names (the constructors of image classifiers) are put in by loops at the end.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, Tensor, nn

from quoin import data, estimators, generate, info, inspect, layers, losses, metrics, models, optim, prob, tensor
from quoin.tasks.supervised import Classification, Regression
from quoin.train import Place

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


def prepared() -> data.Prepared:
    rows = table()
    return data.prepare(rows, data.split(rows, 0))


def regression() -> data.Prepared:
    rows = data.Dataset("table", fixed(30, 2), fixed(30), ("x", "y"), None)
    return data.prepare(rows, data.split(rows, 0))


def trained(kind: Any, parts: data.Prepared, outputs: int, loss: Any, seed: int) -> Any:
    """The rows of an epoch, in the order in which a task with this seed takes them."""
    net = models.MLP([2, outputs], generator=g(0))
    task = kind(net, loss, torch.optim.SGD(net.parameters(), 0.1), parts, batch_size=4, epochs=1, seed=seed, place=Place())
    return list(task.batches)


IMAGES = fixed(12, 1, 8, 8)
HALVES = torch.tensor([0.5, 0.5])
CHAIN = prob.MarkovChain(HALVES, torch.tensor([[0.7, 0.3], [0.4, 0.6]]))
SPOKEN = prob.HiddenMarkovModel(CHAIN, prob.CategoricalEmission(torch.tensor([[0.9, 0.1], [0.2, 0.8]])))
NORMAL = prob.MultivariateNormal(torch.zeros(2), torch.eye(2))
SCHEDULE = prob.cosine_schedule(10)
SCALE: dict[str, Any] = {"offset": torch.tensor(0.0), "unit": torch.tensor(1.0)}
MIXTURE = prob.NormalMixture(HALVES, prob.FullNormals(torch.tensor([[-1.0, 0.0], [1.0, 0.0]]), torch.eye(2).expand(2, 2, 2)))
LATENT = prob.FiniteLatentModel(HALVES, prob.MultivariateNormal(torch.tensor([[-1.0], [1.0]]), torch.eye(1)))
CLASSES = models.GenerativeClassifier(HALVES, torch.tensor([[-1.0], [1.0]]), torch.eye(1))
LINKS = layers.normalised_links(data.karate_club().edges, data.karate_club().num_nodes)
STEM: OrderedDict[str, nn.Module] = OrderedDict(conv0=nn.Conv2d(1, 4, 3, padding=1))
LINEAR = models.LinearGaussian(2, scale=0.5)
PAIRS = data.Pairs("pairs", tuple(f"word {number}" for number in range(40)), tuple("ab"[number % 2] for number in range(40)))


class Still(nn.Module):
    """A network of (y, t) or (y, t, labels) that says a little of everything."""

    def forward(self, y: Tensor, t: Tensor, labels: Tensor | None = None) -> Tensor:
        return 0.1 * y


def denoiser() -> Any:
    return prob.denoiser_of(lambda y, t: 0.1 * y, SCHEDULE, prob.PredictNoise())


def walk(method: Any) -> Case:
    return lambda s: method(denoiser(), SCHEDULE, fixed(3, 2), steps=5, generator=g(s))


def sampler(kind: str) -> Any:
    if kind == "FlowSampler":
        return generate.FlowSampler(Still(), (2,), steps=3, **SCALE)
    if kind == "DiffusionSampler":
        return generate.DiffusionSampler(Still(), SCHEDULE, prob.PredictNoise(), (2,), steps=3, **SCALE)
    return generate.GuidedDiffusionSampler(Still(), SCHEDULE, prob.PredictNoise(), (2,), num_classes=3, steps=3, **SCALE)


def vae() -> models.VAE:
    return models.mlp_vae((1, 2, 2), 2, lambda net: models.GaussianDecoder(net, (1, 2, 2), 0.1), hidden=(4,), generator=g(0))


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
    return [layers.transformer_block(8, 2, hidden=8, generator=g(0))]


def language_model() -> models.LanguageTransformer:
    return models.LanguageTransformer(5, blocks(), generator=g(0))


def written(seed: int) -> Any:
    model = models.RecurrentLanguageModel(nn.GRU, 5, 4, 4, generator=g(0)).eval()
    with torch.no_grad():
        return generate.sampled(model, model.start(1), torch.tensor([[1, 2]]), max_tokens=20, generator=g(seed))


CASES: dict[str, Case] = {
    "data.Batches": lambda s: list(data.Batches(20, 4, seed=s)),
    "data.CarriedLanes": lambda s: list(data.CarriedLanes(torch.arange(200), 2, 5, seed=s)),
    "data.Directions.draw": lambda s: data.directions(4, generator=g(0)).draw(9, shortest=3, longest=6, generator=g(s)),
    "data.LabelledGraph.labelled_nodes": lambda s: data.karate_club().labelled_nodes(5, s),
    "data.MarkovSource.sample": lambda s: data.markov_source(4, generator=g(0)).sample(30, generator=g(s)),
    "data.RandomWindows": lambda s: list(data.RandomWindows(torch.arange(200), 5, 4, seed=s)),
    "data.blobs": lambda s: data.blobs(9, [(0, 0), (1, 1)], noise=0.1, generator=g(s)),
    "data.circles": lambda s: data.circles(9, noise=0.1, generator=g(s)),
    "data.copy_sequences": lambda s: data.copy_sequences(9, 5, 4, generator=g(s)),
    "data.crop": lambda s: data.crop(IMAGES, g(s), 3),
    "data.cutout": lambda s: data.cutout(IMAGES, g(s), 3),
    "data.directions": lambda s: data.directions(4, generator=g(s)).chain.transition,
    "data.flip": lambda s: data.flip(IMAGES, g(s)),
    "data.fold": lambda s: data.fold(table(), 3, 1, s),
    "data.hidden_source": lambda s: data.hidden_source(2, 3, generator=g(s)).chain.transition,
    "data.kfold": lambda s: data.kfold(20, 4, generator=g(s)),
    "data.label_corpus": lambda s: data.label_corpus(PAIRS, seed=s).train.pairs,
    "data.linear": lambda s: data.linear(9, [1.0, 2.0], 0.5, noise=0.1, generator=g(s)),
    "data.load": lambda s: data.load("moons", seed=s),
    "data.load_like": lambda s: data.load_like(data.prepare(data.load("moons"), data.split(data.load("moons"), 0)).facts, "moons", seed=s),
    "data.load_pair_corpus": lambda s: data.load_pair_corpus("dates", num_pairs=50, seed=s).train.pairs,
    "data.load_pairs": lambda s: data.load_pairs("dates", num_pairs=50, seed=s),
    "data.markov_source": lambda s: data.markov_source(4, generator=g(s)).laws,
    "data.moons": lambda s: data.moons(9, noise=0.1, generator=g(s)),
    "data.order": lambda s: data.order(s, 1, 30),
    "data.part_pairs": lambda s: data.part_pairs(PAIRS, s),
    "data.polynomial": lambda s: data.polynomial(9, [1.0, 2.0], noise=0.1, generator=g(s)),
    "data.segment_digits": lambda s: data.segment_digits(9, generator=g(s)),
    "data.shift": lambda s: data.shift(IMAGES, g(s), 2),
    "data.split": lambda s: data.split(table(), s),
    "data.symbol_corpus": lambda s: data.symbol_corpus("symbols", data.markov_source(4, generator=g(0)), 300, generator=g(s)).train,
    "data.tiny_pictures": lambda s: data.tiny_pictures(9, generator=g(s)),
    "estimators.KernelFeatures": lambda s: (
        estimators.KernelFeatures(5, random_state=s).fit(fixed(9, 2).numpy()).transform(fixed(9, 2).numpy())
    ),
    "estimators.LinearRegressor": lambda s: (
        estimators.LinearRegressor("sgd", max_iter=2, random_state=s).fit(fixed(40, 2).numpy(), fixed(40).numpy()).coef_
    ),
    "estimators.MixtureDensity": lambda s: estimators.MixtureDensity(3, tol=9.0, random_state=s).fit(fixed(40, 2).numpy()).means_,
    "estimators.MixtureDensity.sample": lambda s: (
        estimators.MixtureDensity(2, random_state=0).fit(fixed(40, 2).numpy()).sample(9, random_state=s)
    ),
    "generate.PixelSampler.sample": lambda s: generate.PixelSampler(
        models.PixelCNN((1, 3, 3), 4, channels=4, num_layers=1, generator=g(0))
    ).sample(4, generator=g(s)),
    "generate.Sampling": lambda s: generate.Sampling(generator=g(s))(torch.zeros(20, 5)),
    "generate.annealed_langevin": walk(generate.annealed_langevin),
    "generate.ddim": lambda s: generate.ddim(denoiser(), SCHEDULE, fixed(3, 2), steps=5, eta=1.0, generator=g(s)),
    "generate.ddpm": walk(generate.ddpm),
    "generate.langevin": lambda s: generate.langevin(lambda x: -x, fixed(3, 2), step_size=0.1, num_steps=4, generator=g(s)),
    "generate.sampled": written,
    "generate.start_noise": lambda s: generate.start_noise((3, 2), generator=g(s)),
    "info.hidden_entropy_rate": lambda s: info.hidden_entropy_rate(SPOKEN, 20, 5, burn_in=3, generator=g(s)),
    "inspect.smooth_gradient": lambda s: inspect.smooth_gradient(
        models.MLP([2, 3, 2], generator=g(0)), fixed(4, 2), noise=0.3, generator=g(s)
    ),
    "layers.FeedForward": lambda s: layers.FeedForward(4, 5, generator=g(s)),
    "layers.GatedFeedForward": lambda s: layers.GatedFeedForward(4, 5, generator=g(s)),
    "layers.GatedPixelLayer": lambda s: layers.GatedPixelLayer(4, 3, generator=g(s)),
    "layers.GraphConv": lambda s: layers.GraphConv(4, 3, generator=g(s)),
    "layers.LearnedPositions": lambda s: layers.LearnedPositions(4, 3, generator=g(s)),
    "layers.MaskedConv2d": lambda s: layers.MaskedConv2d(2, 3, layers.mask_a(3), generator=g(s)),
    "layers.RelativeBias": lambda s: layers.RelativeBias(2, generator=g(s)),
    "layers.decoder_block": lambda s: layers.decoder_block(4, 2, generator=g(s)),
    "layers.dropout_mask": lambda s: layers.dropout_mask((5, 5), 0.5, generator=g(s)),
    "layers.framework_default": rule(layers.framework_default),
    "layers.he": rule(layers.he),
    "layers.initialise": filled(lambda: nn.Linear(3, 4), lambda model, chance: layers.initialise(model, layers.he, generator=chance)),
    "layers.small_normal": rule(layers.small_normal),
    "layers.transformer_block": lambda s: layers.transformer_block(4, 2, generator=g(s)),
    "layers.xavier": rule(layers.xavier),
    "layers.AdditiveAttention": lambda s: layers.AdditiveAttention(3, 4, 5, generator=g(s)),
    "layers.AdditiveScore": lambda s: layers.AdditiveScore(3, 4, 5, generator=g(s)),
    "layers.Attention": lambda s: layers.Attention(3, 4, 5, 2, 2, generator=g(s)),
    "layers.BilinearScore": lambda s: layers.BilinearScore(3, 4, generator=g(s)),
    "layers.JointProjections": lambda s: layers.JointProjections(3, [4, 5], generator=g(s)),
    "layers.MultiHeadAttention": lambda s: layers.MultiHeadAttention(4, 2, generator=g(s)),
    "layers.SelfAttention": lambda s: layers.SelfAttention(3, 4, 5, generator=g(s)),
    "layers.SeparateProjections": lambda s: layers.SeparateProjections([3, 2, 2], [4, 5, 5], generator=g(s)),
    "layers.CoshFeatures": lambda s: layers.CoshFeatures(3, 4, generator=g(s)),
    "layers.DrawnDirections": lambda s: layers.DrawnDirections(4, 3, generator=g(s)),
    "layers.PerformerAttention": lambda s: layers.PerformerAttention(3, 4, generator=g(s)),
    "layers.PerformerFeatures": lambda s: layers.PerformerFeatures(3, 4, generator=g(s)),
    "layers.PositiveRandomFeatures": lambda s: layers.PositiveRandomFeatures(3, 4, gamma=0.5, generator=g(s)),
    "layers.RandomFourierFeatures": lambda s: layers.RandomFourierFeatures(3, 4, gamma=0.5, generator=g(s)),
    "layers.gaussian_directions": lambda s: layers.gaussian_directions(4, 3, generator=g(s)),
    "layers.opposite_directions": lambda s: layers.opposite_directions(4, 3, generator=g(s)),
    "layers.orthogonal_directions": lambda s: layers.orthogonal_directions(4, 3, generator=g(s)),
    "models.GAN.noise": lambda s: models.mlp_gan(2, generator=g(0)).noise(4, generator=g(s)),
    "models.GAN.sample": lambda s: models.mlp_gan(2, generator=g(0)).sample(4, generator=g(s)),
    "models.GCN": lambda s: models.GCN([3, 4, 2], generator=g(s)),
    "models.GPT": lambda s: models.GPT(5, 8, 2, 1, 4, generator=g(s)),
    "models.MLP": lambda s: models.MLP([3, 4, 2], generator=g(s)),
    "models.PPCA.sample": lambda s: models.PPCA(fixed(4, 2), fixed(4), 0.1).sample(3, generator=g(s)),
    "models.PPCA.sample_prior": lambda s: models.PPCA(fixed(4, 2), fixed(4), 0.1).sample_prior((3,), generator=g(s)),
    "models.VAE.sample": lambda s: vae().sample(3, generator=g(s)),
    "models.VAE.sample_prior": lambda s: vae().sample_prior((3,), generator=g(s)),
    "models.AttentionBlock": lambda s: models.AttentionBlock(4, 2, generator=g(s)),
    "models.AttentionClassifier": lambda s: models.AttentionClassifier((1, 4, 4), 3, width=4, heads=2, generator=g(s)),
    "models.BagReader": lambda s: models.BagReader(5, 4, generator=g(s)),
    "models.BahdanauDecoder": lambda s: models.BahdanauDecoder(nn.GRU, 5, 4, 4, 4, generator=g(s)),
    "models.BernoulliDecoder.sample": lambda s: models.BernoulliDecoder(nn.Identity(), (1, 2, 2)).sample(fixed(9, 4), generator=g(s)),
    "models.CopyReader": lambda s: models.CopyReader(5, 4, heads=2, depth=1, generator=g(s)),
    "models.DeepLatentGaussian.sample": lambda s: models.DeepLatentGaussian(2, models.DiagonalNormalNet([2, 3], generator=g(0))).sample(
        4, generator=g(s)
    ),
    "models.DeepLatentGaussian.sample_prior": lambda s: models.DeepLatentGaussian(
        2, models.DiagonalNormalNet([2, 3], generator=g(0))
    ).sample_prior((4,), generator=g(s)),
    "models.DenseNet": lambda s: models.DenseNet((1, 8, 8), 3, stem=STEM, channels=4, depths=(2,), growth=2, generator=g(s)),
    "models.DiagonalNormalNet": lambda s: models.DiagonalNormalNet([2, 3], generator=g(s)),
    "models.DropoutMLP": lambda s: models.DropoutMLP([3, 4, 2], dropout=0.5, generator=g(s)),
    "models.GatedPixelCNN": lambda s: models.GatedPixelCNN((1, 4, 4), 4, channels=4, num_layers=2, generator=g(s)),
    "models.GaussianDecoder.sample": lambda s: models.GaussianDecoder(nn.Identity(), (1, 2, 2), 0.1).sample(fixed(9, 4), generator=g(s)),
    "models.GaussianMixture.fit": lambda s: models.GaussianMixture.fit(fixed(30, 2), 3, starts=1, num_steps=1, generator=g(s)),
    "models.GaussianMixture.sample": lambda s: models.GaussianMixture(MIXTURE).sample(5, generator=g(s)),
    "models.GenerativeClassifier.sample": lambda s: CLASSES.sample(9, generator=g(s)),
    "models.LanguageTransformer": lambda s: models.LanguageTransformer(5, blocks(), generator=g(s)),
    "models.LearnedGaussianDecoder.sample": lambda s: models.LearnedGaussianDecoder(nn.Identity(), (1, 2, 2), 0.1).sample(
        fixed(9, 4), generator=g(s)
    ),
    "models.LinearGaussian.sample": lambda s: LINEAR.sample(fixed(4, 2), generator=g(s)),
    "models.MixtureCandidates.sample": lambda s: models.MixtureCandidates([models.GaussianMixture(MIXTURE)]).sample(5, generator=g(s)),
    "models.NodeClassifier": lambda s: models.NodeClassifier(LINKS, [4], 2, generator=g(s)),
    "models.PatchEmbedding": lambda s: models.PatchEmbedding((1, 4, 4), 2, 5, generator=g(s)),
    "models.PixelCNN": lambda s: models.PixelCNN((1, 4, 4), 4, channels=4, num_layers=2, generator=g(s)),
    "models.PlainDecoder": lambda s: models.PlainDecoder(nn.GRU, 5, 4, 4, generator=g(s)),
    "models.ReaderBlock": lambda s: models.ReaderBlock(4, 2, core=layers.ExactAttention(), generator=g(s)),
    "models.RecurrentEncoder": lambda s: models.RecurrentEncoder(nn.GRU, 5, 4, 4, generator=g(s)),
    "models.RecurrentLanguageModel": lambda s: models.RecurrentLanguageModel(nn.GRU, 5, 4, 4, generator=g(s)),
    "models.RecurrentReader": lambda s: models.RecurrentReader(nn.GRU, 5, 4, 4, generator=g(s)),
    "models.SequenceClassifier": lambda s: models.SequenceClassifier(models.BagReader(5, 4, generator=g(0)), 3, generator=g(s)),
    "models.SmoothedSamples.sample": lambda s: models.SmoothedSamples(fixed(5, 2), 0.1).sample(4, generator=g(s)),
    "models.TimeMLP": lambda s: models.TimeMLP(2, hidden=4, depth=1, time_dim=4, generator=g(s)),
    "models.Transformer": lambda s: models.Transformer(5, 6, blocks(), [layers.decoder_block(8, 2, generator=g(0))], generator=g(s)),
    "models.TransformerReader": lambda s: models.TransformerReader(5, blocks(), generator=g(s)),
    "models.TriangularNormalNet": lambda s: models.TriangularNormalNet([2, 3], generator=g(s)),
    "models.UNet": lambda s: models.UNet((1, 8, 8), widths=(8, 8), groups=2, head_width=4, generator=g(s)),
    "models.ViT": lambda s: models.ViT((1, 8, 8), 3, side=4, width=8, heads=2, layers=1, generator=g(s)),
    "models.cifar_resnet18": lambda s: models.cifar_resnet18(generator=g(s)),
    "models.conv_gan": lambda s: models.conv_gan((1, 8, 8), latent_dim=4, width=8, generator=g(s)),
    "models.conv_vae": lambda s: models.conv_vae(
        (1, 8, 8), 2, lambda net: models.GaussianDecoder(net, (1, 8, 8), 0.1), channels=(4, 4), generator=g(s)
    ),
    "models.em_from_starts": lambda s: (
        models.em_from_starts(fixed(30, 2), 3, starts=1, num_steps=1, generator=g(s)).output.components.means
    ),
    "models.kmeans_plus_plus": lambda s: models.kmeans_plus_plus(fixed(30, 2), 3, generator=g(s)),
    "models.lenet": lambda s: models.lenet(generator=g(s)),
    "models.mlp_gan": lambda s: models.mlp_gan(2, generator=g(s)),
    "models.mlp_vae": lambda s: models.mlp_vae(
        (1, 2, 2), 2, lambda net: models.GaussianDecoder(net, (1, 2, 2), 0.1), hidden=(4,), generator=g(s)
    ),
    "models.relu_interpolant": lambda s: models.relu_interpolant(fixed(5, 2), fixed(5, 1), generator=g(s)),
    "models.start_image_weights": filled(lambda: nn.Linear(3, 4), models.start_image_weights),
    "models.start_language_weights": filled(language_model, models.start_language_weights),
    "models.start_mixture": lambda s: models.start_mixture(fixed(30, 2), 3, generator=g(s)).components.means,
    "losses.diffusion_bound": lambda s: losses.diffusion_bound(denoiser(), SCHEDULE, fixed(4, 2), generator=g(s)),
    "losses.mixed_examples": lambda s: losses.mixed_examples(fixed(4, 2), -fixed(4, 2), generator=g(s)),
    "losses.sampled_diffusion_bound": lambda s: losses.sampled_diffusion_bound(
        denoiser(), SCHEDULE, fixed(4, 2), num_times=3, generator=g(s)
    ),
    "metrics.sampled_risk": lambda s: metrics.sampled_risk(
        lambda x: x, lambda a, b: (a - b).square(), lambda n, chance: (torch.randn(n, generator=chance), torch.zeros(n)), 9, generator=g(s)
    ),
    "optim.MinibatchSlope": lambda s: optim.MinibatchSlope(
        lambda w, rows: (w.sum() - rows.double()).square(), 30, batch_size=4, generator=g(s)
    )(torch.zeros(2, dtype=torch.float64)),
    "optim.is_convex": lambda s: optim.is_convex(lambda x: x.sin().sum(-1), fixed(9, 2).double(), generator=g(s), cases=20),
    "optim.is_convex_set": lambda s: optim.is_convex_set(
        lambda x: bool(x.norm() > 1.5), 2 * fixed(40, 2).double(), generator=g(s), cases=20
    ),
    "prob.BinaryModel.sample": lambda s: prob.BinaryModel(lambda x: x[..., 0]).sample(fixed(20, 2), generator=g(s)),
    "prob.BrownianMotion.sample_paths": lambda s: prob.BrownianMotion().sample_paths(torch.tensor([0.0, 1.0, 2.0]), 3, generator=g(s)),
    "prob.CategoricalEmission.sample": lambda s: SPOKEN.emission.sample(torch.zeros(20, dtype=torch.long), generator=g(s)),
    "prob.CategoricalModel.sample": lambda s: prob.CategoricalModel(4).sample(20, generator=g(s)),
    "prob.DiagonalNormal.noise": lambda s: prob.DiagonalNormal(fixed(3), fixed(3)).noise((4,), generator=g(s)),
    "prob.DiagonalNormal.sample": lambda s: prob.DiagonalNormal(fixed(3), fixed(3)).sample((4,), generator=g(s)),
    "prob.ExponentialLatent.sample_prior": lambda s: prob.ExponentialLatent(torch.tensor(1.0)).sample_prior((4,), generator=g(s)),
    "prob.ExponentialLaw.noise": lambda s: prob.ExponentialLaw(torch.tensor(2.0)).noise((4,), generator=g(s)),
    "prob.ExponentialLaw.sample": lambda s: prob.ExponentialLaw(torch.tensor(2.0)).sample((4,), generator=g(s)),
    "prob.FiniteLatentModel.sample_prior": lambda s: LATENT.sample_prior((20,), generator=g(s)),
    "prob.GaussianEmission.sample": lambda s: prob.GaussianEmission(fixed(2, 1), torch.ones(2, 1, 1)).sample(
        torch.tensor([0, 1]), generator=g(s)
    ),
    "prob.GaussianKernel.sample": lambda s: prob.GaussianKernel(torch.eye(2)).sample(fixed(3, 2), generator=g(s)),
    "prob.GaussianRandomWalk.sample_paths": lambda s: prob.GaussianRandomWalk(fixed(2), torch.eye(2)).sample_paths(5, 3, generator=g(s)),
    "prob.HiddenMarkovModel.sample": lambda s: SPOKEN.sample(20, 3, generator=g(s)),
    "prob.InhomogeneousChain.sample_paths": lambda s: prob.InhomogeneousChain(HALVES, CHAIN.transition.expand(9, 2, 2)).sample_paths(
        9, 3, generator=g(s)
    ),
    "prob.KernelChain.sample_paths": lambda s: prob.KernelChain(NORMAL, prob.GaussianKernel(torch.eye(2))).sample_paths(
        5, 3, generator=g(s)
    ),
    "prob.KernelDensity.sample": lambda s: prob.KernelDensity(fixed(9, 2), tensor.GaussianWindow(), 0.5).sample((4,), generator=g(s)),
    "prob.MarkovChain.sample_paths": lambda s: CHAIN.sample_paths(20, 3, generator=g(s)),
    "prob.MulticlassModel.sample": lambda s: prob.MulticlassModel(lambda x: x).sample(torch.zeros(20, 4), generator=g(s)),
    "prob.MultivariateNormal.sample": lambda s: NORMAL.sample((4,), generator=g(s)),
    "prob.NoiseSchedule.draw_times": lambda s: SCHEDULE.draw_times(20, generator=g(s)),
    "prob.NormalMixture.sample": lambda s: MIXTURE.sample((9,), generator=g(s)),
    "prob.NormalMixture.sample_prior": lambda s: MIXTURE.sample_prior((20,), generator=g(s)),
    "prob.RandomWalk.sample_paths": lambda s: prob.RandomWalk().sample_paths(20, 3, generator=g(s)),
    "prob.SequenceModel.sample": lambda s: prob.SequenceModel(lambda x, y: torch.zeros(*y.shape, 4), num_tokens=3, length=5).sample(
        torch.zeros(9, 1), generator=g(s)
    ),
    "prob.TriangularNormal.noise": lambda s: prob.TriangularNormal(fixed(3), torch.eye(3)).noise((4,), generator=g(s)),
    "prob.TriangularNormal.sample": lambda s: prob.TriangularNormal(fixed(3), torch.eye(3)).sample((4,), generator=g(s)),
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
    "prob.same_law_test": lambda s: prob.same_law_test(fixed(9, 2), fixed(9, 2) ** 2, num_permutations=99, generator=g(s)),
    # Rounded: the last bits of LAPACK's least squares go by where in memory a matrix happens to lie.
    "tensor.cp_decompose": lambda s: (
        tensor.cp_decompose(fixed(3, 3, 3).double(), 2, starts=1, sweeps=2, seed=s).factors[0].round(decimals=6)
    ),
    "tensor.is_norm": lambda s: tensor.is_norm(lambda x: x.norm() if x.norm() < 5 else x.norm() / 0, seed=s),
    "tensor.power_iteration": lambda s: tensor.power_iteration(fixed(4, 4).double() + 5 * torch.eye(4).double(), steps=2000, seed=s),
    "tasks.Classification": lambda s: trained(Classification, prepared(), 3, losses.cross_entropy, s),
    "tasks.Regression": lambda s: trained(Regression, regression(), 1, losses.squared_loss, s),
}

for _kind in ("DiffusionSampler", "FlowSampler", "GuidedDiffusionSampler"):
    for _way in ("sample", "sample_path"):
        CASES[f"generate.{_kind}.{_way}"] = lambda s, kind=_kind, way=_way: getattr(sampler(kind), way)(4, generator=g(s))
for _name in ("BoxcarWindow", "EpanechnikovWindow", "GaussianWindow", "TriangularWindow"):
    CASES[f"tensor.{_name}.sample"] = lambda s, name=_name: getattr(tensor, name)().sample(4, 2, generator=g(s))
for _name in ("alexnet", "densenet", "googlenet", "lenet", "nin", "resnet", "resnext", "vgg"):
    CASES[f"models.small_{_name}"] = lambda s, name=_name: getattr(models, f"small_{name}")((1, 8, 8), 3, generator=g(s))
# Tens of millions of weights each: for `make deep`.
_LARGE = ("alexnet", "densenet121", "googlenet", "nin", "resnet18", "resnet34", "resnet50", "resnet101", "resnext50")
_LARGE += ("vgg11", "vgg16", "vgg19")
for _name in _LARGE:
    CASES[f"models.{_name}"] = lambda s, name=_name: getattr(models, name)(3, generator=g(s))
HEAVY = {f"models.{name}" for name in (*_LARGE, "cifar_resnet18")}

NO_CHANCE: dict[str, str] = {  # has the name or the parameter of a thing that draws, and why it is none
    "autodiff.draw_graph": "a picture",
    "notes.claims.Claim.run": "evidence, whose numbers may be the same for every seed",
    "notes.claims.check": "the claims' evidence, by processes of its own",
    "notes.figures.Figure.draw": "a picture",
    "notes.figures.draw_all": "pictures",
    "inspect.StabilityReport.drawing": "a picture",
    "generate.dpm_solver_2": "takes a generator as its kin do and draws nothing: a given start has one end",
    "generate.flow_euler": "takes a generator as its kin do and draws nothing: a given start has one end",
    "generate.flow_heun": "takes a generator as its kin do and draws nothing: a given start has one end",
    "models.GAN": "`generator` is the network that forges",
    "models.ResNet": "an argument of stem and blocks: see small_resnet and resnet18",
    "models.draw_in_pieces": "asks the function that it is given",
    "runs.Run.generate": "a run on disc: see test_spine.py",
    "metrics.sample_quality": "measures samples that it is given",
    "tensor.cp_rank": "bounds, which are the same for every seed",
    "train.describe_environment": "writes the seed down",
}
for _name in ("attention_maps", "feature_maps", "gradients_through_time", "kernels", "patches"):
    NO_CHANCE[f"inspect.draw_{_name}"] = "a picture"
