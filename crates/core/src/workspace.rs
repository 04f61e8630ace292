//! Paths, branches and plans of checkouts (DI-45 to DI-48).
