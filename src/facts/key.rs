//! The contract between facts and rules: every fact's name and type, and what it means. Names are published: they are
//! never used for another meaning.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

use crate::host::driver::Flavour;
use crate::model::{Arch, Class, Fabric, Fact, ImagePath, Nic, Value, Version};

use super::records::{
    ArrangementResult, ClosedDevice, CompatPackage, FailedStep, LibraryFile, NcclCopy, NcclPlugin, SkippedStep,
    VariableSetting, VariantResult,
};
use super::value::{CodeLists, FactType, Groups};
use super::words::{GpuDirect, GpuSupport, Linkage, RdmaOrigin};

pub use super::value::Type;

/// One fact, as rules, JSON and the user know it.
pub struct Definition {
    /// Dotted name. No name is the beginning of another, so that names nest.
    pub name: &'static str,
    /// Type of the answer.
    pub kind: Type,
    /// The only texts that the answer can be; empty where it can be any.
    pub words: &'static [&'static str],
    /// What is asked, in one sentence.
    pub about: &'static str,
    /// Its place in [`KEYS`].
    pub(super) index: usize,
    set: fn(&mut FactTable, &Fact) -> bool,
    admits: fn(&Value) -> bool,
}

impl Definition {
    /// Whether only a run of the image tells it: a probe.
    pub fn is_of_run(&self) -> bool {
        self.name.starts_with("run.")
    }

    /// What its values are, in words: its type, or the words that it can be.
    pub fn expected(&self) -> String {
        if self.words.is_empty() { self.kind.to_string() } else { format!("one of {}", self.words.join(", ")) }
    }

    /// Whether a value is of its type.
    pub fn admits(&self, value: &Value) -> bool {
        (self.admits)(value)
    }
}

impl PartialEq for Definition {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index
    }
}

impl Eq for Definition {}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Definition").field("name", &self.name).field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// One fact with the type of its values.
pub struct Key<T: 'static> {
    /// What is known of it without its type.
    pub definition: &'static Definition,
    get: fn(&FactTable) -> &Fact<T>,
    get_mut: fn(&mut FactTable) -> &mut Fact<T>,
}

impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Key<T> {}

impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.definition.name).finish()
    }
}

impl<T> Deref for Key<T> {
    type Target = Definition;

    fn deref(&self) -> &Definition {
        self.definition
    }
}

/// Finds a fact by its name.
pub fn find(name: &str) -> Option<&'static Definition> {
    KEYS.iter().copied().find(|key| key.name == name)
}

impl FactTable {
    /// The value of a fact.
    pub(super) fn get<T>(&self, key: Key<T>) -> &Fact<T> {
        (key.get)(self)
    }

    /// Sets the value of a fact.
    pub(super) fn set<T>(&mut self, key: Key<T>, fact: Fact<T>) {
        *(key.get_mut)(self) = fact;
    }

    /// Sets a fact by its form; false if the value is of another type, which changes nothing.
    pub(super) fn set_value(&mut self, key: &Definition, fact: &Fact) -> bool {
        (key.set)(self, fact)
    }
}

fn typed<T: FactType>(fact: &Fact) -> Option<Fact<T>> {
    Some(match fact {
        Fact::Seen { value, at } => Fact::Seen { value: T::from_value(value.clone())?, at: at.clone() },
        Fact::Absent => Fact::Absent,
        Fact::Unknown(gap) => Fact::Unknown(gap.clone()),
    })
}

macro_rules! keys {
    ($($constant:ident $name:literal $kind:ty, $about:literal;)*) => {
        $(
            #[doc = $about]
            pub const $constant: Key<$kind> = Key {
                definition: &Definition {
                    name: $name,
                    kind: <$kind as FactType>::TYPE,
                    words: <$kind as FactType>::WORDS,
                    about: $about,
                    index: Index::$constant as usize,
                    set: |table, fact| typed(fact).map(|fact| table.$constant = fact).is_some(),
                    admits: |value| <$kind as FactType>::from_value(value.clone()).is_some(),
                },
                get: |table| &table.$constant,
                get_mut: |table| &mut table.$constant,
            };
        )*

        /// Numbers the facts in the order of reports.
        #[expect(non_camel_case_types, reason = "each variant has the name of its key")]
        enum Index {
            $($constant,)*
        }

        /// All facts, in the order of reports.
        pub const KEYS: &[&Definition] = &[$($constant.definition),*];

        /// The values of all facts.
        #[expect(non_snake_case, reason = "each field has the name of its key")]
        #[derive(Clone, Debug, PartialEq)]
        pub(super) struct FactTable {
            $($constant: Fact<$kind>,)*
        }

        impl FactTable {
            /// A table in which every fact is absent.
            pub(super) const fn absent() -> Self {
                Self { $($constant: Fact::Absent,)* }
            }
        }
    };
}

