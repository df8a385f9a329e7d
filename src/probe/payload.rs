//! The program that runs in the container: the modules beside this file, as one.

/// Modules in the order in which they build on each other.
const MODULES: &[&str] = &[];

/// The whole program.
pub fn program() -> String {
    MODULES.concat()
}
