"""Track: what providers say later goes in; what is known of people and messages afterwards comes out."""
