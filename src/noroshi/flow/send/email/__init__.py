"""E-mail: one folder per way of handing a message to the mail system."""
