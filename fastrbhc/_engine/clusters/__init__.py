"""From rows to clusters as arrays."""
