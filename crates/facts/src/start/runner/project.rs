//! Managers of projects that run a command in the project's environment: uv, Poetry, PDM and Pipenv.

use model::{Found, ImagePath};
use shell::{Field, ShellGap, ShellKind, ShellState};

use super::super::arguments::known;
use super::super::wrapper::Wrapper;
use super::{Outcome, Runner, SETTLE, Start};

/// `uv run`, `poetry run`, `pdm run` and `pipenv run`.
pub(super) fn run(
    runner: &mut Runner<'_>,
    table: &Wrapper,
    tool: &str,
    start: &Start<'_>,
    state: &ShellState,
    rest: &[Field],
) -> Outcome {
    let mut words = start.options(rest);
    let mut child = state.child(ShellKind::Posix, "");
    let mut is_module = false;
    let mut is_outside = false;
    let mut syncs = tool == "uv" && !state.text("UV_NO_SYNC").is_ok_and(|value| !value.is_empty());
    let mut other = None;
    let mut place = String::new();
    while let Some(option) = words.option(table)? {
        match &*option.name {
            "-m" | "--module" => is_module = true,
            "--no-project" => is_outside = true,
            "--no-sync" => syncs = false,
            "--directory" => {
                if let Some(folder) = known(option.value)? {
                    child.enter(&folder);
                }
            }
            "--project" => place = known(option.value)?.unwrap_or_default(),
            "-p"
            | "--python"
            | "--isolated"
            | "-w"
            | "--with"
            | "--with-requirements"
            | "--with-editable"
            | "--env-file"
            | "-s"
            | "--script"
            | "--gui-script" => other = Some(option.name.clone()),
            _ => {}
        }
    }
    if let Some(option) = other {
        return Err(Runner::gap(start, &format!("{tool} run {option} chooses the environment when it runs")));
    }
    let folder = ImagePath::from(child.directory.clone()?.as_str()).join(place.as_bytes());
    let prefix = environment(runner, tool, (!is_outside).then_some(&folder), &child)?;
    syncs &= !is_outside;
    if syncs && prefix.is_some() {
        runner.assume_unchanged(&start.place, "uv run, which installs what uv.lock asks for");
    }
    if let Some(prefix) = &prefix {
        if let Some(why) = replaced(runner, &folder, prefix).filter(|_| syncs) {
            return Err(Runner::gap(start, &format!("uv run {why}")));
        }
        let path = child.text("PATH").map(|path| format!("{prefix}/bin:{path}"));
        child.export("PATH", path);
        child.export("VIRTUAL_ENV", Ok(prefix.to_string()));
        child.unset("PYTHONHOME");
    }
    let python = || Ok("python".to_owned());
    let is_script = words.peek().is_some_and(|word| word.strip_suffix(".py").is_some());
    if tool == "uv" && (is_module || is_script) {
        let mut command: Vec<Field> = vec![python()];
        if is_module {
            command.push(Ok("-m".to_owned()));
        }
        command.extend(words.rest().iter().cloned());
        return runner.rest(start, &child, &command);
    }
    runner.rest(start, &child, words.rest())
}

/// The environment that a manager uses for the project of a folder; `None` for the one that is active already.
fn environment(
    runner: &Runner<'_>,
    tool: &str,
    place: Option<&ImagePath>,
    state: &ShellState,
) -> Result<Option<ImagePath>, ShellGap> {
    let variable = |name: &str| state.text(name).map(|value| Some(value).filter(|value| !value.is_empty()));
    let mark: &[u8] = if tool == "pipenv" { b"Pipfile" } else { b"pyproject.toml" };
    let folder = ImagePath::from(state.directory.clone()?.as_str());
    let exists = |prefix: &ImagePath| runner.rootfs.exists(&prefix.join(b"pyvenv.cfg"));
    let has = |folder: &ImagePath, name: &[u8]| runner.rootfs.open(&folder.join(name)).is_ok();
    let project = place.and_then(|place| above(place).find(|folder| has(folder, mark)));
    if tool == "pdm" && project.as_ref().is_some_and(|project| has(project, b".pdm-python")) {
        return Err(ShellGap::new("pdm run uses the interpreter that .pdm-python names").settled_by(SETTLE));
    }
    let own = |name: &str| -> Result<Option<ImagePath>, ShellGap> {
        let Some(project) = &project else { return Ok(None) };
        let folder = variable(name)?.unwrap_or_else(|| ".venv".to_owned());
        Ok(Some(project.join(folder.as_bytes())).filter(&exists))
    };
    let active = variable("VIRTUAL_ENV")?.map(|prefix| ImagePath::from(prefix.as_str())).filter(&exists);
    let found = match tool {
        // A project's environment is used even if another one is active.
        "uv" if project.is_some() => own("UV_PROJECT_ENVIRONMENT")?,
        "uv" => active.or_else(|| above(&folder).map(|folder| folder.join(b".venv")).find(&exists)),
        "poetry" if variable("POETRY_VIRTUALENVS_CREATE")?.is_some_and(|value| value.eq_ignore_ascii_case("false")) => {
            return Ok(None);
        }
        _ => match active {
            Some(active) => Some(active),
            None => own("")?,
        },
    };
    match found {
        Some(prefix) => Ok(Some(prefix)),
        None => Err(ShellGap::new(format!("{tool} run creates or chooses the project's environment when it runs"))
            .settled_by(SETTLE)),
    }
}

/// What `uv run` installs in place of the torch of an environment, if the lock of the project names another one.
fn replaced(runner: &Runner<'_>, folder: &ImagePath, prefix: &ImagePath) -> Option<String> {
    let project = above(folder).find(|folder| runner.rootfs.open(&folder.join(b"pyproject.toml")).is_ok())?;
    let lock = project.join(b"uv.lock");
    let (_, file) = runner.rootfs.open(&lock).ok()?;
    let locked = file.found.iter().find_map(|found| match found {
        Ok(Found::TorchPin(releases)) => Some(releases),
        _ => None,
    })?;
    let libraries = prefix.join(b"lib");
    let folders =
        runner.rootfs.names_with(&libraries, b"python3").map(|name| libraries.join(name).join(b"site-packages"));
    let installed = folders
        .flat_map(|folder| runner.rootfs.names_with(&folder, b"torch-").map(ToOwned::to_owned).collect::<Vec<_>>());
    let installed = installed.filter_map(|name| {
        String::from_utf8(name).ok()?.strip_prefix("torch-")?.strip_suffix(".dist-info").map(ToOwned::to_owned)
    });
    let installed = installed.last();
    if installed.as_deref().is_some_and(|own| model::is_among(own, locked)) {
        return None;
    }
    let instead = installed.map_or(String::new(), |own| format!(" in place of {own}"));
    Some(format!("installs torch {locked} of {lock}{instead} when it runs"))
}

/// A folder and those above it.
fn above(folder: &ImagePath) -> impl Iterator<Item = ImagePath> {
    let mut next = Some(folder.clone());
    std::iter::from_fn(move || {
        let folder = next.take()?;
        next = (!folder.is_root()).then(|| folder.parent());
        Some(folder)
    })
}
