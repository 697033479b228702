"""StoredAttachments: a batch in, the contents of its attachments out."""

import msgspec

from noroshi.domain.attachments import Attachment
from noroshi.domain.ids import BatchId, TenantId
from noroshi.storage.turns import Readings

_decode = msgspec.json.Decoder(tuple[Attachment, ...]).decode


def read_attachments(column: bytes | None) -> tuple[Attachment, ...]:
    """What a row tells of the attachments of its batch."""
    return () if column is None else _decode(column)


class StoredAttachments:
    """Implements ports/attachments.py."""

    def __init__(self, readings: Readings) -> None:
        self._readings = readings

    async def contents(self, tenant: TenantId, batch_id: BatchId) -> list[bytes]:
        rows = await self._readings.read(lambda reader: reader.rows("attachments_of_batch", tenant, batch_id))
        return [bytes(content) for (content,) in rows]
