//! How long each stage takes: `cargo bench`. For people; what guards against getting slower is `tests/instructions`.
#![allow(missing_docs, reason = "a program")]

mod work;

use criterion::Criterion;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    for stage in work::STAGES {
        let mut work = (stage.prepare)();
        criterion.bench_function(stage.name, |bencher| bencher.iter(&mut work));
    }
    criterion.final_summary();
}
