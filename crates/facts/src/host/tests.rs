use std::collections::BTreeMap;

use super::super::records::{CompatPackage, NcclCopy};
use super::*;
use model::{ImagePath, Value};

const SITE: &str = "/opt/site-packages";

fn list(names: &[&str]) -> Value {
    Value::List(names.iter().map(|name| Value::from(*name)).collect())
}

/// An image with torch, NCCL and the given libraries: name below site-packages, cubin, PTX.
fn image(libraries: &[(&str, &[&str], &[&str])], ptx: &str) -> Facts {
    let groups = libraries.iter().map(|(name, cubin, ptx)| {
        let lists = BTreeMap::from([("cubin".to_owned(), list(cubin)), ("ptx".to_owned(), list(ptx))]);
        (format!("{SITE}/{name}"), Value::Map(lists))
    });
    let with_ptx = libraries.iter().filter(|(_, _, ptx)| !ptx.is_empty());
    let versions: BTreeMap<_, _> = with_ptx.map(|(name, _, _)| (format!("{SITE}/{name}"), ptx.to_owned())).collect();
    let mut facts = Facts::default();
    facts.insert_value(key::CUDA_FATBIN.definition, Fact::known(Value::Map(groups.collect())));
    facts.insert(key::CUDA_PTX, Fact::known(versions));
    facts.insert(key::TORCH_PATH, Fact::known(ImagePath::from(format!("{SITE}/torch").as_str())));
    facts.insert(key::TORCH_CUDA_BUILD, Fact::seen(true, []));
    facts.insert(key::NCCL_LOADED_PATH, Fact::known(ImagePath::from(format!("{SITE}/{NCCL}").as_str())));
    facts
}

fn said(facts: &Facts, key: &key::Definition) -> String {
    match facts.view(key) {
        Fact::Seen { value, .. } => value.to_string(),
        Fact::Absent => "absent".to_owned(),
        Fact::Unknown(gap) => format!("unknown: {gap}"),
    }
}

fn host(text: &str) -> Host {
    text.parse().unwrap()
}

const TORCH: &str = "torch/lib/libtorch_cuda.so";
const NCCL: &str = "nvidia/nccl/lib/libnccl.so.2";

#[test]
fn code_for_the_gpu_of_a_host() {
    let image = image(&[(TORCH, &["sm_80", "sm_90", "sm_90a"], &[]), (NCCL, &["sm_80"], &["compute_90"])], "8.4");
    for (text, torch, nccl) in [
        ("driver=550.54,gpu=a100", "cubin", "cubin"),
        ("driver=550.54,gpu=l4", "cubin", "cubin"),
        ("driver=550.54,gpu=h100", "cubin", "ptx"),
        ("driver=535.54,gpu=h100", "cubin", "new-ptx"),
        ("gpu=h100", "cubin", "ptx"),
        ("driver=570.1,gpu=b200", "none", "ptx"),
        ("driver=570.1,gpu=v100", "none", "none"),
        ("driver=570.1", "absent", "absent"),
        // A driver newer than the table supports what older drivers support.
        ("driver=999.1,gpu=h100", "cubin", "ptx"),
    ] {
        let facts = image.on(&host(text));
        assert_eq!(said(&facts, &key::HOST_TORCH_CODE), torch, "{text}");
        assert!(said(&facts, &key::HOST_NCCL_CODE).starts_with(nccl), "{text}: {}", said(&facts, &key::HOST_NCCL_CODE));
    }
}

#[test]
fn ptx_that_only_the_newest_drivers_compile() {
    for (version, text, expected) in [
        ("9.4", "driver=615.71,gpu=h100", "ptx"),
        ("9.4", "driver=999.1,gpu=h100", "ptx"),
        ("9.5", "driver=615.71,gpu=h100", "new-ptx"),
        ("9.5", "driver=999.1,gpu=h100", "unknown: the CUDA release of driver 999.1"),
        ("99.0", "driver=615.71,gpu=h100", "new-ptx"),
        ("99.0", "driver=999.1,gpu=h100", "unknown: the CUDA release of driver 999.1"),
        ("99.0", "driver=999.1,cuda=99.0,gpu=h100", "unknown: /opt/site-packages/torch/lib/libtorch_cuda.so"),
    ] {
        let code = said(&image(&[(TORCH, &[], &["compute_90"])], version).on(&host(text)), &key::HOST_TORCH_CODE);
        assert!(code.starts_with(expected), "PTX {version} on {text}: {code}");
    }
}

