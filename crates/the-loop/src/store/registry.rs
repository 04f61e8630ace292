//! Session records (ST-41 to ST-44).
