"""Split methods: how the structure of a tree comes about."""
