//! Doubles for tests: a disk that fails, scripted processes, a model of tmux and of an agent.
