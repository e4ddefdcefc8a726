"""The finished tree, and what can be made of it."""
