//! Virtual time: an event queue with first-in-first-out ties, the clock it belongs to with the one event loop, and one seeded random stream per
//! component. The crate knows nothing of I/O.
//!
//! ```
//! use iosched_engine::EventQueue;
//! let mut q = EventQueue::new();
//! q.push(20, "late");
//! q.push(10, "first of two");
//! q.push(10, "second of two");
//! assert_eq!(q.pop(), Some((10, "first of two")));
//! assert_eq!(q.pop(), Some((10, "second of two")));
//! assert_eq!(q.peek_time(), Some(20));
//! ```

mod queue;
mod rng;
mod timeline;

pub use queue::EventQueue;
pub use rng::{Stream, fnv1a, stream};
pub use timeline::{Timeline, World};
