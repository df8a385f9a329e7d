//! Does one stage of a check once: `stage NAME`. Without a name it lists them. What `tests/instructions` counts is [`counted`].

#[path = "work.rs"]
mod work;

use std::hint::black_box;
use std::io::{self, Write};

fn main() -> io::Result<()> {
    let name = std::env::args().nth(1);
    let mut out = io::stdout();
    let Some(name) = name else {
        return work::STAGES.iter().try_for_each(|stage| writeln!(out, "{}", stage.name));
    };
    let stage = work::STAGES.iter().find(|stage| stage.name == name);
    let stage = stage.ok_or_else(|| io::Error::other(format!("there is no stage '{name}'")))?;
    let mut work = (stage.prepare)();
    // Once before: what is made only the first time does not count.
    black_box(work());
    writeln!(out, "{}", counted(&mut work))
}

#[inline(never)]
fn counted(work: &mut work::Work) -> usize {
    black_box(work())
}
