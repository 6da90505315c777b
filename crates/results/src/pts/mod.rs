//! PTS result files (`composite.xml`).

mod read;
mod write;
mod xml;

pub use read::from_pts;
pub use write::to_pts;

#[cfg(test)]
mod tests;
