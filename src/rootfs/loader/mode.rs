//! How a library is opened (dlopen(3)).

/// Flags of a dlopen call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DlopenMode {
    /// `RTLD_GLOBAL`: objects that are opened later find the symbols too.
    pub is_global: bool,
    /// `RTLD_LAZY`: functions are bound when they are first called.
    pub is_lazy: bool,
}

impl DlopenMode {
    /// `RTLD_NOW | RTLD_LOCAL`, as Python opens extension modules and NCCL its plugins.
    pub const NOW: Self = Self { is_global: false, is_lazy: false };
    /// `RTLD_NOW | RTLD_GLOBAL`.
    pub const GLOBAL: Self = Self { is_global: true, ..Self::NOW };
    /// `RTLD_LAZY | RTLD_LOCAL`.
    pub const LAZY: Self = Self { is_lazy: true, ..Self::NOW };
}
