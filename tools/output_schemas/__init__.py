"""The JSON Schemas of what ``--format json`` prints, declared once: ``python -m tools.output_schemas --write`` writes
them to ``dmlc/schemas``, one self-contained file for each verb."""
