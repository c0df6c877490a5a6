"""Noise, masks, accounting, plans and the ledger."""
