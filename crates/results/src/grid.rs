//! Columns of text, aligned by what a terminal shows.

use crate::render::printable;

/// Which side of a column a cell sticks to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// Words and bars.
    #[default]
    Left,
    /// Numbers.
    Right,
}

/// One cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Text, without control characters.
    pub text: String,
    /// The best of its column: green where there are colours, and a star in any case.
    pub best: bool,
    /// Bad news: red where there are colours.
    pub bad: bool,
    /// Nothing to rely on: grey where there are colours.
    pub grey: bool,
}

impl Cell {
    /// A plain cell. Names come from files, so control characters are taken out.
    pub fn new(text: impl AsRef<str>) -> Cell {
        Cell { text: printable(text.as_ref()), ..Cell::default() }
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

/// A table under construction.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    heads: Vec<(String, Align)>,
    rows: Vec<Vec<Cell>>,
    whole: bool,
    /// Columns besides the first that each of several tables repeats.
    also: usize,
}

impl Grid {
    /// A table without columns.
    #[must_use]
    pub fn new() -> Grid {
        Grid::default()
    }

    /// Adds a column.
    #[must_use]
    pub fn column(mut self, head: &str, align: Align) -> Grid {
        self.heads.push((printable(head), align));
        self
    }

    /// Leaves the first column whole where that is possible at all: people type its names again.
    #[must_use]
    pub fn whole(mut self) -> Grid {
        self.whole = true;
        self
    }

    /// When it becomes several tables, each has so many of the first columns: only together they say what a row is about.
    #[must_use]
    pub fn lead(mut self, columns: usize) -> Grid {
        self.also = columns.saturating_sub(1);
        self
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Whether no row was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Which columns have a star somewhere: they are one wider.
    fn starred(&self) -> Vec<bool> {
        (0..self.heads.len())
            .map(|c| self.rows.iter().any(|r| r.get(c).is_some_and(|x| x.best)))
            .collect()
    }

    fn widths(&self, starred: &[bool]) -> Vec<usize> {
        let width = |(c, (head, _)): (usize, &(String, Align))| {
            let cells = self.rows.iter().filter_map(|r| r.get(c)).map(Cell::width).max();
            cells.unwrap_or(0).max(head.chars().count()) + usize::from(starred[c])
        };
        self.heads.iter().enumerate().map(width).collect()
    }

    /// Columns it takes as a whole.
    #[must_use]
    pub fn width(&self) -> usize {
        let widths = self.widths(&self.starred());
        widths.iter().sum::<usize>() + widths.len().saturating_sub(1)
    }

    /// The table with its head. When it is wider than `columns`, the first column gives way; when that is not enough, it
    /// becomes several tables, each with the leading columns.
    #[must_use]
    pub fn render(mut self, columns: usize, color: bool) -> String {
        let starred = self.starred();
        let mut widths = self.widths(&starred);
        let total = widths.iter().sum::<usize>() + widths.len().saturating_sub(1);
        let lead: usize = widths.iter().skip(1).take(self.also).map(|w| w + 1).sum();
        let widest = widths.iter().skip(1 + self.also).copied().max().unwrap_or(0);
        if total > columns
            && let Some(first) = widths.first_mut()
        {
            // Its head stays whole.
            let least = self.heads.first().map_or(0, |h| h.0.chars().count()).max(8);
            let room = match self.whole {
                true => columns.saturating_sub(lead + widest + 1),
                false => first.saturating_sub(total - columns),
            };
            *first = room.max(least).min(*first);
            let most = *first;
            self.rows.iter_mut().filter_map(|r| r.first_mut()).for_each(|c| shorten(c, most));
        }
        let heads = self.heads.iter().zip(&starred);
        let heads =
            heads.map(|((h, _), s)| Cell::new(if *s { format!("{h} ") } else { h.clone() }));
        let heads: Vec<Cell> = heads.collect();
        let plain = vec![false; widths.len()];
        let mut out = String::new();
        for (i, group) in groups(&widths, 1 + self.also, columns).iter().enumerate() {
            if i > 0 {
                out.push('\n');
            }
            self.line(&heads, group, &widths, &plain, color.then_some(Some("1")), &mut out);
            for r in &self.rows {
                self.line(r, group, &widths, &starred, color.then_some(None), &mut out);
            }
        }
        out
    }

    /// One line; `color` is `None` without colours, else the code of a plain cell, if any.
    fn line(
        &self,
        cells: &[Cell],
        group: &[usize],
        widths: &[usize],
        starred: &[bool],
        color: Option<Option<&str>>,
        out: &mut String,
    ) {
        let mut line = String::new();
        for (nth, &c) in group.iter().enumerate() {
            let Some(cell) = cells.get(c) else { continue };
            let mut text = cell.text.clone();
            if starred[c] {
                text.push(if cell.best { '*' } else { ' ' });
            }
            let pad = " ".repeat(widths[c].saturating_sub(text.chars().count()));
            let code = color.and_then(|plain| match (cell.best, cell.bad) {
                (true, _) => Some("32;1"),
                (_, true) => Some("31"),
                _ if cell.grey => Some("90"),
                _ => plain,
            });
            let text = code.map_or(text.clone(), |code| format!("\u{1b}[{code}m{text}\u{1b}[0m"));
            let text = match self.heads[c].1 {
                Align::Left => text + &pad,
                Align::Right => pad + &text,
            };
            if nth > 0 {
                line.push(' ');
            }
            line.push_str(&text);
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

/// Which columns stand side by side: the leading ones with as many others as fit.
fn groups(widths: &[usize], lead: usize, columns: usize) -> Vec<Vec<usize>> {
    if widths.is_empty() {
        return Vec::new();
    }
    let leading: Vec<usize> = (0..lead.min(widths.len())).collect();
    let start = leading.iter().map(|c| widths[*c] + 1).sum::<usize>() - 1;
    let mut out = vec![leading.clone()];
    let mut used = start;
    for (c, width) in widths.iter().enumerate().skip(leading.len()) {
        let full = used.saturating_add(1 + width) > columns;
        match out.last_mut() {
            Some(group) if !full || group.len() == leading.len() => group.push(c),
            _ => {
                out.push(leading.iter().copied().chain([c]).collect());
                used = start;
            }
        }
        used = used.saturating_add(1 + width);
    }
    out
}

/// Cuts the middle out: both ends of `bfq@6.12 low_latency=0` matter.
fn shorten(cell: &mut Cell, most: usize) {
    let n = cell.width();
    if n <= most {
        return;
    }
    let tail = (most - 1) / 2;
    let head: String = cell.text.chars().take(most - 1 - tail).collect();
    let end: String = cell.text.chars().skip(n - tail).collect();
    cell.text = format!("{head}…{end}");
}
