//! BFQ: the engine against oracles, the worked scenarios of each generation, guarantees over random loads.

mod current;
mod driver;
mod engine;
mod examples;
mod golden;
mod guarantees;
mod older;
