//! `ncclcheck audit`.

mod manifest;
mod plan;
mod show;
mod sources;
mod work;

use crate::audit::AuditRun;
use layer::store::ObjectFolder;
use model::Environment;

use super::args::audit::{AuditCommand, StoreArgs};
use super::{CliError, ExitStatus};

/// Runs a command of an audit.
pub(super) fn run(command: AuditCommand, environment: &Environment) -> Result<ExitStatus, CliError> {
    match command {
        AuditCommand::Plan(asked) => plan::plan(*asked, environment),
        AuditCommand::Run(asked) => work::work(*asked, environment),
        AuditCommand::Status { store, format } => show::status(&store, format, environment),
        AuditCommand::Merge { store, view } => show::merge(&store, &view, environment),
        AuditCommand::Trend { store, since, view } => show::trend(&store, since.as_deref(), &view, environment),
        AuditCommand::Manifest(asked) => manifest::print(&asked),
    }
}

fn store(asked: &StoreArgs, environment: &Environment) -> Result<ObjectFolder, CliError> {
    ObjectFolder::new(&asked.store, environment).map_err(|why| CliError::Usage(format!("--store {why}")))
}

fn open<'s>(store: &'s ObjectFolder, asked: &StoreArgs) -> Result<AuditRun<'s>, CliError> {
    Ok(AuditRun::open(store, asked.run.as_deref())?)
}
