"""The version of Cuvil, the same as in pyproject.toml (a test compares them)."""

VERSION = "0.1.0"
