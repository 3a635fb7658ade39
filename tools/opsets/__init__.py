"""Models at every opset."""
