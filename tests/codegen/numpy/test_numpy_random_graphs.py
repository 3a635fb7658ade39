"""Random graphs: the generated code agrees with the reference, whatever is inlined and however things are named."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from numpy_models import check, source
from numpy_random import random_graph

# A graph is made from one number: shrinking the choices themselves takes minutes and shows no more.
SEEDS = st.integers(0, 2**32)


@settings(max_examples=50, report_multiple_bugs=False)
@given(SEEDS)
def test_generated_code_agrees_with_the_reference(seed: int) -> None:
    graph, feeds = random_graph(random.Random(seed).choice)
    check(graph, *feeds)


@settings(max_examples=10)
@given(SEEDS)
def test_same_graph_same_text(seed: int) -> None:
    graph, _ = random_graph(random.Random(seed).choice)
    text = source(graph)
    assert source(graph) == text
    assert source(graph.clone()) == text
    assert source(random_graph(random.Random(seed).choice)[0]) == text
