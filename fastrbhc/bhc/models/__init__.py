"""The conjugate models, one per file."""
