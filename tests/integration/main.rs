//! All tests of the whole program.
