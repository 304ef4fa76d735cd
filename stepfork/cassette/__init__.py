"""The cassette file: values, documents, text, checksum. Knows no session and no SDK."""
