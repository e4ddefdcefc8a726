"""Marginal likelihoods shared by the models."""
