"""What a house of a federation runs: the party with its limits and desk, rosters, runs, trying."""
