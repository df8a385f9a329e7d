//! Records: elements of list facts, with string fields, each of which may be missing.

use model::Value;

use super::value::{FactType, ListItem, Type};

/// Declares a record. Rules and JSON use the names of its fields.
macro_rules! record {
    ($(#[doc = $about:literal])+ $kind:ident { $($(#[doc = $meaning:literal])+ $field:ident,)+ }) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $kind {
            $($(#[doc = $meaning])+ pub $field: Option<String>,)+
        }

        impl ListItem for $kind {
            const LIST: Type = Type::Records(&[$(stringify!($field)),+]);
        }

        impl FactType for $kind {
            const TYPE: Type = Type::Map;

            fn to_value(&self) -> Value {
                let fields = [$((stringify!($field), &self.$field)),+];
                let said = fields.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?)));
                Value::Map(said.map(|(name, text)| (name.to_owned(), Value::Text(text.clone()))).collect())
            }

            fn from_value(value: Value) -> Option<Self> {
                let Value::Map(entries) = value else { return None };
                let mut record = Self::default();
                for (name, entry) in entries {
                    let Value::Text(text) = entry else { return None };
                    match name.as_str() {
                        $(stringify!($field) => record.$field = Some(text),)+
                        _ => return None,
                    }
                }
                Some(record)
            }
        }
    };
}

record! {
    /// A file that holds NCCL's code.
    NcclCopy {
        /// The file.
        path,
        /// Its release.
        version,
        /// The CUDA release that it was built with.
        cuda,
        /// Its DT_SONAME.
        soname,
        /// The package that owns it.
        owner,
    }
}

record! {
    /// A plugin of NCCL.
    NcclPlugin {
        /// The file.
        path,
        /// Its interfaces.
        exports,
        /// The interfaces in `exports` that NCCL looks for.
        accepted,
        /// The variables through which NCCL opens it.
        opened,
        /// The libfabric that it needs.
        libfabric,
        /// The package that owns it.
        owner,
    }
}

record! {
    /// A variable and its value.
    VariableSetting {
        /// The variable.
        name,
        /// Its value.
        value,
        /// The place where it is set.
        source,
        /// The library that reads it.
        family,
        /// The state of the name for that library.
        state,
        /// The effect of the variable.
        meaning,
        /// The default value.
        default,
        /// The source of this information.
        read_in,
        /// First release that reads it.
        since,
        /// Last release that reads it.
        until,
        /// The problem of the setting.
        problem,
    }
}

record! {
    /// A forward-compatibility package of CUDA.
    CompatPackage {
        /// Path of its libcuda.
        path,
        /// The driver that it was built with.
        driver,
        /// Its CUDA release, from its ELF note.
        cuda,
        /// Driver branches that it accepts, from its ELF note.
        branches,
    }
}

record! {
    /// A shared library.
    LibraryFile {
        /// The file.
        path,
        /// Its DT_SONAME.
        soname,
        /// The package that owns it.
        owner,
    }
}

record! {
    /// A failed step of a probe.
    FailedStep {
        /// The step.
        step,
        /// The way it failed.
        how,
        /// Its message.
        message,
    }
}

record! {
    /// A step of a probe that could not run.
    SkippedStep {
        /// The step.
        step,
        /// The reason.
        why,
    }
}

record! {
    /// An RDMA device that a container sees and cannot open.
    ClosedDevice {
        /// The device.
        device,
        /// The kind of reason.
        cause,
        /// The reason.
        why,
    }
}

record! {
    /// An arrangement of containers, and its results.
    ArrangementResult {
        /// The arrangement.
        arrangement,
        /// Transports between its ranks.
        transports,
        /// Bus bandwidth of all_reduce in GB/s.
        gb_s,
        /// Bandwidth as a percentage of the first arrangement's.
        percent,
        /// Why it failed.
        error,
    }
}

record! {
    /// A set of variables, and its result at one size.
    VariantResult {
        /// The variables.
        variables,
        /// Size in bytes.
        size,
        /// Speed relative to the run without them.
        ratio,
        /// Yes when it differs by more than noise, else no.
        differs,
        /// Why it failed.
        error,
    }
}

record! {
    /// A host of a job, as its log shows it.
    JobHost {
        /// The host, as NCCL names it.
        name,
        /// Its ranks in the largest communicator.
        ranks,
        /// Releases of NCCL.
        nccl,
        /// The CUDA release that NCCL was built with.
        cuda,
        /// The CUDA release that the driver supports.
        driver_cuda,
        /// The network that NCCL used.
        network,
        /// Plugins that NCCL loaded.
        plugins,
        /// The interface of the bootstrap, with its address.
        bootstrap,
        /// Interfaces of the socket transport.
        sockets,
        /// RDMA devices.
        devices,
        /// RDMA devices with GPUDirect RDMA.
        gpu_direct,
        /// Index of the GID, and MTU, of RDMA connections.
        gids,
        /// Devices of the network that carry channels, by their index.
        rails,
        /// NCCL's variables that its processes found.
        settings,
        /// Transports between ranks.
        transports,
        /// Seconds of the start of the slowest communicator, with its parts.
        init,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn record(entries: &[(&str, Value)]) -> Value {
        Value::Map(entries.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect::<BTreeMap<_, _>>())
    }

    #[test]
    fn fields_that_are_missing_stay_out_of_the_form() {
        let value = record(&[("path", Value::from("/lib/libnccl.so.2")), ("version", Value::from("2.27.5"))]);
        let copy = NcclCopy::from_value(value.clone()).unwrap();
        assert_eq!((copy.version.as_deref(), copy.owner.as_deref()), (Some("2.27.5"), None));
        assert_eq!(copy.to_value(), value);
    }

    #[test]
    fn other_names_and_values_that_are_no_texts_are_refused() {
        assert_eq!(SkippedStep::from_value(record(&[("path", Value::from("/lib"))])), None);
        assert_eq!(SkippedStep::from_value(record(&[("why", Value::Int(1))])), None);
        assert_eq!(SkippedStep::from_value(Value::from("why")), None);
    }
}