/// The definitions of the keys of these names.
macro_rules! definitions {
    ($($key:ident),* $(,)?) => {
        &[$($crate::facts::key::$key.definition),*]
    };
}
pub(crate) use definitions;

keys! {
    IMAGE_PLATFORM "image.platform" String, "Platform that the configuration declares, os/arch[/variant]";
    IMAGE_OS "image.os" String, "Distribution, PRETTY_NAME of /etc/os-release";
    IMAGE_USER "image.user" String, "User that the container runs as; absent is root";
    IMAGE_ENTRYPOINT "image.entrypoint" Vec<String>, "Entrypoint";
    IMAGE_COMMAND "image.command" Vec<String>, "Command";
    IMAGE_WORKING_DIRECTORY "image.working_directory" String, "Working directory";
    IMAGE_LABELS "image.labels" BTreeMap<String, String>, "Labels";
    IMAGE_ENV "image.env" BTreeMap<String, String>, "Variables of the container's environment (the image's own, and over them those of the launch) that concern this check; values of others are not shown";
    IMAGE_OTHER_ENV "image.other_env" Vec<String>, "Names of all other variables";
    NVIDIA_VISIBLE_DEVICES "nvidia.visible_devices" String, "NVIDIA_VISIBLE_DEVICES: the GPUs that NVIDIA's container runtime hands over";
    NVIDIA_DRIVER_CAPABILITIES "nvidia.driver_capabilities" Vec<String>, "NVIDIA_DRIVER_CAPABILITIES: the driver's libraries that NVIDIA's container runtime hands over";
    NVIDIA_REQUIRE "nvidia.require" BTreeMap<String, String>, "NVIDIA_REQUIRE_*: conditions that the driver must meet";
    NVIDIA_REQUIREMENTS "nvidia.requirements" Groups, "What NVIDIA's container runtime checks before it starts the container, by variable: terms, of which one must hold, each with factors, which all must hold";
    LAUNCH_VARIABLES "launch.variables" Vec<String>, "Variables that the job sets when it starts the container, by --env and --launch";
    LAUNCH_COMPUTED "launch.computed" Vec<String>, "Those of them whose value is only computed at the start; the image's own, if any, is taken for it";
    PYTHON_PATH "python.path" ImagePath, "The interpreter that runs: the one that the image's command names, else what `python` or `python3` starts, by PATH";
    PYTHON_SITE_PACKAGES "python.site_packages" Vec<String>, "Folders that this interpreter imports packages from, in its order";
    PYTHON_STARTUP_CODE "python.startup_code" Vec<String>, "Files beside its packages that run code when this interpreter starts (.pth files with imports), which could change where it imports from";
    TORCH_INSTALLS "torch.installs" Vec<String>, "Every installed torch package";
    TORCH_PATH "torch.path" ImagePath, "The torch package that this check is about: the one that Python imports";
    TORCH_VERSION "torch.version" Version, "torch.__version__";
    TORCH_GIT_VERSION "torch.git_version" String, "torch.version.git_version: the commit that torch was built from";
    TORCH_CUDA_VERSION "torch.cuda.version" Version, "torch.version.cuda: the CUDA release that torch was built with; absent in a build without CUDA";
    TORCH_CUDA_DRIVER_MIN "torch.cuda.driver_min" Version, "Oldest driver that CUDA's minor version compatibility allows for that release";
    TORCH_CUDA_BUILD "torch.cuda.build" bool, "Whether torch has its CUDA library, libtorch_cuda.so";
    TORCH_BUILD "torch.build" BTreeMap<String, String>, "Options that torch was built with, as torch.__config__.show() lists them";
    TORCH_BUILD_CODE "torch.build_code" BTreeMap<String, String>, "The same options as caffe2::GetBuildOptions() of libtorch_cpu.so returns them, by following its code";
    TORCH_BUILD_HEADER "torch.build_header" BTreeMap<String, String>, "The same options as torch/include/caffe2/core/macros.h lists them; absent where it does not ship";
    TORCH_BUILD_CONTRADICTIONS "torch.build_contradictions" Vec<String>, "Points on which torch's files do not agree how torch was built";
    TORCH_CXX11_ABI "torch.cxx11_abi" bool, "torch._C._GLIBCXX_USE_CXX11_ABI: whether torch was built with the C++11 ABI of std::string";
    TORCH_ARCH_LIST "torch.arch_list" Vec<String>, "GPU architectures that torch was built for, as torch._C._cuda_getArchFlags() lists them";
    TORCH_USE_NCCL "torch.use_nccl" bool, "Whether the build option USE_NCCL is on";
    TORCH_NCCL_LINKAGE "torch.nccl_linkage" Linkage, "How libtorch_cuda has NCCL: shared, static or none";
    TORCH_PROCESS_GROUP_NCCL "torch.process_group_nccl" bool, "Whether libtorch_cuda.so holds c10d's NCCL back end";
    TORCH_CUDART_NEEDED "torch.cudart_needed" Vec<String>, "CUDA runtime libraries that the libraries of torch need, by soname";
    TORCH_LOADED "torch.loaded" Vec<String>, "Every shared library that `import torch` maps from the image: the interpreter's and torch's own modules and libraries, and all that they need; other modules of Python (the standard library's, NumPy's) and what only they need are left out";
    TORCH_IMPORT_ERROR "torch.import_error" String, "Why `import torch` fails, in the dynamic loader's words";
    TORCH_NCCL_PIN "torch.nccl_pin" String, "NCCL package that torch's metadata requires";
    NCCL_AVAILABLE "nccl.available" bool, "What torch.distributed.is_nccl_available() would answer";
    NCCL_TORCH_VERSION "nccl.torch_version" String, "What torch.cuda.nccl.version() would answer: the NCCL that torch was compiled with";
    NCCL_COPIES "nccl.copies" Vec<NcclCopy>, "Every file that holds NCCL's code: path, version, cuda (that it was built with), soname, owner";
    NCCL_LOADED_PATH "nccl.loaded.path" ImagePath, "The NCCL that torch would load; libtorch's own path where it is linked in";
    NCCL_LOADED_VERSION "nccl.loaded.version" Version, "Its version";
    NCCL_LOADED_CUDA "nccl.loaded.cuda" Version, "The CUDA release that it was built with";
    NCCL_LOADED_ROUTE "nccl.loaded.route" String, "How it gets into the process: the rule by which the dynamic loader finds it, LD_PRELOAD, or torch itself";
    NCCL_NOT_LOADED "nccl.not_loaded" Vec<String>, "Shared copies of NCCL that torch would not load, with their versions";
    NCCL_OVERWRITTEN "nccl.overwritten" Vec<String>, "Copies of NCCL that several installed packages claim as theirs, and which: the last one to be installed wrote the file";
    NCCL_OTHER_USERS "nccl.other_users" Vec<String>, "Modules of other Python packages that need libnccl.so.2 and, where they are imported before torch, load another version of it";
    NCCL_FAULTS "nccl.faults" Vec<String>, "Known faults of the NCCL that it would load that an ordinary job can meet, with the release that mends each";
    NCCL_RARE_FAULTS "nccl.rare_faults" Vec<String>, "Known faults of it that need special hosts or programs";
    NCCL_MISSING_SYMBOLS "nccl.missing_symbols" Vec<String>, "Functions of NCCL that torch imports and that the NCCL it would load does not have";
    NCCL_UNKNOWN_VARIABLES "nccl.unknown_variables" Vec<String>, "NCCL_* variables that are set and that the NCCL it would load does not read";
    NCCL_CONFIG_FILES "nccl.config_files" Vec<String>, "NCCL's configuration files in the image, in the order in which it reads them";
    NCCL_CONFIG_PROBLEMS "nccl.config_problems" Vec<String>, "Lines of them that do something else than they seem to";
    NCCL_CONFIG_MISSING "nccl.config_missing" String, "File that NCCL_CONF_FILE names and that the image does not have";
    NCCL_PLUGIN_INTERFACES "nccl.plugin_interfaces" Vec<String>, "Interfaces of plugins that the NCCL that torch would load looks for, by their symbols";
    NCCL_PLUGINS "nccl.plugins" Vec<NcclPlugin>, "Plugins of NCCL in the image: path, exports (their interfaces), accepted (those that this NCCL looks for), opened (by which variable's rule, or no), libfabric (the soname it needs, as aws-ofi-nccl does), owner";
    NCCL_NET_PLUGIN "nccl.net_plugin" String, "Network plugin that this NCCL would use before its own networks, with the interface";
    NCCL_PLUGINS_REFUSED "nccl.plugins_refused" Vec<String>, "Plugins that this NCCL opens, and whose interfaces it does not know";
    NCCL_PLUGINS_BROKEN "nccl.plugins_broken" Vec<String>, "Plugins that this NCCL tries to open, and why the dynamic loader refuses them";
    NCCL_PLUGINS_NOT_FOUND "nccl.plugins_not_found" Vec<String>, "Plugins that variables name and the dynamic loader does not find";
    ENV_VARIABLES "env.variables" Vec<VariableSetting>, "Settings of NCCL_*, TORCH_NCCL_*, CUDA_*, NVIDIA_*, UCX_*, FI_* and GLOO_* in the configuration, in files of the image and at the launch: name, value, source, family, state (known, foreign, other-version, misspelt, unknown, unchecked), meaning, default, read_in, since, until, problem";
    ENV_UNKNOWN "env.unknown" Vec<String>, "Variables that nothing reads and that are no misspelling of another";
    ENV_MISSPELT "env.misspelt" Vec<String>, "Variables that nothing reads and that are nearly others, which it names";
    ENV_REMOVED "env.removed" Vec<String>, "Variables that only older releases than the one in the image read";
    ENV_NOT_YET "env.not_yet" Vec<String>, "Variables that only newer releases than the one in the image read";
    ENV_DEPRECATED "env.deprecated" Vec<String>, "Variables in a spelling that PyTorch replaced";
    ENV_BAD_VALUES "env.bad_values" Vec<String>, "Values that their readers take for something else than they look like";
    ENV_COSTLY "env.costly" Vec<String>, "Settings that cost a job its speed or its hold on errors, or that fit one host and stand in an image, without those that other rules tell";
    ENV_ALGORITHMS_REFUSED "env.algorithms_refused" Vec<String>, "What NCCL 2.24 and later refuse of NCCL_ALGO: functions that it leaves without an algorithm, and words that it does not know";
    ENV_TOPOLOGY_FILES_MISSING "env.topology_files_missing" Vec<String>, "NCCL_TOPO_FILE and NCCL_GRAPH_FILE of the image, where it does not have the file";
    ENV_CONTRADICTIONS "env.contradictions" Vec<String>, "Settings that take each other's effect";
    ENV_NCCL_VERSION_NOTE "env.nccl_version_note" String, "NCCL_VERSION, a note of packagers, where it is not the version that would be loaded";
    CUDA_FATBIN "cuda.fatbin" BTreeMap<String, CodeLists>, "GPU code in libraries, by path: architectures with machine code (cubin) and with PTX (ptx); CUDA's own libraries but NCCL left out";
    CUDA_PTX "cuda.ptx" BTreeMap<String, String>, "Newest version of the PTX language in each of these libraries that has PTX";
    CUDA_NOT_IN_NCCL "cuda.not_in_nccl" Vec<String>, "Architectures that torch's CUDA library has machine code for, and the NCCL that it would load no code";
    CUDA_COMPAT "cuda.compat" Vec<CompatPackage>, "Forward-compatibility packages: path, driver (that it was built with), and as its ELF note has it cuda and branches (of drivers that it accepts)";
    CUDA_LIBCUDA "cuda.libcuda" ImagePath, "libcuda.so.1 of the image itself, where LD_LIBRARY_PATH or torch's own search path puts it before the host's";
    CUDA_CUDART "cuda.cudart" Vec<LibraryFile>, "CUDA runtime libraries: path, soname, owner";
    CUDA_CUDART_MAJORS "cuda.cudart_majors" Vec<i64>, "CUDA major versions of the runtime libraries that torch's libraries need";
    CUDA_CUDART_MISSING "cuda.cudart_missing" Vec<String>, "CUDA runtime libraries that torch's libraries need and that are nowhere in the image";
    CUDA_DRIVER_LIBRARIES "cuda.driver_libraries" Vec<String>, "Libraries of the NVIDIA driver in the image, stubs and forward-compatibility packages left out; they belong to the host";
    RDMA_VERBS "rdma.verbs" ImagePath, "libibverbs as NCCL would open it";
    RDMA_NOT_LOADED "rdma.not_loaded" Vec<String>, "Copies of libibverbs that NCCL would not open, with the number of their private interface";
    RDMA_VERBS_OWNER "rdma.verbs_owner" String, "Package that brought it";
    RDMA_VERSION "rdma.version" String, "Release of the RDMA libraries that it is from, by its file's name";
    RDMA_ORIGIN "rdma.origin" RdmaOrigin, "Who made it: rdma-core (the distribution's) or MLNX_OFED";
    RDMA_PRIVATE_ABI "rdma.private_abi" String, "Number of the interface between it and its providers (IBVERBS_PRIVATE_N)";
    RDMA_MISSING_VERSIONS "rdma.missing_versions" Vec<String>, "Versions of RDMA functions that this NCCL asks for and the libraries do not have, and what is lost";
    RDMA_MLX5 "rdma.mlx5" ImagePath, "libmlx5 as NCCL would open it";
    RDMA_PROVIDERS "rdma.providers" Vec<String>, "RDMA providers of user space: families of NICs that libibverbs could drive";
    RDMA_BROKEN_PROVIDERS "rdma.broken_providers" Vec<String>, "Providers that are there and cannot be used, and why";
    RDMA_LIBRARIES "rdma.libraries" Vec<LibraryFile>, "Other libraries for fast networks: path, soname, owner";
    RDMA_FORBIDDEN "rdma.forbidden" Vec<String>, "Settings that keep NCCL from RDMA";
    RDMA_RUNTIME_NEEDS "rdma.runtime_needs" Vec<String>, "What RDMA needs of the container's start, since no image can give it to itself";
    RDMA_DANGLING_DRIVERS "rdma.dangling_drivers" Vec<String>, "Providers that /etc/libibverbs.d names and whose library is missing";
    HOST_NAME "host.name" String, "The host that the image is judged for, as it was described; the other facts of this area are absent without one";
    HOST_DRIVER "host.driver" Version, "Version of its NVIDIA driver";
    HOST_CUDA "host.cuda" Version, "CUDA release that this driver brings";
    HOST_GPU "host.gpu" String, "Model of its GPUs";
    HOST_GPU_ARCH "host.gpu_arch" Arch, "Architecture of its GPUs";
    HOST_GPU_COUNT "host.gpu_count" i64, "How many GPUs it has";
    HOST_GPU_CLASS "host.gpu_class" Class, "Market of its GPUs: datacenter, workstation or consumer";
    HOST_FABRIC "host.fabric" Fabric, "What connects its GPUs: nvswitch or pcie";
    HOST_RDMA "host.rdma" Nic, "Its NICs for RDMA: mlx5, efa or none";
    HOST_KERNEL "host.kernel" Version, "Version of its Linux kernel";
    HOST_TORCH_CODE "host.torch_code" GpuSupport, "What torch's CUDA library has for its GPU: cubin, ptx, new-ptx (that the driver is too old to compile) or none";
    HOST_NCCL_CODE "host.nccl_code" GpuSupport, "The same of the NCCL that torch would load";
    HOST_EXTENSIONS_WITHOUT_CODE "host.extensions_without_code" Vec<String>, "Python extensions with GPU code that have none for its GPU";
    HOST_UNMET_REQUIREMENTS "host.unmet_requirements" Vec<String>, "Variables of nvidia.requirements that it does not meet";
    HOST_COMPAT "host.compat" String, "The newest forward-compatibility package of the image that works there, is newer than its driver and new enough for torch";
    HOST_COMPAT_REFUSED "host.compat_refused" String, "Why cuda.libcuda, where that is one of forward compatibility, does not work there";
    HOST_NCCL_CUDA "host.nccl_cuda" String, "CUDA release that the NCCL that torch would load was built with, where its major version is newer than the one of the host's driver";
    HOST_VIRTUAL_MACHINE "host.virtual_machine" String, "The virtual machine that it is; this and what follows is told by records of hosts alone";
    HOST_ARCHITECTURE "host.architecture" String, "Architecture of its processors: x86_64, aarch64";
    HOST_DRIVER_FLAVOUR "host.driver_flavour" Flavour, "Which of NVIDIA's kernel modules it has loaded: open or proprietary";
    HOST_LIBRARY_MISMATCH "host.library_mismatch" bool, "Whether the driver's libraries are of another version than its kernel module";
    HOST_PCI_GPUS "host.pci_gpus" Vec<String>, "NVIDIA GPUs on its PCI bus that are not handed to virtual machines: address and the kernel driver that has them";
    HOST_MODULES "host.modules" Vec<String>, "Kernel modules for GPUs and RDMA that it has loaded";
    HOST_PEER_MEMORY "host.peer_memory" Vec<String>, "Clients of peer memory that its kernel lists; kernels from 6.4 on list none";
    HOST_PEERMEM "host.peermem" bool, "Whether nvidia_peermem is loaded, by which its NICs can reach GPU memory";
    HOST_DMA_BUF "host.dma_buf" bool, "Whether its kernel and driver have DMA-BUF, by which its NICs can reach GPU memory";
    HOST_NVSWITCHES "host.nvswitches" i64, "NVSwitches that its driver has";
    HOST_FABRIC_MANAGER "host.fabric_manager" bool, "Whether the fabric manager runs on it";
    HOST_REDIRECTING_PORTS "host.redirecting_ports" Vec<String>, "Ports of PCIe switches above its GPUs whose access control sends what devices write to each other up to the root";
    HOST_TRANSLATED_GPUS "host.translated_gpus" Vec<String>, "GPUs whose addresses its IOMMU translates";
    HOST_RDMA_DEVICES "host.rdma_devices" Vec<String>, "Its RDMA devices, without those of Azure's accelerated Ethernet";
    HOST_RDMA_WITHOUT_VERBS "host.rdma_without_verbs" Vec<String>, "RDMA devices that its kernel does not offer to user space";
    HOST_RDMA_ACTIVE_PORTS "host.rdma_active_ports" Vec<String>, "Ports of its RDMA devices that are active";
    HOST_ROCE_PORTS "host.roce_ports" Vec<String>, "Those of them that are RoCE";
    HOST_ROCE_LOW_MTU "host.roce_low_mtu" Vec<String>, "Those of these whose network interface has too small packets for RoCE's largest, 4096 bytes";
    HOST_ENGINE_MEMLOCK "host.engine_memlock_bytes" i64, "Bytes that a container of its engine may lock where nobody says otherwise; -1 is unlimited";
    HOST_PERSISTENCE_OFF "host.persistence_off" Vec<String>, "GPUs without persistence mode";
    HOST_MIG "host.mig" Vec<String>, "GPUs that are cut into MIG instances";
    HOST_BARE_NODES "host.nodes_without_memory" Vec<String>, "NUMA nodes that have processors and no memory, where others have both";
    HOST_CDI_FILES "host.cdi_files" Vec<String>, "Its specifications of the Container Device Interface";
    HOST_CDI_FAULTS "host.cdi_faults" Vec<String>, "Those of them that cannot be read, or that name files that are not there";
    RUN_ENGINE "run.engine" String, "The engine that ran the probe; absent where the program was run in place";
    RUN_GPUS_ASKED "run.gpus_asked" bool, "Whether the container was to have GPUs";
    RUN_UNFINISHED "run.unfinished" String, "Why the probe's program did not come to its end";
    RUN_FAILED_STEPS "run.failed_steps" Vec<FailedStep>, "Steps that were lost: step, how (exception, signal, exit, deadline, protocol), message";
    RUN_SKIPPED_STEPS "run.skipped_steps" Vec<SkippedStep>, "Steps that could not be run: step, why";
    RUN_UNCLEAN_EXITS "run.unclean_exits" Vec<String>, "Steps and ranks whose process ended badly after it had delivered";
    RUN_GIVEN_OTHERWISE "run.given_otherwise" Vec<String>, "What the container was to get and did not";
    RUN_SHM "run.shm_bytes" i64, "Bytes of /dev/shm";
    RUN_MEMLOCK "run.memlock_bytes" i64, "Soft limit of locked memory in bytes; -1 is unlimited";
    RUN_NOFILE "run.nofile" i64, "Soft limit of open files";
    RUN_PROCESSORS "run.processors" i64, "Processors that the container may use";
    RUN_RUNTIME_VARIABLES "run.variables" BTreeMap<String, String>, "Variables of NCCL, CUDA and RDMA that the probe's processes found";
    RUN_DRIVER "run.driver" Version, "Version of the driver, by NVML";
    RUN_GPU_COUNT "run.gpu.count" i64, "GPUs that the container has, by NVML";
    RUN_GPU_MODELS "run.gpu.models" Vec<String>, "Models of these GPUs";
    RUN_GPU_UNREACHABLE "run.gpu.unreachable" Vec<String>, "GPUs that NVML counts and cannot open, and why";
    RUN_GPU_CUDA_MISSES "run.gpu.cuda_misses" Vec<String>, "GPUs that NVML shows and CUDA does not";
    RUN_GPU_SLOWED "run.gpu.slowed" Vec<String>, "GPUs whose clocks are held down by heat or power supply, and by what";
    RUN_GPU_PCIE "run.gpu.pcie_narrow" Vec<String>, "GPUs whose PCIe link has fewer lanes than it could";
    RUN_GPU_NVLINK_DOWN "run.gpu.nvlinks_down" Vec<String>, "GPUs with NVLinks that are not active";
    RUN_GPU_ECC "run.gpu.ecc_errors" Vec<String>, "GPUs with uncorrected memory errors since the driver was loaded";
    RUN_GPU_ROWS "run.gpu.row_remapping" Vec<String>, "GPUs whose memory rows wait for a reset to be remapped, or could not be";
    RUN_GPU_MIG "run.gpu.mig" Vec<String>, "GPUs that are cut into MIG instances";
    RUN_GPU_FABRIC "run.gpu.fabric_incomplete" Vec<String>, "GPUs whose registration with the NVLink fabric is not complete";
    RUN_GPU_LOG "run.gpu.log_readable" bool, "Whether the kernel's log could be read, where the driver writes Xid errors";
    RUN_GPU_XID "run.gpu.xid" Vec<String>, "Xid errors in the kernel's log";
    RUN_GPU_PERSISTENCE "run.gpu.persistence_off" Vec<String>, "GPUs without persistence mode";
    RUN_LIBCUDA "run.cuda.libcuda" String, "The libcuda that is mapped";
    RUN_LIBCUDA_COMPAT "run.cuda.is_compat" bool, "Whether that is one of forward compatibility, from the image";
    RUN_NVLINK_PAIRS "run.topology.nvlink_pairs" Vec<String>, "Pairs of GPUs that NVLinks bind, with how many";
    RUN_PEER_REFUSED "run.topology.peer_refused" Vec<String>, "Pairs of GPUs of which one cannot reach the memory of the other, by CUDA";
    RUN_NVLINK_GB_S "run.topology.nvlink_gb_s" i64, "GB/s in one direction that the active NVLinks of the GPU with the fewest carry";
    RUN_RDMA_DEVICES "run.rdma.devices" Vec<String>, "RDMA devices that the container can open";
    RUN_RDMA_CLOSED "run.rdma.closed" Vec<ClosedDevice>, "RDMA devices that it sees and cannot open: device, cause, why";
    RUN_RDMA_PORTS_DOWN "run.rdma.ports_down" Vec<String>, "Ports of opened devices that are not active";
    RUN_RDMA_REGISTRATION "run.rdma.registration_fails" Vec<String>, "Memory that could not be registered: device, bytes, the system's answer";
    RUN_RDMA_GID "run.rdma.gid_unfit" Vec<String>, "RoCE ports where the GID that NCCL takes is none of RoCE v2, or none at all";
    RUN_RDMA_PING "run.rdma.ping_fails" Vec<String>, "Ports over which two queue pairs of this host did not reach each other";
    RUN_RDMA_GPU_DIRECT "run.rdma.gpu_direct" GpuDirect, "How an RDMA device reaches GPU memory here: dma-buf, peermem or none";
    RUN_TORCH_ERROR "run.torch.error" String, "Why torch could not be imported";
    RUN_TORCH_VERSION "run.torch.version" String, "Version of the torch that was imported";
    RUN_TORCH_FILE "run.torch.file" String, "Where it was imported from";
    RUN_TORCH_NCCL "run.torch.nccl_available" bool, "What torch.distributed.is_nccl_available() says";
    RUN_TORCH_LOADED "run.torch.loaded" Vec<String>, "Libraries that the process had mapped after the import";
    RUN_TORCH_CUDA_ERROR "run.torch.cuda_error" String, "Why torch cannot use CUDA";
    RUN_TORCH_NO_CODE "run.torch.gpus_without_code" Vec<String>, "GPUs for which this torch has no code";
    RUN_TORCH_PTX "run.torch.gpus_by_ptx" Vec<String>, "GPUs for which this torch has PTX alone";
    RUN_TORCH_KERNELS "run.torch.kernel_errors" Vec<String>, "GPUs on which a small kernel of torch fails or gives a wrong result";
    RUN_TORCH_UNPREDICTED "run.torch.unpredicted" Vec<String>, "Libraries that the check of the image's bytes did not predict, or that it predicted and that were not loaded";
    RUN_NCCL_WORKS "run.nccl.works" bool, "Whether the ranks came through their first collective";
    RUN_NCCL_ERROR "run.nccl.error" String, "Why the collectives failed";
    RUN_NCCL_HANG "run.nccl.hang" String, "Who did not come, where the collectives hung";
    RUN_NCCL_RANKS "run.nccl.ranks" i64, "Ranks that took part";
    RUN_NCCL_VERSION "run.nccl.version" Version, "Version of the NCCL that ran, as it says itself";
    RUN_NCCL_PATHS "run.nccl.paths" Vec<String>, "Copies of libnccl that were mapped in a rank";
    RUN_NCCL_NODES "run.nccl.nodes" i64, "Hosts that NCCL counted";
    RUN_NCCL_TRANSPORTS "run.nccl.transports" Vec<String>, "Transports between the ranks: P2P/CUMEM, P2P/IPC, SHM, NET/IB/GDRDMA, NET/Socket, ...";
    RUN_NCCL_NETWORK "run.nccl.network" Vec<String>, "Network that NCCL chose: IB, Socket, a plugin";
    RUN_NCCL_INTERFACES "run.nccl.interfaces" Vec<String>, "Interfaces that NCCL uses for its rendezvous and for sockets";
    RUN_NCCL_WARNINGS "run.nccl.warnings" Vec<String>, "Warnings that NCCL wrote";
    RUN_NCCL_PLUGIN_ERRORS "run.nccl.plugin_errors" Vec<String>, "Plugins that NCCL found and could not use";
    RUN_NCCL_WRONG "run.nccl.wrong_values" Vec<String>, "Operations whose result was wrong";
    RUN_NCCL_BUSBW "run.nccl.busbw" BTreeMap<String, String>, "Bus bandwidth in GB/s of each operation at its largest size";
    RUN_NCCL_ALL_REDUCE "run.nccl.all_reduce_mb_s" i64, "Bus bandwidth of all_reduce in MB/s at the largest size of at least 64 MiB";
    RUN_NCCL_INIT "run.nccl.first_call_ms" i64, "Milliseconds from the rendezvous to the end of the first collective";
    RUN_NCCL_PAIR "run.nccl.first_sendrecv_ms" i64, "Milliseconds of the first call between two ranks without a warm-up";
    RUN_FORCED_ERROR "run.network.error" String, "Why the run over the network alone failed";
    RUN_FORCED_TRANSPORTS "run.network.transports" Vec<String>, "Transports of the run over the network alone";
    RUN_FORCED_MB_S "run.network.all_reduce_mb_s" i64, "Bus bandwidth of all_reduce in that run, in MB/s";
    RUN_ISOLATED "run.isolated" Vec<ArrangementResult>, "One container for each GPU, by arrangement; the first record is all GPUs in one container: arrangement, transports, gb_s (of all_reduce), percent (of the first), error";
    RUN_EXPECTED "run.expected" bool, "Whether the user said, by --expect, what the run must tell";
    RUN_BASELINE "run.has_baseline" bool, "Whether there is the recording of a good run, by --baseline";
    RUN_UNEXPECTED "run.unexpected" Vec<String>, "Facts that are otherwise than the file of --expect has them";
    RUN_WORSE "run.worse_than_baseline" Vec<String>, "What is slower than in the recording of --baseline, or goes other ways";
    RUN_WHAT_IF "run.what_if" Vec<VariantResult>, "What other variables change: variables, size, ratio (of speed), differs (yes, no), error";
}
