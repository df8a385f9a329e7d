//! The contract between facts and rules: name, type and meaning of every fact. Names are published and never reused for
//! another meaning.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

use model::{Arch, Fact, ImagePath, Value, Version};
use serde::Deserialize;

use super::records::{
    ArrangementResult, ClosedDevice, CompatPackage, FailedStep, JobHost, LibraryFile, NcclCopy, NcclPlugin,
    SkippedStep, VariableSetting, VariantResult,
};
use super::value::{CodeLists, FactType, Groups};
use super::words::{Class, Fabric, Flavour, GpuDirect, GpuSupport, Installer, LibraryFault, Linkage, Nic, RdmaOrigin};

pub use super::value::Type;

/// One fact, as rules, JSON and users know it.
pub struct Definition {
    /// Dotted name. No name is a prefix of another, so names nest.
    pub name: &'static str,
    /// Type of the value.
    pub kind: Type,
    /// The only possible values, for a fixed set of words; otherwise empty.
    pub words: &'static [&'static str],
    /// Description, in one sentence.
    pub about: &'static str,
    /// Index in [`KEYS`].
    pub(super) index: usize,
    set: fn(&mut FactTable, &Fact) -> bool,
    admits: fn(&Value) -> bool,
}

impl Definition {
    /// Returns true when only running the image, in a probe, provides the fact.
    pub fn is_of_run(&self) -> bool {
        self.name.starts_with("run.")
    }

    /// Returns true when only the log of a job provides the fact.
    pub fn is_of_job(&self) -> bool {
        self.name.starts_with("job.")
    }

    /// Returns true when only a launch file that starts a container provides the fact.
    pub fn is_of_container(&self) -> bool {
        self.name.starts_with("container.")
    }

    /// Returns true when the image's bytes, the variables of its launch or a host provide the fact.
    pub fn is_of_image(&self) -> bool {
        !self.is_of_run() && !self.is_of_job() && !self.is_of_container()
    }

    /// Describes the expected values: the type, or the list of words.
    pub fn expected(&self) -> String {
        if self.words.is_empty() { self.kind.to_string() } else { format!("one of {}", self.words.join(", ")) }
    }

