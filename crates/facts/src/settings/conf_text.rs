//! A configuration file as the `fopen` of NCCL finds it: NCCL ignores what it cannot open or read, without a message.

use model::{Fact, Gap, ImagePath, Site};
use rootfs::{Credentials, FileAccess, NoFile, Refusal};

use super::super::start::ContainerUser;
use super::super::{Context, text};

/// What NCCL gets from a path.
pub(super) enum ConfText<'a> {
    /// The content, and the site of the file.
    Read(&'a [u8], Site),
    /// Nothing, although there is something; the reason.
    Ignored(String, Option<Site>),
    /// Nothing: there is no file.
    Missing,
    /// The file may set variables, but its content or NCCL's access to it is unknown.
    Unread(Gap),
}

impl<'a> ConfText<'a> {
    pub(super) fn open(context: &Context<'a>, path: &ImagePath) -> Self {
        let user = context.job_user();
        let who = user.as_ref().ok().and_then(ContainerUser::credentials).unwrap_or_else(Credentials::anybody);
        match (context.rootfs.access(&who, path.as_bytes(), FileAccess::Read), user) {
            (Ok(_), _) => Self::content(context, path),
            (Err(Refusal::NoFile(NoFile::Missing)), _) => Self::missing(context, path),
            (Err(Refusal::NoFile(NoFile::Loop)), _) => Self::Ignored("its links form a loop".to_owned(), None),
            (Err(Refusal::NoFile(NoFile::NotAFile)), _) => Self::Missing,
            (Err(Refusal::Denied(denied)), Ok(_)) => {
                let site = context.rootfs.open(path).ok().map(|(real, file)| file.site(&real, None));
                Self::Ignored(format!("the job's user may not read {denied}"), site)
            }
            (Err(Refusal::Denied(denied)), Err(gap)) => {
                let why = format!("not every user may read {denied}, and the job's user is unknown: {gap}");
                Self::Unread(Gap::new(why).settled_by("--user with the user that the job runs as"))
            }
            (Err(Refusal::Unknown(gap)), _) => Self::Unread(gap),
        }
    }

    fn content(context: &Context<'a>, path: &ImagePath) -> Self {
        match text(context.rootfs, path) {
            Fact::Seen { value, at } => at.into_iter().next().map_or(Self::Missing, |site| Self::Read(value, site)),
            Fact::Unknown(gap) => {
                let advice = "give the file a name such as site-nccl.conf, or set its variables with -e";
                Self::Unread(Gap { settle: gap.settle.or_else(|| Some(advice.to_owned())), ..gap })
            }
            Fact::Absent if context.rootfs.is_directory(path) => Self::Ignored("it is a directory".to_owned(), None),
            Fact::Absent => Self::Ignored("it is not a regular file".to_owned(), None),
        }
    }

    /// A link without a target may lead to a file that the host mounts. `/dev/null`, which engines make, is empty.
    fn missing(context: &Context<'_>, path: &ImagePath) -> Self {
        match context.rootfs.link_target(path) {
            Some(target) if target != b"/dev/null" => {
                let target = String::from_utf8_lossy(target);
                let why = format!("{path} is a link to {target}, which the image does not have and a host may mount");
                Self::Unread(Gap::new(why).settled_by("-e with the variables that the file sets, or remove the link"))
            }
            _ => Self::Missing,
        }
    }
}
