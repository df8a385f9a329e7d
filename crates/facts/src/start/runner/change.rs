//! Commands of a script that may change the files which are judged, such as libraries and packages. What they change is not
//! computed.

use model::{ImagePath, conceal_words, is_among};
use shell::{Field, ShellState};

use super::{Runner, is_python};

/// Programs that install packages or rebuild the loader's cache.
const INSTALLERS: &str = "pip pip3 uv conda mamba micromamba apt apt-get dnf microdnf yum apk zypper dpkg rpm poetry pdm \
    pipenv ldconfig";

/// Their commands that change packages.
const COMMANDS: &str = "install uninstall remove purge upgrade dist-upgrade sync add create -i -U --install";

/// Programs that change the files among their words.
const CHANGERS: &str = "cp mv ln rm install sed tee rsync tar unzip patch curl wget dd";

impl Runner<'_> {
    /// Takes note of a command that may change what is judged; true for one that installs packages.
    pub(super) fn note_change(&mut self, words: &[Field], state: &ShellState, place: &str) -> bool {
        let known: Vec<String> = words.iter().map_while(|word| word.clone().ok()).collect();
        let plain: Vec<&str> = known.iter().map(String::as_str).collect();
        let base = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
        let (name, rest) = match plain.as_slice() {
            [python, "-m", "pip", rest @ ..] if is_python(&base(python)) => ("pip".to_owned(), rest),
            [name, rest @ ..] => (base(name), rest),
            [] => return false,
        };
        let is_ldconfig = name == "ldconfig";
        let installs = is_among(&name, INSTALLERS) && rest.iter().any(|word| is_among(word, COMMANDS));
        let directory = state.directory.clone().unwrap_or_default();
        let path = |word: &str| ImagePath::from(directory.as_str()).join(word.as_bytes()).to_string();
        let changes = is_among(&name, CHANGERS) && rest.iter().any(|word| is_judged(&path(word)));
        if installs || is_ldconfig || changes {
            self.assume_unchanged(place, &conceal_words(&known).join(" "));
        }
        installs
    }

    pub(super) fn assume_unchanged(&mut self, place: &str, command: &str) {
        self.assumed.insert(format!("no file that is judged changes at {place}: {command}"));
    }

    /// Takes note of a file that a redirection writes.
    pub(super) fn note_written(&mut self, path: &str, place: &str) {
        if is_judged(path) {
            self.assume_unchanged(place, &format!("> {path}"));
        }
    }
}

/// True for the path of a library, a package, or a file that the loader, NCCL or libibverbs reads.
fn is_judged(path: &str) -> bool {
    const PARTS: &[&str] =
        &["/lib/", "/lib64/", ".so", "-packages", "/etc/ld.so", "nccl.conf", "/libibverbs.d", "/cuda"];
    let is_data = ["/var/", "/tmp/", "/proc/", "/sys/", "/dev/"].iter().any(|folder| path.starts_with(folder));
    !is_data && PARTS.iter().any(|part| path.contains(part) || path.ends_with(part.trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_packages_are_judged() {
        for (path, expected) in [
            ("/usr/lib/x86_64-linux-gnu/libnccl.so.2", true),
            ("/usr/lib", true),
            ("/opt/venv/lib/python3.11/site-packages", true),
            ("/etc/ld.so.conf.d/nccl.conf", true),
            ("/root/.nccl.conf", true),
            ("/usr/local/cuda", true),
            ("/root/.ssh/authorized_keys", false),
            ("/tmp/lib/x", false),
            ("/var/lib/x", false),
            ("/app/train.log", false),
        ] {
            assert_eq!(is_judged(path), expected, "{path}");
        }
    }
}
