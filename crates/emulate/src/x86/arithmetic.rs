//! Integer instructions, and the flags that they set.

use iced_x86::{ConditionCode, Instruction, Mnemonic, OpKind};

use super::super::error::ExecutionError;
use super::super::memory::Memory;
use super::{X86, cut, extend, not_understood};

/// The flags that conditions test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct X86Flags {
    carry: bool,
    zero: bool,
    sign: bool,
    overflow: bool,
    parity: bool,
}

impl X86Flags {
    /// Sets the flags of every result: zero, sign, parity.
    fn of(result: u64, size: usize) -> Self {
        let [low, ..] = result.to_le_bytes();
        Self {
            zero: cut(result, size) == 0,
            sign: is_negative(result, size),
            parity: low.count_ones().is_multiple_of(2),
            ..Self::default()
        }
    }

    /// Returns true if a condition holds (SDM volume 1, appendix B).
    pub(super) const fn meet(self, condition: ConditionCode) -> bool {
        match condition {
            ConditionCode::None => true,
            ConditionCode::o => self.overflow,
            ConditionCode::no => !self.overflow,
            ConditionCode::b => self.carry,
            ConditionCode::ae => !self.carry,
            ConditionCode::e => self.zero,
            ConditionCode::ne => !self.zero,
            ConditionCode::be => self.carry || self.zero,
            ConditionCode::a => !self.carry && !self.zero,
            ConditionCode::s => self.sign,
            ConditionCode::ns => !self.sign,
            ConditionCode::p => self.parity,
            ConditionCode::np => !self.parity,
            ConditionCode::l => self.sign != self.overflow,
            ConditionCode::ge => self.sign == self.overflow,
            ConditionCode::le => self.zero || self.sign != self.overflow,
            ConditionCode::g => !self.zero && self.sign == self.overflow,
        }
    }
}

const fn is_negative(value: u64, size: usize) -> bool {
    extend(value, size).cast_signed() < 0
}

/// `left + right + carry`.
fn add(left: u64, right: u64, carry: bool, size: usize) -> (u64, X86Flags) {
    let wide = u128::from(cut(left, size)) + u128::from(cut(right, size)) + u128::from(carry);
    let result = cut(left.wrapping_add(right).wrapping_add(u64::from(carry)), size);
    let overflow = is_negative((left ^ result) & (right ^ result), size);
    (result, X86Flags { carry: wide != u128::from(result), overflow, ..X86Flags::of(result, size) })
}

/// `left - right - borrow`.
fn subtract(left: u64, right: u64, borrow: bool, size: usize) -> (u64, X86Flags) {
    let left = cut(left, size);
    let right = cut(right, size);
    let result = cut(left.wrapping_sub(right).wrapping_sub(u64::from(borrow)), size);
    let overflow = is_negative((left ^ right) & (left ^ result), size);
    let carry = u128::from(left) < u128::from(right) + u128::from(borrow);
    (result, X86Flags { carry, overflow, ..X86Flags::of(result, size) })
}

pub(super) const fn is_known(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::Add
            | Mnemonic::Adc
            | Mnemonic::Sub
            | Mnemonic::Sbb
            | Mnemonic::Cmp
            | Mnemonic::And
            | Mnemonic::Test
            | Mnemonic::Or
            | Mnemonic::Xor
            | Mnemonic::Not
            | Mnemonic::Neg
            | Mnemonic::Inc
            | Mnemonic::Dec
            | Mnemonic::Shl
            | Mnemonic::Shr
            | Mnemonic::Sar
            | Mnemonic::Imul
            | Mnemonic::Xadd
            | Mnemonic::Bt
            | Mnemonic::Bswap
    )
}

