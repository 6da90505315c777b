//! Steps that both block layers take in the same way, generic over the one they run on.

pub(crate) mod finish;
pub(crate) mod flush;
pub(crate) mod merge;
pub(crate) mod plug;
pub(crate) mod run;
