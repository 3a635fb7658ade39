"""The language in editors: a language server, and colors for Pygments."""
