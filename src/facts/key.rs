//! The contract between facts and rules: every fact's name and type, and what it means. Names are published: they are
//! never used for another meaning.

use std::fmt;

use crate::model::Value;

/// One question about an image.
#[derive(Debug, PartialEq, Eq)]
pub struct Key {
    /// Dotted name. No name is the beginning of another, so that names nest.
    pub name: &'static str,
    /// Type of the answer.
    pub kind: Type,
    /// What is asked, in one sentence.
    pub about: &'static str,
}

/// Types of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Yes or no.
    Bool,
    /// Text.
    Text,
    /// A version: text in JSON and rules, compared by `version()`.
    Version,
    /// A list of texts.
    Texts,
    /// A list of whole numbers.
    Numbers,
    /// Texts by name.
    Map,
    /// A list of maps of texts, with these names; a record may lack some.
    Records(&'static [&'static str]),
    /// Lists of texts, each by two names.
    Groups,
    /// A whole number.
    Number,
}

impl Key {
    /// Whether only a run of the image tells it: a probe.
    pub fn is_of_run(&self) -> bool {
        self.name.starts_with("run.")
    }
}

impl Type {
    /// The names that a record of this type may have.
    pub const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Records(fields) => fields,
            _ => &[],
        }
    }

    /// Whether a value is of this type.
    pub fn admits(self, value: &Value) -> bool {
        let all = |kind: Self| matches!(value, Value::List(values) if values.iter().all(|value| kind.admits(value)));
        let named = |admits: &dyn Fn(&Value) -> bool| matches!(value, Value::Map(map) if map.values().all(admits));
        match self {
            Self::Bool => matches!(value, Value::Bool(_)),
            Self::Text => matches!(value, Value::Text(_)),
            Self::Version => matches!(value, Value::Version(_)),
            Self::Texts => all(Self::Text),
            Self::Numbers => {
                matches!(value, Value::List(values) if values.iter().all(|value| matches!(value, Value::Int(_))))
            }
            Self::Map => named(&|value| Self::Text.admits(value)),
            Self::Records(fields) => {
                let is_record = |value: &Value| matches!(value, Value::Map(map) if map.keys().all(|name| fields.contains(&&**name)));
                all(Self::Map) && matches!(value, Value::List(values) if values.iter().all(is_record))
            }
            Self::Groups => named(
                &|group| matches!(group, Value::Map(lists) if lists.values().all(|list| Self::Texts.admits(list))),
            ),
            Self::Number => matches!(value, Value::Int(_)),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("true or false"),
            Self::Text => f.write_str("a text"),
            Self::Version => f.write_str("a version, as text"),
            Self::Texts => f.write_str("a list of texts"),
            Self::Numbers => f.write_str("a list of whole numbers"),
            Self::Map => f.write_str("a map of texts"),
            Self::Records(fields) => write!(f, "a list of maps with the texts {}", fields.join(", ")),
            Self::Groups => f.write_str("a map of maps of lists of texts"),
            Self::Number => f.write_str("a whole number"),
        }
    }
}

/// Finds a question by its name.
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().copied().find(|key| key.name == name)
}

macro_rules! keys {
    ($($constant:ident $name:literal $kind:ident $([$($field:literal),+])? $about:literal;)*) => {
        $(
            #[doc = $about]
            pub const $constant: &Key = &Key { name: $name, kind: Type::$kind $((&[$($field),+]))?, about: $about };
        )*

        /// All questions, in the order of reports.
        pub const KEYS: &[&Key] = &[$($constant),*];
    };
}

