//! Prints what the catalogue says about a device: `cargo run --example describe -- hdd-7200`.

use iosched_devices::catalogue;
use iosched_devices::describe::Description;

#[allow(clippy::print_stdout, reason = "an example prints")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    for name in std::env::args().skip(1) {
        println!("{}\n", Description::of(&catalogue::find(&name)?)?);
    }
    Ok(())
}
