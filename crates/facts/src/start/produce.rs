//! The facts about the process that the image starts.

use std::collections::BTreeSet;

use model::{Fact, ImagePath, Site, conceal, is_among};

use super::super::python::Python;
use super::super::{Context, Facts, key};

pub(crate) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let start = &context.start;
    let unknown = context.config.and_then(|config| config.unknown.command.clone());
    let chosen = context.config.map(|config| config.start.clone()).unwrap_or_default();
    let from = match &chosen.command {
        Some(Ok(command)) if command.is_of_job => {
            Site::Launch { file: command.from.clone(), line: None, variable: "command".to_owned() }
        }
        Some(Ok(command)) => Site::Config(command.from.clone()),
        _ => Site::Config("Entrypoint and Cmd".to_owned()),
    };
    let place = || [from.clone()];
    let unknown = chosen.command.and_then(Result::err).or(unknown);
    let command = match (&start.command, unknown) {
        (Some(command), _) => Fact::seen(command.clone(), place()),
        (None, Some(gap)) => Fact::Unknown(gap),
        (None, None) => Fact::Absent,
    };
    facts.insert(key::START_COMMAND, command);
    let python = match (&start.gap, &start.call) {
        (Some(gap), _) => Fact::Unknown(gap.clone()),
        (None, Some(call)) => Fact::known(call.program.clone()),
        (None, None) => Fact::Absent,
    };
    facts.insert(key::START_PYTHON, python);
    let user = match (&start.user, &start.call) {
        (_, Some(call)) => call.state.user.clone(),
        (user, None) => user.clone(),
    };
    // A program on the way may change the user.
    let named = chosen.user.filter(|_| user == start.user).and_then(|user| user.ok()?.at);
    let user = match user {
        Err(gap) => Fact::Unknown(gap),
        Ok(user) => match user.id {
            Some(id) => Fact::seen(id.to_string(), named),
            None => Fact::unknown("the image's passwd file does not have its user"),
        },
    };
    facts.insert(key::START_USER, user);
    activated(context, facts);
    let assumed = if start.assumed.is_empty() { Fact::Absent } else { Fact::known(start.assumed.clone()) };
    facts.insert(key::START_ASSUMED, assumed);
    let fault = start.fault.as_ref();
    let told = |text: Option<&str>| text.map_or(Fact::Absent, |text| Fact::seen(conceal(text).into_owned(), place()));
    facts.insert(key::START_REFUSED, told(fault.map(|fault| &*fault.message)));
    facts.insert(key::START_FAULT, told(fault.map(|fault| fault.kind.name())));
    facts.insert(key::START_CAUSE, told(fault.map(|fault| &*fault.cause)));
    facts.insert(key::START_PROGRAM, told(fault.map(|fault| &*fault.program)));
    facts.insert(key::START_NEAR, told(fault.and_then(|fault| fault.near.as_deref())));
    let path = |path: Option<&ImagePath>| path.map_or(Fact::Absent, |path| Fact::seen(path.clone(), place()));
    facts.insert(key::START_FILE, path(fault.and_then(|fault| fault.file.as_ref())));
    facts.insert(key::START_ABSENT, path(fault.and_then(|fault| fault.absent.as_ref())));
}

/// What a launcher leaves out that belongs to another Python than the one of the active environment.
fn activated(context: &Context<'_>, facts: &mut Facts) {
    let call = context.python.as_ref().map(|python| &python.call).filter(|call| call.launcher.is_some());
    let other = call.and_then(|call| {
        let prefix = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().find_map(|name| call.state.known(name))?;
        let folder = ImagePath::from(prefix).join(b"bin");
        let real = |folder: &ImagePath| context.rootfs.real_directory(folder);
        let is_file = |path: &ImagePath| context.rootfs.open(path).is_ok();
        let first = call.state.find("python", is_file).or_else(|| call.state.find("python3", is_file))?;
        (real(&first.parent()) == real(&folder) && real(&call.program.parent()) != real(&folder)).then_some(())?;
        let other = Python::of(context.rootfs, &call.of(first))?;
        let own = distributions(context, context.python.as_ref()?);
        let left_out: Vec<_> = distributions(context, &other).difference(&own).cloned().collect();
        (!left_out.is_empty()).then_some((other.call.program, left_out))
    });
    let (python, left_out) = other.map_or((None, None), |(python, left_out)| (Some(python), Some(left_out)));
    let launcher = call.and_then(|call| call.launcher.as_ref()).map(|launcher| {
        let file = context.rootfs.open(launcher).ok();
        Fact::seen(launcher.clone(), file.map(|(real, file)| file.site(&real, None)))
    });
    facts.insert(key::START_LAUNCHER, launcher.unwrap_or(Fact::Absent));
    facts.insert(key::START_ACTIVATED, python.into());
    facts.insert(key::START_LEFT_OUT, left_out.into());
}

/// The names of the packages that a Python imports, apart from those that install others.
fn distributions(context: &Context<'_>, python: &Python) -> BTreeSet<String> {
    let names = python.site_packages.iter().flat_map(|folder| context.rootfs.names(folder));
    let names = names.filter_map(|name| std::str::from_utf8(name).ok()?.strip_suffix(".dist-info")?.split('-').next());
    names.filter(|name| !is_among(name, "pip setuptools wheel uv")).map(ToOwned::to_owned).collect()
}
