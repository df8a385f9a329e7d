//! Environments of conda, mamba and micromamba: `run`, and the shell functions that activate one. What activation does
//! is computed, since it runs Python or a compiled program (conda, "Managing environments").

use model::ImagePath;
use shell::{Field, ShellGap, ShellKind, ShellSource, ShellState};

use super::super::arguments::{assignment, known};
use super::super::wrapper::Wrapper;
use super::{Outcome, Runner, SETTLE, Start};

/// `conda run [OPTIONS] COMMAND`.
pub(super) fn run(
    runner: &mut Runner<'_>,
    table: &Wrapper,
    tool: &str,
    program: &ImagePath,
    start: &Start<'_>,
    state: &ShellState,
) -> Outcome {
    let mut words = start.options(start.words.get(2..).unwrap_or_default());
    let mut name = None;
    let mut child = state.child(ShellKind::Bash, tool);
    while let Some(option) = words.option(table)? {
        match &*option.name {
            "-n" | "--name" | "-p" | "--prefix" => name = known(option.value)?,
            "--cwd" => child.directory = known(option.value)?.map_or_else(|| child.directory.clone(), Ok),
            "-r" | "--root-prefix" => child.export("MAMBA_ROOT_PREFIX", Ok(known(option.value)?.unwrap_or_default())),
            "-e" | "--env" => {
                if let Some((name, value)) = option.value.as_ref().and_then(assignment) {
                    child.export(name, value);
                }
            }
            _ => {}
        }
    }
    let root = of_program(runner, tool, program);
    let root = root.map_or_else(|| root_of(runner, tool, &child), Ok)?;
    let prefix = environment(runner, &root, name.as_deref(), &child)?;
    let script = script(runner, &prefix, &child);
    runner.evaluate(&mut child, &[ShellSource { name: format!("{tool} run"), text: script }])?;
    runner.rest(start, &child, words.rest())
}

/// A script with the effect of a command that activates an environment.
pub(super) fn stand_in(runner: &Runner<'_>, words: &[Field], state: &ShellState) -> Option<Result<String, ShellGap>> {
    let words: Vec<&str> = words.iter().map_while(|word| word.as_deref().ok()).collect();
    let (first, rest) = words.split_first()?;
    let tool = first.rsplit('/').next()?;
    match (tool, rest) {
        ("conda" | "mamba" | "micromamba", ["activate", rest @ ..]) => {
            let name = rest.iter().find(|word| !word.starts_with('-')).copied();
            Some(activation(runner, tool, name, state))
        }
        ("conda" | "mamba" | "micromamba", ["deactivate", ..]) => {
            Some(Ok(format!("export PATH={}\nunset CONDA_PREFIX CONDA_DEFAULT_ENV", quoted_path(state, None)?)))
        }
        ("conda", [shell, "hook"]) if shell.starts_with("shell.") => {
            let program = runner.locate(first, state).ok()?.map_or_else(String::new, |path| path.to_string());
            let hook = format!("export CONDA_EXE={}; conda activate base", quoted(&program));
            Some(Ok(format!("echo {}", quoted(&hook))))
        }
        ("mamba" | "micromamba", ["shell", "hook", ..]) => Some(Ok("echo true".to_owned())),
        ("pyenv", ["init", ..]) => {
            let root = state.text("PYENV_ROOT").ok().filter(|root| !root.is_empty());
            let root = root.or_else(|| Some(format!("{}/.pyenv", state.text("HOME").ok()?)))?;
            Some(Ok(format!("echo 'export PATH=\"{root}/shims:$PATH\"'")))
        }
        // conda's own script, beside the records of the base environment.
        ("." | "source", [file, rest @ ..]) if file.rsplit('/').next() == Some("activate") => {
            let path = runner.locate_file(file, state)?;
            let root = path.parent().parent();
            if !runner.rootfs.is_directory(&root.join(b"conda-meta")) {
                return None;
            }
            let name = rest.first().copied();
            Some(environment(runner, &root, name, state).map(|prefix| script(runner, &prefix, state)))
        }
        _ => None,
    }
}

/// The script that activates an environment by its name or its path.
fn activation(runner: &Runner<'_>, tool: &str, name: Option<&str>, state: &ShellState) -> Result<String, ShellGap> {
    let root = root_of(runner, tool, state)?;
    let prefix = environment(runner, &root, name, state)?;
    Ok(script(runner, &prefix, state))
}

