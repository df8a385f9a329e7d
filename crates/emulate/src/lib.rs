//! Calls one function of an ELF library for x86-64 or AArch64 without loading the library: decodes and executes its instructions
//! one by one, on separate memory.
//!
//! [`ElfImage`] opens the file and finds functions, [`call`] calls one of them, and [`Returned`] has its value, and the memory that
//! a returned reference points to.
//!
//! A call returns the value that the process would return, or an [`EmulationError`]: an unknown instruction, imported function or
//! address ends it, and so do too many steps. The emulator never guesses.
//!
//! # Example
//!
//! ```
//! use emulate::{ElfImage, call};
//!
//! #[unsafe(no_mangle)]
//! extern "C" fn forty_two() -> u64 {
//!     42
//! }
//!
//! # forty_two();
//! let file = std::fs::File::open(std::env::current_exe()?)?;
//! let image = ElfImage::open(&file)?;
//! let entry = image.function("forty_two")?.ok_or("there is no such function")?;
//! assert_eq!(call(&image, entry)?.value(), 42);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod arm;
mod elf_image;
mod error;
mod libstdcxx_map;
mod libstdcxx_string;
mod memory;
mod runtime;
mod x86;

pub use elf_image::{ElfImage, ReadAt};
pub use error::{ElfError, EmulationError, ExecutionError};
pub use libstdcxx_string::StringAbi;

use std::collections::BTreeMap;
use std::fmt;

use elf_image::Machine;
use memory::{Memory, RETURN};

/// Maximum number of instructions of one call. `GetBuildOptions()` of torch 2.9.0 takes 12,408; unoptimised code takes about six
/// times as many.
const MOST_STEPS: u32 = 1_000_000;

/// The register arguments of a call.
type Arguments = [u64; 6];

/// A processor.
trait Cpu {
    /// Prepares a call of `entry` that returns to [`RETURN`].
    fn enter(&mut self, entry: u64, memory: &mut Memory<'_>) -> Result<(), ExecutionError>;
    /// The address of the next instruction.
    fn at(&self) -> u64;
    /// Executes one instruction.
    fn step(&mut self, memory: &mut Memory<'_>) -> Result<(), ExecutionError>;
    /// The register arguments of the function that was just entered.
    fn arguments(&self) -> Arguments;
    /// Returns from that function with a result.
    fn leave(&mut self, result: u64, memory: &mut Memory<'_>) -> Result<(), ExecutionError>;
    /// The result of the outermost function.
    fn result(&self) -> u64;
}

/// Result of a call that returned.
pub struct Returned<'a> {
    /// The result register: a number or a pointer.
    value: u64,
    /// The memory after the call.
    memory: Memory<'a>,
}

impl fmt::Debug for Returned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Returned").field("value", &self.value).finish_non_exhaustive()
    }
}

impl Returned<'_> {
    /// The returned number or pointer: the whole result register. The calling conventions leave the bits above a narrower
    /// type undefined.
    pub const fn value(&self) -> u64 {
        self.value
    }

    /// The entries of the `std::map<std::string, std::string>` to which the call returned a reference.
    ///
    /// # Errors
    ///
    /// There is no such map at the returned address. If the function returns another type, this error is very likely but not
    /// certain.
    pub fn map(&mut self, abi: StringAbi) -> Result<BTreeMap<String, String>, ExecutionError> {
        libstdcxx_map::read(self.value, abi, &mut self.memory)
    }
}

/// Calls the function at an address, without arguments.
///
/// # Errors
///
/// The emulation stopped early: [`ExecutionError`] lists the causes, including the limits.
pub fn call<'a>(image: &'a ElfImage<'a>, entry: u64) -> Result<Returned<'a>, EmulationError> {
    let mut memory = Memory::new(image);
    let mut cpu: Box<dyn Cpu> = match image.machine {
        Machine::X86 => Box::new(x86::X86::default()),
        Machine::Arm => Box::new(arm::Arm::default()),
    };
    let lost = |address: u64| move |cause: ExecutionError| EmulationError { address, cause };
    cpu.enter(entry, &mut memory).map_err(lost(entry))?;
    // The address of an imported function is meaningless, so errors have the caller's address.
    let mut caller = entry;
    for _ in 0..MOST_STEPS {
        let at = cpu.at();
        if at == RETURN {
            return Ok(Returned { value: cpu.result(), memory });
        }
        if let Some(name) = memory.import(at).map_err(lost(caller))? {
            let result = runtime::call(&name, &cpu.arguments(), &mut memory).map_err(lost(caller))?;
            cpu.leave(result, &mut memory).map_err(lost(caller))?;
        } else {
            cpu.step(&mut memory).map_err(lost(at))?;
            caller = at;
        }
    }
    Err(EmulationError { address: cpu.at(), cause: ExecutionError::TooManySteps(MOST_STEPS) })
}

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
