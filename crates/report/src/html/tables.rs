//! A page with tables of one form.

use maud::{Markup, html};

use crate::plain_text::clean;

/// The lines, and below them each table with its title. A table without rows is left out.
pub(super) fn body<const N: usize>(
    title: &str,
    lines: impl Iterator<Item = String>,
    columns: [&str; N],
    tables: impl Iterator<Item = (&'static str, Vec<[String; N]>)>,
) -> Markup {
    html! {
        header {
            h1 { (clean(title)) }
            ul { @for line in lines { li { (clean(&line)) } } }
        }
        main {
            @for (title, rows) in tables.filter(|(_, rows)| !rows.is_empty()) {
                section {
                    h2 { (title) " " span.dim { "(" (rows.len()) ")" } }
                    div.scroll tabindex="0" role="region" aria-label=(title) {
                        table.sort.wide {
                            thead { tr { @for column in columns { th { (column) } } } }
                            tbody {
                                @for row in &rows { tr { @for cell in row { td.name { (clean(cell)) } } } }
                            }
                        }
                    }
                }
            }
        }
    }
}
