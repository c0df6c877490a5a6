"""What a run costs: plans and accountants."""
