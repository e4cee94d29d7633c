"""What turns a simplified graph into something that runs."""
