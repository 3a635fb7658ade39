"""Random programs and models, judged by what they compile to."""
