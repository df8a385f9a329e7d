//! The NCCL that a variable of vLLM names, and opens in place of torch's.

use model::{Fact, ImagePath, Site};
use rootfs::{FileAccess, Refusal};

use super::super::start::ContainerUser;
use super::super::{Context, Facts, key};

/// The variable (vLLM, `vllm/envs.py`).
const NAME: &str = "VLLM_NCCL_SO_PATH";

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let state = context.python.as_ref().map(|python| &python.call.state);
    let fact = match state.and_then(|state| state.variables.get(NAME)) {
        None => Fact::Absent,
        Some(Err(gap)) => Fact::Unknown(gap.clone()),
        Some(Ok(path)) => refusal(context, path).map_or_else(Fact::Unknown, |why| match why {
            Some(why) => Fact::seen(why, [Site::Config(format!("Env {NAME}"))]),
            None => Fact::Absent,
        }),
    };
    facts.insert(key::NCCL_NAMED_ERROR, fact);
}

/// Why the user of the process cannot read the library. One that does not exist may be mounted.
fn refusal(context: &Context<'_>, path: &str) -> Result<Option<String>, model::Gap> {
    let user = context.python.as_ref().and_then(|python| python.call.state.user.as_ref().ok());
    let Some(who) = user.and_then(ContainerUser::credentials).filter(|_| path.starts_with('/')) else {
        return Ok(None);
    };
    match context.rootfs.access(&who, ImagePath::from(path).as_bytes(), FileAccess::Read) {
        Err(Refusal::Denied(denied)) => {
            let verb = if denied.is_directory { "enter" } else { "read" };
            Ok(Some(format!("user {} may not {verb} {denied}, and {NAME} names {path}", who.user)))
        }
        Err(Refusal::Unknown(gap)) => Err(gap),
        Ok(_) | Err(Refusal::NoFile(_)) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use model::{Entry, EntryKind, FileOwner, ImageConfig};

    use super::*;
    use crate::tests::synthetic::{collect, file, rootfs};

    #[test]
    fn a_library_in_the_home_of_root_is_for_root_alone() {
        let entries = [
            ("usr/bin/python3", EntryKind::File, 0o755),
            ("root", EntryKind::Directory, 0o700),
            ("root/libnccl.so.2", EntryKind::File, 0o644),
            ("opt/libnccl.so.2", EntryKind::File, 0o644),
        ];
        let rootfs =
            rootfs(entries.map(|(path, kind, mode)| {
                (Entry { kind, mode, owner: Some(FileOwner::ROOT), ..file(path) }, Vec::new())
            }));
        let error = |user: &str, path: &str| {
            let config = ImageConfig {
                user: user.to_owned(),
                environment: [(NAME.to_owned(), path.to_owned()), ("PATH".to_owned(), "/usr/bin".to_owned())].into(),
                ..ImageConfig::default()
            };
            collect(&rootfs, &config).get(key::NCCL_NAMED_ERROR).value().cloned()
        };
        assert_eq!(
            error("1000", "/root/libnccl.so.2").as_deref(),
            Some(
                "user 1000 may not enter /root (mode 0700, owner 0:0), and VLLM_NCCL_SO_PATH names /root/libnccl.so.2"
            )
        );
        assert_eq!(error("0", "/root/libnccl.so.2"), None);
        assert_eq!(error("1000", "/opt/libnccl.so.2"), None);
        assert_eq!(error("1000", "/mnt/libnccl.so.2"), None);
    }
}
