//! `ncclcheck doctor`.

use std::path::PathBuf;

use crate::doctor::{Offer, OfferState, OwnFolders, examine};
use facts::machine::Record;
use image::source::AccessOptions;
use model::Environment;

use super::args::{ListFormat, StyleArgs};
use super::cache::folder;
use super::plan::style;
use super::{CliError, ExitStatus, output};

/// Prints what this machine offers. The exit status is 1 if something of it does not work.
pub(super) fn doctor(
    format: ListFormat,
    authfile: Option<PathBuf>,
    look: &StyleArgs,
    environment: &Environment,
) -> Result<ExitStatus, CliError> {
    let options = AccessOptions { authfile, environment: environment.clone(), ..AccessOptions::default() };
    let offers = examine(&Record::here(), &options, &OwnFolders::new(folder(environment)?, std::env::temp_dir()));
    let text = match format {
        ListFormat::Human => report::offers(&offers, &style(look, environment)),
        ListFormat::Json => json(&offers),
    };
    let text = text.map_err(|error| CliError::Output { what: "the report".to_owned(), error })?;
    output::stdout(|out| out.write_all(text.as_bytes()))?;
    let is_broken = offers.iter().any(|offer| offer.state == OfferState::Broken);
    Ok(if is_broken { ExitStatus::Fail } else { ExitStatus::Pass })
}

fn json(offers: &[Offer]) -> std::io::Result<String> {
    let document = serde_json::json!({"schema": "ncclcheck-doctor/1", "offers": offers});
    Ok(serde_json::to_string(&document)? + "\n")
}
