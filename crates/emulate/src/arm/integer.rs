//! Integer instructions: C4.1.65, "Data Processing -- Immediate", and C4.1.68, "Data Processing -- Register".

use super::super::error::ExecutionError;
use super::{Arm, ArmInstruction, cut, extend, not_understood};

/// The flags N, Z, C, V.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ArmFlags {
    negative: bool,
    zero: bool,
    carry: bool,
    overflow: bool,
}

impl ArmFlags {
    /// Returns true if a condition holds (C1.2.4, "Condition code").
    pub(super) const fn meet(self, condition: u32) -> bool {
        let holds = match condition >> 1 {
            0 => self.zero,
            1 => self.carry,
            2 => self.negative,
            3 => self.overflow,
            4 => self.carry && !self.zero,
            5 => self.negative == self.overflow,
            6 => self.negative == self.overflow && !self.zero,
            _ => return true,
        };
        holds != (condition & 1 == 1)
    }

    /// Flags from the four bits of a field.
    const fn of_bits(bits: u32) -> Self {
        Self { negative: bits & 8 != 0, zero: bits & 4 != 0, carry: bits & 2 != 0, overflow: bits & 1 != 0 }
    }

    /// Flags of a result without carry and overflow.
    const fn of(result: u64, bits: u32) -> Self {
        Self { negative: is_negative(result, bits), zero: cut(result, bits) == 0, carry: false, overflow: false }
    }
}

const fn is_negative(value: u64, bits: u32) -> bool {
    extend(value, bits).cast_signed() < 0
}

/// `left + right + carry`. A difference is a sum with the complement.
fn add(left: u64, right: u64, carry: bool, bits: u32) -> (u64, ArmFlags) {
    let left = cut(left, bits);
    let right = cut(right, bits);
    let wide = u128::from(left) + u128::from(right) + u128::from(carry);
    let result = cut(left.wrapping_add(right).wrapping_add(u64::from(carry)), bits);
    let overflow = is_negative((left ^ result) & (right ^ result), bits);
    (result, ArmFlags { carry: wide != u128::from(result), overflow, ..ArmFlags::of(result, bits) })
}

/// LSL, LSR, ASR, ROR by less than the width.
fn shift(kind: u32, value: u64, by: u32, bits: u32) -> u64 {
    let value = cut(value, bits);
    if by == 0 {
        return value;
    }
    let shifted = match kind {
        0 => value << by,
        1 => value >> by,
        2 => (extend(value, bits).cast_signed() >> by).cast_unsigned(),
        _ => value >> by | value << (bits - by),
    };
    cut(shifted, bits)
}

/// `DecodeBitMasks` (J1.1.3): a run of ones, rotated and repeated. `None` if the fields are reserved.
fn bit_mask(word: ArmInstruction, bits: u32) -> Option<u64> {
    let n = word.bits(22, 1);
    let rotate = word.bits(16, 6);
    let ones = word.bits(10, 6);
    let length = (n << 6 | (!ones & 0x3f)).checked_ilog2().filter(|length| *length > 0)?;
    let size = 1 << length;
    if size > bits {
        return None;
    }
    let ones = ones & (size - 1);
    let rotate = rotate & (size - 1);
    if ones == size - 1 {
        return None;
    }
    let mut mask = shift(3, cut(u64::MAX, ones + 1), rotate, size);
    let mut width = size;
    while width < bits {
        mask |= mask << width;
        width *= 2;
    }
    Some(mask)
}

impl Arm {
    const fn width(word: ArmInstruction) -> u32 {
        if word.bit(31) { 64 } else { 32 }
    }

