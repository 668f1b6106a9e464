"""`quoin fetch`: well-known data sets into the cache; without a name, which there are."""

import argparse

from quoin.cli.output import print_json, print_table
from quoin.cli.progress import Work
from quoin.data.fetched import REMOTE_DATASETS, fetched_folder, find_remote, is_fetched
from quoin.errors import UserError

__all__ = ["fetch"]


def fetch(parsed: argparse.Namespace) -> int:
    if not parsed.names:
        if parsed.url is not None or parsed.force:
            raise UserError("--from and --force are for a data set: name it, as in `quoin fetch mnist`")
        return _list(parsed)
    for name in parsed.names:
        find_remote(name)
    if parsed.url is not None and len(parsed.names) > 1:
        raise UserError(f"--from is the folder of one data set, got {len(parsed.names)} names: fetch them one by one")
    from quoin.data.fetching import fetch

    done = []
    for name in dict.fromkeys(parsed.names):
        was_there = is_fetched(name) and not parsed.force
        with Work(f"fetching {name}", show_progress=not parsed.json) as work:
            folder = fetch(name, url=parsed.url, force=parsed.force, on_progress=work.update)
        done.append({"name": name, "folder": str(folder), "was_there": was_there, "seconds": work.seconds})
        if not parsed.json:
            megabytes = f"{REMOTE_DATASETS[name].num_bytes / 1e6:,.1f} MB"
            how = "was there already" if was_there else f"{megabytes} in {work.seconds:.1f} s, hashes as pinned"
            print(f"{name}: {how}; {folder}; train on it with --data {name}")
    if parsed.json:
        print_json(done)
    return 0


def _list(parsed: argparse.Namespace) -> int:
    if parsed.json:
        print_json(
            [
                {
                    "name": name,
                    "what": remote.what,
                    "bytes": remote.num_bytes,
                    "license": remote.license,
                    "url": remote.url,
                    "fetched": is_fetched(name),
                    "folder": str(fetched_folder(name)),
                }
                for name, remote in REMOTE_DATASETS.items()
            ]
        )
        return 0
    rows = [
        (
            name,
            remote.what,
            f"{remote.num_bytes / 1e6:,.1f} MB",
            remote.license,
            remote.url,
            "yes" if is_fetched(name) else "no",
        )
        for name, remote in REMOTE_DATASETS.items()
    ]
    print_table(("name", "what it is", "size", "licence", "from", "fetched"), rows)
    print(f"\n`quoin fetch NAME` puts it into {fetched_folder('NAME')}; nothing else opens a connection.")
    return 0
