"""Tests are imported by path, so the folder of the helpers they share (tasks.py) is put where `import` looks."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
