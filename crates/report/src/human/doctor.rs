//! What a machine offers: a heading for each area, a line for each thing, and the line that fixes what does not work.

use std::io;

use anstyle::AnsiColor;

use super::page::{self, Page};
use crate::offer::{Offer, OfferState};

/// Column of what was seen.
const COLUMN: usize = 11;

pub(super) fn write(offers: &[Offer], page: &mut Page<'_>) -> io::Result<()> {
    for (number, area) in offers.chunk_by(|one, other| one.area == other.area).enumerate() {
        if number > 0 {
            page.blank()?;
        }
        let title = area.first().map_or("", |offer| offer.area);
        page.heading(title, page::bold(AnsiColor::Cyan), "")?;
        area.iter().try_for_each(|offer| one(offer, page))?;
    }
    let broken = offers.iter().filter(|offer| offer.state == OfferState::Broken).count();
    let (word, color, text) = match broken {
        0 => ("OK:", AnsiColor::Green, "nothing here is broken".to_owned()),
        broken => ("BROKEN:", AnsiColor::Red, super::counted(broken, "thing does not work", "things do not work")),
    };
    page.blank()?;
    page.verbatim(0, (word, page::bold(color)), word.len() + 1, &text)
}

fn one(offer: &Offer, page: &mut Page<'_>) -> io::Result<()> {
    let look = match offer.state {
        OfferState::Works => AnsiColor::Green.on_default(),
        OfferState::Broken => page::bold(AnsiColor::Red),
        OfferState::Absent => anstyle::Style::new().dimmed(),
        OfferState::Unknown => AnsiColor::Magenta.on_default(),
    };
    page.row(2, (offer.state.name(), look), COLUMN, &format!("{}: {}", offer.name, offer.about))?;
    offer.help.iter().try_for_each(|help| page.row(COLUMN, ("fix", page::bold(AnsiColor::Cyan)), COLUMN + 5, help))
}
