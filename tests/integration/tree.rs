//! Recorded hosts, written out as folders. fixtures/hosts/README.md describes the format of the files.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Link { link: String },
    Port { port: u8, acs: u8 },
}

/// The folder of a recorded host.
pub(crate) fn host(name: &str) -> tempfile::TempDir {
    // Another crate of this repository uses this file too.
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut files = folders.map(|folder| folder.join(format!("fixtures/hosts/{name}.yaml")));
    let file = files.find(|file| file.is_file()).unwrap();
    let entries: BTreeMap<String, Content> = serde_yaml::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (path, content) in &entries {
        let Some((before, rest)) = path.split_once('{') else {
            make(&folder.path().join(path), content, "");
            continue;
        };
        let (range, after) = rest.split_once('}').unwrap();
        let (first, last) = range.split_once("..").unwrap();
        for number in first.parse::<u8>().unwrap()..=last.parse().unwrap() {
            let number = number.to_string();
            let path = format!("{before}{number}{}", after.replace("{}", &number));
            make(&folder.path().join(path), content, &number);
        }
    }
    folder
}

fn make(path: &Path, content: &Content, number: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    match content {
        Content::Text(text) => fs::write(path, text.replace("{}", number)).unwrap(),
        Content::Link { link } => symlink(link.replace("{}", number), path).unwrap(),
        Content::Port { port, acs } => fs::write(path, configuration(*port, *acs)).unwrap(),
    }
}

/// The configuration space of a port: one capability, PCI Express, and ACS as the second extended capability.
fn configuration(port: u8, acs: u8) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    let mut put = |at: usize, these: &[u8]| bytes[at..at + these.len()].copy_from_slice(these);
    put(0x06, &[0x10]);
    put(0x34, &[0x40]);
    put(0x40, &[0x10, 0, port << 4 | 2]);
    put(0x100, &[0x01, 0, 0x02, 0x15]);
    put(0x150, &[0x0d, 0, 0x01, 0]);
    put(0x156, &[acs]);
    bytes
}
