//! The demo harness: an interactive program that behaves like an agent (DI-38).
