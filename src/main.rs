//! The program: parse, run, exit.

fn main() {}
