"""Gives committed chunks their vectors: from the model, the cache, or the store of a team."""
