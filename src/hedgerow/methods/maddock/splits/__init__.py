"""Split methods: how the structure of a tree comes about.

totally_random.py    columns and cuts are drawn; nobody is asked
partially_random.py  the best of one random cut a column
histogram.py         the best cut of noisy histograms
learned.py           level by level, for the two above
growth.py            what is known of the nodes of a growing tree
drawing.py           one random cut of what is left in a node
"""
