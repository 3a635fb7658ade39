"""Guards of rewrites, dropped one at a time."""
