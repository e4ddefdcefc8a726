"""Which family suits the columns of a table; `fastrbhc.suggestions` is the public face.

`columns` reads tables and takes statistics, `kinds` says what a column holds, `dispersion` how much
counts vary, `choice` goes from kinds to families, and `automatic` is what family="auto" stands for.
"""
