"""The names under which users find what is in here, and the words for those that are missing."""
