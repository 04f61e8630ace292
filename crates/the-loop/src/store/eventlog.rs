//! The event log: writing, rotating, reading (EV-6 to EV-26).
