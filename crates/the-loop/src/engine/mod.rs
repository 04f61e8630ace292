//! From an accepted delivery to an agent that has it.
