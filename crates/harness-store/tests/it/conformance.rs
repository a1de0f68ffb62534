//! The suite that every store passes.

use crate::home::Home;

harness_ports::store_conformance! { Home::new() }
