//! What container engines read differently in an image: forms of the table `forms.yaml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::document::shipped;
use crate::model::{AmbiguousForm, Fact, ImageConfig, Site};
use crate::rootfs::ImageAmbiguity;

use super::{Context, Facts, key};

/// Maximum number of ambiguities that a fact lists.
const LISTED: usize = 10;

/// A form, and what engines make of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FormRow {
    form: AmbiguousForm,
    what: String,
    /// True if engines only disagree about who may use the file.
    #[serde(default)]
    permissions: bool,
    readings: Vec<Reading>,
    #[expect(dead_code, reason = "for people who verify the table")]
    source: String,
}

/// What some engines make of a form.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reading {
    by: Vec<String>,
    read: String,
    /// True if these engines do not unpack the layer.
    #[serde(default)]
    refuses: bool,
}

/// What a form can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// Docker or containerd do not unpack the layer, so there is no container to judge.
    Refused,
    /// Engines give the path different contents.
    Differs,
    /// Engines give the path different permissions, which do not matter to root.
    Permissions,
    /// Engines agree; only other programs differ.
    Agrees,
}

/// Engines that run containers from images, and so decide what a verdict is about.
const ENGINES: &[&str] = &["Docker", "containerd", "Podman", "umoci"];

/// Parts of containerd that run containers from a table of contents.
const SNAPSHOTTERS: &[&str] = &["stargz-snapshotter", "soci-snapshotter"];

/// The engines whose reading this program follows.
const FOLLOWED: &[&str] = &["Docker", "containerd"];

static TABLE: LazyLock<BTreeMap<AmbiguousForm, FormRow>> = LazyLock::new(|| {
    let rows: Vec<FormRow> = shipped::table("forms");
    rows.into_iter().map(|row| (row.form, row)).collect()
});

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let all = &context.rootfs.ambiguities;
    let is_root = context.config.is_none_or(runs_as_root);
    let (deciding, others): (Vec<_>, Vec<_>) = all.listed.iter().partition(|ambiguity| decides(ambiguity, is_root));
    // An ambiguity that was counted but not kept may concern any path.
    let deciding = fact(&deciding, all.more);
    let others = fact(&others, 0);
    facts.insert(key::IMAGE_AMBIGUITIES, deciding);
    facts.insert(key::IMAGE_OTHER_AMBIGUITIES, others);
}

/// Returns true if the container's user is known to be root.
fn runs_as_root(config: &ImageConfig) -> bool {
    let user = config.user.split(':').next().unwrap_or_default();
    config.unknown.user.is_none() && matches!(user, "" | "0" | "root")
}

/// Returns true if a verdict can depend on an ambiguity.
fn decides(ambiguity: &ImageAmbiguity, is_root: bool) -> bool {
    match TABLE.get(&ambiguity.form).map_or(Effect::Differs, FormRow::effect) {
        Effect::Refused => true,
        Effect::Differs => ambiguity.is_read,
        Effect::Permissions => ambiguity.is_read && !is_root,
        Effect::Agrees => false,
    }
}

fn fact(ambiguities: &[&ImageAmbiguity], more: u64) -> Fact<Vec<String>> {
    let more = more + ambiguities.len().saturating_sub(LISTED) as u64;
    let shown = ambiguities.iter().take(LISTED);
    let mut lines: Vec<String> = shown.clone().map(|ambiguity| sentence(ambiguity)).collect();
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    let sites = shown.filter_map(|ambiguity| {
        let (layer, path) = (ambiguity.layer?, ambiguity.path.clone()?);
        Some(Site::File { layer, path, within: ambiguity.offset.map(|offset| format!("byte {offset} of the tar")) })
    });
    if lines.is_empty() { Fact::Absent } else { Fact::seen(lines, sites) }
}

/// `layer 2, byte 512, /a/b: two extended headers for one member (pax-repeated): …`.
fn sentence(ambiguity: &ImageAmbiguity) -> String {
    let layer = ambiguity.layer.map(|layer| format!("layer {}", layer + 1));
    let offset = ambiguity.offset.map(|offset| format!("byte {offset}"));
    let path = ambiguity.path.as_ref().map(ToString::to_string);
    let place = [layer, offset, path].into_iter().flatten().collect::<Vec<_>>().join(", ");
    let what = TABLE.get(&ambiguity.form).map(FormRow::sentence).unwrap_or_default();
    if place.is_empty() { what } else { format!("{place}: {what}") }
}

