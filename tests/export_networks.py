"""Every architecture of `quoin.models` in a small size, for torch.export: the table, and what is not in it and why."""

from collections import OrderedDict

import torch
from torch import Tensor, nn
from torch.nn import GRU, LSTM, RNN

from export_cases import Case
from quoin import models as q
from quoin.layers import (
    BasicBlock,
    EdgeList,
    ExactAttention,
    LinearAttention,
    NadarayaWatson,
    RotaryEmbedding,
    SinusoidalPositionalEncoding,
    decoder_block,
    normalized_edges,
    transformer_block,
)
from quoin.prob import FullNormals, GaussianMixtureDistribution
from quoin.tensor import GaussianKernel

VOCAB = 13
GREY, COLOUR = (1, 8, 8), (3, 8, 8)
SIGNAL = (2, 32)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def noise(*shape: int) -> Tensor:
    return torch.rand(shape, generator=generator(sum(shape)))


def rows(features: int):
    return lambda batch, seq: (noise(batch, features) - 0.5,)


def images(shape: tuple[int, int, int]):
    return lambda batch, seq: (noise(batch, *shape),)


def vectors(dim: int):
    return lambda batch, seq: (noise(batch, seq, dim) - 0.5,)


def tokens(batch: int, seq: int) -> tuple[Tensor]:
    return (torch.randint(VOCAB, (batch, seq), generator=generator(batch + seq)),)


def lengths(batch: int, seq: int) -> Tensor:
    return torch.arange(batch) % seq + 1


def tokens_and_lengths(batch: int, seq: int) -> tuple[Tensor, Tensor]:
    return *tokens(batch, seq), lengths(batch, seq)


def signals(batch: int, seq: int) -> tuple[Tensor]:
    return (noise(batch, *SIGNAL) - 0.5,)


def times(batch: int) -> Tensor:
    return torch.arange(batch) * 7 + 1


def classes(batch: int) -> Tensor:
    return torch.arange(batch) % 4


# networks of images


def image_network(make, shape=COLOUR, **more) -> Case:
    return Case(lambda: make(shape, 4), images(shape), **more)


def published(make, side: int) -> Case:
    return Case(lambda: make(4, image_shape=(3, side, side)), images((3, side, side)), deep=True)


def resnet() -> nn.Module:
    def block(in_channels: int, out_channels: int, stride: int) -> nn.Module:
        return BasicBlock(in_channels, out_channels, stride=stride)

    stem = nn.Conv2d(3, 4, 3, padding=1, bias=False)
    return q.ResNet(COLOUR, 4, stem=stem, pool=nn.Identity(), block=block, num_blocks=(1, 1), out_channels=(4, 8))


def densenet() -> nn.Module:
    stem = OrderedDict[str, nn.Module](conv0=nn.Conv2d(3, 4, 3, padding=1, bias=False))
    return q.DenseNet(COLOUR, 4, stem=stem, channels=4, block_config=(2, 2), growth_rate=2)


def features() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten())


def unet(**options) -> nn.Module:
    return q.UNet(COLOUR, channels=(8, 16), num_groups=4, head_dim=8, generator=generator(), **options)


def vit(**options) -> nn.Module:
    return q.ViT(COLOUR, 4, patch_size=4, embed_dim=8, num_heads=2, num_layers=2, **options)


def pixels(make, **options) -> nn.Module:
    return make((1, 6, 6), 4, channels=4, num_layers=2, first_kernel_size=3, generator=generator(), **options)


def binomial(net: nn.Module) -> q.VAEDecoder:
    return q.BinomialDecoder(net, GREY)


def grey_levels(batch: int, seq: int) -> tuple[Tensor]:
    return ((noise(batch, 1, 6, 6) * 3).round() / 3,)


