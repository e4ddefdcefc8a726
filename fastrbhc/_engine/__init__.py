"""Everything that runs in kernels, and what decides which of it does: private."""
