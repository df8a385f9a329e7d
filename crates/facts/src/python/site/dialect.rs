//! How one installation's `site.py` differs from CPython's own: distributions change where packages are.

use model::{Fact, ImagePath};

use super::super::files::ProcessFiles;
use super::super::prefix::PythonPrefixes;
use super::super::version::PythonVersion;

/// The rules of one `site.py`.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "one for each change of a distribution")]
pub(super) struct SiteDialect {
    /// `sys.platlibdir`.
    libraries: String,
    /// Debian's directories (Debian Python Policy, "Module Path").
    is_debian: bool,
    /// Debian's `site.py` up to 3.9 also takes a set `VIRTUAL_ENV` for a virtual environment.
    pub(super) reads_variable: bool,
    /// Red Hat's `site.py` adds packages below `/usr/local`, for a user who may have own ones.
    pub(super) adds_usr_local: bool,
    /// `.pth` files whose names begin with a dot are ignored.
    pub(super) hides_dot_files: bool,
}

impl SiteDialect {
    pub(super) fn read(files: &ProcessFiles<'_>, version: PythonVersion, start: &PythonPrefixes) -> Self {
        let libraries = start.libraries.clone();
        let places = start.path.iter().map(|entry| entry.join(b"site.py"));
        let file = places.into_iter().find(|file| files.is_file(file));
        let text = match file.map_or(Fact::Absent, |file| files.text(&file)) {
            Fact::Seen { value, .. } => value,
            // Without its text, the directories that exist show whose it is.
            Fact::Absent | Fact::Unknown(_) => return Self::guess(files, version, start),
        };
        let has = |what: &str| memchr::memmem::find(text, what.as_bytes()).is_some();
        Self {
            libraries,
            is_debian: has("dist-packages"),
            reads_variable: has("'VIRTUAL_ENV' in os.environ"),
            adds_usr_local: has("RPM_BUILD_ROOT") && has("\"/usr/local\""),
            hides_dot_files: has("not name.startswith(\".\")"),
        }
    }

    fn guess(files: &ProcessFiles<'_>, version: PythonVersion, start: &PythonPrefixes) -> Self {
        let debian = ImagePath::from("usr/lib/python3/dist-packages");
        let local = ImagePath::from(format!("usr/local/lib/{version}/dist-packages").as_str());
        let [base, _] = &start.base;
        let is_debian = *base == ImagePath::from("usr") && (files.is_directory(&debian) || files.is_directory(&local));
        Self {
            libraries: start.libraries.clone(),
            is_debian,
            reads_variable: is_debian && version.minor < 10,
            adds_usr_local: false,
            hides_dot_files: version.minor >= 13,
        }
    }

    /// `site.getsitepackages`.
    pub(super) fn folders(&self, prefixes: &[ImagePath], version: PythonVersion, is_virtual: bool) -> Vec<ImagePath> {
        let mut libraries = vec![self.libraries.as_str()];
        if self.libraries != "lib" {
            libraries.push("lib");
        }
        let mut folders = Vec::new();
        for (index, prefix) in prefixes.iter().enumerate() {
            if prefixes.iter().take(index).any(|before| before == prefix) {
                continue;
            }
            let mut add = |below: String| folders.push(prefix.join(below.as_bytes()));
            if !self.is_debian {
                for library in &libraries {
                    add(format!("{library}/{version}/site-packages"));
                }
                continue;
            }
            if is_virtual {
                add(format!("lib/{version}/site-packages"));
            }
            add(format!("local/lib/{version}/dist-packages"));
            add("lib/python3/dist-packages".to_owned());
            for library in &libraries {
                add(format!("{library}/{version}/dist-packages"));
            }
        }
        folders
    }
}
