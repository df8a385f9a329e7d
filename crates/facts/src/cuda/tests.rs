use model::{DynamicSymbol, ElfInfo, Endian, Fact, Found, Gap, GpuCode, ImageConfig, NcclStrings};

use super::super::{Facts, key};
use crate::tests::synthetic::{collect, file, rootfs};

const PACKAGE: &str = "usr/lib/python3/dist-packages/torch";

/// The facts about a torch whose first library contains NCCL, with the code of each library: architectures, or `None`
/// where it could not be read.
fn facts(libraries: &[(&str, Option<&[&str]>)]) -> Facts {
    let version = Found::Text(b"__version__ = '1.13.1'\ncuda = '11.7'\n".as_slice().into());
    let files = libraries.iter().enumerate().map(|(index, (path, code))| {
        let mut elf = ElfInfo::bare(64, Endian::Little, 62);
        let symbol = DynamicSymbol { name: "ncclGetVersion".to_owned(), defined: index == 0, offset: None };
        elf.symbols = Ok(vec![symbol]);
        let code = match code {
            Some(archs) => {
                let cubin = archs.iter().map(|arch| arch.parse().unwrap()).collect();
                Ok(GpuCode { cubin, ..GpuCode::default() })
            }
            None => Err(Gap::new(format!("{path}: damaged"))),
        };
        let mut found = vec![Ok(Found::Elf(Box::new(elf))), Ok(Found::GpuCode(code))];
        if index == 0 {
            let strings = NcclStrings { version: "2.14.3".to_owned(), ..NcclStrings::default() };
            found.push(Ok(Found::Nccl(strings)));
        }
        (file(path), found)
    });
    let version = [(file(&format!("{PACKAGE}/version.py")), vec![Ok(version)])];
    collect(&rootfs(files.chain(version)), &ImageConfig::default())
}

fn texts(facts: &Facts) -> [String; 3] {
    ["cuda.fatbin", "cuda.unread_code", "cuda.not_in_nccl"].map(|name| match facts.view(key::find(name).unwrap()) {
        Fact::Seen { value, .. } => value.to_string(),
        Fact::Absent => "absent".to_owned(),
        Fact::Unknown(gap) => format!("unknown: {gap}"),
    })
}

#[test]
fn one_unreadable_library_hides_no_other() {
    let torch = format!("{PACKAGE}/lib/libtorch_cuda.so");
    let more = format!("{PACKAGE}/lib/libtorch_cuda_cpp.so");
    let other = "opt/libother.so";
    let [code, unread, missing] = texts(&facts(&[(&torch, Some(&["sm_80"])), (other, None)]));
    assert!(code.contains("sm_80") && !code.contains(other), "{code}");
    assert_eq!(unread, "/opt/libother.so=opt/libother.so: damaged");
    assert_eq!(missing, "absent");
    // torch's second library may have any code.
    let [_, _, missing] = texts(&facts(&[(&torch, Some(&["sm_80"])), (&more, None)]));
    assert_eq!(missing, format!("unknown: {more}: damaged"));
    // What is known to be missing is missing, whatever a third has.
    let cu = format!("{PACKAGE}/lib/libtorch_cuda.so.1");
    let known = [(torch.as_str(), Some(&["sm_80"][..])), (&more, None), (&cu, Some(&["sm_90"]))];
    let known = facts(&known);
    assert_eq!(texts(&known)[2], "sm_90");
    let sites = known.view(&key::CUDA_NOT_IN_NCCL).sites();
    assert_eq!(sites.last().map(ToString::to_string), Some(format!("/{cu}")));
    // NCCL's own code decides about every architecture.
    let [_, _, missing] = texts(&facts(&[(&torch, None), (&more, Some(&["sm_80"]))]));
    assert_eq!(missing, format!("unknown: {torch}: damaged"));
}

#[test]
fn code_is_unknown_where_nothing_could_be_read() {
    let torch = format!("{PACKAGE}/lib/libtorch_cuda.so");
    let [code, unread, _] = texts(&facts(&[(&torch, None)]));
    assert_eq!(code, format!("unknown: {torch}: damaged"));
    assert_eq!(unread, format!("/{torch}={torch}: damaged"));
}
