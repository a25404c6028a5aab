"""What a target's compiler made of a program, rewritten so that this machine can run it."""
