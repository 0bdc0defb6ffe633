"""Whether a store is sound: `examining` looks, `repairing` proposes what to do, and does it."""
