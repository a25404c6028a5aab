"""What a run found, and where: the environment that figures belong to."""