impl FormRow {
    fn sentence(&self) -> String {
        let readings: Vec<String> = self.readings.iter().map(Reading::sentence).collect();
        format!("{} ({}): {}", self.what, self.form.name(), readings.join("; "))
    }

    fn effect(&self) -> Effect {
        let runs = |reading: &&Reading| reading.is_by(ENGINES) || reading.is_by(SNAPSHOTTERS);
        let by_engines = self.readings.iter().filter(runs);
        if by_engines.clone().any(|reading| reading.refuses && reading.is_by(FOLLOWED)) {
            Effect::Refused
        } else if self.permissions {
            Effect::Permissions
        } else if by_engines.count() > 1 {
            Effect::Differs
        } else {
            Effect::Agrees
        }
    }
}

impl Reading {
    fn is_by(&self, engines: &[&str]) -> bool {
        self.by.iter().any(|name| engines.contains(&name.as_str()))
    }

    fn sentence(&self) -> String {
        let names = match self.by.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
            None => String::new(),
        };
        format!("{names} {}", self.read)
    }
}

#[cfg(test)]
mod tests {
    use crate::model::Gap;

    use super::*;

    #[test]
    fn every_form_has_one_row_that_says_what_each_engine_does() {
        let rows: Vec<FormRow> = shipped::table("forms");
        let forms: Vec<_> = rows.iter().map(|row| row.form).collect();
        assert_eq!(forms, AmbiguousForm::ALL, "in the order of the enumeration");
        for row in &rows {
            let mut named: Vec<_> = row.readings.iter().flat_map(|reading| &reading.by).collect();
            named.retain(|name| ENGINES.contains(&name.as_str()));
            named.sort_by_key(|name| ENGINES.iter().position(|engine| engine == name));
            assert_eq!(named, ENGINES, "{:?}", row.form);
        }
    }

    #[test]
    fn an_error_is_what_can_change_a_verdict() {
        let ambiguity = |form, is_read| ImageAmbiguity { form, layer: None, offset: None, path: None, is_read };
        let is_error = |form, is_read| decides(&ambiguity(form, is_read), true);
        for (form, read, unread) in [
            (AmbiguousForm::UnknownTypeFlag, true, true),
            (AmbiguousForm::NameOutsideRoot, true, true),
            (AmbiguousForm::OverlayAttribute, true, false),
            (AmbiguousForm::PaxGlobal, true, false),
            (AmbiguousForm::PaxRepeated, false, false),
            (AmbiguousForm::TocDifference, true, false),
        ] {
            assert_eq!((is_error(form, true), is_error(form, false)), (read, unread), "{form:?}");
        }
        for form in [AmbiguousForm::UndescribedDirectory, AmbiguousForm::HardLinkMode] {
            let is_error = |is_read, is_root| decides(&ambiguity(form, is_read), is_root);
            assert_eq!((is_error(true, false), is_error(true, true), is_error(false, false)), (true, false, false));
        }
    }

    #[test]
    fn an_unknown_user_may_be_another_than_root() {
        let is_root = |user: &str| runs_as_root(&ImageConfig { user: user.to_owned(), ..ImageConfig::default() });
        assert!(["", "0", "root", "0:100", "root:staff"].into_iter().all(is_root));
        assert!(!["1000", "app", "1000:0"].into_iter().any(is_root));
        let mut config = ImageConfig::default();
        config.unknown.user = Some(Gap::new("not declared"));
        assert!(!runs_as_root(&config));
    }

    #[test]
    fn a_sentence_names_layer_offset_form_and_engines() {
        let ambiguity = ImageAmbiguity {
            form: AmbiguousForm::OverlayAttribute,
            layer: Some(1),
            offset: Some(512),
            path: Some("opt".into()),
            is_read: true,
        };
        assert_eq!(
            sentence(&ambiguity),
            "layer 2, byte 512, /opt: an attribute that controls overlayfs (overlay-attribute): Docker and Podman apply \
             it and hide or redirect lower files; containerd and umoci do not apply it"
        );
        let many = vec![&ambiguity; LISTED + 2];
        let listed = fact(&many, 5);
        let lines = listed.value().unwrap();
        assert_eq!((lines.len(), lines.last().map(String::as_str)), (LISTED + 1, Some("and 7 more")));
        assert_eq!(listed.sites().len(), LISTED);
        assert_eq!(listed.sites().first().unwrap().to_string(), "/opt (byte 512 of the tar)");
        assert_eq!(fact(&[], 0), Fact::Absent);
        assert_eq!(fact(&[], 1).value().unwrap(), &["and 1 more"]);
    }
}
