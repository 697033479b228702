"""Why a store cannot be opened: each says in one line what a person can do about it."""


class NewerSchemaError(RuntimeError):
    """The store was written by a newer version of Noroshi."""


class UnreachableError(RuntimeError):
    """The database cannot be reached; the text says why, never with a password."""


class UnsafeStoreError(RuntimeError):
    """The store may forget or spoil what was accepted; the text says which setting or version is to blame."""


class NotServableError(RuntimeError):
    """The store is not whole, or its rows live elsewhere now; the text says what to do."""
