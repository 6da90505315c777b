//! The Parquet form of this program. Its index is at its end, so it is read into memory as a whole.

use std::io::Read;

use iosched_types::Bytes;
use parquet::data_type::AsBytes;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::reader::RowIter;
use parquet::record::{Field, Row};

use super::own::Header;
use super::text::Line;
use super::{Format, Head, Reader, own};
use crate::event::Item;
use crate::trace::Tables;

pub(super) static FORMAT: Format = Format {
    name: "parquet",
    about: "Parquet of this program",
    per_cpu: false,
    sniff: |head: &Head<'_>| head.bytes.starts_with(b"PAR1"),
    open: |_, files| {
        let from = files.into_iter().next().unwrap_or_else(|| Box::new(std::io::empty()));
        Box::new(Table { from: Some(from), rows: None, number: 0 })
    },
};

/// Larger files are not read into memory.
const MOST: Bytes = 4 << 30;

struct Table<'a> {
    /// The file before it is read.
    from: Option<Box<dyn Read + 'a>>,
    rows: Option<(Header, RowIter<'static>)>,
    number: u64,
}

fn broken(e: impl std::fmt::Display) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, e.to_string())
}

fn rows(from: Box<dyn Read + '_>) -> std::io::Result<(Header, RowIter<'static>)> {
    let mut bytes = Vec::new();
    from.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        return Err(broken("more than 4 GiB of Parquet; convert it to CSV first"));
    }
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).map_err(broken)?;
    let schema = reader.metadata().file_metadata().schema();
    let names: Vec<String> = schema.get_fields().iter().map(|f| f.name().to_string()).collect();
    let header = Header::of(&names)
        .ok_or_else(|| broken("columns are missing; docs/traces.md has the schema"))?;
    Ok((header, RowIter::from_file_into(Box::new(reader))))
}

/// A row as the fields of the CSV form.
fn fields(row: &Row) -> Vec<String> {
    let text = |f: &Field| match f {
        Field::Null => String::new(),
        Field::Str(s) => s.clone(),
        Field::Bytes(b) => String::from_utf8_lossy(b.as_bytes()).into_owned(),
        Field::Int(n) => n.cast_unsigned().to_string(),
        other => other.to_string(),
    };
    row.get_column_iter().map(|(_, f)| text(f)).collect()
}

impl Reader for Table<'_> {
    fn next(&mut self, tables: &mut Tables) -> std::io::Result<Option<Item>> {
        if let Some(from) = self.from.take() {
            let rows = rows(from)?;
            rows.0.told(tables);
            self.rows = Some(rows);
        }
        let Some((header, rows)) = &mut self.rows else { return Ok(None) };
        for row in rows {
            self.number += 1;
            tables.tally.records += 1;
            let fields = fields(&row.map_err(broken)?);
            match own::io(header, &fields, tables) {
                Line::Item(item) => return Ok(Some(item)),
                Line::Skip(reason) => tables.tally.skip(reason, self.number, &fields.join(",")),
                Line::Other | Line::Held => {}
            }
        }
        Ok(None)
    }
}
