//! From hook and transcript observations to confirmation and agent state (DI-29, DI-31).
