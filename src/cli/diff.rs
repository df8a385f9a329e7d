//! `ncclcheck diff`.

use crate::check::{Check, compare};
use model::Environment;
use report::Format;

use super::images::{load, rulebook};
use super::output::Outputs;
use super::plan::ImagesPlan;
use super::{CliError, ExitStatus, args};

pub(super) fn diff(judged: args::CheckArgs, environment: &Environment) -> Result<ExitStatus, CliError> {
    let mut plan = ImagesPlan::judge(judged, args::ImageProcessArgs::default(), environment)?;
    if plan.requests.len() != 2 || plan.hosts.len() > 1 {
        let what = "diff takes two images and at most one host: ncclcheck diff OLD NEW";
        return Err(CliError::Usage(what.to_owned()));
    }
    if let Some((format, _)) = plan.outputs.iter().find(|(format, _)| !Format::OF_DIFFERENCE.contains(format)) {
        let names: Vec<_> = Format::OF_DIFFERENCE.iter().map(|format| format.name()).collect();
        let wrong = format!("--format {}: available formats: {}", format.name(), names.join(", "));
        return Err(CliError::Usage(wrong));
    }
    plan.confine(None, environment)?;
    let rulebook = rulebook(&plan)?;
    let check = Check::new(&rulebook).hosts(&plan.hosts).launch(&plan.launch).fail_on(plan.fail_on);
    let mut outputs = Outputs::open(&plan.outputs)?;
    let mut sides = Vec::new();
    for (_, loaded) in load(&plan.requests, plan.verbosity) {
        for image in loaded? {
            sides.extend(check.run(&image).into_iter().map(|assessment| (image.summary.clone(), assessment)));
        }
    }
    let [(before, was), (after, is)] = &*sides else {
        return Err(CliError::Usage("diff compares one platform: omit --platform all".to_owned()));
    };
    let difference = compare((before, was), (after, is));
    outputs.difference(&difference, &plan.style)?;
    outputs.finish(&plan.style)?;
    Ok(plan.exit.status(difference.verdict()))
}