IMAGES = {
    "AttentionBlock": Case(lambda: q.AttentionBlock(8, 2), vectors(8)),
    "AttentionClassifier": Case(
        lambda: q.AttentionClassifier(COLOUR, 4, embed_dim=8, num_heads=2, num_layers=1), images(COLOUR)
    ),
    "DenseLayer": Case(lambda: q.DenseLayer(4, 2), images((4, 5, 7))),
    "DenseNet": Case(densenet, images(COLOUR), deep=True),
    "ImageClassifier": Case(lambda: q.ImageClassifier(features(), nn.Linear(144, 4), COLOUR), images(COLOUR)),
    "Inception": Case(lambda: q.Inception(4, 2, (2, 3), (2, 4), 5), images((4, 5, 7))),
    "PatchEmbedding": Case(lambda: q.PatchEmbedding(COLOUR, 4, 8), images(COLOUR)),
    "ResNet": Case(resnet, images(COLOUR)),
    "ViT": Case(vit, images(COLOUR)),
    "ViT/class token": Case(lambda: vit(class_token=True), images(COLOUR), deep=True),
    "lenet": Case(lambda: q.lenet((1, 28, 28), 4), images((1, 28, 28))),
    "nin_block": Case(lambda: q.nin_block(3, 4, 3, padding=1), images(COLOUR)),
    "vgg_block": Case(lambda: q.vgg_block(2, 3, 4), images(COLOUR)),
    "small_alexnet": image_network(q.small_alexnet),
    "small_densenet": image_network(q.small_densenet, deep=True),
    "small_googlenet": image_network(q.small_googlenet),
    "small_lenet": image_network(q.small_lenet, GREY),
    "small_nin": image_network(q.small_nin),
    "small_resnet": image_network(q.small_resnet),
    "small_resnext": image_network(q.small_resnext, deep=True),
    "small_vgg": image_network(q.small_vgg),
    "cifar_resnet18": Case(lambda: q.cifar_resnet18(4), images((3, 32, 32)), deep=True),
    "alexnet": published(q.alexnet, 64),
    "densenet121": published(q.densenet121, 32),
    "googlenet": published(q.googlenet, 32),
    "nin": published(q.nin, 67),
    "resnet18": published(q.resnet18, 32),
    "resnet34": published(q.resnet34, 32),
    "resnet50": published(q.resnet50, 32),
    "resnet101": published(q.resnet101, 32),
    "resnext50": published(q.resnext50, 32),
    "vgg11": published(q.vgg11, 32),
    "vgg16": published(q.vgg16, 32),
    "vgg19": published(q.vgg19, 32),
    "UNet": Case(unet, lambda batch, seq: (noise(batch, *COLOUR), times(batch))),
    "UNet/classes": Case(
        lambda: unet(num_classes=4), lambda batch, seq: (noise(batch, *COLOUR), times(batch), classes(batch)), deep=True
    ),
    "UNetBlock": Case(
        lambda: q.UNetBlock(4, 8, num_groups=2), lambda batch, seq: (noise(batch, 4, 6, 6), noise(batch, 8))
    ),
    "PixelCNN": Case(lambda: pixels(q.PixelCNN), grey_levels),
    "GatedPixelCNN": Case(lambda: pixels(q.GatedPixelCNN), grey_levels),
    "GatedPixelCNN/classes": Case(
        lambda: pixels(q.GatedPixelCNN, num_classes=4),
        lambda batch, seq: (*grey_levels(batch, seq), classes(batch)),
        deep=True,
    ),
}


# generative models of latents


def of_normal(model: nn.Module, *inputs: Tensor) -> tuple[Tensor, Tensor]:
    found = model(*inputs)
    return found.mean, found.covariance


