//! NCCL's own configuration files (`src/misc/param.cc`): `NAME=VALUE` lines that set variables missing from the
//! environment. NCCL reads the user's file first, then `/etc/nccl.conf`.

use std::collections::{BTreeMap, BTreeSet};

use crate::launch::Setting;
use model::{Gap, ImagePath, Site, Version};

use super::super::Context;
use super::super::start::homes;
use super::conf_text::ConfText;
use super::{MOST, in_line};

/// The file in the user's home directory.
const USER_FILE: &[u8] = b".nccl.conf";

/// Maximum length in bytes of a name or a value.
const LONGEST: usize = 1023;

/// Configuration files that this NCCL would read.
#[derive(Debug, Default)]
pub(crate) struct ConfFiles {
    /// Existing files, in reading order.
    pub(crate) paths: Vec<ImagePath>,
    pub(crate) at: Vec<Site>,
    /// Settings in the files; the first one of each name counts.
    pub(crate) settings: Vec<Setting>,
    /// Names of the settings.
    names: BTreeSet<String>,
    /// Files and lines that do not do what they seem to.
    pub(crate) problems: Vec<(String, Option<Site>)>,
    /// The file that `NCCL_CONF_FILE` names and the image does not have.
    pub(crate) missing: Option<String>,
    /// Why a file may set more variables.
    pub(crate) gap: Option<Gap>,
    /// Names that a file sets after one that was not read, which may set them too and counts.
    later: BTreeSet<String>,
    /// Variables that a file sets to a value that is not UTF-8.
    pub(crate) unread: BTreeMap<String, Gap>,
}

impl ConfFiles {
    /// `given` is the environment of the process that loads NCCL.
    pub(super) fn read(context: &Context<'_>, version: Option<&Version>, given: &BTreeMap<&str, &Setting>) -> Self {
        let mut files = Self::default();
        let dialect = Dialect::of(version);
        match user_file(context, &dialect, given) {
            UserFile::Computed(site) => {
                let why = format!("{site} computes NCCL_CONF_FILE, the file from which NCCL takes more settings");
                files.gap = Some(Gap::new(why).settled_by("-e NCCL_CONF_FILE=FILE with the value that the job gets"));
            }
            UserFile::Named(name) => {
                let path = ImagePath::from(name.as_str());
                // A relative path is resolved in the working directory of the program, which is unknown.
                if !name.starts_with('/') || context.rootfs.open(&path).is_err() {
                    files.missing = Some(name);
                }
                files.file(context, &path, &dialect);
            }
            UserFile::Home(home) => files.file(context, &home.join(USER_FILE), &dialect),
            UserFile::OfUnknown(path, gap) => {
                let why = format!("NCCL reads {path} if the job's user is its owner, and that user is unknown: {gap}");
                files.gap = Some(Gap::new(why).settled_by("--user with the user that the job runs as"));
            }
            UserFile::None => {}
        }
        files.file(context, &ImagePath::from("etc/nccl.conf"), &dialect);
        files.unread.retain(|name, _| !given.contains_key(name.as_str()));
        files
    }

    /// Why a variable that the environment does not set is unknown, given its setting in these files.
    pub(crate) fn gap_of(&self, name: &str, setting: Option<&Setting>) -> Option<&Gap> {
        match setting {
            None => self.unread.get(name).or(self.gap.as_ref()),
            Some(setting) if self.is_of(&setting.site) && self.later.contains(name) => self.gap.as_ref(),
            Some(_) => None,
        }
    }

    /// Returns true for a site in one of these files.
    pub(super) fn is_of(&self, site: &Site) -> bool {
        matches!(site, Site::File { path, .. } if self.paths.contains(path))
    }

    /// A reason why settings of these files are unknown.
    pub(super) fn any_gap(&self) -> Option<&Gap> {
        self.gap.as_ref().or_else(|| self.unread.values().next())
    }

    fn file(&mut self, context: &Context<'_>, path: &ImagePath, dialect: &Dialect) {
        match ConfText::open(context, path) {
            ConfText::Read(value, site) => self.text(value, &site, dialect),
            ConfText::Ignored(why, site) => self.problems.push((format!("{path}: {why}, so NCCL ignores it"), site)),
            ConfText::Missing => {}
            ConfText::Unread(gap) => self.gap = self.gap.take().or(Some(gap)),
        }
    }

    fn text(&mut self, value: &[u8], site: &Site, dialect: &Dialect) {
        if let Site::File { path, .. } = site {
            self.paths.push(path.clone());
        }
        self.at.push(site.clone());
        for (index, line) in value.split(|&b| b == b'\n').enumerate() {
            // One more than are kept shows that there are too many.
            if self.settings.len() + self.problems.len() > MOST {
                let why = format!("{site} has more than {MOST} lines that count or are wrong");
                self.gap = self.gap.take().or(Some(Gap::new(why)));
                break;
            }
            let site = in_line(site, Some(index + 1));
            match std::str::from_utf8(line) {
                Ok(line) => self.line(line, &site, dialect),
                Err(_not_utf8) => self.bytes(line, &site, dialect),
            }
        }
    }

