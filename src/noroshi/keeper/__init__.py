"""The keeper: the store in a process of its own, so that deciding and answering never share one interpreter."""
