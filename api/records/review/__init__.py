"""What people and candidates say of inspections, what follows from it, and what is to be learnt from it."""
