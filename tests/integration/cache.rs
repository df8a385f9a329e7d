//! The cache of layer scans: it changes nothing except the time, even if it is damaged.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::media::{docker_archive, gunzip, gzip};
use crate::support::{assert_judged, layout, run_with, stderr, world};

/// A user with a separate cache.
struct User(tempfile::TempDir);

impl User {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn run(&self, arguments: &[&str], input: Option<&[u8]>) -> Output {
        run_with(&[("XDG_CACHE_HOME", self.0.path().to_str().unwrap())], arguments, input)
    }

    /// Runs a successful check without messages; returns the report, and the number of layers from the cache.
    fn check(&self, arguments: &[&str], reference: &str, input: Option<&[u8]>) -> (String, usize) {
        self.check_all(arguments, &[reference], input).remove(0)
    }

    /// Like [`Self::check`], for several images in one process.
    fn check_all(&self, arguments: &[&str], references: &[&str], input: Option<&[u8]>) -> Vec<(String, usize)> {
        let reports = self.reports("check", arguments, references, input);
        reports.iter().for_each(assert_judged);
        reports.into_iter().map(without_cache).collect()
    }

    /// Like [`Self::check_all`], without the rules, whose reading takes most of the time.
    fn inspect_all(&self, arguments: &[&str], references: &[&str], input: Option<&[u8]>) -> Vec<(String, usize)> {
        self.reports("inspect", arguments, references, input).into_iter().map(without_cache).collect()
    }

    fn reports(&self, command: &str, arguments: &[&str], references: &[&str], input: Option<&[u8]>) -> Vec<Value> {
        // A slow machine would show progress.
        let arguments = [&[command, "--quiet", "--format", "json"], arguments, references].concat();
        let output = self.run(&arguments, input);
        assert!(output.stderr.is_empty(), "{references:?}: {}", stderr(&output));
        let reports = String::from_utf8(output.stdout).unwrap();
        assert_eq!(reports.lines().count(), references.len());
        reports.lines().map(|report| serde_json::from_str(report).unwrap()).collect()
    }

    fn layers(&self) -> PathBuf {
        self.0.path().join("ncclcheck/layers")
    }