    pub(super) fn immediate(&mut self, word: ArmInstruction, here: u64) -> Result<(), ExecutionError> {
        let bits = Self::width(word);
        let target = word.register(0);
        let source = word.register(5);
        match word.bits(23, 3) {
            // ADR, ADRP
            0b000 | 0b001 => {
                let offset = extend(u64::from(word.bits(5, 19) << 2 | word.bits(29, 2)), 21);
                let address =
                    if word.bit(31) { (here & !0xfff).wrapping_add(offset << 12) } else { here.wrapping_add(offset) };
                self.set(target, address);
            }
            // ADD, SUB
            0b010 => {
                let number = u64::from(word.bits(10, 12)) << if word.bit(22) { 12 } else { 0 };
                let left = self.get_or_sp(source);
                self.sum(word, left, number, true);
            }
            // AND, ORR, EOR, ANDS
            0b100 => {
                let mask = bit_mask(word, bits).ok_or_else(|| not_understood(word))?;
                let result = self.logic(word.bits(29, 2), self.get(source), mask, bits);
                if word.bits(29, 2) == 3 {
                    self.set(target, result);
                } else {
                    self.set_or_sp(target, result);
                }
            }
            // MOVN, MOVZ, MOVK
            0b101 => {
                let place = word.bits(21, 2) * 16;
                let number = u64::from(word.bits(5, 16)) << place;
                let value = match word.bits(29, 2) {
                    0 => !number,
                    2 => number,
                    3 => self.get(target) & !(0xffff << place) | number,
                    _ => return Err(not_understood(word)),
                };
                self.set(target, cut(value, bits));
            }
            // SBFM, BFM, UBFM
            0b110 => self.bit_field(word)?,
            // EXTR
            0b111 => {
                let low = cut(self.get(word.register(16)), bits);
                let by = word.bits(10, 6) % bits;
                let high = self.get(source);
                let value = if by == 0 { low } else { low >> by | high << (bits - by) };
                self.set(target, cut(value, bits));
            }
            _ => return Err(not_understood(word)),
        }
        Ok(())
    }

    fn bit_field(&mut self, word: ArmInstruction) -> Result<(), ExecutionError> {
        let bits = Self::width(word);
        let rotate = word.bits(16, 6);
        let last = word.bits(10, 6);
        if rotate >= bits || last >= bits {
            return Err(not_understood(word));
        }
        let target = word.register(0);
        let source = cut(self.get(word.register(5)), bits);
        // Either extracts the field from the source, or inserts it at a position.
        let (field, length, place) =
            if last >= rotate { (source >> rotate, last - rotate + 1, 0) } else { (source, last + 1, bits - rotate) };
        let field = cut(field, length);
        let value = match word.bits(29, 2) {
            0 => extend(field, length) << place,
            1 => self.get(target) & !(cut(u64::MAX, length) << place) | field << place,
            2 => field << place,
            _ => return Err(not_understood(word)),
        };
        self.set(target, cut(value, bits));
        Ok(())
    }

    /// ADD, ADDS, SUB, SUBS. Without flags, and if the operand is not a plain register, the target may be the stack pointer.
    fn sum(&mut self, word: ArmInstruction, left: u64, right: u64, may_be_sp: bool) {
        let bits = Self::width(word);
        let (result, flags) = if word.bit(30) { add(left, !right, true, bits) } else { add(left, right, false, bits) };
        let has_flags = word.bit(29);
        if has_flags {
            self.flags = flags;
        }
        if may_be_sp && !has_flags {
            self.set_or_sp(word.register(0), result);
        } else {
            self.set(word.register(0), result);
        }
    }

    /// AND, ORR, EOR, ANDS. Only ANDS sets the flags.
    fn logic(&mut self, kind: u32, left: u64, right: u64, bits: u32) -> u64 {
        let result = match kind {
            1 => left | right,
            2 => left ^ right,
            _ => left & right,
        };
        if kind == 3 {
            self.flags = ArmFlags::of(result, bits);
        }
        cut(result, bits)
    }

