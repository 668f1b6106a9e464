"""`quoin generate`: a language model goes on writing, shown token by token; what other models draw is in
sampling.py."""

import argparse
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from quoin.cli.arguments import code_access
from quoin.cli.output import print_json
from quoin.errors import UserError

if TYPE_CHECKING:
    from quoin.runs import Run
    from quoin.runs.kinds.language_modeling import TrainedLanguageModel

__all__ = ["generate"]

SAMPLING_FLAGS = ("temperature", "top_k", "top_p", "seed")  # the flags that say how to draw a text
TEXT_FLAGS = ("prompt", "max_tokens", "top_k", "top_p", "num_beams")  # a model of images may take a temperature too
SAMPLE_FLAGS = ("num_samples", "out", "class", "num_steps", "guidance_scale", "sampler", "strip", "traverse")
_CONTROL_PICTURES = (
    {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"}
    | {127: 0x2421}
    | dict.fromkeys(range(128, 160), 0xFFFD)
)


def generate(parsed: argparse.Namespace) -> int:
    from quoin.runs import Run

    run = Run.open(parsed.folder, step=parsed.step, code=code_access(parsed))
    writes = run.kind == "language-modeling"
    if run.can("generate"):
        _refuse(parsed, *((SAMPLE_FLAGS, "writes text") if writes else (TEXT_FLAGS, "draws no text")))
    from quoin.cli.sampling import generate_samples

    return _write_text(run, parsed) if writes else generate_samples(run, parsed)


def _refuse(parsed: argparse.Namespace, flags: tuple[str, ...], does: str) -> None:
    """A flag that is another kind of run's has been mistaken for one of this: what it would change, nothing does."""
    if given := [name for name in flags if getattr(parsed, name) is not None and getattr(parsed, name) is not False]:
        flag = "--" + given[0].replace("_", "-")
        raise UserError(f"{parsed.folder} {does} and takes no {flag}: leave it out, or give another run")


def _write_text(opened: "Run", parsed: argparse.Namespace) -> int:
    prompt, most = parsed.prompt or "", 300 if parsed.max_tokens is None else parsed.max_tokens
    parsed = argparse.Namespace(**vars(parsed) | {"prompt": prompt, "max_tokens": most})
    if parsed.num_beams is not None and (
        given := [name for name in SAMPLING_FLAGS if getattr(parsed, name) is not None]
    ):
        flag = given[0].replace("_", "-")
        raise UserError(
            f"--num-beams looks for the most probable text and draws nothing, but --{flag} was given: leave one of "
            "them out"
        )
    from quoin.data import TextStream

    run: TrainedLanguageModel = opened.expect("generate")  # type: ignore[assignment]
    said, pieces, count, nats, stopped = TextStream(run.tokenizer), [], 0, 0.0, False
    tokens = (
        run.beam(parsed.prompt, parsed.num_beams, parsed.max_tokens)
        if parsed.num_beams is not None
        else _sampled_tokens(run, parsed)
    )
    began = time.perf_counter()
    try:
        for token, log_prob in tokens:
            if count == 0:
                _show(parsed.prompt, parsed)
            count, nats = count + 1, nats - log_prob
            pieces.append(said.push(token))
            _show(pieces[-1], parsed)
    except KeyboardInterrupt:
        stopped = True
    seconds = time.perf_counter() - began
    pieces.append(said.finish())
    if parsed.json:
        print_json(
            {
                "run": str(parsed.folder),
                "prompt": parsed.prompt,
                "text": "".join(pieces),
                "tokens": count,
                "log_probability": -nats,
                "reached_max_tokens": count == parsed.max_tokens,
                "seconds": seconds,
            }
        )
    else:
        _show(pieces[-1] + "\n" if count else "", parsed)
        ended = "stopped" if stopped else "ended at --max-tokens"
        print(f"quoin: {ended} after {count} tokens ({count / seconds:,.0f} a second)", file=sys.stderr)
    return 130 if stopped else 0


def _sampled_tokens(run: "TrainedLanguageModel", parsed: argparse.Namespace) -> Iterator[tuple[int, float]]:
    """Tokens as they are drawn, each with its log-probability."""
    from quoin.data import keyed_generator
    from quoin.generate import TokenSampler

    choose = TokenSampler(
        temperature=1.0 if parsed.temperature is None else parsed.temperature,
        top_k=parsed.top_k,
        top_p=1.0 if parsed.top_p is None else parsed.top_p,
        generator=keyed_generator("generate", parsed.seed or 0),
    )
    return run.stream(parsed.prompt, choose, parsed.max_tokens)


def _show(piece: str, parsed: argparse.Namespace) -> None:
    """A terminal takes some characters as commands: there they are shown as signs."""
    if piece and not parsed.json:
        sys.stdout.write(piece.translate(_CONTROL_PICTURES) if sys.stdout.isatty() else piece)
        sys.stdout.flush()
