"""Tests: architecture/ conformance/ faults/ stories/ unit/, and the stand-ins they use."""
