"""What is asked and what is made of it, one folder a method."""
