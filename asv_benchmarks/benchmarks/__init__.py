"""Benchmarks of fastrbhc for airspeed velocity."""
