//! From flag, environment and file to settings with origins (CF-1 to CF-9).
