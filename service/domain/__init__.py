"""What is asked and answered, whose call it is, and the errors. Imports nothing of ours."""
