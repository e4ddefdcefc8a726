"""Marginal likelihoods that models have in common."""
