"""SMTP: messages go to a relay over pooled, pipelined connections, and each gets the relay's own answer."""