    /// A line that is not UTF-8. NCCL takes its bytes as they are; here its value is unknown.
    fn bytes(&mut self, line: &[u8], site: &Site, dialect: &Dialect) {
        if dialect.has_comments && line.starts_with(b"#") {
            return;
        }
        let name = line.split(|&byte| byte == b'=').next().filter(|name| name.len() < line.len());
        match name.map(std::str::from_utf8) {
            Some(Ok(name)) => {
                if self.names.insert(name.to_owned()) {
                    let why = format!("{site} sets {name} to a value that is not UTF-8");
                    self.unread.insert(name.to_owned(), Gap::new(why).settled_by("write the value in UTF-8"));
                }
            }
            Some(Err(_)) => self.problem(site, "it sets a variable whose name is not UTF-8, which nothing reads"),
            None => self.problem(site, "without '=' the line is ignored"),
        }
    }

    fn problem(&mut self, site: &Site, what: &str) {
        self.problems.push((format!("{site}: {what}"), Some(site.clone())));
    }

    fn line(&mut self, line: &str, site: &Site, dialect: &Dialect) {
        let mut problem = |what: String| self.problems.push((format!("{site}: {what}"), Some(site.clone())));
        let line = if dialect.strips_returns { line.strip_suffix('\r').unwrap_or(line) } else { line };
        if line.starts_with('#') {
            if !dialect.has_comments && line.contains('=') {
                problem("comments need NCCL 2.26; this line sets a variable whose name begins with #".to_owned());
            }
            return;
        }
        let Some((name, value)) = line.split_once('=') else {
            if !line.trim().is_empty() {
                problem("without '=' the line is ignored".to_owned());
            }
            return;
        };
        let value = value.get(..LONGEST).unwrap_or(value);
        if name.trim() != name || name.contains(' ') || name.is_empty() {
            problem(format!("it sets a variable named '{name}', spaces included, which nothing reads"));
            return;
        }
        if value.starts_with(['"', '\'', ' ']) || value.ends_with(['\r', ' ', '"', '\'']) {
            problem(format!("the value of {name} is taken literally, with its quotes and spaces"));
        }
        if !self.names.insert(name.to_owned()) {
            problem(format!("{name} is already set above, and the first setting counts"));
            return;
        }
        if self.gap.is_some() {
            self.later.insert(name.to_owned());
        }
        self.settings.push(Setting { name: name.to_owned(), value: Some(value.to_owned()), site: site.clone() });
    }
}

/// Reading rules of one release.
struct Dialect {
    /// 2.23.4: `NCCL_CONF_FILE` instead of the user's file.
    has_variable: bool,
    /// 2.26.2: lines that begin with `#` are skipped.
    has_comments: bool,
    /// 2.30.3: carriage returns are stripped.
    strips_returns: bool,
    /// 2.30.3: the home directory comes from `HOME`, before that from the passwd file.
    asks_home: bool,
}

impl Dialect {
    /// Without a version, uses the rules of new releases.
    fn of(version: Option<&Version>) -> Self {
        let from =
            |first: &str| version.is_none_or(|version| Version::parse(first).is_some_and(|first| *version >= first));
        Self {
            has_variable: from("2.23.4"),
            has_comments: from("2.26.2"),
            strips_returns: from("2.30.3"),
            asks_home: from("2.30.3"),
        }
    }
}

enum UserFile {
    Named(String),
    /// A script or a launch file computes the name.
    Computed(Site),
    Home(ImagePath),
    /// A user has this file, but the job's user is unknown.
    OfUnknown(ImagePath, Gap),
    None,
}

fn user_file(context: &Context<'_>, dialect: &Dialect, given: &BTreeMap<&str, &Setting>) -> UserFile {
    let named = given.get("NCCL_CONF_FILE").filter(|_| dialect.has_variable);
    match named.map(|setting| setting.value.as_deref()) {
        Some(Some(name)) if !name.is_empty() => return UserFile::Named(name.to_owned()),
        Some(None) => return named.map_or(UserFile::None, |setting| UserFile::Computed(setting.site.clone())),
        _ => {}
    }
    if dialect.asks_home
        && let Some(Setting { value: Some(home), .. }) = given.get("HOME")
        && !home.is_empty()
    {
        return UserFile::Home(ImagePath::from(home.as_str()));
    }
    match context.job_user() {
        // Runtimes set HOME also for a user without an entry.
        Ok(user) if dialect.asks_home => UserFile::Home(user.home()),
        Ok(user) => user.listed_home.clone().map_or(UserFile::None, UserFile::Home),
        Err(gap) => {
            match homes(context.rootfs).map(|home| home.join(USER_FILE)).find(|path| context.rootfs.exists(path)) {
                Some(path) => UserFile::OfUnknown(path, gap.clone()),
                None => UserFile::None,
            }
        }
    }
}