def encode(model: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    found = model(x)
    return found.mean, found.log_std


def discriminate(model: nn.Module, x: Tensor) -> Tensor:
    return model.discriminator(x)


def ppca() -> q.PPCA:
    return q.PPCA(noise(5, 2), noise(5), 0.3)


def linear_vae() -> nn.Module:
    return q.LinearVAE(ppca(), nn.Linear(5, 2))


def linear_posterior(model: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    found = model.posterior(model.normalize(x))
    return found.mean, found.scale_tril


def mixture() -> q.GaussianMixture:
    covariances = torch.eye(2).expand(3, 2, 2) * torch.tensor([0.5, 1.0, 2.0])[:, None, None]
    components = FullNormals(noise(3, 2), covariances.clone())
    return q.GaussianMixture(GaussianMixtureDistribution(torch.tensor([0.2, 0.3, 0.5]), components))


def log_prob(model: nn.Module, x: Tensor) -> Tensor:
    return model.log_prob(x)


LATENTS = {
    "GAN": Case(lambda: q.mlp_gan(5, latent_dim=3, hidden_dims=(8,), generator=generator()), rows(3)),
    "mlp_gan": Case(lambda: q.mlp_gan(5, latent_dim=3, hidden_dims=(8,)), rows(5), discriminate),
    "conv_gan": Case(lambda: q.conv_gan(GREY, latent_dim=3, base_channels=8), rows(3)),
    "conv_gan/discriminator": Case(
        lambda: q.conv_gan(GREY, latent_dim=3, base_channels=8), images(GREY), discriminate, deep=True
    ),
    "ImageDiscriminator": Case(lambda: q.ImageDiscriminator(GREY, base_channels=4), images(GREY)),
    "VAE": Case(lambda: q.mlp_vae(GREY, 2, binomial, hidden_dims=(8,), generator=generator()), images(GREY)),
    "mlp_vae": Case(lambda: q.mlp_vae(GREY, 2, binomial, hidden_dims=(8,)), images(GREY)),
    "conv_vae": Case(lambda: q.conv_vae(GREY, 2, binomial, channels=(4, 8)), images(GREY)),
    "VAEEncoder": Case(lambda: q.VAEEncoder(nn.Sequential(nn.Flatten(), nn.Linear(64, 4))), images(GREY), encode),
    "BinomialDecoder": Case(lambda: q.BinomialDecoder(nn.Linear(2, 64), GREY), rows(2)),
    "GaussianDecoder": Case(lambda: q.GaussianDecoder(nn.Linear(2, 64), GREY, 0.5), rows(2)),
    "LearnedGaussianDecoder": Case(lambda: q.LearnedGaussianDecoder(nn.Linear(2, 64), GREY, 0.5), rows(2)),
    "LearnedGaussianDecoder/samples": Case(
        lambda: q.LearnedGaussianDecoder(nn.Linear(2, 64), GREY, 0.5), lambda batch, seq: (noise(7, batch, 2),)
    ),
    "DiagonalNormalNet": Case(lambda: q.DiagonalNormalNet([2, 8, 4], generator=generator()), rows(2), of_normal),
    "TriangularNormalNet": Case(lambda: q.TriangularNormalNet([2, 8, 4], generator=generator()), rows(2), of_normal),
    "DeepLatentGaussian": Case(
        lambda: q.DeepLatentGaussian(2, q.DiagonalNormalNet([2, 8, 4], generator=generator())), rows(2), of_normal
    ),
    "PPCA": Case(ppca, rows(2)),
    "LinearVAE": Case(linear_vae, rows(5), linear_posterior),
    "GaussianMixture": Case(mixture, rows(2), log_prob),
    "GaussianKDE": Case(lambda: q.GaussianKDE(noise(6, 2), 0.5), rows(2), log_prob),
}


# models of rows and nodes


def nadaraya_watson() -> nn.Module:
    model = q.NadarayaWatsonRegression({"gaussian": NadarayaWatson(GaussianKernel(), 0.5)}, 9, 2)
    model.set_rows(noise(6, 2).double(), noise(6).double())
    return model


def fourier() -> nn.Module:
    model = q.FourierRegression(2, 9, 0.5)
    model.fit(noise(20, 2), noise(20), 0.1, projection=noise(6, 2), phases=noise(6))
    return model


def discriminant() -> nn.Module:
    return q.GaussianDiscriminant(torch.tensor([0.25, 0.75]), noise(2, 3), torch.eye(3))


def tied() -> nn.Module:
    model = q.TiedMLP(8, 3, repeats=2)
    model(torch.zeros(1, 5))  # its first matrix takes its shape from a batch
    return model


def ring() -> EdgeList:
    sources = torch.arange(6)
    return normalized_edges(torch.stack([sources, (sources + 1) % 6]), 6)


def gcn(model: nn.Module, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
    return model(x, EdgeList(edge_index, edge_weight, 6))


ROWS = {
    "MLP": Case(lambda: q.MLP([5, 8, 3], norm=nn.BatchNorm1d, dropout=0.2, generator=generator()), rows(5)),
    "MLP/images": Case(lambda: q.MLP([64, 8, 3], generator=generator()), images(GREY)),
    "TiedMLP": Case(tied, rows(5)),
    "TimeMLP": Case(
        lambda: q.TimeMLP(2, hidden_dim=8, time_dim=4), lambda batch, seq: (noise(batch, 2), noise(batch) * 9)
    ),
    "LinearRegression": Case(lambda: q.LinearRegression(5), rows(5)),
    "LinearGaussian": Case(lambda: q.LinearGaussian(5, scale=0.5), rows(5)),
    "LinearScore": Case(lambda: q.LinearScore(5), rows(5)),
    "SoftmaxRegression": Case(lambda: q.SoftmaxRegression(5, 3), rows(5)),
    "SoftmaxRegression/images": Case(lambda: q.SoftmaxRegression(64, 3), images(GREY)),
    "PolynomialRegression": Case(lambda: q.PolynomialRegression(3, 2), rows(2)),
    "FourierRegression": Case(fourier, rows(2)),
    "NadarayaWatsonRegression": Case(nadaraya_watson, rows(2)),
    "GaussianDiscriminant": Case(discriminant, rows(3)),
    "relu_interpolant": Case(
        lambda: q.relu_interpolant(noise(4, 2).double(), noise(4, 1).double(), generator=generator()),
        lambda batch, seq: (noise(batch, 2).double(),),
        keeps_weights=True,
    ),
    "GCN": Case(
        lambda: q.GCN([4, 8, 2], generator=generator()),
        lambda batch, seq: (noise(batch, 6, 4), ring().edge_index, ring().edge_weight),
        gcn,
    ),
    "GCN/any edges": Case(
        lambda: q.GCN([4, 8, 2], generator=generator()),
        lambda batch, seq: (noise(batch, 6, 4), torch.arange(2 * seq).reshape(2, seq) % 6, noise(seq)),
        gcn,
    ),
    "NodeClassifier": Case(
        lambda: q.NodeClassifier(ring(), [8], 3, generator=generator()),
        lambda batch, seq: (torch.arange(batch)[:, None].float(),),
    ),
}


# models of sequences


def block(**options) -> nn.Module:
    return transformer_block(8, 2, generator=generator(), **options)


def language_transformer(**options) -> nn.Module:
    return q.TransformerLanguageModel(
        VOCAB, [block(rotary=RotaryEmbedding(4)) for _ in range(2)], generator=generator(), **options
    )


def gpt(**options) -> nn.Module:
    return q.GPT(VOCAB, 8, 2, 2, 32, generator=generator(), **options)


GPT2 = {"vocab_size": VOCAB, "n_embd": 8, "n_head": 2, "n_layer": 2, "n_positions": 32, "n_ctx": 32}
NEOX = {
    "vocab_size": VOCAB,
    "hidden_size": 8,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "intermediate_size": 12,
    "use_parallel_residual": False,
    "rotary_pct": 1.0,
}
LLAMA = {
    "vocab_size": VOCAB,
    "hidden_size": 8,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 32,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
}


def transformer() -> nn.Module:
    return q.Transformer(VOCAB, VOCAB, [block()], [decoder_block(8, 2, generator=generator())], generator=generator())


def source_and_target(batch: int, seq: int) -> tuple[Tensor, Tensor]:
    return *tokens(batch, 6), *tokens(batch, seq)


def with_lengths(model: nn.Module, source: Tensor, target: Tensor, source_lengths: Tensor) -> Tensor:
    return model(source, target, source_lengths=source_lengths)


def causal(model: nn.Module, x: Tensor) -> Tensor:
    return model(x, causal=True)


def of_lengths(model: nn.Module, x: Tensor, lengths: Tensor) -> Tensor:
    return model(x, lengths=lengths)


def step(model: nn.Module, new: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
    """One token and the state after it, of a recurrent network."""
    logits, after, *_ = model.decode_step(q.RecurrentState(state), new)
    return logits, *after.tensors


def step_inputs(tensors: int):
    return lambda batch, seq: (*tokens(batch, 1), *(noise(1, batch, 8) for _ in range(tensors)))


def recurrent_encoder(cell) -> nn.Module:
    return q.RecurrentEncoder(cell, VOCAB, 6, 8, num_layers=2, generator=generator())


def bahdanau(cell=GRU) -> nn.Module:
    return q.BahdanauDecoder(cell, VOCAB, 6, 8, 16, num_suppressed=2, num_layers=2, generator=generator())


def seq2seq(attends: bool, cell=GRU) -> nn.Module:
    plain = q.RNNDecoder(cell, VOCAB, 6, 8, num_layers=2, generator=generator())
    return q.Seq2Seq(recurrent_encoder(cell), bahdanau(cell) if attends else plain)


def encoded(model: nn.Module, source: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, ...]:
    found = model(source, lengths)
    return found.memory, *found.state.tensors


def attending(model: nn.Module, new: Tensor, memory: Tensor, lengths: Tensor, state: Tensor) -> tuple[Tensor, ...]:
    source = q.RecurrentEncoderOutput(memory, lengths, q.RecurrentState((state,)))
    logits, after, weights = model.decode_step(model.init_cache(source), new)
    return logits, weights, *after.recurrent.tensors


def attending_inputs(batch: int, seq: int) -> tuple[Tensor, ...]:
    return *tokens(batch, seq), noise(batch, 6, 16), lengths(batch, 6), noise(2, batch, 8)


def markov(order: int) -> nn.Module:
    tables = [noise(*[VOCAB] * (read + 1)) + 0.1 for read in range(order + 1)]
    return q.MarkovModel([table / table.sum(dim=-1, keepdim=True) for table in tables])


def counts() -> q.NgramCounts:
    return q.ngram_counts(torch.randint(VOCAB, (200,), generator=generator()), VOCAB, 3)


SEQUENCES = {
    "GPT": Case(gpt, tokens, max_seq=32),
    "GPT/linear attention": Case(lambda: gpt(make_attention=LinearAttention), tokens, max_seq=32, deep=True),
    "TransformerLanguageModel": Case(language_transformer, tokens),
    "TransformerLanguageModel/sinusoidal": Case(
        lambda: q.TransformerLanguageModel(VOCAB, [block()], position_embedding=SinusoidalPositionalEncoding(8)),
        tokens,
        deep=True,
    ),
    "gpt2_from_config": Case(lambda: q.gpt2_from_config(GPT2), tokens, max_seq=32),
    "gpt_neox_from_config": Case(lambda: q.gpt_neox_from_config(NEOX), tokens, max_seq=32),
    "llama_from_config": Case(lambda: q.llama_from_config(LLAMA), tokens, max_seq=32),
    "llama_block": Case(lambda: q.llama_block(8, 2, 12, num_kv_heads=1), vectors(8), causal, deep=True),
    "CopyTransformer": Case(lambda: q.CopyTransformer(VOCAB, 8, num_heads=2, num_layers=1), tokens),
    "CopyTransformerBlock": Case(
        lambda: q.CopyTransformerBlock(8, 2, inner_attention=ExactAttention(), generator=generator()), vectors(8)
    ),
    "TransformerEncoder": Case(lambda: q.TransformerEncoder([block()]), vectors(8)),
    "TransformerEncoder/lengths": Case(
        lambda: q.TransformerEncoder([block()]),
        lambda batch, seq: (*vectors(8)(batch, seq), lengths(batch, seq)),
        of_lengths,
        deep=True,
    ),
    "TransformerDecoder": Case(
        lambda: q.TransformerDecoder([decoder_block(8, 2, generator=generator())]),
        lambda batch, seq: (*vectors(8)(batch, seq), noise(batch, 6, 8)),
    ),
    "Transformer": Case(transformer, source_and_target),
    "Transformer/lengths": Case(
        transformer, lambda batch, seq: (*source_and_target(batch, seq), lengths(batch, 6)), with_lengths, deep=True
    ),
    "Transformer/any source": Case(transformer, lambda batch, seq: (*tokens(batch, seq), *tokens(batch, 6)), deep=True),
    "BagOfWordsEncoder": Case(lambda: q.BagOfWordsEncoder(VOCAB, 8, generator=generator()), tokens),
    "SequenceClassifier": Case(
        lambda: q.SequenceClassifier(q.BagOfWordsEncoder(VOCAB, 8), 3, generator=generator()), tokens_and_lengths
    ),
    "SequenceClassifier/Transformer": Case(
        lambda: q.SequenceClassifier(q.TransformerTextEncoder(VOCAB, [block()]), 3), tokens_and_lengths, deep=True
    ),
    "SequenceClassifier/LSTM": Case(
        lambda: q.SequenceClassifier(q.RecurrentTextEncoder(LSTM, VOCAB, 6, 8), 3), tokens_and_lengths, deep=True
    ),
    "TransformerTextEncoder": Case(
        lambda: q.TransformerTextEncoder(VOCAB, [block()], position_embedding=SinusoidalPositionalEncoding(8)), tokens
    ),
    "RecurrentTextEncoder": Case(lambda: q.RecurrentTextEncoder(GRU, VOCAB, 6, 8), tokens),
    "RecurrentTextEncoder/lengths": Case(lambda: q.RecurrentTextEncoder(GRU, VOCAB, 6, 8), tokens_and_lengths),
    "RecurrentLanguageModel/RNN": Case(
        lambda: q.RecurrentLanguageModel(RNN, VOCAB, 6, 8, num_layers=2), tokens, deep=True
    ),
    "RecurrentLanguageModel/GRU": Case(lambda: q.RecurrentLanguageModel(GRU, VOCAB, 6, 8), tokens, deep=True),
    "RecurrentLanguageModel/LSTM": Case(lambda: q.RecurrentLanguageModel(LSTM, VOCAB, 6, 8), tokens),
    "RecurrentLanguageModel/step": Case(lambda: q.RecurrentLanguageModel(LSTM, VOCAB, 6, 8), step_inputs(2), step),
    "RecurrentEncoder": Case(lambda: recurrent_encoder(LSTM), tokens, encoded),
    "RecurrentEncoder/lengths": Case(lambda: recurrent_encoder(GRU), tokens_and_lengths, encoded, deep=True),
    "RNNDecoder": Case(lambda: q.RNNDecoder(GRU, VOCAB, 6, 8, num_suppressed=2), step_inputs(1), step),
    "BahdanauDecoder": Case(bahdanau, attending_inputs, attending),
    "Seq2Seq": Case(lambda: seq2seq(attends=False), source_and_target, deep=True),
    "Seq2Seq/attention": Case(lambda: seq2seq(attends=True, cell=LSTM), source_and_target),
    # Signals have one length, that of the model; torch's pooling along one axis would make it a constant anyway.
    "ConvSignalEncoder": Case(lambda: q.ConvSignalEncoder(2, 8, num_layers=2, generator=generator()), signals),
    "RecurrentSignalEncoder": Case(lambda: q.RecurrentSignalEncoder(GRU, SIGNAL, 8, patch_size=4), signals),
    "TransformerSignalEncoder": Case(lambda: q.TransformerSignalEncoder(SIGNAL, [block()], patch_size=5), signals),
    "SignalPatchEmbedding": Case(lambda: q.SignalPatchEmbedding(SIGNAL, 5, 8), signals),
    "SignalClassifier": Case(lambda: q.SignalClassifier(q.ConvSignalEncoder(2, 8), SIGNAL, 3), signals),
    "MarkovModel": Case(lambda: markov(1), tokens, keeps_weights=True),
    "MarkovModel/order 3": Case(lambda: markov(3), tokens, min_seq=4, keeps_weights=True),
    "NgramModel": Case(lambda: q.kneser_ney_ngram(counts()), tokens),
    "kneser_ney_ngram": Case(lambda: q.kneser_ney_ngram(counts()), tokens, deep=True),
    "laplace_ngram": Case(lambda: q.laplace_ngram(counts(), 0.5), tokens, deep=True),
}

CASES = IMAGES | LATENTS | ROWS | SEQUENCES

EXCEPTIONS = {
    "PixelModel": "abstract: PixelCNN and GatedPixelCNN are it",
    "VAEDecoder": "abstract: the Gaussian and the binomial decoder are it",
    "MixtureCandidates": "a shelf of mixtures to choose from while they are fitted; each is a GaussianMixture",
    "SlidingWindowModel": "goes window by window in a Python loop as a text is read; the model inside it is exported",
    "gpt2_from_pretrained": "reads a folder; the network is that of gpt2_from_config",
    "gpt_neox_from_pretrained": "reads a folder; the network is that of gpt_neox_from_config",
    "llama_from_pretrained": "reads a folder; the network is that of llama_from_config",
}
