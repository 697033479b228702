"""Settings in, a whole Noroshi out: the only place that knows settings, flow, storage and machine together.

Nothing is imported here: a command that only needs the store does not load the way of a message.
"""
