"""The pure middle: calls, matching, order, redaction. Standard library only."""
