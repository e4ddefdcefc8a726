"""Backends that find nearest clusters, behind one contract."""