/// The installation of a program that is called: conda runs in the Python of its own.
fn of_program(runner: &Runner<'_>, tool: &str, program: &ImagePath) -> Option<ImagePath> {
    let (real, _) = runner.rootfs.open(program).ok()?;
    let root = real.parent().parent();
    let has_python = runner.rootfs.open(&root.join(b"bin/python")).is_ok();
    let is_base = has_python || runner.rootfs.is_directory(&root.join(b"conda-meta"));
    (tool != "micromamba" && is_base).then_some(root)
}

/// The base environment.
fn root_of(runner: &Runner<'_>, tool: &str, state: &ShellState) -> Result<ImagePath, ShellGap> {
    let variable = |name: &str| state.text(name).map(|value| Some(value).filter(|value| !value.is_empty()));
    if tool != "conda"
        && let Some(root) = variable("MAMBA_ROOT_PREFIX")?
    {
        return Ok(ImagePath::from(root.as_str()));
    }
    if tool != "micromamba" {
        if let Some(program) = variable("CONDA_EXE")? {
            return Ok(ImagePath::from(program.as_str()).parent().parent());
        }
        if let Some(program) = runner.locate(tool, state)?
            && let Ok((real, _)) = runner.rootfs.open(&program)
        {
            return Ok(real.parent().parent());
        }
    }
    Err(ShellGap::new(format!("the installation of {tool} is unknown")).settled_by(SETTLE))
}

/// The folder of an environment.
fn environment(
    runner: &Runner<'_>,
    root: &ImagePath,
    name: Option<&str>,
    state: &ShellState,
) -> Result<ImagePath, ShellGap> {
    let mut candidates = Vec::new();
    match name {
        None | Some("base" | "root") => candidates.push(root.clone()),
        Some(path) if path.contains('/') => {
            candidates.push(ImagePath::from(state.directory.clone()?.as_str()).join(path.as_bytes()));
        }
        Some(name) => {
            for variable in ["CONDA_ENVS_PATH", "CONDA_ENVS_DIRS"] {
                let folders = state.text(variable)?;
                let folders = folders.split(':').filter(|folder| !folder.is_empty());
                candidates.extend(folders.map(|folder| ImagePath::from(folder).join(name.as_bytes())));
            }
            candidates.push(root.join(b"envs").join(name.as_bytes()));
            if let Ok(home) = state.text("HOME") {
                candidates.push(ImagePath::from(home.as_str()).join(b".conda/envs").join(name.as_bytes()));
            }
        }
    }
    let found = candidates.into_iter().find(|folder| runner.rootfs.is_directory(folder));
    found.ok_or_else(|| {
        let name = name.unwrap_or("base");
        ShellGap::new(format!("the conda environment {name} does not exist in the image")).settled_by(SETTLE)
    })
}

/// `PATH` without the active environment and with another one first, as a word of a script.
fn quoted_path(state: &ShellState, prefix: Option<&ImagePath>) -> Option<String> {
    let path = state.text("PATH").ok()?;
    let active = state.text("CONDA_PREFIX").ok().filter(|prefix| !prefix.is_empty());
    let active = active.map(|prefix| format!("{prefix}/bin"));
    let first = prefix.map(|prefix| format!("{prefix}/bin"));
    let rest = path.split(':').filter(|entry| active.as_deref() != Some(*entry));
    let entries: Vec<String> = first.into_iter().chain(rest.map(str::to_owned)).collect();
    Some(quoted(&entries.join(":")))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The variables of an active environment, and the scripts of its packages.
fn script(runner: &Runner<'_>, prefix: &ImagePath, state: &ShellState) -> String {
    let shown = quoted(&prefix.to_string());
    let path = quoted_path(state, Some(prefix)).unwrap_or_else(|| format!("{shown}/bin:\"$PATH\""));
    let name = String::from_utf8_lossy(prefix.file_name()).into_owned();
    let mut script =
        format!("export PATH={path}\nexport CONDA_PREFIX={shown}\nexport CONDA_DEFAULT_ENV={}\n", quoted(&name));
    let folder = prefix.join(b"etc/conda/activate.d");
    for name in runner.rootfs.names(&folder).filter(|name| name.ends_with(b".sh")) {
        script = script + ". " + &quoted(&folder.join(name).to_string()) + "\n";
    }
    script
}

impl Runner<'_> {
    /// A file to be sourced: a path directly, a name through `PATH`.
    fn locate_file(&self, file: &str, state: &ShellState) -> Option<ImagePath> {
        if !file.contains('/') {
            return self.locate(file, state).ok()?;
        }
        let path = ImagePath::from(state.directory.clone().ok()?.as_str()).join(file.as_bytes());
        Some(self.rootfs.open(&path).ok()?.0)
    }
}
