"""Dissimilarities of clusters, and lower bounds of them."""
