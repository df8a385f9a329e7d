//! The command line that would run the container as we do.

use std::fmt;

use super::arrangement::{Arrangement, GpuWay};

/// `docker run …`, quoted for a POSIX shell. The program is read from the file `payload`.
pub fn docker_run(arrangement: &Arrangement, payload: &str) -> String {
    let mut line = Line("docker run --rm --interactive".to_owned());
    match arrangement.way {
        GpuWay::Request => line.option("--gpus", &arrangement.gpus),
        GpuWay::Cdi => line.options("--device", arrangement.gpus.cdi_names()),
        GpuWay::Devices | GpuWay::None => {}
    }
    line.options("--device", &arrangement.devices);
    line.option("--network", &arrangement.network);
    line.options("--ipc", &arrangement.ipc);
    line.options("--pid", &arrangement.pid);
    line.options("--hostname", &arrangement.hostname);
    line.options("--shm-size", arrangement.shm_size);
    line.options("--ulimit", &arrangement.ulimits);
    line.options("--memory", arrangement.memory);
    line.option("--pids-limit", arrangement.pids);
    line.option("--cap-drop", "ALL");
    line.options("--cap-add", &arrangement.capabilities);
    line.option("--security-opt", "no-new-privileges");
    line.word("--read-only");
    line.option("--tmpfs", format!("{}:{}", TMP.0, TMP.1));
    line.options("--user", &arrangement.user);
    line.options("--volume", &arrangement.volumes);
    line.options("--env", arrangement.env.iter().map(|(name, value)| format!("{name}={value}")));
    line.options("--label", arrangement.labels.iter().map(|(name, value)| format!("{name}={value}")));
    line.option("--entrypoint", &arrangement.python);
    line.word(&arrangement.image);
    arrangement.arguments.iter().for_each(|argument| line.word(argument));
    format!("{} < {}", line.0, quote(payload))
}

/// A command line as it grows.
struct Line(String);

impl Line {
    fn word(&mut self, word: &str) {
        self.0.push(' ');
        self.0.push_str(&quote(word));
    }

    fn option(&mut self, name: &str, value: impl fmt::Display) {
        self.word(name);
        self.word(&value.to_string());
    }

    fn options<T: fmt::Display>(&mut self, name: &str, values: impl IntoIterator<Item = T>) {
        values.into_iter().for_each(|value| self.option(name, value));
    }
}

/// The one place in the container that can be written to, besides /dev/shm: its path and mount options.
pub(super) const TMP: (&str, &str) = ("/tmp", "rw,nosuid,nodev,mode=1777");

/// One word of a shell's command (POSIX.1-2017, Shell Command Language, 2.2).
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
