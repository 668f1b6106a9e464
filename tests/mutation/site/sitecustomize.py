"""Python imports this by itself at start: processes that tests start get the same mutant as the tests."""

import os
import sys
from pathlib import Path

if os.environ.get("QUOIN_MUTATION"):
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from mutation.importing import install

    del sys.path[0]
    install()
