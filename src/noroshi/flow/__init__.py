"""The way of a notification: accept, address, collect, compose, dispatch, send, track."""
