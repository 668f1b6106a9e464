"""The one cache folder that all runs share: `QUOIN_CACHE`, or the platform's place for such."""

import os
from pathlib import Path

__all__ = ["cache_folder"]


def cache_folder() -> Path:
    """Where Quoin keeps what it can make or fetch again; it need not exist yet."""
    if named := os.environ.get("QUOIN_CACHE"):
        return Path(named).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("quoin", appauthor=False)
