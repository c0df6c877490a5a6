"""What travels: messages, keys, masks, and what an engine is."""
