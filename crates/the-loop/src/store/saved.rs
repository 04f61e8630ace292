//! Manifests of saved work (ST-62 to ST-64).
