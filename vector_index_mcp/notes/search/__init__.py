"""Search: `matching` by words, in the files; `index` by meaning, whose answers `meaning` builds."""
