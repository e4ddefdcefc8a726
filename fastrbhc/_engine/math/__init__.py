"""Numbers, matrices and orders, with nothing of clusters in it."""
