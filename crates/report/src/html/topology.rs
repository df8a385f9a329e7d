//! The NVLinks between GPUs, as a drawing.

use std::f64::consts::PI;

use maud::{Markup, html};

use crate::plain_text::short;
use probe::wire::topology::TopologyBody;

use super::svg::{float, px};

/// Maximum GPUs that are drawn; a machine has at most 16, one NVLink domain 72.
const MOST: usize = 72;
/// Maximum characters of a name.
const NAME: usize = 12;
const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 340.0;

/// The drawing; a sentence if there is no link.
pub(super) fn figure(body: &TopologyBody) -> Markup {
    let gpus = body.gpus.list();
    if gpus.is_empty() {
        return html! {};
    }
    if gpus.len() > MOST {
        return html! { p { "The " (gpus.len()) " GPUs are too many to draw." } };
    }
    let place = |index: usize| {
        let angle = 2.0 * PI * float(index) / float(gpus.len()) - PI / 2.0;
        (WIDTH / 2.0 + 190.0 * angle.cos(), HEIGHT / 2.0 + 130.0 * angle.sin())
    };
    let to_switch = |index: usize| {
        let ends = gpus.get(index).and_then(|gpu| gpu.nvlink_ends.value());
        ends.and_then(|ends| ends.get("switch")).copied().filter(|links| *links > 0)
    };
    let switched = (0..gpus.len()).filter_map(|index| Some((index, to_switch(index)?))).collect::<Vec<_>>();
    let names: Vec<_> = gpus.iter().map(|gpu| gpu.name.text().unwrap_or("?")).collect();
    let position = |name: Option<&str>| names.iter().position(|known| Some(*known) == name);
    // Links through a switch are those to the switch.
    let direct: Vec<_> = body
        .gpu_pairs
        .list()
        .iter()
        .filter(|_| switched.is_empty())
        .filter_map(|pair| Some((position(pair.from.text())?, position(pair.to.text())?, pair.nvlinks.copied()?)))
        .filter(|(from, to, links)| from < to && *links > 0)
        .collect();
    if switched.is_empty() && direct.is_empty() {
        return html! { p { "No active NVLink between these GPUs is known." } };
    }
    html! {
        figure {
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) width=(WIDTH) role="img" aria-label="NVLinks between GPUs" {
                @for (from, to, links) in &direct {
                    @let ((x1, y1), (x2, y2)) = (place(*from), place(*to));
                    path.link d=(format!("M{} {}L{} {}", px(x1), px(y1), px(x2), px(y2))) stroke-width="2" {}
                    text x=(px(x1.mul_add(0.6, x2 * 0.4))) y=(px(y1.mul_add(0.6, y2 * 0.4) - 4.0)) text-anchor="middle" { (links) }
                }
                @for (index, links) in &switched {
                    @let (x, y) = place(*index);
                    path.link d=(format!("M{} {}L{} {}", px(x), px(y), px(WIDTH / 2.0), px(HEIGHT / 2.0))) stroke-width="3" {}
                    text x=(px(x.mul_add(0.5, WIDTH / 4.0) + 14.0)) y=(px(y.mul_add(0.5, HEIGHT / 4.0))) text-anchor="middle" { (links) }
                }
                @if !switched.is_empty() { (node(WIDTH / 2.0, HEIGHT / 2.0, "NVSwitch")) }
                @for (index, name) in names.iter().enumerate() {
                    @let (x, y) = place(index);
                    (node(x, y, &short(name, NAME)))
                }
            }
            figcaption { "NVLinks. The number at a line is the number of active links." }
        }
    }
}

fn node(x: f64, y: f64, name: &str) -> Markup {
    html! {
        rect.node x=(px(x - 36.0)) y=(px(y - 15.0)) width="72" height="30" rx="4" {}
        text x=(px(x)) y=(px(y + 4.0)) text-anchor="middle" { (name) }
    }
}
