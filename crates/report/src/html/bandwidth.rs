//! Curves of the bus bandwidth by size, on a logarithmic axis, and the curve that nccl-tests would draw for the same
//! latency and peak.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use crate::plain_text::clean;
use model::counted;
use probe::recording::StepRecord;
use probe::wire::collectives::Measurement;

use super::svg::{bytes, float, log2, px, round_up, seconds};

/// Maximum curves in one drawing: there are as many colours.
const CURVES: usize = 6;
/// Maximum points of a curve.
const POINTS: usize = 64;
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 300.0;
/// Room for the labels on the left and below.
const LEFT: f64 = 56.0;
const BELOW: f64 = 36.0;
const ABOVE: f64 = 18.0;

/// A measurement: size in bytes, bus bandwidth in GB/s, median seconds per call.
type Point = (u64, f64, f64);

/// The drawing of one step; nothing if it measured nothing.
pub(super) fn figure(step: &StepRecord, title: &str) -> Markup {
    let (curves, more) = curves(step);
    let sizes = || curves.iter().flat_map(|(_, points)| points.iter());
    let (Some(least), Some(most)) = (sizes().map(|point| point.0).min(), sizes().map(|point| point.0).max()) else {
        return html! {};
    };
    let peak = sizes().map(|point| point.1).fold(0.0, f64::max);
    if peak <= 0.0 || least == most {
        return table(&curves, title);
    }
    let scale = Scale { least: log2(least), most: log2(most), top: round_up(peak) };
    let ticks: Vec<u64> =
        (0..64).step_by(2).map(|power| 1_u64 << power).filter(|size| (least..=most).contains(size)).collect();
    html! {
        figure {
            svg.chart viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) width=(WIDTH) role="img"
                aria-label="Bus bandwidth by size; the table below has the numbers" {
                @for part in 0..5 {
                    @let value = scale.top * float(part) / 4.0;
                    path.axis d=(format!("M{} {}H{}", px(LEFT), px(scale.y(value)), px(WIDTH))) {}
                    text.dimtext x=(px(LEFT - 6.0)) y=(px(scale.y(value) + 4.0)) text-anchor="end" { (format!("{value}")) }
                }
                @for (index, tick) in ticks.iter().enumerate() {
                    path.axis d=(format!("M{} {}v5", px(scale.x(log2(*tick))), px(HEIGHT - BELOW))) {}
                    @if index % 3 == 0 {
                        text.dimtext x=(px(scale.x(log2(*tick)))) y=(px(HEIGHT - BELOW + 18.0)) text-anchor="middle" { (bytes(*tick)) }
                    }
                }
                @if let Some((_, points)) = curves.first() {
                    @if let Some(path) = model(points, &scale) { path.model d=(path) {} }
                }
                @for (index, (_, points)) in curves.iter().enumerate() {
                    g.(format!("s{index}")) {
                        path.line d=(line(points.iter().map(|(size, speed, _)| (scale.x(log2(*size)), scale.y(*speed))))) {}
                        @for (size, speed, _) in points {
                            circle.dot cx=(px(scale.x(log2(*size)))) cy=(px(scale.y(*speed))) r="3" {}
                        }
                    }
                }
            }
            p {
                @for (index, (name, _)) in curves.iter().enumerate() { span.key.(format!("s{index}")) { (name) } }
            }
            figcaption {
                (title) ": bus bandwidth in GB/s by size. Dashed: the shape of a curve of nccl-tests for "
                (curves.first().map_or("", |(name, _)| name))
                ", size / (latency + size / peak), with the measured latency and peak."
                @if more > 0 { " " (counted(more, "more operation is", "more operations are")) " not drawn." }
            }
            details { summary { "Numbers" } (table(&curves, title)) }
        }
    }
}

/// The curves in the order of their operations, without those of the variants of `what-if`, and the number of operations
/// that have none because there are too many.
fn curves(step: &StepRecord) -> (Vec<(String, Vec<Point>)>, usize) {
    let mut order: Vec<String> = Vec::new();
    let mut more: BTreeSet<String> = BTreeSet::new();
    let mut curves: BTreeMap<String, BTreeMap<u64, Point>> = BTreeMap::new();
    for part in step.parts_of::<Measurement>().filter(|part| part.variant.is_absent()) {
        let (Some(operation), Some(size), Some(speed)) = (part.operation.text(), part.bytes.copied(), part.busbw())
        else {
            continue;
        };
        let operation = clean(operation);
        if !order.contains(&operation) {
            if order.len() == CURVES {
                more.insert(operation);
                continue;
            }
            order.push(operation.clone());
        }
        let points = curves.entry(operation).or_default();
        if points.len() < POINTS {
            points.insert(size, (size, speed / 1e9, part.seconds_median.copied().unwrap_or_default().max(0.0)));
        }
    }
    let curve = |name: String| {
        let points = curves.remove(&name).unwrap_or_default().into_values().collect();
        (name, points)
    };
    (order.into_iter().map(curve).collect(), more.len())
}

struct Scale {
    least: f64,
    most: f64,
    top: f64,
}

impl Scale {
    fn x(&self, power: f64) -> f64 {
        LEFT + 8.0 + (WIDTH - LEFT - 40.0) * (power - self.least) / (self.most - self.least)
    }

    fn y(&self, speed: f64) -> f64 {
        HEIGHT - BELOW - (HEIGHT - BELOW - ABOVE) * (speed / self.top).clamp(0.0, 1.0)
    }
}

/// The path through points.
fn line(points: impl Iterator<Item = (f64, f64)>) -> String {
    let steps: Vec<_> = points.map(|(x, y)| format!("{} {}", px(x), px(y))).collect();
    format!("M{}", steps.join("L"))
}

/// The curve that a fixed latency and a peak bandwidth give.
fn model(points: &[Point], scale: &Scale) -> Option<String> {
    let (_, first_speed, latency) = points.iter().find(|(_, _, seconds)| *seconds > 0.0)?;
    let peak = points.iter().map(|point| point.1).fold(0.0, f64::max);
    // Bus bandwidth is size times a factor of the operation, by time.
    let (size, speed, seconds) = points.iter().rev().find(|(_, speed, seconds)| *speed > 0.0 && *seconds > 0.0)?;
    let factor = speed * seconds / 2_f64.powf(log2(*size));
    (peak > 0.0 && *first_speed >= 0.0).then(|| {
        let speed = |power: f64| {
            let moved = 2_f64.powf(power) * factor;
            moved / (latency + moved / peak)
        };
        let powers = (0..=60).map(|step| scale.least + (scale.most - scale.least) * f64::from(step) / 60.0);
        line(powers.map(|power| (scale.x(power), scale.y(speed(power)))))
    })
}

fn table(curves: &[(String, Vec<Point>)], title: &str) -> Markup {
    html! {
        div.scroll {
            table {
                thead { tr { th { (title) } th.n { "size" } th.n { "GB/s" } th.n { "time" } } }
                tbody {
                    @for (name, points) in curves {
                        @for (size, speed, time) in points {
                            tr {
                                td { (name) }
                                td.n { (bytes(*size)) }
                                td.n { (format!("{speed:.2}")) }
                                td.n { (seconds(*time)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
