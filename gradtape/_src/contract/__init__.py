"""The contract every op keeps: its samples as calls, and the checks. `gradtape.testing` is the way in."""
