"""What holds in the whole suite."""

from hypothesis import settings

# The same examples each time: what fails is due to a change. ``pytest --hypothesis-profile=default`` draws others, and
# ``python -m tests.fuzz`` looks for what nobody thought of.
settings.register_profile("suite", derandomize=True)
settings.load_profile("suite")
