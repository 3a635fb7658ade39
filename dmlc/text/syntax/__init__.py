"""Source text to syntax tree, and the canonical layout of source text."""
