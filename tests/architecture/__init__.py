"""What holds for the whole tree: imports, sizes, names, docs, dependencies."""
