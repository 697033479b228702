"""Noroshi: one API through which a product reaches people on every channel."""

from noroshi.enqueueing.enqueue import aenqueue, enqueue
from noroshi.enqueueing.errors import BadRequestError, NoStoreError, UnsafeConnectionError

__all__ = ["BadRequestError", "NoStoreError", "UnsafeConnectionError", "aenqueue", "enqueue"]
__version__ = "0.1.0"
