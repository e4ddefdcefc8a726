"""The choice of the algorithm and the backend, and an estimate of the time."""
