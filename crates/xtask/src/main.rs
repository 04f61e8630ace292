//! Checks, generated documents and benchmarks.

fn main() {}
