//! Files that describe a machine: devices, data sheets, devices of a truth folder, kernel profiles. Any text, no panic.
#![no_main]

use iosched_block::KernelProfile;
use iosched_devices::datasheet::Sheet;
use iosched_devices::{DeviceSpec, truth};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Sheet::from_toml("fuzz.toml", text) {
        Ok(sheet) => drop((sheet.hint(), sheet.device_file())),
        Err(errors) => {
            assert!(!errors.is_empty());
            errors.iter().for_each(|e| drop(e.to_string()));
        }
    }
    let _ = DeviceSpec::from_toml("fuzz.toml", text).map_err(|e| e.to_string());
    let _ = KernelProfile::from_toml("fuzz.toml", text).map_err(|e| e.to_string());
    let _ = truth::parse("fuzz.toml", text).map_err(|e| e.to_string());
    if let Ok(each) = truth::parse_each("fuzz.toml", text) {
        each.into_iter().for_each(|(_, device)| drop(device.map_err(|e| e.to_string())));
    }
});
