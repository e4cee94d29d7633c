"""Types and static facts: cast, shape, size, rank."""
