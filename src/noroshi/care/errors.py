"""Why something cannot be done to a store as asked: one line that says what to do, and never shows a password."""


class CareError(RuntimeError):
    """Nothing was lost; the text says what stands in the way."""
