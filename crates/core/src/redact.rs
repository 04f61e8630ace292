//! What may never be printed (EV-18, EV-19).
