"""Arithmetic, factorisations and sorting, independent of clusters."""
