"""Lets the tests import `oracle` and `listings`, which stand beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
