"""The way of one notification, stage by stage."""
