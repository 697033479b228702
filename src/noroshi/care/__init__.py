"""What an operator does with a store beside serving it: back it up, restore it, move it, look after it."""
