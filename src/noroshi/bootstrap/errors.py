"""What a start can fail with, so that whoever starts can say it in one line."""

from noroshi.bootstrap.locking import DataLockedError
from noroshi.flow.send.registry import RegistryError
from noroshi.machine.secrets import SecretsError
from noroshi.machine.stripe_signatures import StripeMissingError
from noroshi.storage.errors import NewerSchemaError, NotServableError, UnreachableError, UnsafeStoreError

START_ERRORS: tuple[type[Exception], ...] = (
    DataLockedError,
    NewerSchemaError,
    NotServableError,
    RegistryError,
    SecretsError,
    StripeMissingError,
    UnreachableError,
    UnsafeStoreError,
)
"""What a person can mend before the next start: each says how in one line."""
