"""The public namespaces: which names they have, and the errors for names that they do not have."""
