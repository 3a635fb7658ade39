"""Regions that ``accumulate-f32`` computes in f32, and the warnings if it does not run."""

from dmlc.passes.accumulate_rules.region import Region, find_regions

__all__ = ["Region", "find_regions"]
