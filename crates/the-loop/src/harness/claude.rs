//! The adapter of Claude Code (DI-35).
