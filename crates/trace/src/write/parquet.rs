//! Parquet: the columns of the CSV form, absent times as nulls, row groups of 131,072 I/Os, compressed with Snappy.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::{Form, Sink, csv};
use crate::event::Io;
use crate::trace::Tables;
use crate::words;

pub(super) static FORM: Form = Form {
    name: "parquet",
    about: "Parquet, for pandas, polars, DuckDB",
    ending: ".parquet",
    comments: false,
    begin: |to| {
        let schema = Arc::new(parse_message_type(SCHEMA).map_err(io::Error::other)?);
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = SerializedFileWriter::new(to, schema, Arc::new(properties));
        let writer = Some(writer.map_err(reason)?);
        Ok(Box::new(File { writer, rows: Vec::new() }))
    },
};

const SCHEMA: &str = "message trace {
    required int64 queued_ns;
    optional int64 issued_ns;
    optional int64 completed_ns;
    required binary disk (UTF8);
    required binary operation (UTF8);
    required binary flags (UTF8);
    required int64 offset_bytes;
    required int64 length_bytes;
    required int32 pid;
    required binary task (UTF8);
    required binary priority (UTF8);
    required int32 cpu;
}";

/// I/Os of a row group.
const GROUP: usize = 1 << 17;

struct File<W: Write + Send> {
    /// Gone when the file is closed.
    writer: Option<SerializedFileWriter<W>>,
    rows: Vec<Io>,
}

/// What is written fails for a reason of its own: a full disk is one of writing.
fn reason(e: ParquetError) -> io::Error {
    match e {
        ParquetError::External(e) => match e.downcast::<io::Error>() {
            Ok(e) => *e,
            Err(e) => io::Error::other(e),
        },
        e => io::Error::other(e),
    }
}

/// Columns in order.
struct Columns<'a, 'b, W: Write + Send>(&'b mut SerializedRowGroupWriter<'a, W>);

impl<W: Write + Send> Columns<'_, '_, W> {
    fn long(&mut self, values: &[i64], present: Option<&[i16]>) -> Result<(), ParquetError> {
        if let Some(mut column) = self.0.next_column()? {
            column.typed::<Int64Type>().write_batch(values, present, None)?;
            column.close()?;
        }
        Ok(())
    }

    fn int(&mut self, values: &[i32]) -> Result<(), ParquetError> {
        if let Some(mut column) = self.0.next_column()? {
            column.typed::<Int32Type>().write_batch(values, None, None)?;
            column.close()?;
        }
        Ok(())
    }

    fn text(&mut self, values: impl Iterator<Item = String>) -> Result<(), ParquetError> {
        let values: Vec<ByteArray> = values.map(|v| ByteArray::from(v.into_bytes())).collect();
        if let Some(mut column) = self.0.next_column()? {
            column.typed::<ByteArrayType>().write_batch(&values, None, None)?;
            column.close()?;
        }
        Ok(())
    }

    fn time(&mut self, times: impl Iterator<Item = Option<u64>>) -> Result<(), ParquetError> {
        let times: Vec<Option<u64>> = times.collect();
        let present: Vec<i16> = times.iter().map(|t| i16::from(t.is_some())).collect();
        let values: Vec<i64> = times.into_iter().flatten().map(signed).collect();
        self.long(&values, Some(&present))
    }
}

/// Times and places fit: readers refuse larger ones.
fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

impl<W: Write + Send> File<W> {
    fn group(&mut self, tables: &Tables) -> Result<(), ParquetError> {
        let Some(writer) = self.writer.as_mut().filter(|_| !self.rows.is_empty()) else {
            return Ok(());
        };
        let rows = std::mem::take(&mut self.rows);
        let longs = |of: fn(&Io) -> u64| rows.iter().map(|io| signed(of(io))).collect::<Vec<_>>();
        let mut group = writer.next_row_group()?;
        let mut columns = Columns(&mut group);
        columns.long(&longs(|io| io.queued), None)?;
        columns.time(rows.iter().map(|io| io.issued))?;
        columns.time(rows.iter().map(|io| io.done))?;
        columns.text(rows.iter().map(|io| tables.disks.text(io.disk).to_string()))?;
        columns.text(rows.iter().map(|io| words::operation(io.op).to_string()))?;
        columns.text(rows.iter().map(|io| csv::flags(io).collect()))?;
        columns.long(&longs(|io| io.offset), None)?;
        columns.long(&longs(|io| io.len), None)?;
        columns.int(&rows.iter().map(|io| io.pid.cast_signed()).collect::<Vec<_>>())?;
        columns.text(rows.iter().map(|io| tables.tasks.text(io.task).to_string()))?;
        columns.text(rows.iter().map(|io| io.prio.to_string()))?;
        columns.int(&rows.iter().map(|io| i32::from(io.cpu)).collect::<Vec<_>>())?;
        group.close()?;
        Ok(())
    }
}

impl<W: Write + Send> Sink for File<W> {
    fn io(&mut self, io: &Io, tables: &Tables) -> io::Result<()> {
        self.rows.push(*io);
        if self.rows.len() == GROUP { self.group(tables).map_err(reason) } else { Ok(()) }
    }

    fn end(&mut self, tables: &Tables) -> io::Result<()> {
        self.group(tables).map_err(reason)?;
        match self.writer.take() {
            Some(writer) => writer.close().map(drop).map_err(reason),
            None => Ok(()),
        }
    }
}
