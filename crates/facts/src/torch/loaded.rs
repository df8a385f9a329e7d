//! The libraries that `import torch` maps.

use std::collections::BTreeSet;

use model::{Fact, Gap, ImagePath};
use rootfs::loader::{Requester, Route};

use super::super::culprit;
use super::super::{Context, Facts, key};
use super::import::Import;
use super::musl;

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    configured(context, facts);
    // The process is that of another program.
    if context.subject.is_some() {
        facts.insert(key::TORCH_IMPORT_ERROR, Fact::Absent);
        facts.insert(key::TORCH_IMPORT_CAUSE, Fact::Absent);
        facts.insert(key::TORCH_LOADED, Fact::Absent);
        culprit::insert(&Fact::Absent, facts);
        return;
    }
    let failure = context.loader.agreed(|import| (import.failure.clone(), import.process.doubt().cloned()));
    let failure = failure.and_then(|(failure, doubt), at| match (failure, doubt) {
        (None, Some(gap)) => Fact::Unknown(gap),
        (failure, _) => Fact::Seen { value: failure, at },
    });
    let cause = context.loader.agreed(|import| import.cause.clone());
    let cause = cause.and_then(|cause, at| cause.map_or(Fact::Absent, |value| Fact::Seen { value, at }));
    let (failure, cause) = match (&context.torch.failure, musl::failure(context), &context.torch.chosen) {
        (Some(why), ..) => (Fact::known(Some(why.clone())), Fact::Absent),
        (None, Some(why), Fact::Seen { at, .. }) => (Fact::Seen { value: Some(why), at: at.clone() }, Fact::Absent),
        _ => (failure, cause),
    };
    facts.insert(
        key::TORCH_IMPORT_ERROR,
        failure.clone().and_then(|failure, at| failure.map_or(Fact::Absent, |value| Fact::Seen { value, at })),
    );
    facts.insert(key::TORCH_IMPORT_CAUSE, cause);
    let culprit = failure.as_ref().and_then(|failure, _| match failure {
        Some(why) => culprit::find(context, why),
        None => Fact::Absent,
    });
    culprit::insert(&culprit, facts);
    let loaded = failure.and_then(|failure, _| match failure {
        Some(why) => Fact::Unknown(Gap::new(format!("`import torch` fails: {why}"))),
        None => context.loader.agreed(paths),
    });
    facts.insert(key::TORCH_LOADED, loaded);
}

/// The libraries that the loader finds only after ldconfig ran.
fn configured(context: &Context<'_>, facts: &mut Facts) {
    let found = context.loader.agreed(|import| {
        let objects = import.process.objects().iter().filter_map(|object| match &object.route {
            Route::Configured(file) => Some((object.path.clone(), file.clone())),
            _ => None,
        });
        objects.collect::<BTreeSet<_>>()
    });
    let found = found.and_then(|found, _| {
        let sites = found.iter().filter_map(|(path, _)| {
            let (real, file) = context.rootfs.open(path).ok()?;
            Some(file.site(&real, None))
        });
        if found.is_empty() { Fact::Absent } else { Fact::seen(found.clone(), sites.collect::<Vec<_>>()) }
    });
    let paths = |found: BTreeSet<(ImagePath, ImagePath)>| found.iter().map(|(path, _)| path.to_string()).collect();
    facts.insert(key::LIBRARY_CONFIGURED, found.clone().map(paths));
    let by = found.and_then(|found, _| found.into_iter().next().map(|(_, file)| file).into());
    facts.insert(key::LIBRARY_CONFIGURED_BY, by);
}

fn paths(import: &Import<'_>) -> Vec<String> {
    let libraries = import.objects().filter(|object| object.asked != Requester::Program);
    let mut paths: Vec<_> = libraries.map(|object| object.path.to_string()).collect();
    paths.sort();
    paths.dedup();
    paths
}
