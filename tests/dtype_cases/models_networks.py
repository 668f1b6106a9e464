"""Cases for the networks of `quoin.models`, each in its smallest size. Part of models.py."""

from collections import OrderedDict

import torch
from torch import nn

from dtypes import in_dtype, whole
from quoin import models as q
from quoin.layers import (
    BasicBlock,
    EdgeList,
    ExactAttention,
    RecurrentWeights,
    decoder_block,
    gru_cell_definition,
    transformer_block,
)

LINKS = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
IMAGE = (1, 4, 4)


def generator():
    return torch.Generator().manual_seed(0)


def module(make, *shape, most=9):
    """A network that takes one tensor, at rest."""
    return lambda x: in_dtype(make, x).eval()(x(whole(*shape, most=most)))


def bahdanau_definition(x):
    cell = RecurrentWeights(x(whole(6, 4, most=2)), x(whole(6, 2, most=2)), x(whole(6, most=2)), x(whole(6, most=2)))
    attention = x([[1, 0], [0, 1]]), x([[1, 0], [0, 1]]), x([1, 2])
    found = q.bahdanau_decoder_definition(
        x(whole(1, 2, 2, most=2)), x(whole(1, 3, 2, most=2)), (x([[1, 0]]),), *attention, gru_cell_definition, cell
    )
    return found.output, found.contexts, found.weights


def unet_definition(x):
    kernels = x(whole(2, 2, 3, 3, most=2)), x(whole(2, 2, 3, 3, most=3))
    weights = q.UNetBlockWeights(
        x([1, 2]), x([3, 0]), kernels[0], x([1, 0]), x([2, 1]), x([0, 1]), kernels[1], x([0, 2])
    )
    return q.unet_block_definition(x(whole(1, 2, 3, 3)), x([[1, 20]]), weights, num_groups=2)


def unet(x):
    model = in_dtype(lambda: q.UNet((1, 4, 4), channels=(4, 8), num_groups=2, head_dim=4, generator=generator()), x)
    return model(x(whole(2, 1, 4, 4, most=3)), torch.tensor([1, 5]))


def block():
    return transformer_block(4, 2, generator=generator())


def decoder_step(x):
    model = in_dtype(lambda: q.TransformerDecoder([decoder_block(4, 2, generator=generator())]), x)
    return model.decode_step(model.init_cache(x(whole(1, 2, 4, most=3)), 4), x(whole(1, 3, 4, most=3)))[0]


def reader_step(x):
    model = in_dtype(lambda: q.CopyTransformerBlock(4, 2, inner_attention=ExactAttention(), generator=generator()), x)
    return model(x(whole(1, 3, 4, most=3)))


def vae(x, decoder=lambda net: q.GaussianDecoder(net, IMAGE, 0.5)):
    return in_dtype(lambda: q.mlp_vae(IMAGE, 2, decoder, hidden_dims=(3,), generator=generator()), x)


def decoder(make):
    """ln p(x | z) of pixels on two levels, and the mean."""

    def case(x):
        net = in_dtype(lambda: make(nn.Linear(2, 16)), x)
        return net.log_likelihood(x(whole(2, 1, 4, 4, most=1)), x([[1, 0], [2, 1]])), net(x([[1, 0], [2, 1]]))

    return case


def pixels_of(make):
    """ln p(x | z) with z of its own dtype."""

    def case(x):
        net = in_dtype(lambda: make(nn.Linear(2, 16)), torch.tensor)
        return net.log_likelihood(x(whole(2, 1, 4, 4, most=1)), torch.tensor([[1.0, 0.0], [2.0, 1.0]]))

    return case


def gan(x):
    return in_dtype(lambda: q.mlp_gan(2, hidden_dims=(3,), generator=generator()), x)


def pixels(make, use):
    return lambda x: use(in_dtype(make, x), x(whole(2, 1, 3, 3, most=1)))


def plain():
    return q.PixelCNN((1, 3, 3), 2, channels=2, num_layers=1, kernel_size=3, first_kernel_size=3, generator=generator())


def gated():
    return q.GatedPixelCNN(
        (1, 3, 3), 2, channels=2, num_layers=1, kernel_size=3, first_kernel_size=3, generator=generator()
    )


def read(reader):
    return lambda x: reader(in_dtype(gated, x), x(whole(2, 1, 3, 3, most=1)))(0)


def latent(x):
    return in_dtype(lambda: q.DeepLatentGaussian(2, q.DiagonalNormalNet([2, 3, 4], generator=generator())), x)


