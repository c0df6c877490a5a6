"""Figures and claims of documents, written from `benchmarks/results` and `benchmarks/published`.

``python -m tests.record`` writes them; a test compares what stands on the pages with the files.

blocks.py    marked blocks of a page, tables, and how result files are read
pages.py     which page has which blocks
maddock.py   Maddock et al. 2022: cells, cells outside two deviations, ranks, experiments
grislain.py  Grislain and Gonzalez 2021: figure 4, time a tree
gubler.py    Gubler 2023: panels of figures 2 to 5, one informative column, real tables
le.py        Le et al. 2021: times, losses after every tree, scaling
li.py        Li et al. 2020: tables 2 to 4, figures 2 to 4, preprocessing
attacks.py   what attacks tell of rows, and which planted defects are noticed
audit.py     what attacks find of vertical protections
bands.py     how often error bands hold noise-free shapes
cluster.py   times and sizes on a Dask cluster
evaluation.py  how far private evaluations lie from exact ones
speed.py     times and sizes of the page about performance
drawing.py   small line drawings as SVG, for docs/images/papers
claims.py    what is recorded of each paper, for benchmarks/README.md and docs/papers.md
"""
