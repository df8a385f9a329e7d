//! Results of the extractors for one file.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{ElfInfo, Gap, GpuCode, PythonImports};

/// Result of one extractor for one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Found {
    /// The headers of an ELF file.
    Elf(Box<ElfInfo>),
    /// The file contains NCCL's code.
    Nccl(NcclStrings),
    /// Version of NVSHMEM, whose host library or device code the file contains.
    Nvshmem(String),
    /// The result of `caffe2::GetBuildOptions()`, which the file contains.
    BuildOptions(BuildOptions),
    /// Candidates for the architectures that torch was built for: literals in the form that
    /// `torch._C._cuda_getArchFlags()` returns.
    ArchFlags(BTreeSet<String>),
    /// Functions that return a constant in the form of `torch::cuda::nccl::version()`, by file offset.
    NcclVersions(BTreeMap<u64, [u32; 3]>),
    /// The file contains GPU code for these architectures, or GPU code that could not be read.
    GpuCode(Result<GpuCode, Gap>),
    /// The ELF note of a driver library for CUDA forward compatibility.
    Compat(CompatNote),
    /// What a Python file imports.
    PythonImports(PythonImports),
    /// The release of torch that a Python package requires exactly, or those that a lock names, separated by blanks.
    TorchPin(String),
    /// The file's whole content.
    Text(#[serde(with = "serde_bytes")] Box<[u8]>),
}

/// NCCL's literals in a library that contains its code, either `libnccl.so.2` or one that NCCL is linked into.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NcclStrings {
    /// NCCL's version, such as `2.27.5`.
    pub version: String,
    /// Version of the CUDA toolkit that built NCCL, such as `12.9`; PyTorch's may differ.
    pub cuda: String,
    /// Names of the environment variables that this build reads.
    pub variables: BTreeSet<String>,
    /// Strings that end in a possible variable name but begin in other bytes: compilers place literals directly after
    /// constants, so that only a list of known names can determine where a name begins.
    pub joined: BTreeSet<String>,
    /// Plugin interfaces that this build looks up, by symbol: `ncclNetPlugin_v10`.
    pub interfaces: BTreeSet<String>,
    /// Symbol versions that this build looks up in the RDMA libraries (`dlvsym`): `IBVERBS_1.12`, `MLX5_1.25`.
    pub symbol_versions: BTreeSet<String>,
}

/// PyTorch's build options.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildOptions {
    /// All options with their values, including empty ones.
    pub options: BTreeMap<String, String>,
    /// True if PyTorch uses the `std::string` of the C++11 ABI.
    pub cxx11_abi: bool,
}

/// ELF note `.note.cuda.fwd_compatibility` in the `libcuda.so` of a forward-compatibility package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompatNote {
    /// CUDA release of the package, such as `12.9`.
    pub cuda: String,
    /// Compatible branches of kernel drivers, by their major versions. Empty on Jetson, where the note lists none.
    pub branches: Vec<u64>,
}
