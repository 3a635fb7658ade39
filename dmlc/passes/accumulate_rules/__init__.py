"""Regions that ``accumulate-f32`` computes in f32, and the warnings if it does not run."""

from dmlc.passes.accumulate_rules.norms import find_norms, wide_attributes
from dmlc.passes.accumulate_rules.region import AccumulationRegion, find_regions

__all__ = ["AccumulationRegion", "find_norms", "find_regions", "wide_attributes"]