    /// Reads a value of the fact from JSON; `None` if it has another type.
    pub fn read(&self, json: &serde_json::Value) -> Option<Value> {
        let value = match self.kind {
            Type::Version => Value::Version(Version::parse(json.as_str()?)?),
            _ => Value::deserialize(json).ok()?,
        };
        (self.admits)(&value).then_some(value)
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

/// One fact, with the Rust type of its values.
pub struct Key<T: 'static> {
    /// The untyped part.
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

/// Finds a fact by name.
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

    /// Sets a fact from its untyped form. Returns false, and changes nothing, if the value has the wrong type.
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

/// The definitions of the named keys.
#[macro_export]
macro_rules! definitions {
    ($($key:ident),* $(,)?) => {
        &[$($crate::key::$key.definition),*]
    };
}
pub use definitions;

keys! {
    IMAGE_PLATFORM "image.platform" String, "Platform declared by the image configuration, os/arch[/variant]";
    IMAGE_OS "image.os" String, "Distribution: PRETTY_NAME of /etc/os-release";
    IMAGE_USER "image.user" String, "User that the container runs as; absent means root";
    IMAGE_ENTRYPOINT "image.entrypoint" Vec<String>, "Entrypoint of the image";
    IMAGE_COMMAND "image.command" Vec<String>, "Command of the image";
    IMAGE_WORKING_DIRECTORY "image.working_directory" String, "Working directory of the container";
    IMAGE_LABELS "image.labels" BTreeMap<String, String>, "Labels of the image";
    IMAGE_ENV "image.env" BTreeMap<String, String>, "Environment variables relevant to this check, from the image and, with priority, from the launch; values of other variables are not shown";
    IMAGE_OTHER_ENV "image.other_env" Vec<String>, "Names of all other environment variables";
    IMAGE_ROCM "image.rocm" String, "What shows that the image is made for GPUs of AMD";
    START_COMMAND "start.command" String, "The command that the container starts: the image's entrypoint and command, or --command";
    START_PYTHON "start.python" ImagePath, "The Python that the command starts, or the first one in PATH where start.assumed says so";
    START_USER "start.user" String, "Number of the user that this Python runs as: the image's, that of the launch file, or --user";
    START_ASSUMED "start.assumed" Vec<String>, "What was assumed about the process because neither the image nor an option states it";
    START_REFUSED "start.refused" String, "What a container engine or a shell says of a program that it cannot execute";
    START_LAUNCHER "start.launcher" ImagePath, "The script that starts this Python for each worker, such as torchrun";
    START_ACTIVATED "start.activated" ImagePath, "The Python of the active environment, which is first in PATH, where the launcher belongs to another one that lacks its packages";
    START_LEFT_OUT "start.left_out" Vec<String>, "Packages of the active environment that the launcher's Python does not import";
    START_ABSENT_MODULES "start.absent_modules" Vec<String>, "Modules that the program certainly imports when it starts and that its Python does not find, each with the file and the line";
    START_MODULES_SEARCHED "start.modules_searched" Vec<String>, "The folders in which that Python looks for them: its sys.path";
    START_MODULES_ELSEWHERE "start.modules_elsewhere" Vec<String>, "Other folders of the image that have them";
    START_MODULES_PYTHON "start.modules_python" ImagePath, "A Python of the image that imports torch and all of them";
    START_MODULES_FOLDER "start.modules_folder" ImagePath, "A folder outside of Python's own that has all of them";
    START_FAULT "start.fault" String, "What is the matter with that program: not-in-path, missing, link, interpreter, mode, folder, machine, format, shell (bash's, read by dash), line-ends, user or directory";
    START_CAUSE "start.cause" String, "What is the matter with that program, as a part of a sentence";
    START_PROGRAM "start.program" String, "The word by which that program is called";
    START_NEAR "start.near" String, "A program that may be meant in place of that one: a name in PATH, or a path";
    START_FILE "start.file" ImagePath, "The file at fault where that program does not start";
    START_ABSENT "start.absent" ImagePath, "What that file leads to and the image does not have: the target of a link, or the interpreter of a script";
    NVIDIA_VISIBLE_DEVICES "nvidia.visible_devices" String, "NVIDIA_VISIBLE_DEVICES: the GPUs that NVIDIA's container runtime exposes to the container";
    NVIDIA_DRIVER_CAPABILITIES "nvidia.driver_capabilities" Vec<String>, "NVIDIA_DRIVER_CAPABILITIES: the driver features whose libraries NVIDIA's container runtime mounts";
    NVIDIA_REQUIRE "nvidia.require" BTreeMap<String, String>, "NVIDIA_REQUIRE_*: conditions that the driver must meet";
    NVIDIA_REQUIREMENTS "nvidia.requirements" Groups, "Requirements that NVIDIA's container runtime checks before it starts the container, by variable: alternative terms, each a list of factors that must all hold";
    LAUNCH_VARIABLES "launch.variables" Vec<String>, "Variables that the job sets when it starts the container, from --env and --launch";
    LAUNCH_COMPUTED "launch.computed" Vec<String>, "Launch variables whose value is only computed at start; the check uses the image's own value, if any";
    SUBJECT_NAME "subject.name" String, "What is judged in place of `import torch`: a compiled program that the image starts and that uses NCCL, or NCCL alone in an image without torch; absent where it is `import torch`";
    SUBJECT_PROGRAM "subject.program" ImagePath, "That program";
    SUBJECT_LOADED "subject.loaded" Vec<String>, "Every shared library that the program maps before its first instruction";
    SUBJECT_ERROR "subject.error" String, "The dynamic loader's message if the program does not start";
    PYTHON_PATH "python.path" ImagePath, "The interpreter that runs: the one that the image's command names, else `python` or `python3` from PATH";
    PYTHON_SITE_PACKAGES "python.site_packages" Vec<String>, "Directories that this interpreter imports packages from, in search order";
    PYTHON_STARTUP_CODE "python.startup_code" Vec<String>, "Files next to the packages that run code when the interpreter starts (.pth files with imports), and so could change its import path";
    TORCH_INSTALLS "torch.installs" Vec<String>, "Every installed torch package";
    TORCH_PATH "torch.path" ImagePath, "The torch package that this check covers: the one that Python imports";
    TORCH_SHADOW "torch.shadow" String, "What `import torch` imports instead of PyTorch, and the PyTorch that it hides, if any";
    TORCH_SHADOWED_MODULES "torch.shadowed_modules" Vec<String>, "Files of the program's folder or of PYTHONPATH that are imported in place of modules that `import torch` imports, each with what it hides";
    TORCH_NOT_IMPORTED "torch.not_imported" Vec<String>, "Torch packages of the image, if its Python imports none of them: they belong to other interpreters or environments";
    TORCH_OTHER_PYTHON "torch.other_python" ImagePath, "The Python that imports a torch of the image, if that which the image starts imports none";
    TORCH_OTHER_HOME "torch.other_home" ImagePath, "The home directory that a torch of the image is installed in, for its user alone, if Python imports none";
    TORCH_OTHER_VENV "torch.other_venv" ImagePath, "The virtual environment of the Python that imports no torch, if it can be made again with one that does";
    TORCH_BUILD_ARGUMENT "torch.build_argument" String, "The build argument that chose a torch without CUDA, with its value: NAME=VALUE";
    TORCH_BUILD_INDEX "torch.build_index" String, "The value with which that argument chooses a build for CUDA, if it is an index of PyTorch";
    TORCH_VENDOR "torch.vendor" String, "The vendor whose GPUs torch is built for, other than NVIDIA";
    TORCH_UNREADABLE "torch.unreadable" String, "Why the container's user cannot import torch although it is installed: the file or directory whose mode refuses it, with mode, owner and user";
    TORCH_VERSION "torch.version" Version, "torch.__version__";
    TORCH_GIT_VERSION "torch.git_version" String, "torch.version.git_version: the commit that torch was built from";
    TORCH_CUDA_VERSION "torch.cuda.version" Version, "torch.version.cuda: the CUDA release that torch was built with; absent in a build without CUDA";
    TORCH_CUDA_DRIVER_MIN "torch.cuda.driver_min" Version, "Oldest driver that supports torch's CUDA release through CUDA's minor version compatibility";
    TORCH_CUDA_BUILD "torch.cuda.build" bool, "True when torch has its CUDA library, libtorch_cuda.so";
    TORCH_BUILD "torch.build" BTreeMap<String, String>, "Build options of torch, as torch.__config__.show() lists them";
    TORCH_BUILD_CODE "torch.build_code" BTreeMap<String, String>, "Build options of torch, as caffe2::GetBuildOptions() in libtorch_cpu.so returns them, found by emulating its code";
    TORCH_BUILD_HEADER "torch.build_header" BTreeMap<String, String>, "Build options of torch, as torch/include/caffe2/core/macros.h lists them; absent if the header is not installed";
    TORCH_BUILD_CONTRADICTIONS "torch.build_contradictions" Vec<String>, "Build details on which torch's files disagree";
    TORCH_CXX11_ABI "torch.cxx11_abi" bool, "torch._C._GLIBCXX_USE_CXX11_ABI: true when torch was built with the C++11 ABI of std::string";
    TORCH_ARCH_LIST "torch.arch_list" Vec<String>, "GPU architectures that torch was built for, as torch._C._cuda_getArchFlags() lists them";
    TORCH_USE_NCCL "torch.use_nccl" bool, "True when the build option USE_NCCL is on";
    TORCH_NCCL_LINKAGE "torch.nccl_linkage" Linkage, "How libtorch_cuda links NCCL: shared, static or none";
    TORCH_PROCESS_GROUP_NCCL "torch.process_group_nccl" bool, "True when libtorch_cuda.so contains c10d's NCCL backend";
    TORCH_CUDART_NEEDED "torch.cudart_needed" Vec<String>, "CUDA runtime libraries that torch's libraries need, by soname";
    TORCH_LOADED "torch.loaded" Vec<String>, "Every shared library that `import torch` maps from the image: the interpreter, torch's modules and libraries, and their dependencies; excludes other Python modules (standard library, NumPy) and what only they need";
    TORCH_IMPORT_ERROR "torch.import_error" String, "Why `import torch` fails: the message of the dynamic loader, or of Python with the exception's name, in one line";
    TORCH_IMPORT_CAUSE "torch.import_cause" String, "What in the image makes `import torch` fail, where torch.import_error does not name it";
    TORCH_MISSING_REQUIREMENTS "torch.missing_requirements" Vec<String>, "Python packages that torch's metadata requires and that are missing or of another version, with what is installed; excludes NVIDIA's packages, whose libraries the loader looks for";
    TORCH_NUMPY "torch.numpy" Version, "Release of the NumPy that Python imports with torch, if torch is a wheel that pip or uv installed";
    TORCH_CUDNN "torch.cudnn" Version, "Release of the cuDNN that `import torch` maps, from the name of its file or the package that owns it";
    TORCH_CUDNN_PATH "torch.cudnn_path" ImagePath, "The cuDNN that `import torch` maps";
    TORCH_CUDNN_BUILT "torch.cudnn_built" Version, "Release of cuDNN that torch was built with";
    TORCH_NCCL_PIN "torch.nccl_pin" String, "NCCL package that torch's metadata requires";
    TORCH_INSTALLER "torch.installer" Installer, "Program that installed torch: pip, uv, conda or apt, as the owner of its libraries or the wheel's record shows; absent where neither does";
    NCCL_AVAILABLE "nccl.available" bool, "Predicted result of torch.distributed.is_nccl_available()";
    NCCL_TORCH_VERSION "nccl.torch_version" String, "Predicted result of torch.cuda.nccl.version(): the NCCL version that torch was compiled with";
    NCCL_COPIES "nccl.copies" Vec<NcclCopy>, "Every file that contains NCCL's code: path, version, cuda (the CUDA release it was built with), soname, owner";
    NCCL_LOADED_PATH "nccl.loaded.path" ImagePath, "The NCCL that torch would load; libtorch's own path if NCCL is linked statically";
    NCCL_LOADED_VERSION "nccl.loaded.version" Version, "Version of the NCCL that torch would load";
    NCCL_LOADED_CUDA "nccl.loaded.cuda" Version, "CUDA release that the loaded NCCL was built with";
    NCCL_LOADED_ROUTE "nccl.loaded.route" String, "How NCCL gets into the process: the rule by which the dynamic loader finds it, LD_PRELOAD, or torch itself";
    NCCL_NOT_LOADED "nccl.not_loaded" Vec<String>, "Shared copies of NCCL that torch would not load, with their versions";
    NCCL_OTHER_USERS "nccl.other_users" Vec<String>, "Modules of other Python packages that need libnccl.so.2 and, if imported before torch, load another version of it";
    NCCL_FAULTS "nccl.faults" Vec<String>, "Known bugs of the loaded NCCL that an ordinary job can hit, with the release that fixes each";
    NCCL_RARE_FAULTS "nccl.rare_faults" Vec<String>, "Known bugs of the loaded NCCL that need special hosts or programs";
    NCCL_MISSING_SYMBOLS "nccl.missing_symbols" Vec<String>, "NCCL functions that torch imports and the loaded NCCL does not have";
    NCCL_UNKNOWN_VARIABLES "nccl.unknown_variables" Vec<String>, "NCCL_* variables that are set and that the loaded NCCL does not read";
    NCCL_CONFIG_FILES "nccl.config_files" Vec<String>, "NCCL configuration files in the image, in the order in which NCCL reads them";
    NCCL_CONFIG_PROBLEMS "nccl.config_problems" Vec<String>, "NCCL's configuration files, and lines of them, that do not do what they seem to";
    NCCL_CONFIG_MISSING "nccl.config_missing" String, "File that NCCL_CONF_FILE names and the image does not have";
    NCCL_PLUGIN_INTERFACES "nccl.plugin_interfaces" Vec<String>, "Plugin interfaces that the loaded NCCL looks for, by symbol";
    NCCL_PLUGINS "nccl.plugins" Vec<NcclPlugin>, "NCCL plugins in the image: path, exports (their interfaces), accepted (those that this NCCL looks for), opened (by which variable's rule, or no), libfabric (the soname they need, as aws-ofi-nccl does), owner";
    NCCL_NET_PLUGIN "nccl.net_plugin" String, "Network plugin that this NCCL would use before its built-in networks, with its interface";
    NCCL_UNOPENED_NET_PLUGIN "nccl.unopened_net_plugin" ImagePath, "A network plugin of the image that this NCCL does not open, if it opens no other and none is declined";
    NCCL_UNOPENED_FOLDERS "nccl.unopened_folders" String, "The folders in which the loader has to look for nccl.unopened_net_plugin and what it needs, as LD_LIBRARY_PATH has them";
    NCCL_PLUGINS_REFUSED "nccl.plugins_refused" Vec<String>, "Plugins that this NCCL opens but whose interfaces it does not support";
    NCCL_PLUGINS_BROKEN "nccl.plugins_broken" Vec<String>, "Plugins that this NCCL tries to open, and why the dynamic loader refuses them";
    NCCL_PLUGINS_NOT_FOUND "nccl.plugins_not_found" Vec<String>, "Plugins that variables name and the dynamic loader does not find";
    ENV_VARIABLES "env.variables" Vec<VariableSetting>, "Settings of NCCL_*, TORCH_NCCL_*, CUDA_*, NVIDIA_*, UCX_*, FI_* and GLOO_* in the image configuration, in files of the image and at launch: name, value, source, family, state (known, foreign, other-version, other-backend, misspelt, unknown, unchecked), meaning, default, read_in, since, until, problem";
    ENV_EFFECTIVE "env.effective" BTreeMap<String, String>, "Settings of NCCL_* and TORCH_*, of GPUs and of ranks that a process of the job gets, from the first source that has each: the launch, the image's configuration, NCCL's own files";
    ENV_UNKNOWN "env.unknown" Vec<String>, "Variables that no library reads and that are not a misspelling of a known one";
    ENV_MISSPELT "env.misspelt" Vec<String>, "Misspelt variables, which no library reads, with the name that was probably meant";
    ENV_REMOVED "env.removed" Vec<String>, "Variables that only releases older than the one in the image read, or only a backend of torch that the job does not select by default";
    ENV_NOT_YET "env.not_yet" Vec<String>, "Variables that only releases newer than the one in the image read";
    ENV_DEPRECATED "env.deprecated" Vec<String>, "Variables under a name that PyTorch has replaced";
    ENV_BAD_VALUES "env.bad_values" Vec<String>, "Values that the library reads differently from what they look like";
    ENV_COSTLY "env.costly" Vec<String>, "Settings that cost speed or error handling, or that fit one host but are set in the image; excludes those that a rule of their own reports";
    ENV_REFUSED_VALUES "env.refused_values" Vec<String>, "Values at which the job stops, with the reason";
    ENV_LOOPBACK_ONLY "env.loopback_only" Vec<String>, "The setting of NCCL_SOCKET_IFNAME that leaves only loopback";
    ENV_LOOPBACK_ADMITTED "env.loopback_admitted" Vec<String>, "The setting of NCCL_SOCKET_IFNAME that excludes interfaces but not lo";
    ENV_TOPOLOGY_FILES_MISSING "env.topology_files_missing" Vec<String>, "NCCL_TOPO_FILE set by the image, where the image does not have the file";
    ENV_CONTRADICTIONS "env.contradictions" Vec<String>, "Conflicting settings";
    ENV_PLUGIN_MISSING "env.plugin_missing" Vec<String>, "Variables that only a plugin reads which the image does not have";
    ENV_NCCL_VERSION_NOTE "env.nccl_version_note" String, "NCCL_VERSION, informational only, where it differs from the version that torch would load";
    LIBRARY_CONFIGURED "library.configured" Vec<String>, "The libraries of the process that the loader finds only by the cache that ldconfig writes as the container starts, because the image's /etc/ld.so.cache does not have them";
    LIBRARY_CONFIGURED_BY "library.configured_by" ImagePath, "The file of /etc/ld.so.conf that names the folder of the first of library.configured";
    LIBRARY_CULPRIT "library.culprit" ImagePath, "The library at fault where the loader ends `import torch`, or the import of an extension that the program imports";
    LIBRARY_CULPRIT_FAULT "library.culprit_fault" LibraryFault, "What is wrong with library.culprit: a layer removed it, it shadows a copy that has what it lacks, or it asks for a version that no library of the image has (asks-too-much)";
    LIBRARY_CULPRIT_ERROR "library.culprit_error" String, "The message of the loader for which library.culprit is at fault";
    LIBRARY_CULPRIT_INSTEAD "library.culprit_instead" ImagePath, "The copy that library.culprit shadows";
    LIBRARY_CULPRIT_BY "library.culprit_by" String, "What puts library.culprit first: a rule of the loader, or the file of /etc/ld.so.conf that names its folder";
    EXTENSION_LOADED "extension.loaded" Vec<String>, "Libraries of Python packages beside torch that the program's imports load, of those that link to torch, CUDA, NCCL or an RDMA stack";
    EXTENSION_BROKEN "extension.broken" Vec<String>, "Python packages beside torch that the program imports and that the dynamic loader refuses after `import torch`, each with its version, the library that links to torch, CUDA, NCCL or an RDMA stack, and the loader's message";
    EXTENSION_BROKEN_UNUSED "extension.broken_unused" Vec<String>, "The same of installed packages that the program does not import, or not for certain";
    EXTENSION_NO_COMPILER "extension.no_compiler" Vec<String>, "Modules that the program imports and that compile C code against Python while the job runs, if the image lacks gcc and clang, or Python.h";
    EXTENSION_NO_BITSANDBYTES "extension.no_bitsandbytes" ImagePath, "The library that bitsandbytes opens for the CUDA of torch or for BNB_CUDA_VERSION, if the program imports it and it lacks this file";
    EXTENSION_BITSANDBYTES_CHOICE "extension.bitsandbytes_choice" String, "The value of BNB_CUDA_VERSION, if bitsandbytes has no library for it";
    EXTENSION_BUILD_FAILS "extension.build_fails" Vec<String>, "Calls of the program that certainly run and compile code, each with its place and what the image lacks for it";
    EXTENSION_NO_NVCC "extension.no_nvcc" Vec<String>, "Modules that the program imports and that compile CUDA code while the job runs, if the image lacks nvcc";
    EXTENSION_MISSING "extension.missing" Vec<String>, "Libraries that these packages need and that the loader does not find, each with what usually brings it";
    EXTENSION_OTHER_TORCH "extension.other_torch" Vec<String>, "Packages with such libraries that load, although their metadata requires exactly a torch of another series than the installed one";
    EXTENSION_CRASHES "extension.crashes" Vec<String>, "Packages that the program loads, that were built for a torch of another series, and that crash where they register operators, because torch::CppFunction has another layout";
    EXTENSION_OTHER_CUDA "extension.other_cuda" String, "The major release of CUDA whose libraries they need, if torch is built for another";
    NVSHMEM_MISMATCH "nvshmem.mismatch" Vec<String>, "Libraries that the program loads whose NVSHMEM device code does not fit the host library of the process, with both releases";
    NVSHMEM_MISMATCH_UNUSED "nvshmem.mismatch_unused" Vec<String>, "The same of installed packages that the program does not import, or not for certain";
    NVSHMEM_FITTING "nvshmem.fitting" ImagePath, "A host library of the image that fits the device code";
    CUDA_FATBIN "cuda.fatbin" BTreeMap<String, CodeLists>, "GPU code in libraries, by path: architectures with machine code (cubin) and with PTX (ptx); excludes CUDA's own libraries except NCCL, and those of cuda.unread_code";
    CUDA_PTX "cuda.ptx" BTreeMap<String, String>, "Newest PTX ISA version in each library of cuda.fatbin that contains PTX";
    CUDA_UNREAD_CODE "cuda.unread_code" BTreeMap<String, String>, "Libraries whose GPU code could not be read, by path, with the reason";
    CUDA_NOT_IN_NCCL "cuda.not_in_nccl" Vec<String>, "Architectures for which torch's CUDA library has machine code but the NCCL that torch would load has no code";
    CUDA_COMPAT "cuda.compat" Vec<CompatPackage>, "CUDA forward-compatibility packages: path, driver (the driver they were built with), cuda and branches (the CUDA release and the driver branches they accept, from their ELF note)";
    CUDA_LIBCUDA "cuda.libcuda" ImagePath, "The image's own libcuda.so.1, where LD_LIBRARY_PATH, torch's search path or /etc/ld.so.conf puts it before the host's";
    CUDA_LIBCUDA_FOLDER "cuda.libcuda_folder" ImagePath, "The folder of cuda.libcuda, as /etc/ld.so.conf or one of its files names it; absent where LD_LIBRARY_PATH or a search path does";
    CUDA_LIBCUDA_FILE "cuda.libcuda_file" ImagePath, "The file of /etc/ld.so.conf that names the directory of cuda.libcuda; absent where LD_LIBRARY_PATH or a search path does";
    CUDA_CUDART "cuda.cudart" Vec<LibraryFile>, "CUDA runtime libraries: path, soname, owner";
    CUDA_CUDART_MAJORS "cuda.cudart_majors" Vec<i64>, "CUDA major versions of the runtime libraries that torch's libraries need";
    CUDA_CUDART_MISSING "cuda.cudart_missing" Vec<String>, "CUDA runtime libraries that torch's libraries need and the image does not have";
    CUDA_LOADED_MAJORS "cuda.loaded_majors" Vec<i64>, "CUDA major versions of the CUDA libraries that `import torch` maps, or the program that is judged in its place; excludes NCCL";
    CUDA_OF_ANOTHER_MAJOR "cuda.of_another_major" Vec<String>, "CUDA libraries in that process of another major version than the one that torch was built with, with their version; all of them where torch's is unknown and they differ";
    CUDA_OVERWRITTEN "cuda.overwritten" Vec<String>, "Libraries of which several wheels of NVIDIA record different files at one path, with the wheels and the one whose file is there; the last one installed wrote it";
    CUDA_DRIVER_LIBRARIES "cuda.driver_libraries" Vec<String>, "NVIDIA driver libraries in the image, which belong to the host; excludes stubs and forward-compatibility packages";
    NCCL_NAMED_ERROR "nccl.named_error" String, "Why the container's user cannot read the NCCL that VLLM_NCCL_SO_PATH names";
    RDMA_VERBS "rdma.verbs" ImagePath, "The libibverbs that NCCL would open";
    RDMA_NOT_LOADED "rdma.not_loaded" Vec<String>, "Copies of libibverbs that NCCL would not open, with their private ABI";
    RDMA_VERBS_OWNER "rdma.verbs_owner" String, "Package that owns the libibverbs that NCCL would open";
    RDMA_VERSION "rdma.version" String, "Release of the RDMA libraries, from the file name of libibverbs";
    RDMA_ORIGIN "rdma.origin" RdmaOrigin, "Origin of libibverbs: rdma-core (the distribution) or MLNX_OFED";
    RDMA_PRIVATE_ABI "rdma.private_abi" String, "Number of the private ABI between libibverbs and its providers: N in IBVERBS_PRIVATE_N";
    RDMA_MISSING_VERSIONS "rdma.missing_versions" Vec<String>, "Versions of RDMA symbols that this NCCL looks up and the libraries do not have, with what is lost";
    RDMA_MLX5 "rdma.mlx5" ImagePath, "The libmlx5 that NCCL would open";
    RDMA_PROVIDERS "rdma.providers" Vec<String>, "RDMA user-space providers: NIC families that libibverbs could drive";
    RDMA_BROKEN_PROVIDERS "rdma.broken_providers" Vec<String>, "Providers that are installed but unusable, and why";
    RDMA_LIBRARIES "rdma.libraries" Vec<LibraryFile>, "Other libraries for fast networks: path, soname, owner";
    RDMA_FORBIDDEN "rdma.forbidden" Vec<String>, "Settings that keep NCCL from using RDMA";
    RDMA_RUNTIME_NEEDS "rdma.runtime_needs" Vec<String>, "What RDMA needs from the container's start, because no image can provide it";
    RDMA_CONFIG "rdma.config" ImagePath, "Folder whose files name the providers that libibverbs loads";
    RDMA_DANGLING_DRIVERS "rdma.dangling_drivers" Vec<String>, "Providers that rdma.config names and whose library is missing";
    HOST_NAME "host.name" String, "Name of the host that the image is judged for, as described; all host facts are absent without a host";
    HOST_DRIVER "host.driver" Version, "Version of the host's NVIDIA driver";
    HOST_CUDA "host.cuda" Version, "CUDA release that the host's driver supports";
    HOST_CUDA_MIN "host.cuda_min" Version, "CUDA release that the host's driver supports at least: host.cuda, or for a driver branch that is in no table, the release of the newest older branch";
    HOST_GPU "host.gpu" String, "Model of the host's GPUs";
    HOST_GPU_ARCH "host.gpu_arch" Arch, "Architecture of the host's GPUs";
    HOST_GPU_COUNT "host.gpu_count" i64, "Number of GPUs in the host";
    HOST_GPU_CLASS "host.gpu_class" Class, "Market segment of the host's GPUs: datacenter, workstation or consumer";
    HOST_FABRIC "host.fabric" Fabric, "Interconnect between the host's GPUs: nvswitch or pcie";
    HOST_RDMA "host.rdma" Nic, "RDMA NICs of the host: mlx5, efa or none";
    HOST_KERNEL "host.kernel" Version, "Version of the host's Linux kernel";
    HOST_TORCH_CODE "host.torch_code" GpuSupport, "Code that torch's CUDA library has for the host's GPU: cubin, ptx, new-ptx (too new for the driver to compile) or none";
    HOST_NCCL_CODE "host.nccl_code" GpuSupport, "Code that the NCCL that torch would load has for the host's GPU: cubin, ptx, new-ptx (too new for the driver to compile) or none";
    HOST_EXTENSIONS_WITHOUT_CODE "host.extensions_without_code" Vec<String>, "Python extensions with GPU code that have none for the host's GPU and that the program does not import, or not for certain: the path of the only one of a package, or the package with their number; excludes builds for another release of torch";
    HOST_IMPORTED_WITHOUT_CODE "host.imported_without_code" Vec<String>, "The same of extensions that the program imports";
    HOST_UNMET_REQUIREMENTS "host.unmet_requirements" Vec<String>, "Variables of nvidia.requirements that the host does not meet";
    HOST_COMPAT "host.compat" String, "Newest forward-compatibility package in the image that works on the host, is newer than its driver and new enough for torch";
    HOST_COMPAT_REFUSED "host.compat_refused" String, "Why cuda.libcuda, if it is a forward-compatibility library, does not work on the host";
    HOST_NCCL_CUDA "host.nccl_cuda" String, "CUDA release that the loaded NCCL was built with, where its major version is newer than the CUDA release of the host's driver";
    HOST_VIRTUAL_MACHINE "host.virtual_machine" String, "Vendor and product of the virtual machine, if the host is one; this and the following host facts come only from host records";
    HOST_ARCHITECTURE "host.architecture" String, "CPU architecture of the host: x86_64, aarch64";
    HOST_DRIVER_FLAVOUR "host.driver_flavour" Flavour, "Flavour of the loaded NVIDIA kernel modules: open or proprietary";
    HOST_LIBRARY_MISMATCH "host.library_mismatch" bool, "True when the driver's libraries and its kernel module have different versions";
    HOST_PCI_GPUS "host.pci_gpus" Vec<String>, "NVIDIA GPUs on the host's PCI bus that are not passed through to virtual machines: address and kernel driver";
    HOST_MODULES "host.modules" Vec<String>, "Loaded kernel modules for GPUs and RDMA";
    HOST_PEER_MEMORY "host.peer_memory" Vec<String>, "Peer-memory clients that the kernel lists; kernels from 6.4 on list none";
    HOST_PEERMEM "host.peermem" bool, "True when nvidia_peermem is loaded, through which NICs can access GPU memory";
    HOST_DMA_BUF "host.dma_buf" bool, "True when the kernel and the driver support DMA-BUF, through which NICs can access GPU memory";
    HOST_NVSWITCHES "host.nvswitches" i64, "Number of NVSwitches that the driver reports";
    HOST_FABRIC_MANAGER "host.fabric_manager" bool, "True when the fabric manager runs on the host";
    HOST_REDIRECTING_PORTS "host.redirecting_ports" Vec<String>, "PCIe switch ports above the GPUs whose ACS redirects peer-to-peer traffic to the root complex";
    HOST_TRANSLATED_GPUS "host.translated_gpus" Vec<String>, "GPUs whose DMA addresses the IOMMU translates";
    HOST_RDMA_DEVICES "host.rdma_devices" Vec<String>, "RDMA devices of the host, without those of Azure Accelerated Networking";
    HOST_UNMATCHED_NAMES "host.unmatched_names" Vec<String>, "Settings that name an interface, an RDMA device, a GPU, a CPU or a NUMA node of which the host has none: the setting, and what the host has. Interfaces and RDMA devices are those of a process in the network of the host";
    HOST_DOUBTFUL_NAMES "host.doubtful_names" Vec<String>, "Settings that take only interfaces which reach no other host, or leave some out and take such a one or that of a RoCE NIC beside others, or a GID that no port may have: the setting, and what the host has";
    HOST_RDMA_WITHOUT_VERBS "host.rdma_without_verbs" Vec<String>, "RDMA devices that the kernel does not expose to user space";
    HOST_RDMA_ACTIVE_PORTS "host.rdma_active_ports" Vec<String>, "Active ports of the host's RDMA devices";
    HOST_ROCE_PORTS "host.roce_ports" Vec<String>, "Active RoCE ports of the host's RDMA devices";
    HOST_ROCE_LOW_MTU "host.roce_low_mtu" Vec<String>, "Active RoCE ports whose network interface has an MTU too small for the largest RoCE MTU, 4096 bytes";
    HOST_HAS_GPU "host.has_gpu" bool, "True when the host has an NVIDIA GPU that is not passed through to a virtual machine";
    HOST_MISSING_GPU_NODES "host.missing_gpu_nodes" Vec<String>, "Device nodes of the NVIDIA driver and its GPUs that the host's /dev lacks";
    HOST_RDMA_WITHOUT_NODE "host.rdma_without_node" Vec<String>, "RDMA devices whose device node the host's /dev/infiniband lacks";
    HOST_IMEX "host.imex" bool, "True when the IMEX service, which shares GPU memory between the machines of an NVLink rack, runs on the host";
    HOST_IMEX_CHANNELS "host.imex_channels" i64, "Number of IMEX channels in the host's /dev/nvidia-caps-imex-channels";
    HOST_ENGINES "host.engines" Vec<String>, "Container engines that run on the host: containerd, dockerd, crio";
    HOST_CONTAINER_TOOLKIT "host.container_toolkit" bool, "True when the host has NVIDIA's container toolkit, or a specification of the Container Device Interface (CDI) for its GPUs";
    HOST_ENGINE_NOFILE "host.engine_nofile" i64, "Default limit of open files for containers of the host's engine; -1 is unlimited";
    HOST_STACK "host.stack_bytes" i64, "Default stack limit for containers of the host's engine, or without an engine for processes of the shell that made the record, in bytes; -1 is unlimited";
    HOST_REMOVE_IPC "host.remove_ipc" bool, "True when systemd-logind removes the shared memory of users who log out of the host";
    HOST_ENGINE_MEMLOCK "host.engine_memlock_bytes" i64, "Default limit of locked memory for containers of the host's engine, in bytes; -1 is unlimited";
    HOST_PERSISTENCE_OFF "host.persistence_off" Vec<String>, "GPUs without persistence mode";
    HOST_MIG "host.mig" Vec<String>, "GPUs that are partitioned into MIG instances";
    HOST_BARE_NODES "host.nodes_without_memory" Vec<String>, "NUMA nodes that have processors but no memory, on a host where other nodes have both";
    HOST_CDI_FILES "host.cdi_files" Vec<String>, "Container Device Interface (CDI) specifications of the host";
    HOST_CDI_FAULTS "host.cdi_faults" Vec<String>, "CDI specifications that cannot be read, or that name missing files";
    RUN_ENGINE "run.engine" String, "Container engine that ran the probe; absent if the probe ran in place";
    RUN_ENTRYPOINT "run.entrypoint.command" String, "The image's entrypoint, if the probe's program ran or was to run behind it";
    RUN_ENTRYPOINT_BYPASSED "run.entrypoint.bypassed" String, "Why the probe's program replaced the image's entrypoint, if it did";
    RUN_ENTRYPOINT_ERROR "run.entrypoint.error" String, "Why the entrypoint did not start the probe's program, with the end of its output";
    RUN_ENTRYPOINT_CHANGES "run.entrypoint.changes" Vec<String>, "What the entrypoint changed of what the engine gave it: variables, user, working directory; the values of variables that may be secrets are not compared";
    RUN_ENTRYPOINT_UNPREDICTED "run.entrypoint.unpredicted" Vec<String>, "What the program got from the entrypoint otherwise than the check predicts from the image's files";
    RUN_GPUS_ASKED "run.gpus_asked" bool, "True when GPUs were requested for the container";
    RUN_UNFINISHED "run.unfinished" String, "Why the probe did not finish";
    RUN_FAILED_STEPS "run.failed_steps" Vec<FailedStep>, "Failed steps: step, how (exception, signal, exit, deadline, protocol), message";
    RUN_SKIPPED_STEPS "run.skipped_steps" Vec<SkippedStep>, "Steps that could not run: step, why";
    RUN_UNCLEAN_EXITS "run.unclean_exits" Vec<String>, "Steps and ranks whose process ended badly after it had delivered its results";
    RUN_GIVEN_OTHERWISE "run.given_otherwise" Vec<String>, "What was requested for the container and not provided";
    RUN_HOSTNAME "run.hostname" String, "The machine's name, where a network reaches it and the probe has looked the name up";
    RUN_HOSTNAME_ERROR "run.hostname_error" String, "Why no address of that name can be used in the container";
    RUN_PORT_TAKEN "run.port_taken" i64, "MASTER_PORT, if MASTER_ADDR is this machine and another process listens on the port";
    RUN_SHM "run.shm_bytes" i64, "Size of /dev/shm in bytes";
    RUN_MEMLOCK "run.memlock_bytes" i64, "Soft limit of locked memory in bytes; -1 is unlimited";
    RUN_NOFILE "run.nofile" i64, "Soft limit of open files";
    RUN_PROCESSORS "run.processors" i64, "Number of processors that the container may use";
    RUN_RUNTIME_VARIABLES "run.variables" BTreeMap<String, String>, "NCCL, CUDA and RDMA variables in the environment of the probe's processes, and those that NCCL read from its configuration files";
    RUN_REFUSED_VALUES "run.refused_values" Vec<String>, "Variables of the run with values at which NCCL or PyTorch stops, and what they make of them";
    RUN_MISREAD_VALUES "run.misread_values" Vec<String>, "Variables of the run with values that NCCL or PyTorch reads differently than they look";
    RUN_STORAGE "run.storage.folders" Vec<String>, "Folders to which training writes by default, with what it keeps there";
    RUN_STORAGE_UNWRITABLE "run.storage.unwritable" Vec<String>, "Folders of run.storage.folders in which no file can be created, each with the variable or default that names it, the error and the file system";
    RUN_DRIVER "run.driver" Version, "Version of the driver, from NVML";
    RUN_GPU_COUNT "run.gpu.count" i64, "Number of GPUs in the container, from NVML";
    RUN_GPU_MISSING "run.gpu.missing" String, "Why the container has no GPU, by its driver's libraries";
    RUN_GPU_BUSY "run.gpu.busy" Vec<String>, "GPUs that computed, or moved data over NVLink, for other processes before the probe used them or after it";
    RUN_GPU_TAKEN "run.gpu.memory_taken" Vec<String>, "GPUs with less than half of their memory free before the probe used them";
    RUN_GPU_HIDDEN "run.gpu.hidden" String, "What CUDA_VISIBLE_DEVICES leaves of the container's GPUs, if it hides some";
    RUN_GPU_MODELS "run.gpu.models" Vec<String>, "Models of the GPUs in the container";
    RUN_GPU_UNREACHABLE "run.gpu.unreachable" Vec<String>, "GPUs that NVML counts and cannot open, and why";
    RUN_GPU_CUDA_MISSES "run.gpu.cuda_misses" Vec<String>, "GPUs that NVML lists and CUDA does not";
    RUN_GPU_SLOWED "run.gpu.slowed" Vec<String>, "GPUs whose clocks were throttled by temperature or power before or during the collectives, with the reason";
    RUN_GPU_PCIE "run.gpu.pcie_narrow" Vec<String>, "GPUs whose PCIe link runs below its maximum width";
    RUN_GPU_NVLINK_DOWN "run.gpu.nvlinks_down" Vec<String>, "GPUs with inactive NVLinks";
    RUN_GPU_ECC "run.gpu.ecc_errors" Vec<String>, "GPUs with uncorrected memory errors since the driver was loaded";
    RUN_GPU_ROWS "run.gpu.row_remapping" Vec<String>, "GPUs with memory row remapping that is pending a reset or has failed";
    RUN_GPU_MIG "run.gpu.mig" Vec<String>, "GPUs that are partitioned into MIG instances";
    RUN_GPU_COMPUTE_MODE "run.gpu.compute_mode" Vec<String>, "GPUs whose compute mode limits the processes that may use them";
    RUN_GPU_FABRIC "run.gpu.fabric_incomplete" Vec<String>, "GPUs whose registration with the NVLink fabric is incomplete";
    RUN_GPU_LOG "run.gpu.log_readable" bool, "True when the kernel log, where the driver writes Xid errors, could be read";
    RUN_GPU_XID "run.gpu.xid" Vec<String>, "Xid errors in the kernel log";
    RUN_GPU_PERSISTENCE "run.gpu.persistence_off" Vec<String>, "GPUs without persistence mode";
    RUN_LIBCUDA "run.cuda.libcuda" String, "The libcuda that the process has mapped";
    RUN_LIBCUDA_COMPAT "run.cuda.is_compat" bool, "True when that libcuda comes from a forward-compatibility package of the image";
    RUN_NVLINK_PAIRS "run.topology.nvlink_pairs" Vec<String>, "Pairs of GPUs connected by NVLink, with the number of links";
    RUN_PEER_REFUSED "run.topology.peer_refused" Vec<String>, "Pairs of GPUs without peer access in at least one direction, according to CUDA";
    RUN_NVLINK_GB_S "run.topology.nvlink_gb_s" i64, "Bandwidth of the active NVLinks in one direction, in GB/s, for the GPU with the fewest links";
    RUN_RDMA_DEVICES "run.rdma.devices" Vec<String>, "RDMA devices that the container can open";
    RUN_RDMA_CLOSED "run.rdma.closed" Vec<ClosedDevice>, "RDMA devices that the container sees and cannot open: device, cause, why";
    RUN_RDMA_PORTS_DOWN "run.rdma.ports_down" Vec<String>, "Inactive ports of the opened RDMA devices";
    RUN_RDMA_REGISTRATION "run.rdma.registration_fails" Vec<String>, "Memory registrations that failed: device, bytes, the system's error";
    RUN_RDMA_GID "run.rdma.gid_unfit" Vec<String>, "RoCE ports where NCCL selects a GID that is not RoCE v2, or finds none";
    RUN_RDMA_PING "run.rdma.ping_fails" Vec<String>, "Ports over which two queue pairs of this host did not reach each other";
    RUN_RDMA_GPU_DIRECT "run.rdma.gpu_direct" GpuDirect, "How an RDMA device accesses GPU memory here (GPUDirect RDMA): dma-buf, peermem or none";
    RUN_TORCH_ERROR "run.torch.error" String, "Why torch could not be imported";
    RUN_TORCH_VERSION "run.torch.version" String, "Version of the imported torch";
    RUN_TORCH_FILE "run.torch.file" String, "File that torch was imported from";
    RUN_TORCH_NCCL "run.torch.nccl_available" bool, "Result of torch.distributed.is_nccl_available()";
    RUN_TORCH_LOADED "run.torch.loaded" Vec<String>, "Libraries that the process had mapped after the import";
    RUN_TORCH_CUDA_ERROR "run.torch.cuda_error" String, "Why torch cannot use CUDA";
    RUN_TORCH_NO_CODE "run.torch.gpus_without_code" Vec<String>, "GPUs for which this torch has no code";
    RUN_TORCH_PTX "run.torch.gpus_by_ptx" Vec<String>, "GPUs for which this torch has only PTX";
    RUN_TORCH_KERNELS "run.torch.kernel_errors" Vec<String>, "GPUs on which a small torch kernel fails or returns a wrong result";
    RUN_TORCH_UNPREDICTED "run.torch.unpredicted" Vec<String>, "Libraries that were loaded but not predicted by the check, or predicted but not loaded";
    RUN_NCCL_WORKS "run.nccl.works" bool, "True when the ranks completed their first collective";
    RUN_NCCL_ERROR "run.nccl.error" String, "Why the collectives failed";
    RUN_NCCL_HANG "run.nccl.hang" String, "Ranks that did not arrive, if the collectives hung";
    RUN_NCCL_RANKS "run.nccl.ranks" i64, "Number of ranks that took part";
    RUN_NCCL_VERSION "run.nccl.version" Version, "Version of the NCCL that ran, as it reports itself";
    RUN_NCCL_PATHS "run.nccl.paths" Vec<String>, "Copies of libnccl that a rank had mapped";
    RUN_NCCL_NODES "run.nccl.nodes" i64, "Number of hosts that NCCL counted";
    RUN_NCCL_TRANSPORTS "run.nccl.transports" Vec<String>, "Transports between the ranks: P2P/CUMEM, P2P/IPC, SHM, NET/IB/GDRDMA, NET/Socket, ...";
    RUN_NCCL_NETWORK "run.nccl.network" Vec<String>, "Network that NCCL chose: IB, Socket, a plugin";
    RUN_NCCL_INTERFACES "run.nccl.interfaces" Vec<String>, "Network interfaces that NCCL uses for bootstrap and for sockets";
    RUN_NCCL_WARNINGS "run.nccl.warnings" Vec<String>, "Warnings that NCCL logged";
    RUN_NCCL_PLUGIN_ERRORS "run.nccl.plugin_errors" Vec<String>, "Plugins that NCCL found and could not use";
    RUN_NCCL_WRONG "run.nccl.wrong_values" Vec<String>, "Operations with a wrong result";
    RUN_NCCL_BUSBW "run.nccl.busbw" BTreeMap<String, String>, "Bus bandwidth (busbw) of each operation at its largest size, in GB/s";
    RUN_NCCL_ALL_REDUCE "run.nccl.all_reduce_mb_s" i64, "Bus bandwidth of all_reduce at the largest size of at least 64 MiB, in MB/s";
    RUN_NCCL_SLOW "run.nccl.slow" Vec<String>, "Operations below 90 % of the bandwidth that sound hosts with these GPUs and links reach, at their largest size";
    RUN_NCCL_PERCENT "run.nccl.percent_of_sound" i64, "The lowest bandwidth of an operation as a percentage of what sound hosts with these GPUs and links reach";
    RUN_CPU_WAIT "run.cpu_wait_percent" i64, "Percentage of the time of the measurements in which a rank waited for a CPU, of the rank that waited most";
    RUN_SLOWED_BY_VARIABLES "run.slowed_by" Vec<String>, "Variables of the run without which all_reduce is faster, by more than noise and a tenth";
    RUN_SLOWED_PERCENT "run.slowed_percent" i64, "Speed of all_reduce with these variables as a percentage of the speed without them";
    RUN_NCCL_INIT "run.nccl.first_call_ms" i64, "Time from the rendezvous to the end of the first collective, in milliseconds";
    RUN_NCCL_PAIR "run.nccl.first_sendrecv_ms" i64, "Time of the first call between two ranks without a warm-up, in milliseconds";
    RUN_FORCED_ERROR "run.network.error" String, "Why the network-only run failed";
    RUN_FORCED_TRANSPORTS "run.network.transports" Vec<String>, "Transports of the network-only run";
    RUN_FORCED_MB_S "run.network.all_reduce_mb_s" i64, "Bus bandwidth of all_reduce in the network-only run, in MB/s";
    RUN_ISOLATED "run.isolated" Vec<ArrangementResult>, "Runs with one container per GPU, by arrangement; the first record has all GPUs in one container: arrangement, transports, gb_s (of all_reduce), percent (of the first), error";
    RUN_EXPECTED "run.expected" bool, "True when --expect gives the expected results of the run";
    RUN_REFERENCE "run.has_reference" bool, "True when --reference names the recording of a reference run";
    RUN_UNEXPECTED "run.unexpected" Vec<String>, "Facts that differ from the file of --expect";
    RUN_WORSE "run.worse_than_reference" Vec<String>, "Results that are slower than the recording of --reference, or that use other transports";
    CONTAINER_NAME "container.name" String, "The containers of the launch file that are judged, with file and line; all facts of a container are absent without a launch file that starts one";
    CONTAINER_STARTER "container.starter" String, "What starts the container: docker, compose, kubernetes, service (SkyPilot, dstack, Determined), or scheduler (pyxis, Apptainer), which keeps the network, the memory and the devices of the host";
    CONTAINER_RUNS_TORCH "container.runs_torch" bool, "True when the image has PyTorch, or when a launcher in the command or a setting of NCCL or PyTorch shows that it does";
    CONTAINER_GPUS "container.gpus" i64, "Number of GPUs that the container gets, unless it gets all, or parts of GPUs";
    CONTAINER_SHM "container.shm_bytes" i64, "Size of the container's /dev/shm in bytes, 64 MiB unless the launch says otherwise; absent if it is that of the host, or as large as memory";
    CONTAINER_NETWORK "container.network" String, "Network of the container: host, bridge (the default of Docker and Podman, whose addresses only the host reaches), or own";
    CONTAINER_RDMA "container.rdma" Vec<String>, "What gives the container RDMA devices: a path, a resource of Kubernetes, privileged";
    CONTAINER_RDMA_NODES_FEW "container.rdma_nodes_few" Vec<String>, "A setting of more RDMA devices than the container gets single device nodes, with these nodes";
    CONTAINER_LOCKS_MEMORY "container.locks_memory" bool, "True when nothing bounds the memory that the container locks: the capability IPC_LOCK, an unlimited memlock, privileged, or the limits of the host";
    CONTAINER_MEMORY "container.memory_bytes" i64, "Most memory of the container, in bytes";
    CONTAINER_CPUS "container.cpus" i64, "Most CPUs of the container, rounded up";
    CONTAINER_CPU_SET "container.cpu_set" Vec<String>, "The CPUs of the container, as the kernel lists them, such as 0-15";
    CONTAINER_NUMA_NODES "container.numa_nodes" Vec<String>, "The NUMA nodes that the launch names, as the kernel lists them, such as 0-1: for the memory of the container, and of the program by numactl and srun";
    CONTAINER_CAPABILITIES "container.capabilities" Vec<String>, "Linux capabilities that the launch adds, such as SYS_NICE";
    CONTAINER_SECURITY "container.security" Vec<String>, "Profiles and options of seccomp, AppArmor and SELinux that the launch gives the container";
    CONTAINER_RUNTIME "container.runtime" Vec<String>, "The OCI runtime of the container, or its runtime class in Kubernetes";
    CONTAINER_HOST_NAME "container.host_name" Vec<String>, "Host name that the launch gives the container";
    CONTAINER_DIRECTORY "container.directory" Vec<String>, "Working directory that the launch gives the container";
    CONTAINER_HUGE_PAGES "container.huge_pages" Vec<String>, "Huge pages of the container, as SIZE: AMOUNT";
    CONTAINER_CLAIMS "container.claims" Vec<String>, "Claims of devices of the container in Kubernetes, such as those of GPUs or of IMEX channels";
    CONTAINER_MOUNTS "container.mounts" Vec<String>, "What the container mounts over the image, as SOURCE:TARGET";
    CONTAINER_RANKS "container.ranks" i64, "Number of processes that the launcher in the container's command starts on a node, if an option says it";
    CONTAINER_NODES "container.nodes" i64, "Number of nodes that the launcher is told, or number of copies of the container that the file starts";
    CONTAINER_UNMATCHED_NAMES "container.unmatched_names" Vec<String>, "Settings of interfaces that leave none of a container's own network, whose only interface is eth0";
    CONTAINER_OTHER_IMAGES "container.other_images" Vec<String>, "Images of one repository of which the containers with GPUs take several tags";
    CONTAINER_HIDDEN "container.hidden" Vec<String>, "What mounts of the container hide: the folder, and the PyTorch or NCCL of the image that is in it";
    CONTAINER_COLLIDING_PORTS "container.colliding_ports" Vec<String>, "Options for a port that commands of several Compose services on the network of the host have in common, with the services";
    CONTAINER_NOT_PASSED "container.not_passed" Vec<String>, "Variables that a script exports and does not pass to the container that it starts";
    CONTAINER_LOCAL_ADDRESS "container.local_address" String, "MASTER_ADDR, if the launch says that it leads to the host itself: a loopback address, or the name of a Compose service. An address that a script or a cluster computes is taken for that of a node";
    CONTAINER_ABSENT_GPUS "container.absent_gpus" Vec<String>, "CUDA_VISIBLE_DEVICES, if its first index is that of a GPU which the container does not have";
    JOB_LINES "job.lines" i64, "Number of lines in the logs of the job; all facts of a job are absent without a log";
    JOB_FIRST "job.first" String, "The kind of the failure that is the likeliest cause, of job.causes";
    JOB_CAUSES "job.causes" BTreeMap<String, String>, "Failures that no other failure in the logs explains, by kind: the message, with the rank and the host that the logs give";
    JOB_SILENT_RANKS "job.silent_ranks" String, "Ranks without a reported timeout, although others waited in vain for a collective";
    JOB_CONSEQUENCES "job.consequences" BTreeMap<String, String>, "Failures that follow from those of job.causes, by kind";
    JOB_HOSTS "job.hosts" Vec<JobHost>, "Hosts of the job, as NCCL's lines show them: name, ranks, nccl (releases), cuda (the release it was built with), driver_cuda (the release that the driver supports), network, plugins, bootstrap and sockets (interfaces), devices (RDMA), gpu_direct (RDMA devices with GPUDirect RDMA), gids (index of the GID, and MTU, of connections), rails (indices of the devices that carry channels), settings (variables that NCCL found), transports (between ranks, and NVLS), init (seconds of the slowest communicator)";
    JOB_RELEASES "job.releases" Vec<String>, "Releases of NCCL in the logs, also in lines that name no host";
    JOB_SEVERAL_HOSTS "job.several_hosts" bool, "True when ranks of the job run on several hosts";
    JOB_RANKS "job.ranks" i64, "Number of ranks of the largest communicator";
    JOB_NODES "job.nodes" i64, "Number of hosts that NCCL counted";
    JOB_MISCOUNTED "job.miscounted_hosts" String, "Number of hosts that NCCL counted, if it is greater than the number of names that hosts have in the logs of all ranks";
    JOB_NETWORKS "job.networks" Vec<String>, "Networks that NCCL used: IB, Socket, a plugin";
    JOB_RDMA_MEANT "job.rdma_meant" Vec<String>, "What shows that the job was to use RDMA: a setting, a plugin, devices that NCCL found on a host";
    JOB_RDMA_REFUSED "job.rdma_refused" Vec<String>, "Why NCCL used no RDMA, in its words, by host";
    JOB_DIFFERENCES "job.differences" Vec<String>, "What differs between the hosts and must not: the release of NCCL, the network, settings that all ranks need";
    JOB_VIRTUAL_INTERFACES "job.virtual_interfaces" Vec<String>, "Interfaces that NCCL uses and that reach no other host: bridges and virtual interfaces by their name, link-local addresses";
    JOB_SHARED_ADDRESSES "job.shared_addresses" Vec<String>, "Addresses that several hosts announce as their own";
    JOB_GPU_DIRECT_OFF "job.gpu_direct_off" Vec<String>, "RDMA devices without GPUDirect RDMA, by host";
    JOB_THROUGH_MEMORY "job.through_memory" Vec<String>, "Pairs of ranks of one host that exchange data through host memory";
    JOB_IGNORED_SETTINGS "job.ignored_settings" Vec<String>, "Settings that NCCL found and does not use";
    JOB_UNMATCHED_NAMES "job.unmatched_names" Vec<String>, "Settings that name an interface or an RDMA device of which the recorded host has none: the setting, the host and what the host has";
    JOB_UNREAD_SETTINGS "job.unread_settings" Vec<String>, "Settings of the launch that no rank reports, although the ranks report those that they read and cannot do without reading these";
    JOB_UNSTARTED "job.unstarted" String, "Ranks of the largest communicator of which the logs have no start, although others started and none completed it";
    JOB_UNCOMPLETED "job.uncompleted" String, "Ranks that started the largest communicator and did not complete it";
    JOB_BUSBW "job.busbw" String, "Bus bandwidth that nccl-tests printed for the largest size";
    JOB_BUSBW_DROP "job.busbw_drop" String, "Where the bus bandwidth of nccl-tests falls to less than half of what a smaller size reached";
    JOB_WRONG_VALUES "job.wrong_values" String, "Wrong values that nccl-tests found, with the size";
    RUN_WHAT_IF "run.what_if" Vec<VariantResult>, "Effect of other variables: variables, size, ratio (of speed), differs (yes, no), error";
}
