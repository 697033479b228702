"""The catcher: stands in for every provider in development and keeps what it got."""
