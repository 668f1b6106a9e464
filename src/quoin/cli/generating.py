"""`quoin generate`: a language model goes on writing, shown token by token; what other models draw is in
sampling.py."""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from quoin.cli.arguments import add_json, add_run, add_step, code_access, run_later
from quoin.cli.flags import Parser, any_number, whole_number
from quoin.cli.output import print_json
from quoin.errors import UserError

if TYPE_CHECKING:
    from quoin.runs import Run
    from quoin.runs.kinds.language_modeling import TrainedLanguageModel

__all__ = ["add_generate", "generate"]

SAMPLING_FLAGS = ("temperature", "top_k", "top_p", "seed")  # the flags that say how to draw a text
TEXT_FLAGS = (
    "prompt",
    "max_tokens",
    "top_k",
    "top_p",
    "num_beams",
    "device",
)  # a model of images may take a temperature too
SAMPLE_FLAGS = ("num_samples", "out", "class", "num_steps", "guidance_scale", "sampler", "strip", "traverse")
_CONTROL_PICTURES = (
    {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"}
    | {127: 0x2421}
    | dict.fromkeys(range(128, 160), 0xFFFD)
)


def add_generate(parser: Parser, words: Sequence[str]) -> None:
    """The words of the command."""
    add_run(
        parser,
        "the folder of a language model's run, such as runs/lstm-lm-1, or of a generative model's, such as runs/vae-1",
    )
    parser.description = (
        "Sample from a trained model.\n\n"
        "A language model continues a prompt token by token, up to --max-tokens or until Ctrl-C. Each token is "
        "sampled from the\n"
        "predicted distribution; a temperature below 1 sharpens it, --top-k and --top-p truncate it, and "
        "--num-beams searches for the\n"
        "most probable continuation instead of sampling one.\n\n"
        "A model of images gives a grid of samples, a model of points in the plane a scatter plot: as an image, "
        "or as an array in a\n"
        ".npy file. --strip shows the reverse process from noise to image, --traverse latent traversals."
    )
    parser.epilog = """\
examples:
  quoin generate runs/lstm-lm-1 --prompt "The assert statement" --temperature 0.7
  quoin generate runs/ngram-1 --num-beams 8 --max-tokens 60
  quoin generate runs/vae-1 -n 64 --seed 0 --out samples.png
  quoin generate runs/diffusion-digits-1 --class 7 --guidance-scale 3 --num-steps 20
  quoin generate runs/diffusion-digits-1 --strip -n 6 --out strip.svg"""
    parser.add_flag("--seed", "random seed (default: 0)", "INT", type=whole_number)
    add_step(parser)
    add_json(parser)
    texts = parser.add_argument_group("language models")
    parser.add_flag("--prompt", "the text to continue (default: a line break)", "STR", group=texts)
    parser.add_flag(
        "--max-tokens", "maximum number of tokens to generate (default: 300)", "INT", type=whole_number, group=texts
    )
    parser.add_flag("--temperature", "softmax temperature (default: 1)", "FLOAT", type=any_number, group=texts)
    parser.add_flag("--top-k", "sample from the k most probable tokens only", "INT", type=whole_number, group=texts)
    parser.add_flag(
        "--top-p",
        "nucleus sampling: sample from the fewest most probable tokens that sum to this probability",
        "FLOAT",
        type=any_number,
        group=texts,
    )
    parser.add_flag(
        "--num-beams", "beam search with this many beams instead of sampling", "INT", type=whole_number, group=texts
    )
    parser.add_flag(
        "--device", "auto, cpu, cuda, cuda:1, mps ... (default: auto, the best available)", "STR", group=texts
    )
    images = parser.add_argument_group("generative models of images or points")
    how_many = "number of samples (default: 64 images, 8 with --strip; 1000 points)"
    parser.add_flag("-n --num-samples", how_many, "INT", type=whole_number, group=images)
    parser.add_flag(
        "--out", "a .png, .svg or .html image, or .npy (default: samples.png in RUN)", "FILE", type=Path, group=images
    )
    parser.add_flag("--class", "condition on this class, where the model is class-conditional", "NAME", group=images)
    parser.add_flag(
        "--num-steps", "sampling steps, for diffusion and flow matching", "INT", type=whole_number, group=images
    )
    parser.add_flag(
        "--guidance-scale", "classifier-free guidance scale; 1 is no guidance", "FLOAT", type=any_number, group=images
    )
    parser.add_flag("--sampler", "the diffusion sampler: ddpm, ddim, ...", "NAME", group=images)
    parser.add_switch("--strip", "show the reverse process from noise to image", group=images)
    parser.add_switch("--traverse", "show latent traversals", group=images)
    parser.set_defaults(run=run_later("generating.generate"))


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
    run.to(parsed.device or "auto")
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
    from quoin.generate import TokenSampler

    choose = TokenSampler(
        temperature=1.0 if parsed.temperature is None else parsed.temperature,
        top_k=parsed.top_k,
        top_p=1.0 if parsed.top_p is None else parsed.top_p,
        generator=run.generator(parsed.seed or 0),
    )
    return run.stream(parsed.prompt, choose, parsed.max_tokens)


def _show(piece: str, parsed: argparse.Namespace) -> None:
    """A terminal takes some characters as commands: there they are shown as signs."""
    if piece and not parsed.json:
        sys.stdout.write(piece.translate(_CONTROL_PICTURES) if sys.stdout.isatty() else piece)
        sys.stdout.flush()
