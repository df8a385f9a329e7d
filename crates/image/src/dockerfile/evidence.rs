//! Whether an image was built from a Dockerfile.

use std::collections::BTreeMap;

use model::{ImagePath, ImageSummary, Site, shown_value};

use super::super::history;
use super::Dockerfile;

/// Why a Dockerfile is not that of an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DockerfileMismatch {
    /// The image has another value of a variable than the Dockerfile gives it.
    #[error("line {line} of {path} sets {name} to '{written}', but the image {}", .found.as_ref().map_or_else(|| "does not set it".to_owned(), |value| format!("has '{value}'")))]
    Value {
        /// The Dockerfile.
        path: String,
        /// The line of the assignment.
        line: usize,
        /// The variable.
        name: String,
        /// Its value in the Dockerfile.
        written: String,
        /// Its value in the image.
        found: Option<String>,
    },
    /// Neither a variable nor a build step shows that the image was built from the Dockerfile.
    #[error("nothing in the image shows that it was built from {0}: no variable and no build step of it is there")]
    NoEvidence(String),
}

impl Dockerfile {
    /// Compares the variables and the build steps with those of an image, which has this environment. The image's own
    /// values of hidden variables are unknown.
    pub fn matches(
        &self,
        image: &ImageSummary,
        environment: &BTreeMap<String, String>,
        is_hidden: impl Fn(&str) -> bool,
    ) -> Result<(), DockerfileMismatch> {
        let mut has_evidence = false;
        // Variables in a value, and those that only the builder knows, are not expanded here.
        let plain = self.assignments().into_iter().filter(|(_, pair)| !pair.value.contains('$'));
        for (name, pair) in plain.filter(|(name, _)| !is_hidden(name)) {
            let written = &*pair.value;
            let found = environment.get(name);
            if found.is_none_or(|found| found != written) {
                return Err(DockerfileMismatch::Value {
                    path: self.path.clone(),
                    line: self.line_at(pair.span.start),
                    name: name.to_owned(),
                    written: shown_value(name, written).into_owned(),
                    found: found.map(|found| shown_value(name, found).into_owned()),
                });
            }
            has_evidence = true;
        }
        let of_layer = |layer| Site::File { layer, path: ImagePath::root(), within: None };
        if has_evidence || (0..image.layers.len()).any(|layer| self.line(&of_layer(layer), image).is_some()) {
            return Ok(());
        }
        Err(DockerfileMismatch::NoEvidence(self.path.clone()))
    }

    /// Returns true if the base image sets a variable too, as far as the image's history shows: it has more build steps
    /// that set the variable than the Dockerfile.
    pub fn is_set_below(&self, name: &str, image: &ImageSummary) -> bool {
        let recorded = history::assignments(name, image);
        let written = self.steps.iter().filter(|step| step.variables.iter().any(|pair| pair.name == name)).count();
        recorded > written
    }
}
