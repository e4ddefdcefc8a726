"""Which family suits the columns of a table; `fastrbhc.suggestions` is the public face.

`columns` reads tables and takes statistics, `kinds` says what a column holds, `dispersion` how much
counts vary, `widths` how much columns of different kinds do, `samples` takes some of many rows for
them, `choice` goes from kinds to families, `products` to products of them, and `automatic` is what
family="auto" stands for.
"""
