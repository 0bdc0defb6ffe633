"""The doctor of the notes: `examining` checks a store, `repairing` proposes and makes repairs."""