#[test]
fn a_library_without_code_that_must_have_some_is_not_guessed_about() {
    let facts = image(&[("apex/amp_C.so", &["sm_80"], &[])], "").on(&host("gpu=a100"));
    assert!(said(&facts, &key::HOST_TORCH_CODE).contains("no GPU code was seen in torch's CUDA library"));
    assert!(said(&facts, &key::HOST_NCCL_CODE).contains("no GPU code was seen in /opt/site-packages/nvidia/nccl"));
    let mut none = image(&[], "");
    none.insert(key::CUDA_FATBIN, Fact::Absent);
    let facts = none.on(&host("gpu=a100"));
    assert!(said(&facts, &key::HOST_TORCH_CODE).starts_with("unknown: no GPU code was seen in any library"));
}

#[test]
fn packages_with_code_for_other_gpus_alone() {
    let image = image(
        &[
            (TORCH, &["sm_80"], &[]),
            (NCCL, &["sm_75"], &[]),
            // torch's own libraries are skipped: some support certain GPUs only.
            ("torch/lib/libtorch_nvshmem.so", &["sm_90"], &[]),
            ("flash_attn_3/_C.so", &["sm_90a"], &[]),
            ("vllm/_C.so", &["sm_80"], &[]),
            ("vllm/_flashmla_C.so", &["sm_90a"], &[]),
            ("flash_attn_2_cuda.so", &["sm_90"], &["compute_80"]),
        ],
        "8.0",
    );
    for (text, expected) in [
        ("gpu=a100", "/opt/site-packages/flash_attn_3/_C.so"),
        ("gpu=h100", "absent"),
        // A driver of CUDA 11 cannot compile the PTX of CUDA 12.0.
        ("driver=470.57,gpu=a100", "/opt/site-packages/flash_attn_2_cuda.so, /opt/site-packages/flash_attn_3/_C.so"),
    ] {
        assert_eq!(said(&image.on(&host(text)), &key::HOST_EXTENSIONS_WITHOUT_CODE), expected, "{text}");
    }
}

#[test]
fn extensions_that_the_program_loads_count_apart() {
    let mut image = image(&[("a/_C.so", &["sm_90"], &[]), ("b/_C.so", &["sm_90"], &[])], "");
    image.insert(key::EXTENSION_LOADED, Fact::known(vec![format!("{SITE}/a/_C.so")]));
    let facts = image.on(&host("gpu=a100"));
    assert_eq!(said(&facts, &key::HOST_IMPORTED_WITHOUT_CODE), "/opt/site-packages/a/_C.so");
    assert_eq!(said(&facts, &key::HOST_EXTENSIONS_WITHOUT_CODE), "/opt/site-packages/b/_C.so");
}

/// A library whose code could not be read keeps no other from being judged.
#[test]
fn an_unreadable_library_is_unknown_by_itself() {
    let mut image = image(&[(TORCH, &["sm_80"], &[]), (NCCL, &["sm_80"], &[])], "");
    let unread = |name: &str| Fact::known([(format!("{SITE}/{name}"), "damaged".to_owned())].into());
    image.insert(key::CUDA_UNREAD_CODE, unread("some/_C.so"));
    let facts = image.on(&host("gpu=a100"));
    let all = [&*key::HOST_TORCH_CODE, &*key::HOST_NCCL_CODE, &*key::HOST_EXTENSIONS_WITHOUT_CODE];
    assert_eq!(all.map(|key| said(&facts, key)), ["cubin", "cubin", "unknown: damaged"]);
    image.insert(key::CUDA_UNREAD_CODE, unread(NCCL));
    let facts = image.on(&host("gpu=a100"));
    assert_eq!(all.map(|key| said(&facts, key)), ["cubin", "unknown: damaged", "absent"]);
}

#[test]
fn an_extension_that_lacks_code_lacks_it_whatever_an_unreadable_one_has() {
    let mut image = image(&[(TORCH, &["sm_80"], &[]), ("old/_C.so", &["sm_90"], &[])], "");
    let unread = [(format!("{SITE}/some/_C.so"), "damaged".to_owned())];
    image.insert(key::CUDA_UNREAD_CODE, Fact::known(unread.into()));
    let facts = image.on(&host("gpu=a100"));
    assert_eq!(said(&facts, &key::HOST_EXTENSIONS_WITHOUT_CODE), "/opt/site-packages/old/_C.so");
}

/// A package may have a build for each release of torch, of which Python imports one.
#[test]
fn builds_for_other_releases_of_torch_do_not_count() {
    let mut image = image(
        &[
            ("ep/_torch211.cpython-311.so", &["sm_90"], &[]),
            ("ep/_torch29.cpython-311.so", &["sm_80"], &[]),
            ("two/a.so", &["sm_90"], &[]),
            ("two/b.so", &["sm_100"], &[]),
        ],
        "8.0",
    );
    let mut reported = |version: &str| {
        image.insert(key::TORCH_VERSION, Fact::known(Version::parse(version).unwrap()));
        said(&image.on(&host("gpu=a100")), &key::HOST_EXTENSIONS_WITHOUT_CODE)
    };
    let two = "/opt/site-packages/two (2 libraries)";
    assert_eq!(reported("2.11.0+cu130"), format!("/opt/site-packages/ep/_torch211.cpython-311.so, {two}"));
    assert_eq!(reported("2.9.1"), two);
    // Without a build for this release, any may be the one.
    assert_eq!(reported("2.5.0"), two);
}

