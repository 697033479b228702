"""Dispatch: deliveries waiting in lanes go in; attempts go out to the channels, and settlements to the queue."""