def law_of(make):
    def case(x):
        found = in_dtype(make, x)(x([[1, 2], [0, 1]]))
        return found.mean, found.covariance

    return case


def realized(x):
    model = nn.Linear(2, 2)
    return q.functional_model(model, x([1, 2, 3, 20, 100, 7]))(x([[1, 20], [3, 0]]))


def small_block(inputs, outputs, stride):
    return BasicBlock(inputs, outputs, stride=stride)


def tied():
    """Its first matrix waits for the first example."""
    model = q.TiedMLP(3, 2, repeats=2)
    model(torch.zeros(1, 3))
    return model


def resnet():
    stem = nn.Conv2d(1, 2, 3, padding=1, bias=False)
    return q.ResNet(
        IMAGE,
        3,
        stem=stem,
        pool=nn.Identity(),
        block=small_block,
        num_blocks=[1],
        out_channels=[2],
        generator=generator(),
    )


def densenet():
    stem = OrderedDict(conv0=nn.Conv2d(1, 2, 3, padding=1, bias=False))
    return q.DenseNet(IMAGE, 3, stem=stem, channels=2, block_config=[1], growth_rate=2, generator=generator())


def nodes(x):
    weights = x([1, 1, 2, 2])
    return in_dtype(lambda: q.NodeClassifier(EdgeList(LINKS, weights, 3), [2], 2, generator=generator()), x)(
        x([[0], [2]])
    )


