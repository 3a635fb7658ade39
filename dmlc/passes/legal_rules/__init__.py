"""Rules of ``legalize``: the kernels that each operation needs, and the replacement if one is missing."""
