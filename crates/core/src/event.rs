//! The vocabulary of the event log; its doc comments are the catalogue.
