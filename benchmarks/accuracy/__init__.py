"""Parts of the accuracy benchmark: tables, methods, cells, report, requirements, pictures."""
