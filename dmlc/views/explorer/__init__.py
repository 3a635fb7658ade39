"""Model Explorer: node data for the models that it shows, and an adapter, ``--extensions=dmlc.views.explorer``."""