CASES = {
    "MLP": module(lambda: q.MLP([2, 3, 2], generator=generator()), 3, 2),
    "TiedMLP": module(tied, 2, 3),
    "LinearScore": module(lambda: q.LinearScore(2), 3, 2),
    "SoftmaxRegression": module(lambda: q.SoftmaxRegression(2, 3), 3, 2),
    "LinearRegression": module(lambda: q.LinearRegression(2), 3, 2),
    "LinearGaussian": module(lambda: q.LinearGaussian(2, scale=0.5), 3, 2),
    "LinearGaussian.log_prob": lambda x: in_dtype(lambda: q.LinearGaussian(2, scale=2.0), x).log_prob(
        x([100, 3]), x(whole(2, 2))
    ),
    "PolynomialRegression": module(lambda: q.PolynomialRegression(2), 3, 1),
    "TimeMLP": lambda x: in_dtype(
        lambda: q.TimeMLP(2, hidden_dim=3, num_layers=1, time_dim=4, generator=generator()), x
    )(x([[1, 2], [3, 0]]), torch.tensor([1, 5])),
    "TimeMLP times": lambda x: q.TimeMLP(2, hidden_dim=3, num_layers=1, time_dim=4, generator=generator())(
        torch.ones(2, 2), x([1, 5])
    ),
    "functional_model": realized,
    # images
    "ImageClassifier": module(lambda: q.ImageClassifier(nn.Flatten(), nn.Linear(16, 2), IMAGE), 2, 1, 4, 4),
    "ResNet": module(resnet, 2, 1, 4, 4),
    "DenseLayer": module(lambda: q.DenseLayer(2, 2), 2, 2, 4, 4),
    "DenseNet": module(densenet, 2, 1, 4, 4),
    "Inception": module(lambda: q.Inception(2, 2, (2, 2), (2, 2), 2), 2, 2, 4, 4),
    "PatchEmbedding": module(lambda: q.PatchEmbedding(IMAGE, 2, 4, generator=generator()), 2, 1, 4, 4),
    "ViT": module(
        lambda: q.ViT(IMAGE, 2, patch_size=2, embed_dim=4, num_heads=2, num_layers=1, generator=generator()),
        2,
        1,
        4,
        4,
        most=1,
    ),
    "AttentionBlock": module(lambda: q.AttentionBlock(4, 2, generator=generator()), 2, 3, 4, most=3),
    "AttentionClassifier": module(
        lambda: q.AttentionClassifier(IMAGE, 2, embed_dim=4, num_heads=2, num_layers=1, generator=generator()),
        2,
        1,
        4,
        4,
        most=1,
    ),
    "ImageDiscriminator": module(lambda: q.ImageDiscriminator((1, 8, 8), base_channels=2), 2, 1, 8, 8, most=1),
    "UNetBlock": lambda x: in_dtype(lambda: q.UNetBlock(2, 2, num_groups=2), x)(x(whole(1, 2, 3, 3)), x([[1, 2]])),
    "UNet": unet,
    # signals
    "SignalPatchEmbedding": module(lambda: q.SignalPatchEmbedding((2, 5), 2, 4, generator=generator()), 2, 2, 5),
    "ConvSignalEncoder": module(
        lambda: q.ConvSignalEncoder(2, 3, num_layers=1, kernel_size=3, generator=generator()), 2, 2, 5
    ),
    "RecurrentSignalEncoder": module(
        lambda: q.RecurrentSignalEncoder(nn.GRU, (2, 5), 3, generator=generator()), 2, 2, 5, most=1
    ),
    "TransformerSignalEncoder": module(
        lambda: q.TransformerSignalEncoder((2, 5), [block()], patch_size=2, generator=generator()), 2, 2, 5, most=1
    ),
    "SignalClassifier": module(
        lambda: q.SignalClassifier(
            q.ConvSignalEncoder(2, 3, num_layers=1, kernel_size=3, generator=generator()),
            (2, 5),
            2,
            generator=generator(),
        ),
        2,
        2,
        5,
    ),
    # sequences and graphs
    "TransformerEncoder": module(lambda: q.TransformerEncoder([block()]), 1, 3, 4, most=3),
    "TransformerDecoder": lambda x: in_dtype(
        lambda: q.TransformerDecoder([decoder_block(4, 2, generator=generator())]), x
    )(x(whole(1, 3, 4, most=3)), x(whole(1, 2, 4, most=3))),
    "TransformerDecoder.decode_step": decoder_step,
    "CopyTransformerBlock": reader_step,
    "GCN": lambda x: in_dtype(lambda: q.GCN([2, 3, 2], generator=generator()), x)(
        x(whole(3, 2)), EdgeList(LINKS, x([1, 1, 2, 2]), 3)
    ),
    "NodeClassifier": nodes,
    # generative
    "VAE": lambda x: vae(x)(x(whole(2, 1, 4, 4, most=1))),
    "VAE.log_likelihood": lambda x: vae(x).log_likelihood(x(whole(2, 1, 4, 4, most=1)), x([[1, 0], [2, 1]])),
    "VAE.log_prior": lambda x: vae(x).log_prior(x([[1, 20], [100, 3]])),
    "VAE.decode_mean": lambda x: vae(x).decode_mean(x([[1, 0], [2, 1]])),
    "VAEEncoder": lambda x: (
        in_dtype(lambda: q.VAEEncoder(nn.Sequential(nn.Flatten(), nn.Linear(16, 4))), x)(
            x(whole(2, 1, 4, 4, most=1))
        ).mean
    ),
    "GaussianDecoder": decoder(lambda net: q.GaussianDecoder(net, IMAGE, 0.5)),
    "LearnedGaussianDecoder": decoder(lambda net: q.LearnedGaussianDecoder(net, IMAGE, 0.5)),
    "BinomialDecoder": decoder(lambda net: q.BinomialDecoder(net, IMAGE)),
    "GaussianDecoder pixels": pixels_of(lambda net: q.GaussianDecoder(net, IMAGE, 0.5)),
    "LearnedGaussianDecoder pixels": pixels_of(lambda net: q.LearnedGaussianDecoder(net, IMAGE, 0.5)),
    "BinomialDecoder pixels": pixels_of(lambda net: q.BinomialDecoder(net, IMAGE)),
    "GAN": lambda x: gan(x)(x([[1, 0], [2, 1]])),
    "GAN.decode_mean": lambda x: gan(x).decode_mean(x([[1, 0], [2, 1]])),
    "GAN.discriminator": lambda x: gan(x).discriminator(x([[1, 0], [2, 1]])),
    "PixelCNN": pixels(plain, lambda model, images: model(images)),
    "PixelCNN.log_prob": pixels(plain, lambda model, images: model.log_prob(images)),
    "GatedPixelCNN": pixels(gated, lambda model, images: model(images)),
    "GatedPixelCNN.log_prob": pixels(gated, lambda model, images: model.log_prob(images)),
    "WindowPixelPredictor": read(q.WindowPixelPredictor),
    "GatedPixelPredictor": read(q.GatedPixelPredictor),
    "DiagonalNormalNet": law_of(lambda: q.DiagonalNormalNet([2, 3, 4], generator=generator())),
    "TriangularNormalNet": law_of(lambda: q.TriangularNormalNet([2, 3, 2], generator=generator())),
    "DeepLatentGaussian.log_prior": lambda x: latent(x).log_prior(x([[1, 20]])),
    "DeepLatentGaussian.log_likelihood": lambda x: latent(x).log_likelihood(x([[1, 0, 2, 3]]), x([[1, 2]])),
}

