"""Pages of the shop, in Japanese: for whoever runs it, and for whoever has reserved."""