    fn files(&self) -> Vec<PathBuf> {
        let folders = fs::read_dir(self.layers()).into_iter().flatten().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> =
            folders.flat_map(|folder| fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    fn info(&self) -> Value {
        serde_json::from_slice(&self.run(&["cache", "info", "--format", "json"], None).stdout).unwrap()
    }
}

/// A report as if no layer came from the cache, and the number of layers that did. None of their bytes were read, except
/// those of a stream.
fn without_cache(mut report: Value) -> (String, usize) {
    let reference = report["image"]["reference"].as_str().unwrap();
    let is_stream = reference == "-" || reference.ends_with("packed");
    let mut count = 0;
    for layer in report["image"]["layers"].as_array_mut().unwrap() {
        if layer["cached"] == true {
            count += 1;
            assert!(layer["read"] == 0 || is_stream, "{layer}");
            layer["cached"] = false.into();
            layer["shared"] = false.into();
            layer["read"] = layer["size"].clone();
        }
    }
    report["time"] = Value::Null;
    let notes = report["image"]["notes"].as_array_mut().unwrap();
    notes
        .retain(|note| !note.as_str().unwrap().ends_with("layers were not read: their scans come from a shared cache"));
    (report.to_string(), count)
}

fn layers(report: &str) -> usize {
    serde_json::from_str::<Value>(report).unwrap()["image"]["layers"].as_array().unwrap().len()
}

#[test]
fn reports_are_the_same_with_and_without() {
    let worlds = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/images");
    let paths = fs::read_dir(worlds).unwrap().map(|entry| entry.unwrap().path().display().to_string());
    let images: Vec<String> = paths.filter(|path| path.ends_with(".oci.tar")).collect();
    let images: Vec<&str> = images.iter().map(String::as_str).collect();
    assert!(images.len() > 10);
    let user = User::new();
    let expected = user.check_all(&["--cache", "off"], &images, None);
    assert!(user.files().is_empty() && expected.iter().all(|(_, cached)| *cached == 0));
    // One image after the other, so that no image finds layers that a later one has scanned.
    let first = user.check_all(&["--jobs", "1"], &images, None);
    let second = user.check_all(&[], &images, None);
    assert_eq!(first[0].1, 0);
    for (((expected, _), (first, _)), (second, cached)) in expected.iter().zip(&first).zip(&second) {
        assert_eq!((first, second, *cached), (expected, expected, layers(expected)));
    }
}

#[test]
fn every_page_says_which_layers_were_not_read() {
    let user = User::new();
    let image = world("good").display().to_string();
    let page = |arguments: &[&str]| {
        String::from_utf8(user.run(&[&["check", &*image], arguments].concat(), None).stdout).unwrap()
    };
    let without = page(&["--cache", "off"]);
    assert_eq!(page(&[]), without, "the first check reads all layers");
    assert_eq!(page(&[]).replace(", 3 not read: cached", ""), without);
    assert_eq!(page(&["--verbose"]).replace(", 3 not read: cached", ""), page(&["--verbose", "--cache", "off"]));
    assert!(page(&[]).contains(", 3 not read: cached"));
}

#[test]
fn every_medium_uses_scans_from_any_other() {
    let layout = layout("two-nccl");
    let folder = tempfile::tempdir().unwrap();
    let oci = format!("oci:{}", layout.path().display());
    let archive = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let old = docker_archive(layout.path(), true);
    let new = docker_archive(layout.path(), false);
    let image = world("two-nccl").display().to_string();
    let old_file = archive("old", &old);
    let media = [&*oci, &image, &old_file, &archive("new", &new), &archive("packed", &gzip(&new))];
    let all = |user: &User, arguments: &[&str]| {
        let streamed = user.inspect_all(arguments, &["-"], Some(&new));
        [user.inspect_all(arguments, &media, None), streamed].concat()
    };
    let inspect =
        |user: &User, arguments: &[&str], image: &str, input| user.inspect_all(arguments, &[image], input).remove(0);
    let expected = all(&User::new(), &["--cache", "off"]);
    let count = layers(&expected[0].0);
    // Scanned first from blobs, from plain tars, and from a stream.
    for (first, input) in [(&*oci, None), (&old_file, None), ("-", Some(&*new))] {
        let user = User::new();
        assert_eq!(inspect(&user, &[], first, input).1, 0);
        assert_eq!(inspect(&user, &[], first, input).1, count, "{first}");
        for ((report, _), (expected, _)) in all(&user, &[]).iter().zip(&expected) {
            assert_eq!(report, expected, "after {first}");
        }
        for (report, (expected, _)) in all(&user, &[]).into_iter().zip(&expected) {
            assert_eq!(report, (expected.clone(), count), "after {first}");
        }
    }
    // Members without a digest in their names are read whole from a stream, and other media find their scans by
    // content.
    let user = User::new();
    let (expected, _) = inspect(&user, &["--cache", "off"], "-", Some(&old));
    assert_eq!(inspect(&user, &[], "-", Some(&old)), (expected.clone(), 0));
    assert_eq!(inspect(&user, &[], "-", Some(&old)), (expected.clone(), 0));
    assert_eq!(inspect(&user, &[], &old_file, None).1, layers(&expected));
}

#[test]
fn a_streamed_member_is_verified_even_if_its_scan_is_cached() {
    let layout = layout("good");
    let user = User::new();
    user.check(&[], &format!("oci:{}", layout.path().display()), None);
    // One bit of the timestamp in the gzip header: the content stays the same, the digest does not.
    let mut archive = docker_archive(layout.path(), false);
    let at = archive.windows(3).position(|bytes| bytes == [0x1f, 0x8b, 8]).unwrap();
    archive[at + 4] ^= 1;
    let output = user.run(&["check", "-"], Some(&archive));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("is corrupt: its"), "{}", stderr(&output));
}

#[test]
fn blobs_are_not_opened() {
    let layout = layout("good");
    let user = User::new();
    let oci = format!("oci:{}", layout.path().display());
    let (expected, _) = user.check(&[], &oci, None);
    for path in fs::read_dir(layout.path().join("blobs/sha256")).unwrap().map(|entry| entry.unwrap().path()) {
        if fs::read(&path).unwrap().starts_with(&[0x1f, 0x8b]) {
            fs::remove_file(path).unwrap();
        }
    }
    assert_eq!(user.check(&[], &oci, None), (expected.clone(), layers(&expected)));
    // Other limits make another key.
    let output = user.run(&["check", "--limit", "text_file=1000000", &oci], None);
    assert_eq!(output.status.code(), Some(2));
}

/// Damages the bytes of an entry.
type Damage<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;

#[test]
fn damaged_entries_are_skipped_and_rewritten() {
    let user = User::new();
    let image = world("good").display().to_string();
    let (expected, _) = user.check(&[], &image, None);
    let whole: Vec<_> = user.files().iter().map(|path| fs::read(path).unwrap()).collect();
    assert_eq!(whole.len(), layers(&expected));
    let damage: [Damage<'_>; 5] = [
        &|bytes| bytes[..bytes.len() - 1].to_vec(),
        &|bytes| bytes.iter().enumerate().map(|(at, byte)| byte ^ u8::from(at == bytes.len() - 9)).collect(),
        &|bytes| [b"other", &bytes[5..]].concat(),
        &|bytes| [&bytes[..8], &[255], &bytes[9..]].concat(),
        // A valid entry under another key.
        &|bytes| whole.iter().find(|other| *other != bytes).unwrap().clone(),
    ];
    for damage in damage {
        for path in user.files() {
            let bytes = fs::read(&path).unwrap();
            fs::write(&path, damage(&bytes)).unwrap();
        }
        assert_eq!(user.check(&[], &image, None), (expected.clone(), 0));
        let now: Vec<_> = user.files().iter().map(|path| fs::read(path).unwrap()).collect();
        assert_eq!(now, whole);
        assert_eq!(user.check(&[], &image, None), (expected.clone(), layers(&expected)));
    }
}

#[test]
fn many_processes_share_a_cache() {
    let user = User::new();
    let names = ["good", "two-nccl", "no-nccl", "no-verbs"];
    let expected = names.map(|name| user.check(&["--cache", "off"], world(name).to_str().unwrap(), None).0);
    // The limit is so small that each process evicts entries while the others write.
    let home = user.0.path().to_str().unwrap();
    let variables = [("XDG_CACHE_HOME", home), ("NCCLCHECK_CACHE_SIZE", "20k")];
    std::thread::scope(|scope| {
        for number in 0..8 {
            let expected = &expected[number % 4];
            let variables = &variables;
            scope.spawn(move || {
                for _ in 0..3 {
                    let image = world(names[number % 4]).display().to_string();
                    let output = run_with(variables, &["check", "--quiet", "--format", "json", &image], None);
                    let (report, _) = without_cache(serde_json::from_slice(&output.stdout).unwrap());
                    assert_eq!(report, *expected, "{}", stderr(&output));
                    assert!(output.stderr.is_empty(), "{}", stderr(&output));
                }
            });
        }
    });
    let left = fs::read_dir(user.layers()).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_file()).count();
    assert_eq!(left, 0, "temporary files remain");
    assert!(user.info()["bytes"].as_u64().unwrap() > 0);
}

