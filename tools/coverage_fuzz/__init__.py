"""Inputs that reach something new, as libFuzzer finds them."""
