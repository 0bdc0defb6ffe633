"""The live index of one project: kept fresh and searched. Knows nothing of who is connected."""
