"""The test text of a language model's run, in the tokens that its model reads."""

from typing import Any

from jaxtyping import Int
from torch import Tensor

from quoin.errors import UserError
from quoin.runs.paths import options_here
from quoin.runs.run import Run
from quoin.tasks.text_data import corpus, recorded_tokenizer

__all__ = ["own_test_tokens"]


def own_test_tokens(run: Run) -> Int[Tensor, "tokens"]:
    """The tokens, without the model and the optimizer that a task would bring; an error where they are not at hand."""
    options, trained = options_here(run), run.trained
    if getattr(options, "data", None) == "":
        raise UserError("it was imported without any")
    if hasattr(options, "data"):
        # An imported or fine-tuned model has a tokenizer that its text did not teach it.
        with recorded_tokenizer(trained.tokenizer):  # type: ignore[attr-defined]
            text: Any = corpus(options)  # type: ignore[arg-type]
    else:
        text = run.load_task().text  # type: ignore[attr-defined]
    if text.fingerprint != run.data_info.fingerprint:  # type: ignore[union-attr]
        raise UserError(f"the data of {run.path} changed since it was started")
    tokens = text.test.in_memory()
    if not len(tokens):
        raise UserError(f"{run.path} has no test tokens")
    return tokens.long()
