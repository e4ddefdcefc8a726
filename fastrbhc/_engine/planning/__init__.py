"""Which algorithm and which backend, and how long they will take."""
