//! The inbox: accepted deliveries and their outcomes, in SQLite (ST-51 to ST-61).
