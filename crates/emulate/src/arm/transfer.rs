//! Transfers between registers and memory: C4.1.67, "Loads and Stores".

use super::super::error::ExecutionError;
use super::super::memory::Memory;
use super::integer::extended;
use super::{Arm, ArmInstruction, cut, extend, not_understood};

/// A transfer between one register and memory.
#[derive(Clone, Copy)]
struct Transfer {
    register: u32,
    /// True for a vector register.
    is_vector: bool,
    bytes: u32,
    is_load: bool,
    /// Bits to which the value is sign-extended; 0 without sign extension.
    signed: u32,
}

impl Arm {
    pub(super) fn transfer(
        &mut self,
        word: ArmInstruction,
        here: u64,
        memory: &mut Memory<'_>,
    ) -> Result<(), ExecutionError> {
        if word.matches(0x3a00_0000, 0x2800_0000) {
            self.pair(word, memory)
        } else if word.matches(0x3b00_0000, 0x1800_0000) {
            self.literal(word, here, memory)
        } else if word.matches(0x3f00_0000, 0x0800_0000) {
            self.exclusive(word, memory)
        } else if word.matches(0x3a00_0000, 0x3800_0000) {
            self.single(word, memory)
        } else {
            Err(not_understood(word))
        }
    }

    fn base(&self, word: ArmInstruction) -> u64 {
        self.get_or_sp(word.register(5))
    }

    /// LDP, STP, LDPSW: with an offset, or pre- or post-indexed.
    fn pair(&mut self, word: ArmInstruction, memory: &mut Memory<'_>) -> Result<(), ExecutionError> {
        let is_vector = word.bit(26);
        let is_load = word.bit(22);
        let (bytes, signed) = match (is_vector, word.bits(30, 2)) {
            (true, size @ 0..=2) => (4 << size, 0),
            (false, 0) => (4, 0),
            (false, 1) if is_load => (4, 64),
            (false, 2) => (8, 0),
            _ => return Err(not_understood(word)),
        };
        let base = self.base(word);
        let moved = base.wrapping_add(word.signed(15, 7, u64::from(bytes)));
        let mode = word.bits(23, 2);
        let address = if mode == 1 { base } else { moved };
        let transfer = Transfer { register: word.register(0), is_vector, bytes, is_load, signed };
        self.move_register(transfer, address, memory)?;
        let second = Transfer { register: word.register(10), ..transfer };
        self.move_register(second, address.wrapping_add(u64::from(bytes)), memory)?;
        if mode & 1 == 1 {
            self.set_or_sp(word.register(5), moved);
        }
        Ok(())
    }

    /// LDR, LDRSW of an address relative to the instruction.
    fn literal(&mut self, word: ArmInstruction, here: u64, memory: &mut Memory<'_>) -> Result<(), ExecutionError> {
        let is_vector = word.bit(26);
        let (bytes, signed) = match (is_vector, word.bits(30, 2)) {
            (true, size @ 0..=2) => (4 << size, 0),
            (false, 0) => (4, 0),
            (false, 1) => (8, 0),
            (false, 2) => (4, 64),
            _ => return Err(not_understood(word)),
        };
        let transfer = Transfer { register: word.register(0), is_vector, bytes, is_load: true, signed };
        self.move_register(transfer, here.wrapping_add(word.signed(5, 19, 4)), memory)
    }

    /// LDR, STR and their variants, with an offset in the instruction or in a register.
    fn single(&mut self, word: ArmInstruction, memory: &mut Memory<'_>) -> Result<(), ExecutionError> {
        let is_offset = word.bit(24);
        let kind = word.bits(10, 2);
        if !is_offset && word.bit(21) && kind == 0 {
            return self.atomic(word, memory);
        }
        let Some(transfer) = single(word)? else { return Ok(()) };
        let base = self.base(word);
        let scale = u64::from(transfer.bytes);
        let (address, moved) = if is_offset {
            (base.wrapping_add(u64::from(word.bits(10, 12)) * scale), None)
        } else if word.bit(21) {
            if kind != 2 || !word.bit(14) {
                return Err(not_understood(word));
            }
            let by = if word.bit(12) { transfer.bytes.ilog2() } else { 0 };
            (base.wrapping_add(extended(word.bits(13, 3), self.get(word.register(16))) << by), None)
        } else {
            let moved = base.wrapping_add(word.signed(12, 9, 1));
            match kind {
                0 => (moved, None),
                1 => (base, Some(moved)),
                3 => (moved, Some(moved)),
                _ => return Err(not_understood(word)),
            }
        };
        self.move_register(transfer, address, memory)?;
        if let Some(moved) = moved {
            self.set_or_sp(word.register(5), moved);
        }
        Ok(())
    }

