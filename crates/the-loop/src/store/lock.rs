//! File locks: one per item, and the services' (ST-23 to ST-28).
