"""The peer-to-peer protocol without input or output: bytes and messages in, bytes out."""