    pub(super) fn registers(&mut self, word: ArmInstruction) -> Result<(), ExecutionError> {
        let bits = Self::width(word);
        let target = word.register(0);
        let first = word.register(5);
        let second = word.register(16);
        let left = self.get(first);
        let right = self.get(second);
        if word.matches(0x1f00_0000, 0x0a00_0000) {
            // AND, BIC, ORR, ORN, EOR, EON, ANDS, BICS of a shifted register
            let right = shift(word.bits(22, 2), right, word.bits(10, 6) % bits, bits);
            let right = if word.bit(21) { !right } else { right };
            let result = self.logic(word.bits(29, 2), left, right, bits);
            self.set(target, result);
        } else if word.matches(0x1f20_0000, 0x0b00_0000) {
            // ADD, SUB of a shifted register
            let right = shift(word.bits(22, 2), right, word.bits(10, 6) % bits, bits);
            self.sum(word, left, right, false);
        } else if word.matches(0x1fe0_0000, 0x0b20_0000) {
            // ADD, SUB of an extended register
            let right = extended(word.bits(13, 3), right) << word.bits(10, 3);
            let left = self.get_or_sp(first);
            self.sum(word, left, right, true);
        } else if word.matches(0x1fe0_fc00, 0x1a00_0000) {
            // ADC, SBC
            let right = if word.bit(30) { !right } else { right };
            let (result, flags) = add(left, right, self.flags.carry, bits);
            if word.bit(29) {
                self.flags = flags;
            }
            self.set(target, result);
        } else if word.matches(0x3fe0_0410, 0x3a40_0000) {
            // CCMP, CCMN
            let right = if word.bit(11) { u64::from(second) } else { right };
            self.flags = match (self.flags.meet(word.bits(12, 4)), word.bit(30)) {
                (false, _) => ArmFlags::of_bits(word.bits(0, 4)),
                (true, true) => add(left, !right, true, bits).1,
                (true, false) => add(left, right, false, bits).1,
            };
        } else if word.matches(0x3fe0_0800, 0x1a80_0000) {
            // CSEL, CSINC, CSINV, CSNEG
            let other = match (word.bit(30), word.bit(10)) {
                (false, false) => right,
                (false, true) => right.wrapping_add(1),
                (true, false) => !right,
                (true, true) => right.wrapping_neg(),
            };
            let value = if self.flags.meet(word.bits(12, 4)) { left } else { other };
            self.set(target, cut(value, bits));
        } else if word.matches(0x1f00_0000, 0x1b00_0000) {
            self.multiply(word, left, right)?;
        } else if word.matches(0x7fe0_0000, 0x1ac0_0000) {
            let value = two_sources(word.bits(10, 6), left, right, bits).ok_or_else(|| not_understood(word))?;
            self.set(target, cut(value, bits));
        } else if word.matches(0x7fff_0000, 0x5ac0_0000) {
            let value = one_source(word.bits(10, 6), cut(left, bits), bits).ok_or_else(|| not_understood(word))?;
            self.set(target, value);
        } else {
            return Err(not_understood(word));
        }
        Ok(())
    }

    /// MADD, MSUB, and their widening forms from 32 to 64 bits.
    fn multiply(&mut self, word: ArmInstruction, left: u64, right: u64) -> Result<(), ExecutionError> {
        let bits = Self::width(word);
        let product = match word.bits(21, 3) {
            0 => left.wrapping_mul(right),
            1 => extend(left, 32).wrapping_mul(extend(right, 32)),
            5 => cut(left, 32).wrapping_mul(cut(right, 32)),
            _ => return Err(not_understood(word)),
        };
        let addend = self.get(word.register(10));
        let value = if word.bit(15) { addend.wrapping_sub(product) } else { addend.wrapping_add(product) };
        self.set(word.register(0), cut(value, bits));
        Ok(())
    }
}

/// UXTB to SXTX: a register's low part, zero- or sign-extended.
pub(super) const fn extended(option: u32, value: u64) -> u64 {
    let bits = 8 << (option & 3);
    if option & 4 == 0 { cut(value, bits) } else { extend(value, bits) }
}

fn two_sources(kind: u32, left: u64, right: u64, bits: u32) -> Option<u64> {
    let by = u32::try_from(right % u64::from(bits)).unwrap_or_default();
    match kind {
        // UDIV: division by zero gives zero
        2 => Some(cut(left, bits).checked_div(cut(right, bits)).unwrap_or_default()),
        8..=11 => Some(shift(kind - 8, left, by, bits)),
        _ => None,
    }
}

fn one_source(kind: u32, value: u64, bits: u32) -> Option<u64> {
    match kind {
        // RBIT
        0 => Some(value.reverse_bits() >> (64 - bits)),
        // REV of the whole register
        2 if bits == 32 => Some(value.swap_bytes() >> 32),
        3 if bits == 64 => Some(value.swap_bytes()),
        // CLZ
        4 => Some(u64::from(value.leading_zeros() - (64 - bits))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_and_flags_are_those_of_the_manual() {
        // The assembler's encodings: and x0, x0, #0xff; #0xfffffffffffffff8; #0x5555555555555555; and w0, w0, #1
        for (word, mask) in [
            (0x9240_1c00, 0xff),
            (0x927d_f000, 0xffff_ffff_ffff_fff8),
            (0x9200_f000, 0x5555_5555_5555_5555),
            (0x1200_0000, 1),
        ] {
            assert_eq!(bit_mask(ArmInstruction(word), Arm::width(ArmInstruction(word))), Some(mask), "{word:x}");
        }
        let (result, flags) = add(1, !2, true, 64);
        assert_eq!((result, flags.carry, flags.negative, flags.overflow), (u64::MAX, false, true, false));
        let (result, flags) = add(0x7fff_ffff, 1, false, 32);
        assert_eq!((result, flags.carry, flags.negative, flags.overflow), (0x8000_0000, false, true, true));
        assert_eq!(extended(0b110, 0xffff_fffe), u64::MAX - 1);
    }
}
