//! What tmux answered about a name, and what each answer licenses (DI-13, DI-16).
