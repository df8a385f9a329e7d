use super::super::vocabulary::row;
use super::*;

fn version() -> Version {
    Version::parse("2.27.5").unwrap()
}

fn outcome(about: &VariableUse, value: &str) -> String {
    misreading(about, value, &version()).map_or_else(|| "-".to_owned(), |found| found.what)
}

#[test]
fn problems() {
    for (reads, value, expected) in [
        (Reads::Flag, "1", "-"),
        (Reads::Flag, "", "-"),
        (Reads::Flag, "true", "it is not a number, so NCCL reads 0"),
        (Reads::Flag, "2", "2 is not between 0 and 1"),
        (Reads::Number, "4M", "NCCL reads it as 4 and ignores 'M'"),
        (Reads::Number, "010", "NCCL reads it as 8: a number with a leading 0 is octal"),
        (Reads::Number, "00", "-"),
        (Reads::Number, "9223372036854775808", "it does not fit in 64 bits, so NCCL uses its default"),
        (Reads::Word, "warn", "-"),
        (Reads::Word, "WARNING", "WARNING is not one of WARN, INFO"),
        (Reads::Word, "", "-"),
        (Reads::Prefix, "WARNING", "-"),
        (Reads::Prefix, "warn", "warn is not one of WARN, INFO"),
        (Reads::Words, "^INFO,warn", "-"),
        (Reads::Words, "INFO,NETWORK", "NETWORK is not one of WARN, INFO"),
        (Reads::Level, "NVL", "-"),
        (Reads::Level, "2", "-"),
        (Reads::Level, "", "-"),
        (Reads::Text, "anything", "-"),
        (Reads::Algorithms, "", "-"),
    ] {
        let about = VariableUse { reads, of: vec!["WARN".to_owned(), "INFO".to_owned()], ..VariableUse::default() };
        assert_eq!(outcome(&about, value), expected, "{value}");
    }
}

#[test]
fn an_empty_value_is_seen_by_readers_that_stop_at_it() {
    for reads in [Reads::Switch, Reads::Integer] {
        let found = misreading(&VariableUse { reads, ..VariableUse::default() }, "", &version()).unwrap();
        assert!(found.stops, "{reads:?}");
    }
    let about = VariableUse { reads: Reads::Word, stops: true, of: vec!["OFF".to_owned()], ..VariableUse::default() };
    assert!(misreading(&about, "", &version()).unwrap().stops);
    assert_eq!(misreading(&about, "off", &version()), None);
}

#[test]
fn an_empty_value_is_what_its_reader_makes_of_it() {
    for (name, release, expected) in [
        ("NCCL_COMM_ID", "2.18.3", "stops"),
        ("NCCL_GRAPH_FILE", "2.27.5", "stops"),
        ("NCCL_PROTO", "2.23.4", "stops"),
        ("NCCL_PROTO", "2.24.3", "-"),
        ("NCCL_HOSTID", "2.27.5", "misread"),
        ("NCCL_TOPO_FILE", "2.27.5", "misread"),
        ("NCCL_DEBUG_SUBSYS", "2.18.3", "misread"),
        ("NCCL_NET_PLUGIN", "2.26.2", "-"),
        ("NCCL_NET_PLUGIN", "2.27.3", "misread"),
        ("NCCL_SYM_KERNEL", "2.30.7", "misread"),
        ("NCCL_DEBUG", "2.27.5", "-"),
        ("NCCL_BUFFSIZE", "2.27.5", "-"),
        ("NCCL_IB_ADDR_RANGE", "2.27.5", "-"),
        ("NCCL_SET_THREAD_NAME", "2.30.7", "-"),
    ] {
        let release = Version::parse(release).unwrap();
        let (row, _) = row(&table().nccl, name, Some(&release)).unwrap();
        let found = misreading(&row.about, "", &release);
        assert_eq!(found.map_or("-", |found| if found.stops { "stops" } else { "misread" }), expected, "{name}");
    }
}

#[test]
fn words_are_those_of_the_release() {
    for (name, value, release, is_good) in [
        ("NCCL_DEBUG_SUBSYS", "RAS", "2.23.4", false),
        ("NCCL_DEBUG_SUBSYS", "RAS", "2.24.3", true),
        ("NCCL_DEBUG_SUBSYS", "PROXY", "2.17.1", false),
        ("NCCL_SET_THREAD_NAME", "true", "2.29.7", false),
        ("NCCL_SET_THREAD_NAME", "true", "2.30.3", true),
        ("NCCL_MAX_CTAS", "64", "2.24.3", false),
        ("NCCL_MAX_CTAS", "64", "2.25.1", true),
        ("NCCL_SYM_KERNEL", "AllGather_LL", "2.27.3", true),
        ("NCCL_SYM_KERNEL", "allgather_ll", "2.27.3", false),
        ("NCCL_SYM_KERNEL", "^", "2.27.3", true),
        ("NCCL_DEBUG_FILE", "~/nccl.log", "2.27.5", false),
        ("NCCL_DEBUG_FILE", "$HOME/nccl.log", "2.27.5", false),
        ("NCCL_DEBUG_FILE", "/tmp/nccl.%h.%p", "2.27.5", true),
    ] {
        let release = Version::parse(release).unwrap();
        let (row, _) = row(&table().nccl, name, Some(&release)).unwrap();
        assert_eq!(misreading(&row.about, value, &release).is_none(), is_good, "{name}={value} for {release}");
    }
}

