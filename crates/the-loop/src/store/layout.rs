//! Every generated path, classified (ST-12).
