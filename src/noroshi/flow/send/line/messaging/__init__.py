"""LINE's Messaging API: pushes with a retry key, so that no message is ever sent twice within a day."""
