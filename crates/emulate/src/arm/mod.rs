//! AArch64: the instructions that compilers generate for constructors, strings and maps (Arm ARM, chapter C4, "A64 Instruction
//! Set Encoding", whose tables the modules follow). Every instruction is one word with fixed fields, so the modules decode and
//! execute it in one step.

mod integer;
mod transfer;
mod vector;

use super::Arguments;
use super::Cpu;
use super::error::ExecutionError;
use super::memory::{Memory, RETURN, STACK, THREAD};

use integer::ArmFlags;

/// Registers and flags.
#[derive(Default)]
pub(super) struct Arm {
    /// X0 to X30.
    general: [u64; 31],
    sp: u64,
    vector: [[u8; 16]; 32],
    flags: ArmFlags,
    pc: u64,
}

/// An instruction.
#[derive(Clone, Copy)]
struct ArmInstruction(u32);

impl ArmInstruction {
    /// `length` bits from bit `from` on.
    const fn bits(self, from: u32, length: u32) -> u32 {
        self.0 >> from & ((1 << length) - 1)
    }

    const fn bit(self, at: u32) -> bool {
        self.0 >> at & 1 == 1
    }

    /// `length` bits from bit `from` on, as a signed number, times `scale`.
    fn signed(self, from: u32, length: u32, scale: u64) -> u64 {
        extend(u64::from(self.bits(from, length)), length).wrapping_mul(scale)
    }

    /// The register in a field of five bits.
    const fn register(self, from: u32) -> u32 {
        self.bits(from, 5)
    }

    const fn matches(self, mask: u32, value: u32) -> bool {
        self.0 & mask == value
    }
}

/// Sign-extends a number of `bits` bits.
const fn extend(value: u64, bits: u32) -> u64 {
    if bits == 0 || bits >= 64 { value } else { ((value << (64 - bits)).cast_signed() >> (64 - bits)).cast_unsigned() }
}

/// Truncates a number to `bits` bits.
const fn cut(value: u64, bits: u32) -> u64 {
    if bits >= 64 { value } else { value & ((1 << bits) - 1) }
}

fn not_understood(word: ArmInstruction) -> ExecutionError {
    ExecutionError::UnknownInstruction(format!("{:#010x}", word.0))
}

impl Cpu for Arm {
    fn enter(&mut self, entry: u64, _: &mut Memory<'_>) -> Result<(), ExecutionError> {
        self.pc = entry;
        self.sp = STACK;
        self.set(LINK, RETURN);
        Ok(())
    }

    fn at(&self) -> u64 {
        self.pc
    }

    fn step(&mut self, memory: &mut Memory<'_>) -> Result<(), ExecutionError> {
        let word = u32::try_from(memory.load(self.pc, 4)?)?;
        let here = self.pc;
        self.pc = here.wrapping_add(4);
        let word = ArmInstruction(word);
        match word.bits(25, 4) {
            0b1000 | 0b1001 => self.immediate(word, here),
            0b1010 | 0b1011 => self.branch(word, here),
            0b0100 | 0b0110 | 0b1100 | 0b1110 => self.transfer(word, here, memory),
            0b0101 | 0b1101 => self.registers(word),
            0b0111 | 0b1111 => self.simd(word),
            _ => Err(not_understood(word)),
        }
    }

    fn arguments(&self) -> Arguments {
        [0, 1, 2, 3, 4, 5].map(|number| self.get(number))
    }

    fn leave(&mut self, result: u64, _: &mut Memory<'_>) -> Result<(), ExecutionError> {
        self.set(0, result);
        self.pc = self.get(LINK);
        Ok(())
    }

    fn result(&self) -> u64 {
        self.get(0)
    }
}

/// X30, the link register, holds the return address of a call.
const LINK: u32 = 30;

impl Arm {
    /// The value of a register. The one after X30 is always zero.
    fn get(&self, number: u32) -> u64 {
        usize::try_from(number).ok().and_then(|number| self.general.get(number)).copied().unwrap_or_default()
    }

    /// Writes a register. Writes to the one after X30 are ignored.
    fn set(&mut self, number: u32, value: u64) {
        if let Some(register) = usize::try_from(number).ok().and_then(|number| self.general.get_mut(number)) {
            *register = value;
        }
    }

    /// The value of a register, with the stack pointer after X30.
    fn get_or_sp(&self, number: u32) -> u64 {
        if number == 31 { self.sp } else { self.get(number) }
    }

    fn set_or_sp(&mut self, number: u32, value: u64) {
        if number == 31 {
            self.sp = value;
        } else {
            self.set(number, value);
        }
    }

    /// C4.1.66, "Branches, Exception Generating and System instructions".
    fn branch(&mut self, word: ArmInstruction, here: u64) -> Result<(), ExecutionError> {
        let next = self.pc;
        if word.matches(0x7c00_0000, 0x1400_0000) {
            // B, BL
            self.pc = here.wrapping_add(word.signed(0, 26, 4));
            if word.bit(31) {
                self.set(LINK, next);
            }
        } else if word.matches(0x7e00_0000, 0x3400_0000) {
            // CBZ, CBNZ
            let value = cut(self.get(word.register(0)), if word.bit(31) { 64 } else { 32 });
            if (value == 0) != word.bit(24) {
                self.pc = here.wrapping_add(word.signed(5, 19, 4));
            }
        } else if word.matches(0x7e00_0000, 0x3600_0000) {
            // TBZ, TBNZ
            let bit = word.bits(31, 1) << 5 | word.bits(19, 5);
            if (self.get(word.register(0)) >> bit & 1 == 1) == word.bit(24) {
                self.pc = here.wrapping_add(word.signed(5, 14, 4));
            }
        } else if word.matches(0xff00_0010, 0x5400_0000) {
            // B.cond
            if self.flags.meet(word.bits(0, 4)) {
                self.pc = here.wrapping_add(word.signed(5, 19, 4));
            }
        } else if word.matches(0xff9f_fc1f, 0xd61f_0000) {
            // BR, BLR, RET
            self.pc = self.get(word.register(5));
            if word.bits(21, 2) == 1 {
                self.set(LINK, next);
            }
        } else if word.matches(0xffff_fbff, 0xd65f_0bff) {
            // RETAA, RETAB
            self.pc = self.get(LINK);
        } else if word.matches(0xffff_ffe0, 0xd53b_d040) {
            // MRS Xt, TPIDR_EL0
            self.set(word.register(0), THREAD);
        } else if !word.matches(0xffff_f01f, 0xd503_201f) && !word.matches(0xffff_f000, 0xd503_3000) {
            // Not a hint (NOP, BTI, PACIASP) or a barrier.
            return Err(not_understood(word));
        }
        Ok(())
    }
}
