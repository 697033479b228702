"""In-app: what a person finds in their inbox."""
