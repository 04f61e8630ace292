//! Control keywords and what a command does (IN-34 to IN-38).
