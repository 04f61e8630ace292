//! tmux: argv in, classified outcome out (DI-11 to DI-17).
