"""Draw from a trained model: token by token, greedily, by chance or by beams."""

from quoin.generate.beam import Beams, beam_search
from quoin.generate.choosing import Sampling, likeliest, nucleus_law, tempered_law, top_k_law
from quoin.generate.decoding import Chosen, Generated, TokenModel, TokenState, decode, greedy, sampled, stream

__all__ = [
    "Beams",
    "Chosen",
    "Generated",
    "Sampling",
    "TokenModel",
    "TokenState",
    "beam_search",
    "decode",
    "greedy",
    "likeliest",
    "nucleus_law",
    "sampled",
    "stream",
    "tempered_law",
    "top_k_law",
]
