//! Work side by side, results in order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use rayon::prelude::*;

use crate::error::Error;

/// Does `work` for every item on `threads` threads (`None`: one for each CPU). Calls `each` with every result in the
/// order of the items; results that come early wait.
///
/// # Errors
/// The first of `each`: nothing new is begun then. [`Error::Threads`].
pub fn in_order<T: Sync, U: Send, E: From<Error>>(
    items: &[T],
    threads: Option<u16>,
    work: impl Fn(&T) -> U + Sync,
    mut each: impl FnMut(usize, U) -> Result<(), E>,
) -> Result<(), E> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.map_or(0, usize::from))
        .build()
        .map_err(|e| Error::Threads(e.to_string()))?;
    let (sender, receiver) = mpsc::channel();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (stop, work) = (&stop, &work);
        scope.spawn(move || {
            pool.install(|| {
                items.par_iter().enumerate().with_max_len(1).for_each_with(
                    sender,
                    |sender, (index, item)| {
                        if !stop.load(Ordering::Relaxed) {
                            // The receiver is gone only after an error, and that error is reported already.
                            let _ = sender.send((index, work(item)));
                        }
                    },
                );
            });
        });
        let (mut early, mut next) = (BTreeMap::new(), 0);
        for (index, result) in receiver {
            early.insert(index, result);
            while let Some(result) = early.remove(&next) {
                if let Err(e) = each(next, result) {
                    stop.store(true, Ordering::Relaxed);
                    return Err(e);
                }
                next += 1;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_an_error_begins_nothing_new() {
        let items: Vec<u64> = (0..200).collect();
        let mut seen = Vec::new();
        in_order::<_, _, Error>(
            &items,
            Some(4),
            |i| i * 2,
            |at, double| {
                seen.push((at as u64, double));
                Ok(())
            },
        )
        .unwrap();
        assert!(seen.iter().zip(&items).all(|(s, i)| *s == (*i, i * 2)));
        let done = std::sync::atomic::AtomicUsize::new(0);
        let e = in_order(
            &items,
            Some(1),
            |_| done.fetch_add(1, Ordering::Relaxed),
            |at, _| if at == 3 { Err(Error::Threads("enough".into())) } else { Ok(()) },
        );
        assert!(e.is_err());
        assert!(done.load(Ordering::Relaxed) <= items.len());
    }
}