#[test]
fn requirements_that_a_host_does_not_meet_are_reported() {
    let mut image = Facts::default();
    let terms = BTreeMap::from([("1".to_owned(), vec!["cuda>=12.8".to_owned()])]);
    let variables = BTreeMap::from([("NVIDIA_REQUIRE_CUDA".to_owned(), terms)]);
    image.insert(key::NVIDIA_REQUIREMENTS, Fact::known(variables));
    for (text, expected) in [
        ("driver=570.1", "absent"),
        ("driver=550.54", "NVIDIA_REQUIRE_CUDA"),
        ("driver=550.54,cuda=12.8", "absent"),
        ("driver=999.1", "absent"),
        ("driver=375.26", "unknown: NVIDIA_REQUIRE_CUDA"),
    ] {
        let said = said(&image.on(&host(text)), &key::HOST_UNMET_REQUIREMENTS);
        assert!(said.starts_with(expected), "{text}: {said}");
    }
}

#[test]
fn nccl_of_a_newer_cuda_than_the_driver() {
    let with = |cuda: &str| {
        let copy =
            NcclCopy { path: Some(format!("{SITE}/{NCCL}")), cuda: Some(cuda.to_owned()), ..NcclCopy::default() };
        let mut image = image(&[], "");
        image.insert(key::NCCL_COPIES, Fact::known(vec![copy]));
        image
    };
    for (cuda, text, expected) in [
        ("13.0", "driver=570.1", "13.0"),
        ("13.0", "driver=580.65", "absent"),
        ("13.9", "driver=999.1", "absent"),
        ("99.0", "driver=999.1", "unknown: the CUDA release of driver 999.1"),
        ("99.0", "gpu=h100", "absent"),
    ] {
        let said = said(&with(cuda).on(&host(text)), &key::HOST_NCCL_CUDA);
        assert!(said.starts_with(expected), "CUDA {cuda} on {text}: {said}");
    }
}

#[test]
fn forward_compatibility() {
    const LIBRARY: &str = "/usr/local/cuda-12.9/compat/libcuda.so.575.57.08";
    let with = |branches: Option<&str>| {
        let package = CompatPackage {
            path: Some(LIBRARY.to_owned()),
            driver: Some("575.57.08".to_owned()),
            branches: branches.map(ToOwned::to_owned),
            ..CompatPackage::default()
        };
        let mut image = Facts::default();
        image.insert(key::CUDA_COMPAT, Fact::known(vec![package]));
        image.insert(key::CUDA_LIBCUDA, Fact::known(LIBRARY.into()));
        image
    };
    let noted = with(Some("535 550 575"));
    for (image, text, usable, refused) in [
        (&noted, "driver=535.104,gpu=a100", LIBRARY, "absent"),
        (&noted, "driver=545.23,gpu=a100", "absent", "it only supports the driver branches 535 550 575"),
        (&noted, "driver=590.44,gpu=a100", "absent", "it only supports the driver branches"),
        (&noted, "driver=535.104,gpu=rtx4090", "absent", "CUDA's forward compatibility needs a data-centre GPU"),
        (
            &noted,
            "driver=535.104,gpu=rtx6000ada",
            "absent",
            "unknown: whether CUDA supports forward compatibility on rtx6000ada",
        ),
        (&noted, "driver=590.44,gpu=rtx6000ada", "absent", "it only supports the driver branches"),
        (&noted, "gpu=a100", "absent", "absent"),
        (&with(None), "driver=545.23,gpu=a100", LIBRARY, "absent"),
        (&with(None), "driver=590.44,gpu=a100", "absent", "it is older than the host driver: 575.57.08"),
    ] {
        let facts = image.on(&host(text));
        assert_eq!(said(&facts, &key::HOST_COMPAT), usable, "{text}");
        assert!(said(&facts, &key::HOST_COMPAT_REFUSED).starts_with(refused), "{text}");
    }
    // A package too old for torch does not help.
    let mut newer = noted;
    newer.insert(key::TORCH_CUDA_DRIVER_MIN, Fact::seen(Version::parse("580.65.06").unwrap(), []));
    assert_eq!(said(&newer.on(&host("driver=535.104,gpu=a100")), &key::HOST_COMPAT), "absent");
}
