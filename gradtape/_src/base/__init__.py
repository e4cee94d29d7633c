"""The ground floor: types, shapes, nests, errors, scopes and the log. It knows nothing of the rest."""
