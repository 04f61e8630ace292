//! Typed settings by section, with their defaults.
