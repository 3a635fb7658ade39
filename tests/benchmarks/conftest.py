"""The benchmarks are a package of the checkout, not of the distribution; what they measure stays the installed one."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
