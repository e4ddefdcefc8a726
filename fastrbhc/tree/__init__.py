"""The finished tree: cuts, tables and exports."""