# name -> how many roundings it may lose, where the mathematics makes it worse than dtypes.ROUNDINGS
ROUNDINGS: dict[str, float] = {}


def reads(make, words=((0, 1, 2),)):
    """A network of tokens."""
    return lambda x: in_dtype(make, torch.tensor).eval()(x([list(row) for row in words]))


def recurrent():
    return q.RecurrentLanguageModel(nn.GRU, 3, 2, 3, generator=generator())


def gpt():
    return q.GPT(3, 4, 2, 1, 8, generator=generator())


def translator():
    return q.Transformer(3, 3, [block()], [decoder_block(4, 2, generator=generator())], generator=generator())


def seq2seq(decoder):
    encoder = q.RecurrentEncoder(nn.GRU, 3, 2, 4, bidirectional=False, generator=generator())
    return q.Seq2Seq(encoder, decoder)


def plain_decoder():
    return seq2seq(q.RNNDecoder(nn.GRU, 3, 2, 4, generator=generator()))


def bahdanau():
    return seq2seq(q.BahdanauDecoder(nn.GRU, 3, 2, 4, 4, generator=generator()))


def translates(make):
    def case(x):
        model = in_dtype(make, torch.tensor).eval()
        return model(x([[0, 1, 2]]), x([[1, 2]]), source_lengths=x([2]), target_lengths=x([2]))

    return case


def reader(make):
    return lambda x: in_dtype(make, torch.tensor).eval()(x([[0, 1, 2], [1, 1, 0]]), x([2, 3]))


def colored():
    return q.GatedPixelCNN(
        (1, 3, 3), 2, channels=2, num_layers=1, kernel_size=3, first_kernel_size=3, num_classes=2, generator=generator()
    )


def read_through(kind):
    """The logits of every pixel in its turn."""

    def case(x):
        reader = kind(in_dtype(colored, torch.tensor), PIXELS, x([1, 0]))
        return [reader(place) for place in range(9)]

    return case


def labeled_unet(x):
    make = lambda: q.UNet((1, 4, 4), channels=(4, 8), num_groups=2, head_dim=4, num_classes=2, generator=generator())  # noqa: E731
    return in_dtype(make, torch.tensor)(torch.ones(2, 1, 4, 4), x([1, 5]), x([0, 1]))


PIXELS = torch.tensor(whole(2, 1, 3, 3, most=1), dtype=torch.float32)
MARKED = {
    "GPT": reads(gpt),
    "TransformerLanguageModel": reads(lambda: q.TransformerLanguageModel(3, [block()], generator=generator())),
    "RecurrentLanguageModel": reads(recurrent),
    "CopyTransformer": reads(lambda: q.CopyTransformer(3, 4, num_heads=2, num_layers=1, generator=generator())),
    "SlidingWindowModel": reads(lambda: q.SlidingWindowModel(gpt(), 2)),
    "BagOfWordsEncoder": reader(lambda: q.BagOfWordsEncoder(3, 4, generator=generator())),
    "RecurrentTextEncoder": reader(lambda: q.RecurrentTextEncoder(nn.GRU, 3, 2, 3, generator=generator())),
    "TransformerTextEncoder": reader(lambda: q.TransformerTextEncoder(3, [block()], generator=generator())),
    "SequenceClassifier": reader(
        lambda: q.SequenceClassifier(q.BagOfWordsEncoder(3, 4, generator=generator()), 2, generator=generator())
    ),
    "Transformer": translates(translator),
    "RNNDecoder": translates(plain_decoder),
    "BahdanauDecoder": translates(bahdanau),
    "Seq2Seq": translates(plain_decoder),
    "GatedPixelCNN labels": lambda x: in_dtype(colored, torch.tensor)(PIXELS, x([1, 0])),
    "GatedPixelPredictor labels": read_through(q.GatedPixelPredictor),
    "WindowPixelPredictor labels": read_through(q.WindowPixelPredictor),
    "UNet labels": labeled_unet,
    "TimeMLP whole times": lambda x: q.TimeMLP(2, hidden_dim=3, num_layers=1, time_dim=4, generator=generator())(
        torch.ones(2, 2), x([1, 5])
    ),
    "NodeClassifier nodes": lambda x: q.NodeClassifier(
        EdgeList(LINKS, torch.ones(4), 3), [2], 2, generator=generator()
    )(x([[0], [2]])),
}
