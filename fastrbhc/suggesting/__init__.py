"""Which family suits the columns of a table; `fastrbhc.suggest_family` is the public face.

`columns` reads tables and takes statistics, `kinds` says what a column holds, `dispersion` how much
counts vary, `suggestion` puts it together, and `automatic` is what family="auto" does with it.
"""
