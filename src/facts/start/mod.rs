//! The process that the image starts: its Python, and the user, the working directory and the variables that it gets.

mod call;
mod state;
mod user;

#[cfg(test)]
pub(super) use call::PythonFlags;
pub(super) use call::{PythonCall, PythonTarget};
pub(super) use state::ProcessState;
pub(super) use user::ContainerUser;

use crate::model::ImageConfig;
use crate::rootfs::RootFs;

/// The call of Python that the image's command makes, if the image has a Python.
pub(super) fn python(rootfs: &RootFs, config: Option<&ImageConfig>) -> Option<PythonCall> {
    call::choose(rootfs, &ProcessState::initial(rootfs, config), config)
}
