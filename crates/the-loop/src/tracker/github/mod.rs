//! GitHub, as far as signed webhooks need it.

pub mod payload;
pub mod signature;
