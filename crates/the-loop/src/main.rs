//! The binary: parse, build the world, run, exit.

fn main() {}
