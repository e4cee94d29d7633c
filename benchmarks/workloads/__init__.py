"""The workloads W1 to W12, written once for each library's API."""
