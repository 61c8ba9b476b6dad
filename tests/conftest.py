"""Settings for all tests: the tests' own modules are importable, Hypothesis is deterministic."""

import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

settings.register_profile("foresail", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("foresail")
