//! The rules folder is embedded in the program: a change in it is a change of the program.

fn main() {
    println!("cargo::rerun-if-changed=rules");
}
