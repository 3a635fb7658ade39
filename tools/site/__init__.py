"""The documentation site: pages of ``docs/``, and reference pages written from the declarations."""