#[test]
fn a_failing_cache_is_reported_once_and_changes_nothing() {
    let image = world("no-nccl").display().to_string();
    let user = User::new();
    let (expected, _) = user.check(&["--cache", "off"], &image, None);
    let file = user.0.path().join("file");
    fs::write(&file, "").unwrap();
    let nobody = format!("http://{}/x", std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    for (variables, arguments, told) in [
        (&[("XDG_CACHE_HOME", file.to_str().unwrap())][..], &[][..], " not written to: not a directory\n"),
        (&[], &["--cache", file.to_str().unwrap()], " not used: not a directory\n"),
        (&[], &["--cache", &nobody], "/x not used: connection refused\n"),
        (&[("NCCLCHECK_CACHE", &*nobody)], &[], "/x not used: connection refused\n"),
    ] {
        // Two images, but only one note.
        let output =
            run_with(variables, &[&["check", "--format", "json"], arguments, &[&image, &image]].concat(), None);
        let said = stderr(&output);
        assert_eq!(said.matches("note: cache ").count(), 1, "{said}");
        assert!(said.contains(told), "{said}");
        assert_eq!(output.status.code(), Some(1));
        let reports = String::from_utf8(output.stdout).unwrap();
        let reports: Vec<_> =
            reports.lines().map(|report| without_cache(serde_json::from_str(report).unwrap()).0).collect();
        assert_eq!(reports, [&*expected, &*expected]);
    }
}

#[test]
fn scans_of_a_shared_cache_are_believed_or_not() {
    let image = world("no-nccl").display().to_string();
    let shared = tempfile::tempdir().unwrap();
    let shared = shared.path().to_str().unwrap();
    let (report, _) = User::new().check(&["--cache", shared], &image, None);
    for (trust, expected) in [("own", 0), ("shared", layers(&report))] {
        let user = User::new();
        let home = ("XDG_CACHE_HOME", user.0.path().to_str().unwrap());
        let arguments = ["inspect", "--format", "json", "--cache", shared, &image];
        let output = run_with(&[home, ("NCCLCHECK_CACHE_TRUST", trust)], &arguments, None);
        let (_, cached) = without_cache(serde_json::from_slice(&output.stdout).unwrap());
        assert_eq!(cached, expected, "{trust}: {}", stderr(&output));
    }
}

#[test]
fn the_cache_can_be_disabled() {
    let image = world("good").display().to_string();
    let user = User::new();
    let home = user.0.path().to_str().unwrap();
    for (variables, arguments) in [
        (&[("XDG_CACHE_HOME", home)][..], &["--cache", "off"][..]),
        (&[("XDG_CACHE_HOME", home), ("NCCLCHECK_CACHE", "off")], &[]),
        // A relative folder is ignored.
        (&[("XDG_CACHE_HOME", "relative")], &[]),
    ] {
        let output = run_with(variables, &[&["check", "--quiet", &*image], arguments].concat(), None);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(output.stderr.is_empty() && fs::read_dir(home).unwrap().count() == 0, "{}", stderr(&output));
    }
    assert!(!Path::new("relative").exists());
    for (variables, arguments, why) in [
        (&[][..], &["--cache", "ftp://x"][..], "unsupported scheme ftp://; use s3://"),
        (&[("HOME", "/x"), ("NCCLCHECK_CACHE_SIZE", "much")], &[], "NCCLCHECK_CACHE_SIZE=much"),
        (&[("NCCLCHECK_CACHE_TRUST", "all")], &[], "error: NCCLCHECK_CACHE_TRUST=all: expected own or shared\n"),
    ] {
        let output = run_with(variables, &[&["check", &*image], arguments].concat(), None);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    }
}

#[test]
fn an_unpacked_root_is_never_cached() {
    let layout = layout("good");
    let root = tempfile::tempdir().unwrap();
    let user = User::new();
    for path in fs::read_dir(layout.path().join("blobs/sha256")).unwrap().map(|entry| entry.unwrap().path()) {
        let bytes = fs::read(&path).unwrap();
        if bytes.starts_with(&[0x1f, 0x8b]) {
            tar::Archive::new(&*gunzip(&bytes)).unpack(root.path()).unwrap();
        }
    }
    for _ in 0..2 {
        assert_eq!(user.check(&[], &format!("root:{}", root.path().display()), None).1, 0);
        assert!(user.files().is_empty());
    }
}

#[test]
fn the_cache_can_be_listed_cleared_and_exported() {
    let user = User::new();
    let good = world("good").display().to_string();
    let other = world("two-nccl").display().to_string();
    let (expected, _) = user.check(&[], &good, None);
    user.check(&["--limit", "text_file=1000000"], &good, None);
    let all = layers(&expected) as u64;
    let info = user.info();
    assert_eq!((&info["scans"], &info["bound"]), (&Value::from(2 * all), &Value::from(1 << 30)));
    let bytes: u64 = user.files().iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert_eq!(info["bytes"], bytes);
    let current: Vec<_> = info["scanners"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["current"] == true, one["scans"].as_u64().unwrap()))
        .collect();
    assert!(current.contains(&(true, all)) && current.contains(&(false, all)), "{info}");
    let said = |arguments: &[&str]| {
        let output = user.run(&[&["cache"], arguments].concat(), None);
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(said(&["info"]).contains(&format!("holds    {} scans", 2 * all)));
    assert!(said(&["clear", "--older-than", "1"]).starts_with("removed 0 scans"));
    assert!(said(&["clear", "--other-versions"]).starts_with(&format!("removed {all} scans")));

    let team = user.0.path().join("team").display().to_string();
    assert!(said(&["export", &team]).contains(&format!("{all} scans")));
    assert!(said(&["export", &team, &other]).contains(&other));
    assert!(said(&["clear"]).starts_with("removed "));
    assert_eq!(user.info()["scans"], 0);
    // Another user can use the exported scans.
    let second = User::new();
    assert_eq!(second.check(&["--cache", &team], &good, None), (expected, usize::try_from(all).unwrap()));
    let (report, cached) = second.check(&["--cache", &format!("file://{team}")], &other, None);
    assert_eq!(cached, layers(&report));
}
