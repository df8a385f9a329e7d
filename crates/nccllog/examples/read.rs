//! Prints what the logs of a job show: `read FILE...`.

use std::error::Error;
use std::fs::File;
use std::io::{self, BufReader, Write as _};

use nccllog::{Failure, JobReader};

fn main() -> Result<(), Box<dyn Error>> {
    let mut reader = JobReader::default();
    for path in std::env::args().skip(1) {
        reader.read(&path, BufReader::new(File::open(&path)?))?;
    }
    let mut out = io::stdout().lock();
    for job in reader.finish() {
        writeln!(out, "{} lines, {} of NCCL", job.lines, job.nccl_lines)?;
        for host in &job.hosts {
            writeln!(
                out,
                "{}: {}, NCCL {:?}, {:?}",
                host.name,
                nccllog::ranks(&host.ranks),
                host.nccl,
                host.log.network
            )?;
        }
        let mut print = |title: &str, failures: &[Failure]| {
            failures.iter().try_for_each(|failure| {
                writeln!(
                    out,
                    "{title} {} at {:?} rank {:?} on {:?}: {}",
                    failure.kind, failure.at, failure.rank, failure.host, failure.message
                )
            })
        };
        print("cause", &job.causes)?;
        print("then", &job.consequences)?;
    }
    Ok(())
}
