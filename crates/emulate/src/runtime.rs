//! Models of functions of the C and C++ runtimes that the initialiser of a static map needs. Each behaves as its standard requires.
//! A function without a model is an error.

use super::error::ExecutionError;
use super::libstdcxx_string::sign;
use super::memory::{LARGEST_BLOCK, Memory};
use super::{Arguments, libstdcxx_map, libstdcxx_string};

/// Calls an imported function. Returns its result, or the reason why it cannot be emulated.
pub(super) fn call(name: &str, arguments: &Arguments, memory: &mut Memory<'_>) -> Result<u64, ExecutionError> {
    let &[first, second, third, ..] = arguments;
    // C++ names are mangled by the Itanium ABI; comments have the demangled names.
    match name {
        // operator new(size_t), operator new[](size_t)
        "_Znwm" | "_Znam" | "malloc" => memory.allocate(first),
        // Functions without a needed effect: constructors and destructors of allocators, operator delete in all its forms
        "free" | "__cxa_guard_abort" | "_ZNSaIcEC1Ev" | "_ZNSaIcEC2Ev" | "_ZNSaIcED1Ev" | "_ZNSaIcED2Ev" => Ok(first),
        _ if name.starts_with("_ZdlPv") || name.starts_with("_ZdaPv") => Ok(0),
        // Itanium C++ ABI 3.3.3, "Once-time initialization API": the first byte of the guard is set after the initialization.
        "__cxa_guard_acquire" => Ok(u64::from(memory.load(first, 1)? == 0)),
        "__cxa_guard_release" => memory.store(first, 1, 1).map(|()| 0),
        "__cxa_atexit" => Ok(0),
        "memcpy" | "memmove" | "__memcpy_chk" | "__memmove_chk" => {
            let bytes = memory.block(second, third)?;
            memory.write(first, &bytes).map(|()| first)
        }
        "memset" | "__memset_chk" => {
            if third > LARGEST_BLOCK {
                return Err(ExecutionError::Excess(format!("it sets {third} bytes of memory")));
            }
            let [byte, ..] = second.to_le_bytes();
            memory.write(first, &vec![byte; usize::try_from(third)?]).map(|()| first)
        }
        "memcmp" | "bcmp" => {
            let left = memory.block(first, third)?;
            let right = memory.block(second, third)?;
            Ok(sign(left.cmp(&right)))
        }
        "strlen" => Ok(memory.c_string(first)?.len() as u64),
        "strcmp" => {
            let left = memory.c_string(first)?;
            let right = memory.c_string(second)?;
            Ok(sign(left.cmp(&right)))
        }
        _ => match libstdcxx_string::call(name, arguments, memory)? {
            Some(result) => Ok(result),
            None => libstdcxx_map::call(name, arguments, memory)?
                .ok_or_else(|| ExecutionError::UnknownImport(name.to_owned())),
        },
    }
}
