//! Bars of durations: the phases of each rank up to its first call, and the steps of a probe.

use maud::{Markup, html};

use crate::measured::one_line;
use crate::plain_text::short;
use probe::recording::{Recording, StepOutcome, StepRecord};
use probe::wire::collectives::Times;

use super::svg::{float, px, seconds};

/// Maximum bars.
const MOST: usize = 64;
/// Maximum characters of a name.
const NAME: usize = 24;
const WIDTH: f64 = 720.0;
/// Width of a character of a name on a narrow screen, where texts are larger in relation to the bars.
const CHARACTER: f64 = 13.0;
/// Room for the sums on the right.
const RIGHT: f64 = 90.0;
/// Height of a bar with its gap, and the place of its text's baseline in it.
const ROW: f64 = 28.0;
const BASELINE: f64 = 20.0;

/// A bar: its name, and the durations of its parts in seconds.
struct TimelineBar {
    name: String,
    parts: Vec<f64>,
}

/// The phases of each rank up to its first call.
pub(super) fn first_call(step: &StepRecord) -> Markup {
    const PHASES: [&str; 6] = ["import torch", "device", "rendezvous", "init", "first call", "second call"];
    let times: Vec<Times> = step.parts_of::<Times>().filter(|times| times.variant.is_absent()).collect();
    let mut bars: Vec<(i64, TimelineBar)> = times
        .iter()
        .map(|times| {
            let rank = times.rank.copied().unwrap_or(-1);
            let parts = [
                &times.import_seconds,
                &times.device_seconds,
                &times.rendezvous_seconds,
                &times.init_seconds,
                &times.first_call_seconds,
                &times.second_call_seconds,
            ];
            let parts = parts.iter().map(|part| part.copied().unwrap_or_default().max(0.0)).collect();
            (rank, TimelineBar { name: format!("rank {rank}"), parts })
        })
        .collect();
    bars.sort_by_key(|(rank, _)| *rank);
    let bars: Vec<_> = bars.into_iter().map(|(_, bar)| bar).collect();
    chart(&bars, &PHASES, "Phases of each rank, from its start to its second collective")
}

/// The durations of the steps.
pub(super) fn steps(probe: &Recording) -> Markup {
    let timed: Vec<_> = probe
        .steps
        .iter()
        .filter_map(|step| Some(TimelineBar { name: short(&step.name, NAME), parts: vec![step.seconds?.max(0.0)] }))
        .collect();
    let ends = probe.steps.iter().filter_map(|step| {
        let end = match &step.outcome {
            StepOutcome::Done { .. } => return None,
            StepOutcome::Failed(failed) => format!("failed: {}", short(&one_line(&failed.message), 400)),
            StepOutcome::Skipped(why) => format!("skipped: {}", short(why, 400)),
            StepOutcome::Open => "did not end".to_owned(),
        };
        Some((short(&step.name, NAME), end))
    });
    html! {
        (chart(&timed, &["seconds"], "Duration of each step"))
        ul { @for (name, end) in ends { li { code { (name) } " " (end) } } }
    }
}

fn chart(bars: &[TimelineBar], names: &[&str], title: &str) -> Markup {
    let sum = |bar: &TimelineBar| bar.parts.iter().sum::<f64>();
    let longest = bars.iter().map(sum).fold(0.0, f64::max);
    if longest <= 0.0 {
        return html! {};
    }
    let name = bars.iter().take(MOST).map(|bar| bar.name.chars().count()).max().unwrap_or_default();
    let left = CHARACTER.mul_add(float(name), 16.0);
    let scale = (WIDTH - left - RIGHT) / longest;
    let shown = bars.len().min(MOST);
    let height = ROW.mul_add(float(shown), 4.0);
    html! {
        figure {
            svg.chart viewBox=(format!("0 0 {WIDTH} {}", px(height))) width=(WIDTH) role="img" aria-label=(title) {
                @for (index, bar) in bars.iter().take(MOST).enumerate() {
                    @let y = ROW * float(index);
                    text x=(px(left - 8.0)) y=(px(y + BASELINE)) text-anchor="end" { (bar.name) }
                    @for (part, (start, length)) in spans(&bar.parts).enumerate() {
                        g.(format!("s{}", part % 7)) {
                            rect.block x=(px(start.mul_add(scale, left))) y=(px(y + 6.0)) width=(px((length * scale).max(0.5))) height="16" {}
                        }
                    }
                    text.dimtext x=(px(sum(bar).mul_add(scale, left) + 6.0)) y=(px(y + BASELINE)) { (seconds(sum(bar))) }
                }
            }
            @if names.len() > 1 {
                p { @for (index, name) in names.iter().enumerate() { span.key.(format!("s{index}")) { (name) } } }
            }
            figcaption { (title) "." @if bars.len() > MOST { " Only the first " (MOST) " of " (bars.len()) " are drawn." } }
            @if names.len() > 1 {
                details {
                    summary { "Numbers" }
                    div.scroll {
                        table {
                            thead { tr { th { "" } @for name in names { th.n { (name) } } } }
                            tbody {
                                @for bar in bars.iter().take(MOST) {
                                    tr { th scope="row" { (bar.name) } @for part in &bar.parts { td.n { (seconds(*part)) } } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Start and length of each part.
fn spans(parts: &[f64]) -> impl Iterator<Item = (f64, f64)> {
    parts.iter().scan(0.0, |at, length| {
        let start = *at;
        *at += length;
        Some((start, *length))
    })
}
