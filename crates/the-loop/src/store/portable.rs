//! Portable records (ST-36 to ST-40).