impl X86 {
    pub(super) fn calculate(
        &mut self,
        instruction: &Instruction,
        memory: &mut Memory<'_>,
    ) -> Result<(), ExecutionError> {
        let size = Self::size(instruction, 0);
        let left = self.read(instruction, 0, memory)?;
        let right = if instruction.op_count() > 1 { self.read(instruction, 1, memory)? } else { 1 };
        let carry = self.flags.carry;
        let (result, flags) = match instruction.mnemonic() {
            Mnemonic::Add => add(left, right, false, size),
            Mnemonic::Adc => add(left, right, carry, size),
            Mnemonic::Sub => subtract(left, right, false, size),
            Mnemonic::Sbb => subtract(left, right, carry, size),
            Mnemonic::Cmp => {
                self.flags = subtract(left, right, false, size).1;
                return Ok(());
            }
            Mnemonic::Test => {
                self.flags = X86Flags::of(left & right, size);
                return Ok(());
            }
            Mnemonic::And => (left & right, X86Flags::of(left & right, size)),
            Mnemonic::Or => (left | right, X86Flags::of(left | right, size)),
            Mnemonic::Xor => (left ^ right, X86Flags::of(left ^ right, size)),
            Mnemonic::Not => (!left, self.flags),
            Mnemonic::Neg => subtract(0, left, false, size),
            // These two do not change the carry.
            Mnemonic::Inc => keep(carry, add(left, 1, false, size)),
            Mnemonic::Dec => keep(carry, subtract(left, 1, false, size)),
            Mnemonic::Shl | Mnemonic::Shr | Mnemonic::Sar => self.shift(instruction, left, right, size),
            Mnemonic::Imul => return self.multiply(instruction, memory),
            Mnemonic::Xadd => {
                let (sum, flags) = add(left, right, false, size);
                self.set(instruction.op1_register(), left);
                (sum, flags)
            }
            // A bit number in a register may select a bit far from the operand in memory.
            Mnemonic::Bt if instruction.op0_kind() == OpKind::Memory && instruction.op1_kind() == OpKind::Register => {
                return Err(not_understood(instruction));
            }
            Mnemonic::Bt => {
                let bits = size as u64 * 8;
                self.flags.carry = left >> (right % bits) & 1 == 1;
                return Ok(());
            }
            Mnemonic::Bswap => (left.swap_bytes() >> (64 - size * 8), self.flags),
            _ => return Err(not_understood(instruction)),
        };
        self.flags = flags;
        self.write(instruction, result, memory)
    }

    fn shift(&self, instruction: &Instruction, value: u64, by: u64, size: usize) -> (u64, X86Flags) {
        let by = by & if size == 8 { 63 } else { 31 };
        if by == 0 {
            return (value, self.flags);
        }
        let bits = size as u64 * 8;
        let (result, carry) = match instruction.mnemonic() {
            Mnemonic::Shl => (value << by, by <= bits && value >> (bits - by) & 1 == 1),
            Mnemonic::Shr => (value >> by, value >> (by - 1) & 1 == 1),
            _ => {
                let value = extend(value, size).cast_signed();
                ((value >> by).cast_unsigned(), value >> (by - 1) & 1 == 1)
            }
        };
        let result = cut(result, size);
        (result, X86Flags { carry, overflow: is_negative(value ^ result, size), ..X86Flags::of(result, size) })
    }

    /// IMUL with two and three operands.
    fn multiply(&mut self, instruction: &Instruction, memory: &mut Memory<'_>) -> Result<(), ExecutionError> {
        let count = instruction.op_count();
        if count < 2 || !instruction.op_register(0).is_gpr() {
            return Err(not_understood(instruction));
        }
        let size = Self::size(instruction, 0);
        let left = extend(self.read(instruction, count - 2, memory)?, size).cast_signed();
        let right = extend(self.read(instruction, count - 1, memory)?, size).cast_signed();
        let wide = i128::from(left) * i128::from(right);
        let result = cut(left.wrapping_mul(right).cast_unsigned(), size);
        let lossy = wide != i128::from(extend(result, size).cast_signed());
        self.flags = X86Flags { carry: lossy, overflow: lossy, ..X86Flags::of(result, size) };
        self.set(instruction.op0_register(), result);
        Ok(())
    }
}

/// The flags with another carry.
const fn keep(carry: bool, (result, flags): (u64, X86Flags)) -> (u64, X86Flags) {
    (result, X86Flags { carry, ..flags })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_those_of_the_manual() {
        for (left, right, size, result, carry, overflow) in [
            (1, 1, 8, 0, false, false),
            (0, 1, 4, 0xffff_ffff, true, false),
            (0x80, 1, 1, 0x7f, false, true),
            (0x7fff_ffff_ffff_ffff, u64::MAX, 8, 0x8000_0000_0000_0000, true, true),
        ] {
            let (found, flags) = subtract(left, right, false, size);
            assert_eq!((found, flags.carry, flags.overflow), (result, carry, overflow), "{left:x} - {right:x}");
        }
        for (left, right, size, result, carry, overflow) in [
            (1, 1, 8, 2, false, false),
            (u64::MAX, 1, 8, 0, true, false),
            (0x7f, 1, 1, 0x80, false, true),
            (0x8000, 0x8000, 2, 0, true, true),
        ] {
            let (found, flags) = add(left, right, false, size);
            assert_eq!((found, flags.carry, flags.overflow), (result, carry, overflow), "{left:x} + {right:x}");
        }
    }
}
