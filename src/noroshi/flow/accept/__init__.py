"""Accept: a request in, a kept batch and its answer out."""
