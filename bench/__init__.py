"""The figures: the product as a real process in, ratios against what this machine can do at all out.

    python -m bench [--full] [--publish] [B1 B2 ...]

A figure is a ratio of two measurements taken in turns in one run (A-B-A-B): the product, and the same work without any
decision. Figures alone say how fast this machine is today; ratios say how good the product is. After every
measurement the store and the provider's own list are counted: what was accepted is stored, what was sent was sent
once, or the figure is not reported. A limit that moved by more than 35 % while it was measured refuses the figure.

`population.py` builds the people and the day of history that every figure uses; `server.py` runs the product;
`generator.py` is the load, in a process of its own; `noop.py` is the provider; one `b..._....py` a scenario, those on
PostgreSQL in `postgres/`. `--publish` keeps the rows in `published.json`; page and chart of the docs are drawn from it.
"""
