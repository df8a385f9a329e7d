//! Facts whose value is one of a fixed set of words.

use serde::{Deserialize, Serialize};

use model::Value;

use super::value::{FactType, Type};

/// Declares an enumeration of words.
macro_rules! words {
    ($(#[doc = $about:literal])+ $kind:ident { $($(#[doc = $meaning:literal])+ $variant:ident = $name:literal,)+ }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $kind {
            $($(#[doc = $meaning])+ #[serde(rename = $name)] $variant,)+
        }

        impl $kind {
            /// The word, as users write it, and rules and JSON use it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Returns the variant with this name.
            pub fn parse(text: &str) -> Option<Self> {
                [$(Self::$variant),+].into_iter().find(|word| word.name() == text)
            }
        }

        impl FactType for $kind {
            const TYPE: Type = Type::Text;
            const WORDS: &'static [&'static str] = &[$($name),+];

            fn to_value(&self) -> Value {
                Value::Text(self.name().to_owned())
            }

            fn from_value(value: Value) -> Option<Self> {
                Self::parse(&<String as FactType>::from_value(value)?)
            }
        }
    };
}

words! {
    /// What is wrong with a library for which another one cannot be loaded.
    LibraryFault {
        /// A layer removed it.
        Removed = "removed",
        /// It comes before a copy that has what it lacks.
        Shadows = "shadows",
        /// It needs a version of a library that the image does not have.
        AsksTooMuch = "asks-too-much",
    }
}

words! {
    /// Linkage of NCCL in libtorch_cuda.
    Linkage {
        /// It needs libnccl.so.2.
        Shared = "shared",
        /// It defines NCCL's functions itself.
        Static = "static",
        /// It neither defines nor imports them.
        None = "none",
    }
}

words! {
    /// GPU support of a library, from worst to best.
    GpuSupport {
        /// No code.
        None = "none",
        /// PTX that is too new for the driver to compile.
        NewPtx = "new-ptx",
        /// PTX that the driver compiles.
        Ptx = "ptx",
        /// Machine code.
        Cubin = "cubin",
    }
}

words! {
    /// Origins of libibverbs.
    RdmaOrigin {
        /// The distribution's packages.
        RdmaCore = "rdma-core",
        /// NVIDIA's driver package.
        MlnxOfed = "MLNX_OFED",
    }
}

words! {
    /// Access of an RDMA device to GPU memory.
    GpuDirect {
        /// Through DMA-BUF.
        DmaBuf = "dma-buf",
        /// Through nvidia_peermem.
        Peermem = "peermem",
        /// Not at all.
        None = "none",
    }
}

words! {
    /// Programs that install torch.
    Installer {
        /// pip, from wheels.
        Pip = "pip",
        /// uv, from wheels.
        Uv = "uv",
        /// conda, mamba or pixi, from conda packages.
        Conda = "conda",
        /// apt, from Debian packages.
        Apt = "apt",
    }
}

words! {
    /// Market segment of a GPU. CUDA forward compatibility supports data-centre GPUs (CUDA Compatibility, "Forward
    /// Compatibility").
    Class {
        /// Data centres.
        DataCenter = "datacenter",
        /// Workstations.
        Workstation = "workstation",
        /// Consumer graphics (GeForce).
        Consumer = "consumer",
    }
}

words! {
    /// Interconnect of the GPUs of a host.
    Fabric {
        /// NVLink through NVSwitch, all to all.
        NvSwitch = "nvswitch",
        /// PCI Express alone.
        Pcie = "pcie",
    }
}

words! {
    /// NICs for RDMA, by their user-space provider.
    Nic {
        /// NVIDIA ConnectX and BlueField.
        Mlx5 = "mlx5",
        /// AWS Elastic Fabric Adapter.
        Efa = "efa",
        /// No RDMA NIC.
        Nothing = "none",
    }
}

words! {
    /// Flavours of the kernel module of NVIDIA's driver.
    Flavour {
        /// The open kernel module, the only one that shares memory through DMA-BUF.
        Open = "open",
        /// The proprietary kernel module.
        Proprietary = "proprietary",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all<T: FactType>() {
        for word in T::WORDS {
            let value = Value::from(*word);
            assert_eq!(T::from_value(value.clone()).map(|read| read.to_value()), Some(value));
        }
        assert_eq!(T::from_value(Value::from("another")), None);
    }

    #[test]
    fn words_are_read_by_their_names_alone() {
        all::<Linkage>();
        all::<GpuSupport>();
        all::<RdmaOrigin>();
        all::<GpuDirect>();
        all::<Installer>();
        all::<Class>();
        all::<Fabric>();
        all::<Nic>();
        all::<Flavour>();
    }
}
