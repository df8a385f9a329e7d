//! What extractors find in the bytes of one file.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{ElfInfo, Gap, GpuCode};

/// What one extractor found in one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Found {
    /// The file is ELF, and says this.
    Elf(Box<ElfInfo>),
    /// The file holds NCCL's code.
    Nccl(NcclStrings),
    /// The file holds `caffe2::GetBuildOptions()`, and this is what it returns.
    BuildOptions(BuildOptions),
    /// Literals that may be the architectures that torch was built for, as `torch._C._cuda_getArchFlags()` returns them.
    ArchFlags(BTreeSet<String>),
    /// Functions that return a constant in the form of `torch::cuda::nccl::version()`, by their offset in the file.
    NcclVersions(BTreeMap<u64, [u32; 3]>),
    /// The file holds GPU code for these architectures, or GPU code that could not be read.
    GpuCode(Result<GpuCode, Gap>),
    /// The file is a driver library of CUDA's forward compatibility, and says this.
    Compat(CompatNote),
    /// The file's whole content.
    Text(#[serde(with = "serde_bytes")] Box<[u8]>),
}

/// Literals that NCCL leaves in the library that holds its code, whether `libnccl.so.2` or one that has it linked in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NcclStrings {
    /// NCCL's version, such as `2.27.5`.
    pub version: String,
    /// The CUDA toolkit that it was built with, such as `12.9`; not PyTorch's.
    pub cuda: String,
    /// Names of the environment variables that this build reads: the exact vocabulary of this copy.
    pub variables: BTreeSet<String>,
    /// Texts that end as such a name would and begin in the middle of other bytes: compilers put a literal behind
    /// constants without a gap, so that only somebody who knows the names can tell where one begins.
    pub joined: BTreeSet<String>,
    /// Interfaces of plugins that this build looks for, by their symbols: `ncclNetPlugin_v10`.
    pub interfaces: BTreeSet<String>,
    /// Versions that this build asks the RDMA libraries for (`dlvsym`): `IBVERBS_1.12`, `MLX5_1.25`.
    pub symbol_versions: BTreeSet<String>,
}

/// What PyTorch's code says of how it was built.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildOptions {
    /// Every option with its value, empty ones too.
    pub options: BTreeMap<String, String>,
    /// Whether its `std::string` is that of the C++11 ABI.
    pub cxx11_abi: bool,
}

/// What a `libcuda.so` of a forward-compatibility package says of itself (ELF note `.note.cuda.fwd_compatibility`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompatNote {
    /// The CUDA release that it brings, such as `12.9`.
    pub cuda: String,
    /// Branches of kernel drivers that it works with: first numbers of their versions. On Jetson it says none.
    pub branches: Vec<u64>,
}
