//! Verifying signatures over raw bytes (IN-4, IN-5).
