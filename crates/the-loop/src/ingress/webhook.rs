//! The webhook receiver (IN-1 to IN-6).
