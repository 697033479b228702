"""The inbox: our own provider, which takes a message by keeping it in the commit that settles it."""