#[test]
fn levels_are_those_of_the_release() {
    let about = VariableUse { reads: Reads::Level, ..VariableUse::default() };
    for (value, release, is_good) in [
        ("LOC", "2.14.3", true),
        ("SYS", "2.14.3", true),
        ("C2C", "2.25.1", false),
        ("C2C", "2.26.2", true),
        ("P2C", "2.26.5", false),
        ("P2C", "2.27.3", true),
        ("nvl", "2.27.3", false),
        ("9", "2.27.3", true),
        ("9x", "2.27.3", true),
        ("x9", "2.27.3", false),
    ] {
        let found = misreading(&about, value, &Version::parse(release).unwrap());
        assert_eq!(found.is_none(), is_good, "{value} for {release}");
    }
}

#[test]
fn words_are_compared_as_their_reader_does() {
    let about = |reads, exact| VariableUse { reads, exact, of: vec!["IB".to_owned()], ..VariableUse::default() };
    for (reads, exact, value, is_good) in [
        (Reads::Word, false, "ib", true),
        (Reads::Word, true, "ib", false),
        (Reads::Word, true, "IB", true),
        (Reads::Words, true, "^IB", true),
        (Reads::Words, true, ",IB,", true),
        (Reads::Words, true, "IB^", false),
        (Reads::Words, true, "^", true),
    ] {
        assert_eq!(outcome(&about(reads, exact), value) == "-", is_good, "{value}");
    }
}

#[test]
fn costly_values_are_recognised() {
    let costs =
        |when: &str, reads, value: &str| is_costly(when, &VariableUse { reads, ..VariableUse::default() }, value);
    for (when, costly, free) in [
        ("set", &["0", "x"][..], &[""][..]),
        ("zero", &["0", "-0", "x"], &["", "1"]),
        ("one", &["1", "0x1"], &["", "0", "2"]),
        ("nonzero", &["1", "-1"], &["", "0", "99999999999999999999"]),
        ("not-negative", &["0", "1"], &["", "-1"]),
        ("info TRACE", &["INFO", "trace"], &["", "warn"]),
    ] {
        for value in costly {
            assert!(costs(when, Reads::Number, value), "{when}: {value}");
        }
        for value in free {
            assert!(!costs(when, Reads::Number, value), "{when}: {value}");
        }
    }
    for (value, one, zero) in [
        ("yes", true, false),
        ("T", true, false),
        ("1", true, false),
        ("no", false, true),
        ("False", false, true),
        ("2", false, false),
    ] {
        assert_eq!((costs("one", Reads::Switch, value), costs("zero", Reads::Switch, value)), (one, zero), "{value}");
    }
}

#[test]
fn blanks_and_signs_before_a_number_are_read_and_what_is_left_is_kept() {
    for (text, number, digits, rest) in [
        ("\t\n\x0b\x0c\r 5", Some(5), "5", ""),
        ("+5", Some(5), "5", ""),
        ("-0X1f", Some(-31), "1f", ""),
        ("0xg", Some(0), "0", "xg"),
        ("0x1g", Some(1), "1", "g"),
        ("- 5", Some(0), "", "- 5"),
        ("+-5", Some(0), "", "+-5"),
        ("0", Some(0), "0", ""),
    ] {
        let read = strtoll(text);
        assert_eq!((read.number, read.digits, read.rest), (number, digits, rest), "{text}");
    }
    for (text, octal) in [("0", false), ("00", false), ("07", false), ("010", true), ("0x10", false), ("10", false)] {
        assert_eq!(strtoll(text).octal, octal, "{text}");
    }
}

/// Two ranks on an H200 with NCCL 2.28.9, all five collectives.
#[test]
fn values_stop_where_they_stopped_on_a_gpu() {
    #[derive(serde::Deserialize)]
    struct Tried {
        name: String,
        value: String,
        stops: bool,
    }
    let release = Version::parse("2.28.9").unwrap();
    let lines = include_str!("../../../../../fixtures/probe/h200/values.jsonl").lines();
    let tried: Vec<Tried> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    for Tried { name, value, stops } in &tried {
        let (row, _) = row(&table().nccl, name, Some(&release)).unwrap();
        let found = misreading(&row.about, value, &release);
        assert_eq!(found.is_some_and(|found| found.stops), *stops, "{name}={value}");
        let can_stop = |value: &&str| misreading(&row.about, value, &release).is_some_and(|found| found.stops);
        assert!(!stops || DOUBTFUL.iter().any(can_stop), "{name}");
    }
    assert!(tried.iter().any(|value| value.stops) && tried.iter().any(|value| !value.stops));
}
