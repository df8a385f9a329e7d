//! The facts about the process that the image starts.

use model::{Fact, ImagePath, Site, conceal};

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
    let user = match user {
        Err(gap) => Fact::Unknown(gap),
        Ok(user) => match user.id {
            Some(id) => Fact::known(id.to_string()),
            None => Fact::unknown("the image's passwd file does not have its user"),
        },
    };
    facts.insert(key::START_USER, user);
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
