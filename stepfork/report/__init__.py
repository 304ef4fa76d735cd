"""What users read: texts and exported tests. Objects in, text out."""
