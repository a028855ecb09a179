//! The terminal UI of `foreread watch`.

use std::io::Stdout;
use std::time::Duration;

use anyhow::Context as _;
use daemon::WatchView;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Row, Table};
use ratatui::{Frame, Terminal};
use report::{Cells, clean, device_cells, stream_cells};

use super::keys::{Key, KeyInput, Keys};
use crate::output;
use crate::stdout_error;

pub struct Screen {
    /// `None` after the terminal was restored.
    terminal: Option<Terminal<CrosstermBackend<Stdout>>>,
    keys: Keys,
    top: usize,
}

impl Screen {
    /// Takes over the terminal. Dropping the screen, or a panic, restores it.
    pub fn open() -> anyhow::Result<Self> {
        let terminal = ratatui::try_init().context("cannot use the terminal")?;
        Ok(Self { terminal: Some(terminal), keys: Keys::open(), top: 0 })
    }

    pub fn draw(&mut self, view: &WatchView, note: Option<&str>) -> anyhow::Result<()> {
        self.top = self.top.min(view.streams.len().saturating_sub(1));
        let top = self.top;
        let Some(terminal) = &mut self.terminal else { return Ok(()) };
        let drawn = terminal.draw(|frame| draw(frame, view, note, top)).map(drop);
        drawn.map_err(stdout_error::lost).context("cannot draw on the terminal")
    }

    /// Waits for keys; returns whether one of them quits.
    pub fn asks_to_end(&mut self, wait: Duration) -> anyhow::Result<bool> {
        let KeyInput::Keys(keys) = self.keys.wait(wait) else {
            return Err(stdout_error::TerminalGone.into());
        };
        for key in keys {
            match key {
                Key::End => return Ok(true),
                Key::Down => self.top = self.top.saturating_add(1),
                Key::Up => self.top = self.top.saturating_sub(1),
                Key::PageDown => self.top = self.top.saturating_add(20),
                Key::PageUp => self.top = self.top.saturating_sub(20),
                Key::Home => self.top = 0,
            }
        }
        Ok(false)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // If the terminal has hung up, so has stderr, and ratatui panics when it cannot write an
        // error there. So avoid `restore`, and do not drop a terminal whose cursor cannot be shown.
        let _ = ratatui::try_restore();
        if let Some(mut terminal) = self.terminal.take()
            && terminal.show_cursor().is_err()
        {
            std::mem::forget(terminal);
        }
    }
}

fn draw(frame: &mut Frame<'_>, view: &WatchView, note: Option<&str>, top: usize) {
    let devices = shown(device_cells(&view.devices));
    let most = u16::try_from(devices.rows.len()).unwrap_or(u16::MAX).saturating_add(2);
    let parts = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(most.min(frame.area().height / 3)),
        Constraint::Min(1),
        Constraint::Length(1),
    ])
    .split(frame.area());
    let lost = match view.lost_events {
        0 => String::new(),
        lost => format!(", {lost} events lost: counts are too low"),
    };
    let title =
        format!("foreread watch: {} streams, {:.1} s{lost}", view.streams.len(), view.interval_s);
    frame.render_widget(
        Line::from(title).style(Style::new().add_modifier(Modifier::BOLD)),
        parts[0],
    );
    frame.render_widget(table(&devices, 0), parts[1]);
    frame.render_widget(table(&shown(stream_cells(&view.streams)), top), parts[2]);
    let foot = note.map_or_else(
        || "q quits, arrows scroll; * differs from the bdi's window".to_owned(),
        |note| output::shown(&clean::plain(note)).into_owned(),
    );
    frame.render_widget(Line::from(foot), parts[3]);
}

/// Converts the cells to displayable characters.
fn shown(cells: Cells) -> Cells {
    let text = |text: String| output::shown(&text).into_owned();
    let rows = cells.rows.into_iter().map(|row| row.into_iter().map(text).collect());
    Cells { rows: rows.collect(), ..cells }
}

fn table(cells: &Cells, top: usize) -> Table<'static> {
    let mut widths: Vec<u16> = Vec::new();
    for (at, head) in cells.head.iter().enumerate() {
        let widest =
            cells.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
        let width = widest.chain([head.chars().count()]).max().unwrap_or(0);
        widths.push(u16::try_from(width).unwrap_or(u16::MAX));
    }
    let last = widths.len().saturating_sub(1);
    let constraints = widths.iter().enumerate().map(|(at, width)| {
        if at == last { Constraint::Fill(1) } else { Constraint::Length(*width) }
    });
    let head = Row::new(cells.head.to_vec()).style(Style::new().add_modifier(Modifier::REVERSED));
    let rows = cells.rows.iter().skip(top).map(|row| Row::new(row.clone()));
    Table::new(rows, constraints).header(head).column_spacing(2)
}
