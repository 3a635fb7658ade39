"""What ``legalize`` knows: the kernels that each operation needs, and what takes its place where one is missing."""