keys! {
    IMAGE_PLATFORM "image.platform" Text "Platform that the configuration declares, os/arch[/variant]";
    IMAGE_OS "image.os" Text "Distribution, PRETTY_NAME of /etc/os-release";
    IMAGE_USER "image.user" Text "User that the container runs as; absent is root";
    IMAGE_ENTRYPOINT "image.entrypoint" Texts "Entrypoint";
    IMAGE_COMMAND "image.command" Texts "Command";
    IMAGE_WORKING_DIRECTORY "image.working_directory" Text "Working directory";
    IMAGE_LABELS "image.labels" Map "Labels";
    IMAGE_ENV "image.env" Map "Variables of the container's environment (the image's own, and over them those of the launch) that concern this check; values of others are not shown";
    IMAGE_OTHER_ENV "image.other_env" Texts "Names of all other variables";
    NVIDIA_VISIBLE_DEVICES "nvidia.visible_devices" Text "NVIDIA_VISIBLE_DEVICES: the GPUs that NVIDIA's container runtime hands over";
    NVIDIA_DRIVER_CAPABILITIES "nvidia.driver_capabilities" Texts "NVIDIA_DRIVER_CAPABILITIES: the driver's libraries that NVIDIA's container runtime hands over";
    NVIDIA_REQUIRE "nvidia.require" Map "NVIDIA_REQUIRE_*: conditions that the driver must meet";
    NVIDIA_REQUIREMENTS "nvidia.requirements" Groups "What NVIDIA's container runtime checks before it starts the container, by variable: terms, of which one must hold, each with factors, which all must hold";
    LAUNCH_VARIABLES "launch.variables" Texts "Variables that the job sets when it starts the container, by --env and --launch";
    LAUNCH_COMPUTED "launch.computed" Texts "Those of them whose value is only computed at the start; the image's own, if any, is taken for it";
    PYTHON_PATH "python.path" Text "The interpreter that runs: the one that the image's command names, else what `python` or `python3` starts, by PATH";
    PYTHON_SITE_PACKAGES "python.site_packages" Texts "Folders that this interpreter imports packages from, in its order";
    PYTHON_STARTUP_CODE "python.startup_code" Texts "Files beside its packages that run code when this interpreter starts (.pth files with imports), which could change where it imports from";
    TORCH_INSTALLS "torch.installs" Texts "Every installed torch package";
    TORCH_PATH "torch.path" Text "The torch package that this check is about: the one that Python imports";
    TORCH_VERSION "torch.version" Version "torch.__version__";
    TORCH_GIT_VERSION "torch.git_version" Text "torch.version.git_version: the commit that torch was built from";
    TORCH_CUDA_VERSION "torch.cuda.version" Version "torch.version.cuda: the CUDA release that torch was built with; absent in a build without CUDA";
    TORCH_CUDA_DRIVER_MIN "torch.cuda.driver_min" Version "Oldest driver that CUDA's minor version compatibility allows for that release";
    TORCH_CUDA_BUILD "torch.cuda.build" Bool "Whether torch has its CUDA library, libtorch_cuda.so";
    TORCH_BUILD "torch.build" Map "Options that torch was built with, as torch.__config__.show() lists them";
    TORCH_BUILD_CODE "torch.build_code" Map "The same options as caffe2::GetBuildOptions() of libtorch_cpu.so returns them, by following its code";
    TORCH_BUILD_HEADER "torch.build_header" Map "The same options as torch/include/caffe2/core/macros.h lists them; absent where it does not ship";
    TORCH_BUILD_CONTRADICTIONS "torch.build_contradictions" Texts "Points on which torch's files do not agree how torch was built";
    TORCH_CXX11_ABI "torch.cxx11_abi" Bool "torch._C._GLIBCXX_USE_CXX11_ABI: whether torch was built with the C++11 ABI of std::string";
    TORCH_ARCH_LIST "torch.arch_list" Texts "GPU architectures that torch was built for, as torch._C._cuda_getArchFlags() lists them";
    TORCH_USE_NCCL "torch.use_nccl" Bool "Whether the build option USE_NCCL is on";
    TORCH_NCCL_LINKAGE "torch.nccl_linkage" Text "How libtorch_cuda has NCCL: shared, static or none";
    TORCH_PROCESS_GROUP_NCCL "torch.process_group_nccl" Bool "Whether libtorch_cuda.so holds c10d's NCCL back end";
    TORCH_CUDART_NEEDED "torch.cudart_needed" Texts "CUDA runtime libraries that the libraries of torch need, by soname";
    TORCH_LOADED "torch.loaded" Texts "Every shared library that `import torch` maps from the image: the interpreter's and torch's own modules and libraries, and all that they need; other modules of Python (the standard library's, NumPy's) and what only they need are left out";
    TORCH_IMPORT_ERROR "torch.import_error" Text "Why `import torch` fails, in the dynamic loader's words";
    TORCH_NCCL_PIN "torch.nccl_pin" Text "NCCL package that torch's metadata requires";
    NCCL_AVAILABLE "nccl.available" Bool "What torch.distributed.is_nccl_available() would answer";
    NCCL_TORCH_VERSION "nccl.torch_version" Text "What torch.cuda.nccl.version() would answer: the NCCL that torch was compiled with";
    NCCL_COPIES "nccl.copies" Records["path", "version", "cuda", "soname", "owner"] "Every file that holds NCCL's code: path, version, cuda (that it was built with), soname, owner";
    NCCL_LOADED_PATH "nccl.loaded.path" Text "The NCCL that torch would load; libtorch's own path where it is linked in";
    NCCL_LOADED_VERSION "nccl.loaded.version" Version "Its version";
    NCCL_LOADED_CUDA "nccl.loaded.cuda" Version "The CUDA release that it was built with";
    NCCL_LOADED_ROUTE "nccl.loaded.route" Text "How it gets into the process: the rule by which the dynamic loader finds it, LD_PRELOAD, or torch itself";
    NCCL_NOT_LOADED "nccl.not_loaded" Texts "Shared copies of NCCL that torch would not load, with their versions";
    NCCL_OVERWRITTEN "nccl.overwritten" Texts "Copies of NCCL that several installed packages claim as theirs, and which: the last one to be installed wrote the file";
    NCCL_OTHER_USERS "nccl.other_users" Texts "Modules of other Python packages that need libnccl.so.2 and, where they are imported before torch, load another version of it";
    NCCL_FAULTS "nccl.faults" Texts "Known faults of the NCCL that it would load that an ordinary job can meet, with the release that mends each";
    NCCL_RARE_FAULTS "nccl.rare_faults" Texts "Known faults of it that need special hosts or programs";
    NCCL_MISSING_SYMBOLS "nccl.missing_symbols" Texts "Functions of NCCL that torch imports and that the NCCL it would load does not have";
    NCCL_UNKNOWN_VARIABLES "nccl.unknown_variables" Texts "NCCL_* variables that are set and that the NCCL it would load does not read";
    NCCL_CONFIG_FILES "nccl.config_files" Texts "NCCL's configuration files in the image, in the order in which it reads them";
    NCCL_CONFIG_PROBLEMS "nccl.config_problems" Texts "Lines of them that do something else than they seem to";
    NCCL_CONFIG_MISSING "nccl.config_missing" Text "File that NCCL_CONF_FILE names and that the image does not have";
    NCCL_PLUGIN_INTERFACES "nccl.plugin_interfaces" Texts "Interfaces of plugins that the NCCL that torch would load looks for, by their symbols";
    NCCL_PLUGINS "nccl.plugins" Records["path", "exports", "accepted", "opened", "libfabric", "owner"] "Plugins of NCCL in the image: path, exports (their interfaces), accepted (those that this NCCL looks for), opened (by which variable's rule, or no), libfabric (the soname it needs, as aws-ofi-nccl does), owner";
    NCCL_NET_PLUGIN "nccl.net_plugin" Text "Network plugin that this NCCL would use before its own networks, with the interface";
    NCCL_PLUGINS_REFUSED "nccl.plugins_refused" Texts "Plugins that this NCCL opens, and whose interfaces it does not know";
    NCCL_PLUGINS_BROKEN "nccl.plugins_broken" Texts "Plugins that this NCCL tries to open, and why the dynamic loader refuses them";
    NCCL_PLUGINS_NOT_FOUND "nccl.plugins_not_found" Texts "Plugins that variables name and the dynamic loader does not find";
    ENV_VARIABLES "env.variables" Records["name", "value", "source", "family", "state", "meaning", "default", "read_in", "since", "until", "problem"] "Settings of NCCL_*, TORCH_NCCL_*, CUDA_*, NVIDIA_*, UCX_*, FI_* and GLOO_* in the configuration, in files of the image and at the launch: name, value, source, family, state (known, foreign, other-version, misspelt, unknown, unchecked), meaning, default, read_in, since, until, problem";
    ENV_UNKNOWN "env.unknown" Texts "Variables that nothing reads and that are no misspelling of another";
    ENV_MISSPELT "env.misspelt" Texts "Variables that nothing reads and that are nearly others, which it names";
    ENV_REMOVED "env.removed" Texts "Variables that only older releases than the one in the image read";
    ENV_NOT_YET "env.not_yet" Texts "Variables that only newer releases than the one in the image read";
    ENV_DEPRECATED "env.deprecated" Texts "Variables in a spelling that PyTorch replaced";
    ENV_BAD_VALUES "env.bad_values" Texts "Values that their readers take for something else than they look like";
    ENV_COSTLY "env.costly" Texts "Settings that cost a job its speed or its hold on errors, or that fit one host and stand in an image, without those that other rules tell";
    ENV_ALGORITHMS_REFUSED "env.algorithms_refused" Texts "What NCCL 2.24 and later refuse of NCCL_ALGO: functions that it leaves without an algorithm, and words that it does not know";
    ENV_TOPOLOGY_FILES_MISSING "env.topology_files_missing" Texts "NCCL_TOPO_FILE and NCCL_GRAPH_FILE of the image, where it does not have the file";
    ENV_CONTRADICTIONS "env.contradictions" Texts "Settings that take each other's effect";
    ENV_NCCL_VERSION_NOTE "env.nccl_version_note" Text "NCCL_VERSION, a note of packagers, where it is not the version that would be loaded";
    CUDA_FATBIN "cuda.fatbin" Groups "GPU code in libraries, by path: architectures with machine code (cubin) and with PTX (ptx); CUDA's own libraries but NCCL left out";
    CUDA_PTX "cuda.ptx" Map "Newest version of the PTX language in each of these libraries that has PTX";
    CUDA_NOT_IN_NCCL "cuda.not_in_nccl" Texts "Architectures that torch's CUDA library has machine code for, and the NCCL that it would load no code";
    CUDA_COMPAT "cuda.compat" Records["path", "driver", "cuda", "branches"] "Forward-compatibility packages: path, driver (that it was built with), and as its ELF note has it cuda and branches (of drivers that it accepts)";
    CUDA_LIBCUDA "cuda.libcuda" Text "libcuda.so.1 of the image itself, where LD_LIBRARY_PATH or torch's own search path puts it before the host's";
    CUDA_CUDART "cuda.cudart" Records["path", "soname", "owner"] "CUDA runtime libraries: path, soname, owner";
    CUDA_CUDART_MAJORS "cuda.cudart_majors" Numbers "CUDA major versions of the runtime libraries that torch's libraries need";
    CUDA_CUDART_MISSING "cuda.cudart_missing" Texts "CUDA runtime libraries that torch's libraries need and that are nowhere in the image";
    CUDA_DRIVER_LIBRARIES "cuda.driver_libraries" Texts "Libraries of the NVIDIA driver in the image, stubs and forward-compatibility packages left out; they belong to the host";
    RDMA_VERBS "rdma.verbs" Text "libibverbs as NCCL would open it";
    RDMA_NOT_LOADED "rdma.not_loaded" Texts "Copies of libibverbs that NCCL would not open, with the number of their private interface";
    RDMA_VERBS_OWNER "rdma.verbs_owner" Text "Package that brought it";
    RDMA_VERSION "rdma.version" Text "Release of the RDMA libraries that it is from, by its file's name";
    RDMA_ORIGIN "rdma.origin" Text "Who made it: rdma-core (the distribution's) or MLNX_OFED";
    RDMA_PRIVATE_ABI "rdma.private_abi" Text "Number of the interface between it and its providers (IBVERBS_PRIVATE_N)";
    RDMA_MISSING_VERSIONS "rdma.missing_versions" Texts "Versions of RDMA functions that this NCCL asks for and the libraries do not have, and what is lost";
    RDMA_MLX5 "rdma.mlx5" Text "libmlx5 as NCCL would open it";
    RDMA_PROVIDERS "rdma.providers" Texts "RDMA providers of user space: families of NICs that libibverbs could drive";
    RDMA_BROKEN_PROVIDERS "rdma.broken_providers" Texts "Providers that are there and cannot be used, and why";
    RDMA_LIBRARIES "rdma.libraries" Records["path", "soname", "owner"] "Other libraries for fast networks: path, soname, owner";
    RDMA_FORBIDDEN "rdma.forbidden" Texts "Settings that keep NCCL from RDMA";
    RDMA_RUNTIME_NEEDS "rdma.runtime_needs" Texts "What RDMA needs of the container's start, since no image can give it to itself";
    RDMA_DANGLING_DRIVERS "rdma.dangling_drivers" Texts "Providers that /etc/libibverbs.d names and whose library is missing";
    HOST_NAME "host.name" Text "The host that the image is judged for, as it was described; the other facts of this area are absent without one";
    HOST_DRIVER "host.driver" Version "Version of its NVIDIA driver";
    HOST_CUDA "host.cuda" Version "CUDA release that this driver brings";
    HOST_GPU "host.gpu" Text "Model of its GPUs";
    HOST_GPU_ARCH "host.gpu_arch" Text "Architecture of its GPUs";
    HOST_GPU_COUNT "host.gpu_count" Number "How many GPUs it has";
    HOST_GPU_CLASS "host.gpu_class" Text "Market of its GPUs: datacenter, workstation or consumer";
    HOST_FABRIC "host.fabric" Text "What connects its GPUs: nvswitch or pcie";
    HOST_RDMA "host.rdma" Text "Its NICs for RDMA: mlx5, efa or none";
    HOST_KERNEL "host.kernel" Version "Version of its Linux kernel";
    HOST_TORCH_CODE "host.torch_code" Text "What torch's CUDA library has for its GPU: cubin, ptx, new-ptx (that the driver is too old to compile) or none";
    HOST_NCCL_CODE "host.nccl_code" Text "The same of the NCCL that torch would load";
    HOST_EXTENSIONS_WITHOUT_CODE "host.extensions_without_code" Texts "Python extensions with GPU code that have none for its GPU";
    HOST_UNMET_REQUIREMENTS "host.unmet_requirements" Texts "Variables of nvidia.requirements that it does not meet";
    HOST_COMPAT "host.compat" Text "The newest forward-compatibility package of the image that works there, is newer than its driver and new enough for torch";
    HOST_COMPAT_REFUSED "host.compat_refused" Text "Why cuda.libcuda, where that is one of forward compatibility, does not work there";
    HOST_NCCL_CUDA "host.nccl_cuda" Text "CUDA release that the NCCL that torch would load was built with, where its major version is newer than the one of the host's driver";
    HOST_VIRTUAL_MACHINE "host.virtual_machine" Text "The virtual machine that it is; this and what follows is told by records of hosts alone";
    HOST_ARCHITECTURE "host.architecture" Text "Architecture of its processors: x86_64, aarch64";
    HOST_DRIVER_FLAVOUR "host.driver_flavour" Text "Which of NVIDIA's kernel modules it has loaded: open or proprietary";
    HOST_LIBRARY_MISMATCH "host.library_mismatch" Bool "Whether the driver's libraries are of another version than its kernel module";
    HOST_PCI_GPUS "host.pci_gpus" Texts "NVIDIA GPUs on its PCI bus that are not handed to virtual machines: address and the kernel driver that has them";
    HOST_MODULES "host.modules" Texts "Kernel modules for GPUs and RDMA that it has loaded";
    HOST_PEER_MEMORY "host.peer_memory" Texts "Clients of peer memory that its kernel lists; kernels from 6.4 on list none";
    HOST_PEERMEM "host.peermem" Bool "Whether nvidia_peermem is loaded, by which its NICs can reach GPU memory";
    HOST_DMA_BUF "host.dma_buf" Bool "Whether its kernel and driver have DMA-BUF, by which its NICs can reach GPU memory";
    HOST_NVSWITCHES "host.nvswitches" Number "NVSwitches that its driver has";
    HOST_FABRIC_MANAGER "host.fabric_manager" Bool "Whether the fabric manager runs on it";
    HOST_REDIRECTING_PORTS "host.redirecting_ports" Texts "Ports of PCIe switches above its GPUs whose access control sends what devices write to each other up to the root";
    HOST_TRANSLATED_GPUS "host.translated_gpus" Texts "GPUs whose addresses its IOMMU translates";
    HOST_RDMA_DEVICES "host.rdma_devices" Texts "Its RDMA devices, without those of Azure's accelerated Ethernet";
    HOST_RDMA_WITHOUT_VERBS "host.rdma_without_verbs" Texts "RDMA devices that its kernel does not offer to user space";
    HOST_RDMA_ACTIVE_PORTS "host.rdma_active_ports" Texts "Ports of its RDMA devices that are active";
    HOST_ROCE_PORTS "host.roce_ports" Texts "Those of them that are RoCE";
    HOST_ROCE_LOW_MTU "host.roce_low_mtu" Texts "Those of these whose network interface has too small packets for RoCE's largest, 4096 bytes";
    HOST_ENGINE_MEMLOCK "host.engine_memlock_bytes" Number "Bytes that a container of its engine may lock where nobody says otherwise; -1 is unlimited";
    HOST_PERSISTENCE_OFF "host.persistence_off" Texts "GPUs without persistence mode";
    HOST_MIG "host.mig" Texts "GPUs that are cut into MIG instances";
    HOST_BARE_NODES "host.nodes_without_memory" Texts "NUMA nodes that have processors and no memory, where others have both";
    HOST_CDI_FILES "host.cdi_files" Texts "Its specifications of the Container Device Interface";
    HOST_CDI_FAULTS "host.cdi_faults" Texts "Those of them that cannot be read, or that name files that are not there";
    RUN_ENGINE "run.engine" Text "The engine that ran the probe; absent where the program was run in place";
    RUN_GPUS_ASKED "run.gpus_asked" Bool "Whether the container was to have GPUs";
    RUN_UNFINISHED "run.unfinished" Text "Why the probe's program did not come to its end";
    RUN_FAILED_STEPS "run.failed_steps" Records["step", "how", "message"] "Steps that were lost: step, how (exception, signal, exit, deadline, protocol), message";
    RUN_SKIPPED_STEPS "run.skipped_steps" Records["step", "why"] "Steps that could not be run: step, why";
    RUN_UNCLEAN_EXITS "run.unclean_exits" Texts "Steps and ranks whose process ended badly after it had delivered";
    RUN_GIVEN_OTHERWISE "run.given_otherwise" Texts "What the container was to get and did not";
    RUN_SHM "run.shm_bytes" Number "Bytes of /dev/shm";
    RUN_MEMLOCK "run.memlock_bytes" Number "Soft limit of locked memory in bytes; -1 is unlimited";
    RUN_NOFILE "run.nofile" Number "Soft limit of open files";
    RUN_PROCESSORS "run.processors" Number "Processors that the container may use";
    RUN_RUNTIME_VARIABLES "run.variables" Map "Variables of NCCL, CUDA and RDMA that the probe's processes found";
    RUN_DRIVER "run.driver" Version "Version of the driver, by NVML";
    RUN_GPU_COUNT "run.gpu.count" Number "GPUs that the container has, by NVML";
    RUN_GPU_MODELS "run.gpu.models" Texts "Models of these GPUs";
    RUN_GPU_UNREACHABLE "run.gpu.unreachable" Texts "GPUs that NVML counts and cannot open, and why";
    RUN_GPU_CUDA_MISSES "run.gpu.cuda_misses" Texts "GPUs that NVML shows and CUDA does not";
    RUN_GPU_SLOWED "run.gpu.slowed" Texts "GPUs whose clocks are held down by heat or power supply, and by what";
    RUN_GPU_PCIE "run.gpu.pcie_narrow" Texts "GPUs whose PCIe link has fewer lanes than it could";
    RUN_GPU_NVLINK_DOWN "run.gpu.nvlinks_down" Texts "GPUs with NVLinks that are not active";
    RUN_GPU_ECC "run.gpu.ecc_errors" Texts "GPUs with uncorrected memory errors since the driver was loaded";
    RUN_GPU_ROWS "run.gpu.row_remapping" Texts "GPUs whose memory rows wait for a reset to be remapped, or could not be";
    RUN_GPU_MIG "run.gpu.mig" Texts "GPUs that are cut into MIG instances";
    RUN_GPU_FABRIC "run.gpu.fabric_incomplete" Texts "GPUs whose registration with the NVLink fabric is not complete";
    RUN_GPU_LOG "run.gpu.log_readable" Bool "Whether the kernel's log could be read, where the driver writes Xid errors";
    RUN_GPU_XID "run.gpu.xid" Texts "Xid errors in the kernel's log";
    RUN_GPU_PERSISTENCE "run.gpu.persistence_off" Texts "GPUs without persistence mode";
    RUN_LIBCUDA "run.cuda.libcuda" Text "The libcuda that is mapped";
    RUN_LIBCUDA_COMPAT "run.cuda.is_compat" Bool "Whether that is one of forward compatibility, from the image";
    RUN_NVLINK_PAIRS "run.topology.nvlink_pairs" Texts "Pairs of GPUs that NVLinks bind, with how many";
    RUN_PEER_REFUSED "run.topology.peer_refused" Texts "Pairs of GPUs of which one cannot reach the memory of the other, by CUDA";
    RUN_NVLINK_GB_S "run.topology.nvlink_gb_s" Number "GB/s in one direction that the active NVLinks of the GPU with the fewest carry";
    RUN_RDMA_DEVICES "run.rdma.devices" Texts "RDMA devices that the container can open";
    RUN_RDMA_CLOSED "run.rdma.closed" Records["device", "cause", "why"] "RDMA devices that it sees and cannot open: device, cause, why";
    RUN_RDMA_PORTS_DOWN "run.rdma.ports_down" Texts "Ports of opened devices that are not active";
    RUN_RDMA_REGISTRATION "run.rdma.registration_fails" Texts "Memory that could not be registered: device, bytes, the system's answer";
    RUN_RDMA_GID "run.rdma.gid_unfit" Texts "RoCE ports where the GID that NCCL takes is none of RoCE v2, or none at all";
    RUN_RDMA_PING "run.rdma.ping_fails" Texts "Ports over which two queue pairs of this host did not reach each other";
    RUN_RDMA_GPU_DIRECT "run.rdma.gpu_direct" Text "How an RDMA device reaches GPU memory here: dma-buf, peermem or none";
    RUN_TORCH_ERROR "run.torch.error" Text "Why torch could not be imported";
    RUN_TORCH_VERSION "run.torch.version" Text "Version of the torch that was imported";
    RUN_TORCH_FILE "run.torch.file" Text "Where it was imported from";
    RUN_TORCH_NCCL "run.torch.nccl_available" Bool "What torch.distributed.is_nccl_available() says";
    RUN_TORCH_LOADED "run.torch.loaded" Texts "Libraries that the process had mapped after the import";
    RUN_TORCH_CUDA_ERROR "run.torch.cuda_error" Text "Why torch cannot use CUDA";
    RUN_TORCH_NO_CODE "run.torch.gpus_without_code" Texts "GPUs for which this torch has no code";
    RUN_TORCH_PTX "run.torch.gpus_by_ptx" Texts "GPUs for which this torch has PTX alone";
    RUN_TORCH_KERNELS "run.torch.kernel_errors" Texts "GPUs on which a small kernel of torch fails or gives a wrong result";
    RUN_TORCH_UNPREDICTED "run.torch.unpredicted" Texts "Libraries that the check of the image's bytes did not predict, or that it predicted and that were not loaded";
    RUN_NCCL_WORKS "run.nccl.works" Bool "Whether the ranks came through their first collective";
    RUN_NCCL_ERROR "run.nccl.error" Text "Why the collectives failed";
    RUN_NCCL_HANG "run.nccl.hang" Text "Who did not come, where the collectives hung";
    RUN_NCCL_RANKS "run.nccl.ranks" Number "Ranks that took part";
    RUN_NCCL_VERSION "run.nccl.version" Version "Version of the NCCL that ran, as it says itself";
    RUN_NCCL_PATHS "run.nccl.paths" Texts "Copies of libnccl that were mapped in a rank";
    RUN_NCCL_NODES "run.nccl.nodes" Number "Hosts that NCCL counted";
    RUN_NCCL_TRANSPORTS "run.nccl.transports" Texts "Transports between the ranks: P2P/CUMEM, P2P/IPC, SHM, NET/IB/GDRDMA, NET/Socket, ...";
    RUN_NCCL_NETWORK "run.nccl.network" Texts "Network that NCCL chose: IB, Socket, a plugin";
    RUN_NCCL_INTERFACES "run.nccl.interfaces" Texts "Interfaces that NCCL uses for its rendezvous and for sockets";
    RUN_NCCL_WARNINGS "run.nccl.warnings" Texts "Warnings that NCCL wrote";
    RUN_NCCL_PLUGIN_ERRORS "run.nccl.plugin_errors" Texts "Plugins that NCCL found and could not use";
    RUN_NCCL_WRONG "run.nccl.wrong_values" Texts "Operations whose result was wrong";
    RUN_NCCL_BUSBW "run.nccl.busbw" Map "Bus bandwidth in GB/s of each operation at its largest size";
    RUN_NCCL_ALL_REDUCE "run.nccl.all_reduce_mb_s" Number "Bus bandwidth of all_reduce in MB/s at the largest size of at least 64 MiB";
    RUN_NCCL_INIT "run.nccl.first_call_ms" Number "Milliseconds from the rendezvous to the end of the first collective";
    RUN_NCCL_PAIR "run.nccl.first_sendrecv_ms" Number "Milliseconds of the first call between two ranks without a warm-up";
    RUN_FORCED_ERROR "run.network.error" Text "Why the run over the network alone failed";
    RUN_FORCED_TRANSPORTS "run.network.transports" Texts "Transports of the run over the network alone";
    RUN_FORCED_MB_S "run.network.all_reduce_mb_s" Number "Bus bandwidth of all_reduce in that run, in MB/s";
    RUN_ISOLATED "run.isolated" Records["arrangement", "transports", "gb_s", "percent", "error"] "One container for each GPU, by arrangement; the first record is all GPUs in one container: arrangement, transports, gb_s (of all_reduce), percent (of the first), error";
    RUN_EXPECTED "run.expected" Bool "Whether the user said, by --expect, what the run must tell";
    RUN_BASELINE "run.has_baseline" Bool "Whether there is the recording of a good run, by --baseline";
    RUN_UNEXPECTED "run.unexpected" Texts "Facts that are otherwise than the file of --expect has them";
    RUN_WORSE "run.worse_than_baseline" Texts "What is slower than in the recording of --baseline, or goes other ways";
    RUN_WHAT_IF "run.what_if" Records["variables", "size", "ratio", "differs", "error"] "What other variables change: variables, size, ratio (of speed), differs (yes, no), error";
}
