//! The dispatch machine: what to do next with one routed delivery (DI-10).
