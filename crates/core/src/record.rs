//! Shapes on disk, each versioned.
