//! The kernel, and the limits that jobs inherit.

use super::Offer;
use crate::host::Record;
use crate::host::limits::Limit;
use crate::model::{Fact, size};

const AREA: &str = "system";
/// Locked memory that RDMA needs for each connection is far more than the kernel's default of 8 MiB.
const LOCKED: i64 = 64 << 20;

pub(super) fn offers(record: &Record) -> Vec<Offer> {
    let has_rdma = record.rdma.devices.value().is_some_and(|devices| !devices.is_empty());
    vec![kernel(record), container(record), memlock(&record.limits.memlock, has_rdma)]
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
