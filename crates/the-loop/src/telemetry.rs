//! Developer tracing.
