//! What a harness reports about itself: the `hook` command's line, and its reader (SE-69).
