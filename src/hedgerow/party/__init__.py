"""A data holder: checks, charges, answers or refuses."""
