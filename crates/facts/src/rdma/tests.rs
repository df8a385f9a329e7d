use model::{ElfInfo, Endian, Fact, Found, ImageConfig};

use super::super::{Facts, key};
use crate::tests::synthetic::{collect, file, rootfs};

const VERBS: &str = "usr/lib/x86_64-linux-gnu/libibverbs.so.1";
const PROVIDERS: &str = "usr/lib/x86_64-linux-gnu/libibverbs";

/// The facts about an image without a program that opens libibverbs, with a provider each that needs these libraries.
fn facts(of_verbs: &[&str], of_provider: &[&str]) -> Facts {
    let library = |soname: &str, needed: &[&str]| {
        let mut elf = ElfInfo::bare(64, Endian::Little, 62);
        elf.soname = Some(soname.to_owned());
        elf.needed = needed.iter().map(ToString::to_string).collect();
        elf
    };
    let mut verbs = library("libibverbs.so.1", of_verbs);
    verbs.provider_pattern = Some(format!("/{PROVIDERS}/lib%s-rdmav34.so"));
    let provider = library("libmlx5-rdmav34.so", of_provider);
    let files = [
        (VERBS.to_owned(), Found::Elf(Box::new(verbs))),
        (format!("{PROVIDERS}/libmlx5-rdmav34.so"), Found::Elf(Box::new(provider))),
        ("etc/libibverbs.d/mlx5.driver".to_owned(), Found::Text(b"driver mlx5\n".as_slice().into())),
    ];
    let files = files.into_iter().map(|(path, found)| (file(&path), vec![Ok(found)]));
    collect(&rootfs(files), &ImageConfig::default())
}

fn broken(facts: &Facts) -> String {
    match facts.view(key::find("rdma.broken_providers").unwrap()) {
        Fact::Seen { value, .. } => value.to_string(),
        Fact::Absent => "absent".to_owned(),
        Fact::Unknown(gap) => format!("unknown: {gap}"),
    }
}

#[test]
fn providers_are_judged_without_a_process_that_opens_libibverbs() {
    assert_eq!(broken(&facts(&[], &["libibverbs.so.1"])), "absent");
    let missing = "libmlx5.so.1: cannot open shared object file: No such file or directory";
    assert_eq!(
        broken(&facts(&[], &["libmlx5.so.1"])),
        format!("/{PROVIDERS}/libmlx5-rdmav34.so does not load: {missing}")
    );
    let unknown = broken(&facts(&["libnl-3.so.200"], &[]));
    assert!(unknown.starts_with(&format!("unknown: what opens /{VERBS} is unknown: libnl-3.so.200")), "{unknown}");
}

#[test]
fn libibverbs_reads_the_configuration_that_it_was_built_for() {
    let of = |config: Option<&str>, driver: &str, provider: &str| {
        let mut verbs = ElfInfo { soname: Some("libibverbs.so.1".to_owned()), ..ElfInfo::bare(64, Endian::Little, 62) };
        verbs.provider_config = config.map(ToOwned::to_owned);
        verbs.provider_pattern = Some(format!("/{PROVIDERS}/lib%s-rdmav34.so"));
        let provider = format!("{PROVIDERS}/{provider}");
        let files = [
            (VERBS, Found::Elf(Box::new(verbs))),
            (&*provider, Found::Elf(Box::new(ElfInfo::bare(64, Endian::Little, 62)))),
            (driver, Found::Text(b"# ConnectX\n driver mlx5\n".as_slice().into())),
        ];
        let facts = collect(&rootfs(files.map(|(path, found)| (file(path), vec![Ok(found)]))), &ImageConfig::default());
        let providers = facts.get(key::RDMA_PROVIDERS).value().cloned().unwrap_or_default().join(" ");
        (facts.get(key::RDMA_CONFIG).value().unwrap().to_string(), providers, broken(&facts))
    };
    let found = |config: &str, providers: &str| (config.to_owned(), providers.to_owned(), "absent".to_owned());
    let own = "usr/local/etc/libibverbs.d";
    let usual = "/etc/libibverbs.d";
    let provider = "libmlx5-rdmav34.so";
    assert_eq!(of(None, "etc/libibverbs.d/mlx5", provider), found(usual, "mlx5"));
    assert_eq!(
        of(Some(&format!("/{own}")), &format!("{own}/mlx5.driver"), provider),
        found(&format!("/{own}"), "mlx5")
    );
    assert_eq!(of(Some(&format!("/{own}")), "etc/libibverbs.d/mlx5.driver", provider), found(&format!("/{own}"), ""));
    // A provider of another release is none.
    let (_, providers, broken) = of(None, "etc/libibverbs.d/mlx5.driver", "libmlx5-rdmav59.so");
    let why =
        format!("/{PROVIDERS}/libmlx5-rdmav59.so is for a libibverbs with IBVERBS_PRIVATE_59, and /{VERBS} has 34");
    assert_eq!((&*providers, &*broken), ("", &*why));
    let unloadable = facts(&[], &["libmlx5.so.1"]);
    assert_eq!(unloadable.get(key::RDMA_PROVIDERS).value(), None);
}

#[test]
fn a_provider_of_another_release_is_found_where_another_libibverbs_looks() {
    let of = |abi: &str| {
        let verbs = |folder: &str, abi: &str| {
            let mut verbs =
                ElfInfo { soname: Some("libibverbs.so.1".to_owned()), ..ElfInfo::bare(64, Endian::Little, 62) };
            verbs.provider_pattern = Some(format!("/{folder}/lib%s-rdmav{abi}.so"));
            Found::Elf(Box::new(verbs))
        };
        let provider = format!("{PROVIDERS}/libmlx5-rdmav34.so");
        let files = [
            ("usr/lib/libibverbs.so.1", verbs(PROVIDERS, "34")),
            (VERBS, verbs("opt/rdma", abi)),
            (&provider, Found::Elf(Box::new(ElfInfo::bare(64, Endian::Little, 62)))),
            ("etc/libibverbs.d/mlx5.driver", Found::Text(b"driver mlx5\n".as_slice().into())),
        ];
        collect(&rootfs(files.map(|(path, found)| (file(path), vec![Ok(found)]))), &ImageConfig::default())
    };
    let why =
        format!("/{PROVIDERS}/libmlx5-rdmav34.so is for a libibverbs with IBVERBS_PRIVATE_34, and /{VERBS} has 59");
    assert_eq!(broken(&of("59")), why);
    // One of the same release that is not looked for is none.
    assert_eq!(broken(&of("34")), "absent");
    assert_eq!(of("34").get(key::RDMA_DANGLING_DRIVERS).value(), Some(&vec!["mlx5".to_owned()]));
}

#[test]
fn without_a_configuration_the_machine_is_that_of_the_files() {
    let library = ElfInfo { soname: Some("libibverbs.so.1".to_owned()), ..ElfInfo::bare(64, Endian::Little, 183) };
    let place = "usr/lib/aarch64-linux-gnu/libibverbs.so.1";
    let facts = collect(&rootfs([(file(place), vec![Ok(Found::Elf(Box::new(library)))])]), &ImageConfig::default());
    assert_eq!(facts.get(key::RDMA_VERBS).value().unwrap().to_string(), format!("/{place}"));
}