    /// LDADD, LDCLR, LDEOR, LDSET, SWP, LDAPR. Memory order does not matter, since there is only one thread.
    fn atomic(&mut self, word: ArmInstruction, memory: &mut Memory<'_>) -> Result<(), ExecutionError> {
        let size = 1 << word.bits(30, 2);
        let address = self.base(word);
        let value = self.get(word.register(16));
        let old = memory.load(address, size)?;
        let new = match (word.bit(26), word.bits(12, 4)) {
            (false, 0b0000) => old.wrapping_add(value),
            (false, 0b0001) => old & !value,
            (false, 0b0010) => old ^ value,
            (false, 0b0011) => old | value,
            (false, 0b1000) => value,
            (false, 0b1100) => old,
            _ => return Err(not_understood(word)),
        };
        memory.store(address, size, new)?;
        self.set(word.register(0), old);
        Ok(())
    }

    /// LDAR, STLR, LDXR, STXR, CAS and their forms.
    fn exclusive(&mut self, word: ArmInstruction, memory: &mut Memory<'_>) -> Result<(), ExecutionError> {
        let size = 1 << word.bits(30, 2);
        let address = self.base(word);
        let target = word.register(0);
        let status = word.register(16);
        match (word.bit(23), word.bit(21), word.bit(22)) {
            (_, false, true) => {
                let value = memory.load(address, size)?;
                self.set(target, value);
            }
            (is_ordered, false, false) => {
                memory.store(address, size, self.get(target))?;
                if !is_ordered {
                    // The store succeeded.
                    self.set(status, 0);
                }
            }
            (true, true, _) => {
                let old = memory.load(address, size)?;
                let bits = word.bits(30, 2);
                if old == cut(self.get(status), 8 << bits) {
                    memory.store(address, size, self.get(target))?;
                }
                self.set(status, old);
            }
            _ => return Err(not_understood(word)),
        }
        Ok(())
    }

    fn move_register(
        &mut self,
        transfer: Transfer,
        address: u64,
        memory: &mut Memory<'_>,
    ) -> Result<(), ExecutionError> {
        let size = usize::try_from(transfer.bytes)?;
        if transfer.is_vector {
            let register =
                self.vector.get_mut(usize::try_from(transfer.register)?).ok_or(ExecutionError::OutOfBounds)?;
            if transfer.is_load {
                register.fill(0);
            }
            let part = register.get_mut(..size).ok_or(ExecutionError::OutOfBounds)?;
            return if transfer.is_load { memory.read(address, part) } else { memory.write(address, part) };
        }
        if transfer.is_load {
            let value = memory.load(address, size)?;
            let value =
                if transfer.signed > 0 { cut(extend(value, transfer.bytes * 8), transfer.signed) } else { value };
            self.set(transfer.register, value);
            Ok(())
        } else {
            memory.store(address, size, self.get(transfer.register))
        }
    }
}

/// Meaning of the fields `size`, `V` and `opc`; `None` for a prefetch.
fn single(word: ArmInstruction) -> Result<Option<Transfer>, ExecutionError> {
    let size = word.bits(30, 2);
    let kind = word.bits(22, 2);
    let transfer = Transfer {
        register: word.register(0),
        is_vector: word.bit(26),
        bytes: 1 << size,
        is_load: kind != 0,
        signed: 0,
    };
    Ok(Some(match (transfer.is_vector, size, kind) {
        (true, 0, 2 | 3) => Transfer { bytes: 16, is_load: kind == 3, ..transfer },
        (_, _, 0 | 1) => transfer,
        (false, 3, 2) => return Ok(None),
        (false, 0..=2, 2) => Transfer { signed: 64, ..transfer },
        (false, 0 | 1, 3) => Transfer { signed: 32, ..transfer },
        _ => return Err(not_understood(word)),
    }))
}
