"""Results of operations, element by element: they share no code with the package."""
