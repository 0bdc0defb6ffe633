"""Finding again: `matching` by words, in the files; `index` by meaning, which `meaning` words."""
