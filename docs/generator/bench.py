"""What `quoin bench` measures: every benchmark with its implementations and what is asked of the outcome."""

from itertools import groupby

from generator.text import code, heading, href, prose, table
from quoin.bench.benchmarks import BENCHMARKS, Benchmark

__all__ = ["bench_pages"]

HOW = """
Quoin is measured beside other libraries, each at its best documented setting. Every implementation runs in a process of
its own that lives for the whole benchmark; all have the same number of threads, one works at a time, and they alternate
in a new order at every repeat. A ratio is paired: an implementation's seconds over Quoin's in the same repeat, then the
median over the repeats, so that other programs on the machine slow both. The first repeats warm up and are not counted.
Peak memory and figures of quality (a loss, an accuracy, a checksum) stand beside the times: quick and wrong does not
count. A peer that is not installed is named, not failed.
""".strip()


def bench_pages() -> dict[str, str]:
    """Path to Markdown."""
    page = "bench.md"
    gpu = href(page, "howto/gpu.md", "measured")
    said = [f"<p>{HOW}</p>", "```sh\nquoin bench loop\n```"]
    said += [
        "<p>runs one of them and prints the table; with <code>--kernels</code> also what fraction of the time its "
        "matrix products and convolutions take, and how near they come to the machine's peak: where that is nearly "
        "all, no other loop around them is quicker. <code>make bench</code> installs the peers and runs all. The "
        f'numbers are those of your machine; <a href="{href(page, "measured.md")}">those of ours</a> are on one page, '
        f'and what was measured on a GPU stands in <a href="{gpu}">GPUs</a>.</p>'
    ]
    parts = [heading("Benchmarks", 1), *said]
    order = sorted(BENCHMARKS, key=lambda each: each.group)
    for group, inside in groupby(order, key=lambda each: each.group):
        parts.append(heading(f"The group `{group}`" if group else "One by one", 2))
        inside = list(inside)
        parts += [_together(inside)] if len(inside) > 20 else [part for each in inside for part in _benchmark(each)]
    return {page: "\n\n".join(parts)}


def _benchmark(each: Benchmark) -> list[str]:
    rows = [
        (prose(one.name), prose(one.target.text() if one.target else ""), prose(", ".join(one.needs) or "nothing more"))
        for one in each.implementations
    ]
    how = f"{each.num_repeats} repeats, {each.num_warmup} of them to warm up, {each.threads} threads" + (
        "; needs CUDA" if each.needs_cuda else ""
    )
    return [
        heading(f"`{each.name}`", 3, f"bench-{each.name}"),
        f"<p>{prose(each.title)}. {prose(how)}. {code(f'quoin bench {each.name}')}</p>",
        table(("implementation", "asked of it", "needs"), rows),
    ]


def _together(group: list[Benchmark]) -> str:
    """Many of a kind: a line each."""
    rows = [
        (
            code(each.name),
            prose(each.title),
            prose(", ".join(one.name for one in each.implementations)),
            str(each.num_repeats),
        )
        for each in group
    ]
    return table(("benchmark", "what is measured", "implementations", "repeats"), rows)
