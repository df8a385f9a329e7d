//! Files that a kernel would execute.

use crate::model::ImagePath;

use super::{RootFs, What};

impl RootFs {
    /// Returns true when a path leads to a regular file that some user may execute.
    pub fn is_executable(&self, path: &ImagePath) -> bool {
        self.resolve(path).is_ok_and(|(_, node)| {
            let node = self.node(node);
            matches!(node.what, What::File { .. }) && node.mode & 0o111 != 0
        })
    }

    /// Returns true when a path leads to anything.
    pub fn exists(&self, path: &ImagePath) -> bool {
        self.resolve(path).is_ok()
    }
}
