//! Runs one function of a library, without its process: decoded instruction by instruction, on memory of its own. What a
//! function returns is what this returns, or there is no answer: an instruction, a call or an address that is not
//! understood ends the run, and so do too many steps.

mod arm;
mod image;
mod memory;
mod runtime;
mod strings;
mod tree;
mod x86;

pub use image::{Image, ReadAt};
pub use strings::Abi;

use std::collections::BTreeMap;
use std::fmt;

use image::Machine;
use memory::{Memory, RETURN};

/// Instructions of one run. `GetBuildOptions()` of torch 2.9.0 takes 12,408; unoptimised code, some six times as many.
const MOST_STEPS: u32 = 1_000_000;

/// A processor.
trait Cpu {
    /// Sets out to call `entry`, to come back to [`RETURN`].
    fn enter(&mut self, entry: u64, memory: &mut Memory<'_>) -> Result<(), String>;
    /// The address of the next instruction.
    fn at(&self) -> u64;
    /// One instruction.
    fn step(&mut self, memory: &mut Memory<'_>) -> Result<(), String>;
    /// The first arguments of the function that was just entered.
    fn arguments(&self) -> runtime::Arguments;
    /// Comes back from it with a result.
    fn leave(&mut self, result: u64, memory: &mut Memory<'_>) -> Result<(), String>;
    /// What the outermost function returned.
    fn result(&self) -> u64;
}

/// A call that was run to its end.
pub struct Returned<'a> {
    /// A number or a pointer.
    value: u64,
    /// The memory that it left.
    memory: Memory<'a>,
}

impl fmt::Debug for Returned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Returned").field("value", &self.value).finish_non_exhaustive()
    }
}

impl Returned<'_> {
    /// The entries of the `std::map<std::string, std::string>` to which it returned a reference.
    pub fn map(&mut self, abi: Abi) -> Result<BTreeMap<String, String>, String> {
        tree::read(self.value, abi, &mut self.memory)
    }
}

/// A call whose thread was lost.
#[derive(Debug)]
pub struct Lost {
    /// The instruction at which.
    pub at: u64,
    /// What was not understood there.
    pub why: String,
}

/// Calls the function at an address without arguments.
pub fn call<'a>(image: &'a Image<'a>, entry: u64) -> Result<Returned<'a>, Lost> {
    let mut memory = Memory::new(image);
    let mut cpu: Box<dyn Cpu> = match image.machine {
        Machine::X86 => Box::new(x86::X86::default()),
        Machine::Arm => Box::new(arm::Arm::default()),
    };
    let lost = |at: u64| move |why: String| Lost { at, why };
    cpu.enter(entry, &mut memory).map_err(lost(entry))?;
    // An import is told by who called it: where it stands itself means nothing to anybody.
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
    Err(Lost { at: cpu.at(), why: format!("it does not return within {MOST_STEPS} instructions") })
}
