"""How often clusters are called stable in rows that have none, and in rows that have some."""
