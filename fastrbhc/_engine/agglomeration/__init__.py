"""Algorithms that turn statistics into merges."""
