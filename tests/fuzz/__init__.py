"""Random cases at scale.

`cases` draws a case from a seed, `checks` judges it, `shrink` makes a failing one small, and `run`
is the command line of `make fuzz`.
"""
