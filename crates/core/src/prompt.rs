//! What the agent is told, and how untrusted text is framed (IN-60 to IN-65, DI-25, DI-26).
