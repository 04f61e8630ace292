//! May this actor cause this? Says why not (IN-22).
