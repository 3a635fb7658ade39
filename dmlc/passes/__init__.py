"""Passes: each changes a graph in place, states its contract, and says why it did not fire."""
