"""The conjugate models, one a file."""
