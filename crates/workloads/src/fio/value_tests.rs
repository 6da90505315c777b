use super::*;

#[test]
fn size_suffixes_as_fio_3_33_has_them() {
    for (text, kb1024, kb1000) in [
        ("3", 3, 3),
        ("3b", 3, 3),
        ("3B", 3, 3),
        ("3k", 3072, 3000),
        ("3Kb", 3072, 3000),
        ("3ki", 3072, 3000),
        ("3kib", 3000, 3072),
        ("3KiB", 3000, 3072),
        ("3m", 3 << 20, 3_000_000),
        ("3MiB", 3_000_000, 3 << 20),
        ("3g", 3 << 30, 3_000_000_000),
        ("3t", 3 << 40, 3_000_000_000_000),
        ("3p", 3 << 50, 3_000_000_000_000_000),
        ("0x1F", 31, 31),
        ("0x1b", 27, 27),
        ("010", 10, 10),
        (" 5", 5, 5),
        ("5 ", 5, 5),
    ] {
        assert_eq!(integer(text, 1024), Ok(kb1024), "{text}");
        assert_eq!(integer(text, 1000), Ok(kb1000), "{text}");
    }
}

#[test]
fn what_fio_would_cut_short_is_refused() {
    for text in [
        "",
        " ",
        "k",
        "4kk",
        "4k8",
        "4.5k",
        "1e3",
        "4x",
        "20e",
        "3ib",
        "3bb",
        "0x",
        "0x10k",
        "nan",
        "inf",
        "-1",
        "(4*1024)",
        " 4k",
        "9223372036854775808",
        "9000p",
        "8*4k",
        "٣",
        "4\u{212a}",
        "99999999999999999999999999",
    ] {
        assert!(integer(text, 1024).is_err(), "{text:?}");
    }
    assert_eq!(integer("4k8", 1024).unwrap_err().at, 1);
    assert!(integer("4kk", 1024).unwrap_err().help.contains("4096"));
}

#[test]
fn times_and_their_units() {
    for (text, ns) in [
        ("5", 5_000_000_000),
        ("5us", 5_000),
        ("5usec", 5_000),
        ("5ms", 5_000_000),
        ("5MS", 5_000_000),
        ("5msec", 5_000_000),
        ("5s", 5_000_000_000),
        ("2m", 120_000_000_000),
        ("1h", 3_600_000_000_000),
        ("1d", 86_400_000_000_000),
        ("0", 0),
    ] {
        assert_eq!(time(text, 1_000_000_000), Ok(ns), "{text}");
    }
    assert_eq!(time("7", 1_000), Ok(7_000));
    for text in ["", "x", "1h30m", "1.5", "3sec", "3min", "-1", "nan", "999999999d", "5k", "0x40"] {
        assert!(time(text, 1_000_000_000).is_err(), "{text:?}");
    }
}

#[test]
fn percentages_are_1_to_100() {
    assert_eq!(amount("50%", 1024), Ok(Amount::Percent(50)));
    assert_eq!(amount("100%", 1024), Ok(Amount::Percent(100)));
    assert_eq!(amount("4k", 1024), Ok(Amount::Bytes(4096)));
    for text in ["0%", "101%", "-5%", "%", "5.5%", "4k%", "nan%", "4z", "5%%"] {
        assert!(amount(text, 1024).is_err(), "{text:?}");
    }
}

#[test]
fn lists_for_reads_writes_and_trims() {
    let t = |text| three(text, |p| size(p, 1, 1024));
    assert_eq!(t("1k"), Ok([Some(1024); 3]));
    assert_eq!(t("1k,2k"), Ok([Some(1024), Some(2048), Some(2048)]));
    assert_eq!(t("1k,2k,"), Ok([Some(1024), Some(2048), None]));
    assert_eq!(t(",2k"), Ok([None, Some(2048), Some(2048)]));
    assert_eq!(t(",2k,"), Ok([None, Some(2048), None]));
    assert_eq!(t("1k,2k,3k"), Ok([Some(1024), Some(2048), Some(3072)]));
    for text in [",", ",,", "1,2,3,4", "0", "1,x"] {
        assert!(t(text).is_err(), "{text:?}");
    }
    let e = t("1k,2z").unwrap_err();
    assert_eq!((e.at, e.width), (4, 1));
}

#[test]
fn ranges_are_swapped_into_order() {
    let r = |text| range(text, false, |p| size(p, 1, 1024));
    assert_eq!(r("4k-1k"), Ok((1024, 4096)));
    assert_eq!(r("1k:4k"), Ok((1024, 4096)));
    for text in ["4k", "-4k", "4k-", "0-4k", "1-2-3"] {
        assert!(r(text).is_err(), "{text:?}");
    }
}

#[test]
fn float_lists() {
    assert_eq!(floats("50:99.9", 100.0), Ok(vec![50.0, 99.9]));
    let many = vec!["1"; 21].join(":");
    for text in ["", "nan", "inf", "-1", "101", "1,2", "1::2", many.as_str()] {
        assert!(floats(text, 100.0).is_err(), "{text:?}");
    }
}

#[test]
fn cpu_lists() {
    assert_eq!(cpus("0,5,8-10"), Ok(vec![0, 5, 8, 9, 10]));
    assert_eq!(cpus("3-3"), Ok(vec![3]));
    for text in ["3-1", "0,1-0", "", "x", "5000", "0-999999999", "-1", "1,"] {
        assert!(cpus(text).is_err(), "{text:?}");
    }
}

#[test]
fn bounds_and_words() {
    assert_eq!(bounded("-20", -20, 19, 1024), Ok(-20));
    assert!(bounded("-21", -20, 19, 1024).is_err());
    assert!(small("5000000000", 0, u32::MAX, 1024).is_err());
    assert_eq!(boolean("01"), Ok(true));
    assert!(boolean("2").is_err());
    assert_eq!(word("b", &["a", "b"]), Ok(1));
    assert!(word(" b", &["a", "b"]).unwrap_err().help.contains("blank"));
}
