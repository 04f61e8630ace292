//! The status of a session and its total transition function.
