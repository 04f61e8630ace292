//! GitHub's webhook bodies to deliveries (IN-7).
