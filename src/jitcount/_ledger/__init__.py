"""What a run found and where: ledgers, their comparison, and budgets."""
