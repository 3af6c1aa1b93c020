"""Zstandard frames of a known size, from files that may be damaged or made to do harm."""

import zstandard


def decompressed(frame: bytes, size: int) -> bytes:
    """What a frame holds; memory is allocated only if it says that this is ``size`` bytes.

    Raises ``ValueError`` if it is no frame, is damaged, or holds another number of bytes.
    """
    try:
        if zstandard.frame_content_size(frame) != size:
            raise ValueError(f"it does not hold {size} bytes")
        return zstandard.ZstdDecompressor().decompress(frame, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error
