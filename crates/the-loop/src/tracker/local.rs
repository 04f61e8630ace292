//! The embedded tracker (ST-65 to ST-67, IN-54 to IN-56).
