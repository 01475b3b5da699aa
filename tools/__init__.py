"""What the graphs call, a folder a stage."""
