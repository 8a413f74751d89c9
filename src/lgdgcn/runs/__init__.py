"""Run folders: what lies in them, how they are written, read back and gone on with."""
