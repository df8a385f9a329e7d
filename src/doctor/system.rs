//! The kernel, and the limits that jobs inherit.

use super::Offer;
use crate::sandbox::landlock_version;
use facts::machine::Record;
use facts::machine::cgroups::ControlGroups;
use facts::machine::limits::Limit;
use model::{Fact, size};

const AREA: &str = "system";
/// Locked memory that RDMA needs for each connection is far more than the kernel's default of 8 MiB.
const LOCKED: i64 = 64 << 20;
/// Controllers by which engines limit a container's memory, processors and processes.
const CONTROLLERS: [&str; 3] = ["cpu", "memory", "pids"];

pub(super) fn offers(record: &Record) -> Vec<Offer> {
    let has_rdma = record.rdma.devices.value().is_some_and(|devices| !devices.is_empty());
    vec![
        kernel(record),
        container(record),
        control_groups(&record.cgroups),
        sandbox(landlock_version()),
        memlock(&record.limits.memlock, has_rdma),
    ]
}

fn control_groups(groups: &ControlGroups) -> Offer {
    const NAME: &str = "control groups";
    let listed = |names: &[String]| if names.is_empty() { "no controllers".to_owned() } else { names.join(", ") };
    match (&groups.version, &groups.controllers, &groups.delegated) {
        (Fact::Unknown(gap), ..) => Offer::unknown(AREA, NAME, gap.to_string()),
        (Fact::Absent, ..) => {
            Offer::absent(AREA, NAME, "/sys/fs/cgroup is not mounted: engines cannot limit containers")
        }
        (_, _, Fact::Seen { value: delegated, .. })
            if CONTROLLERS.iter().any(|wanted| !delegated.iter().any(|name| name == wanted)) =>
        {
            Offer::broken(
                AREA,
                NAME,
                format!(
                    "your rootless engine can use {}: it cannot limit all that a container uses",
                    listed(delegated)
                ),
                "as root, write the lines '[Service]' and 'Delegate=cpu cpuset io memory pids' to \
                 /etc/systemd/system/user@.service.d/delegate.conf, and run systemctl daemon-reload; then log in again",
            )
        }
        (_, Fact::Seen { value: controllers, .. }, _) => {
            Offer::works(AREA, NAME, format!("version 2: {}", listed(controllers)))
        }
        _ => Offer::works(AREA, NAME, "version 1: rootless engines cannot limit containers"),
    }
}

fn kernel(record: &Record) -> Offer {
    match &record.system.kernel {
        Fact::Seen { value, .. } => Offer::works(AREA, "kernel", format!("Linux {value}")),
        Fact::Unknown(gap) => Offer::unknown(AREA, "kernel", gap.to_string()),
        Fact::Absent => Offer::absent(AREA, "kernel", "not Linux"),
    }
}

fn container(record: &Record) -> Offer {
    match &record.system.container {
        Fact::Seen { value, .. } => Offer::works(AREA, "container", format!("this process runs in one ({value})")),
        Fact::Unknown(gap) => Offer::unknown(AREA, "container", gap.to_string()),
        Fact::Absent => Offer::absent(AREA, "container", "this process runs in none"),
    }
}

/// What ncclcheck itself gives up while it reads images.
fn sandbox(landlock: Option<u32>) -> Offer {
    const NAME: &str = "sandbox";
    match landlock {
        Some(version) => {
            Offer::works(AREA, NAME, format!("Landlock {version} for files, and a filter of system calls"))
        }
        None => Offer::absent(
            AREA,
            NAME,
            "this kernel or this container has no Landlock: while it reads an image, ncclcheck can open all that you can",
        ),
    }
}

fn memlock(limit: &Fact<Limit>, has_rdma: bool) -> Offer {
    const NAME: &str = "locked memory";
    let text = |bytes: i64| u64::try_from(bytes).map_or_else(|_| "unlimited".to_owned(), size);
    match limit {
        Fact::Seen { value, .. } if has_rdma && value.soft >= 0 && value.soft < LOCKED => Offer::broken(
            AREA,
            NAME,
            format!("{}: RDMA cannot register its buffers in jobs of this shell", text(value.soft)),
            "ulimit -l unlimited; for all users: '* - memlock unlimited' in /etc/security/limits.conf",
        ),
        Fact::Seen { value, .. } => Offer::works(AREA, NAME, text(value.soft)),
        Fact::Unknown(gap) => Offer::unknown(AREA, NAME, gap.to_string()),
        Fact::Absent => Offer::absent(AREA, NAME, "no limit is known"),
    }
}
