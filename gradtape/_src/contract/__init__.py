"""The contract that every op is tested for: samples as calls, and the checks. Use it through `gradtape.testing`."""
