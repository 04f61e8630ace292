//! Which work item a delivery is about (IN-13, IN-14).
