//! The program that runs in the container: the modules of the folder `payload`, concatenated. They are real modules, so
//! that Python's tools work on them; the container receives one text, which a security team can read from top to
//! bottom.

use super::steps;

/// Names and texts of the modules, sorted by name.
const MODULES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/modules.rs"));

/// Names of the modules that steps share, in order.
const SHARED: &str = include_str!("payload/MODULES");

/// Prefix of imports between the modules, which the concatenated text does not need.
const OWN_IMPORT: &str = "from ncclcheck_probe.";

/// The whole program: the table of steps, then all modules.
pub fn program() -> String {
    let table = format!("STEP_TABLE = r\"\"\"{}\"\"\"\n", steps::TEXT);
    let modules = names().into_iter().map(text);
    let lines = modules.flat_map(str::lines).filter(|line| !line.starts_with(OWN_IMPORT));
    lines.fold(table, |program, line| program + line + "\n")
}

/// Names of the modules in order: the shared ones from the list `MODULES`, then those of the steps, then `main`.
fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = SHARED.split_whitespace().collect();
    for row in steps::rows() {
        // Two steps may share one module.
        if !names.contains(&row.module.as_str()) {
            names.push(&row.module);
        }
    }
    names.push("main");
    names
}

fn text(name: &str) -> &'static str {
    MODULES.iter().find_map(|&(known, text)| (known == name).then_some(text)).unwrap_or_default()
}

/// Arguments that make the interpreter run the program from its standard input. It reads exactly the bytes of the
/// program, so that a later end of standard input signals the end of the process that started it.
pub fn start(program: &str, plan: &str) -> Vec<String> {
    let bootstrap = format!(
        "import sys; SOURCE = sys.stdin.buffer.read({}).decode(); \
         exec(compile(SOURCE, 'ncclcheck-probe', 'exec'))",
        program.len()
    );
    ["-c", &bootstrap, "--plan", plan].map(ToOwned::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_has_all_modules_and_no_imports_between_them() {
        let program = program();
        assert!(program.contains("def main(") && program.ends_with("sys.exit(main(sys.argv[1:]))\n"));
        assert!(!program.contains("ncclcheck_probe."));
        assert!(MODULES.len() > 40, "{}", MODULES.len());
        for (name, text) in MODULES {
            assert!(program.contains(text.lines().next().unwrap()), "{name} is not in the program");
        }
    }
}
