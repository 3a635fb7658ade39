"""Views of a compilation: pictures of graphs and the report page. They read facts, and compute none."""
