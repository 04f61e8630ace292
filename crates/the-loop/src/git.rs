//! git: checkouts, and saving work before one is removed (DI-45 to DI-48, ST-62).
