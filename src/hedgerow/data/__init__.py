"""Public facts and tables: schema, reading, encoding, binning, persons."""
