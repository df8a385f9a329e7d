//! Vector instructions that copy, clear and combine bytes: C4.1.69, "Data Processing -- Scalar Floating-Point and Advanced
//! SIMD".

use super::super::error::ExecutionError;
use super::{Arm, ArmInstruction, not_understood};

type ArmVector = [u8; 16];

impl Arm {
    fn vector_of(&self, number: u32) -> ArmVector {
        usize::try_from(number).ok().and_then(|number| self.vector.get(number)).copied().unwrap_or_default()
    }

    /// Writes a vector. The short forms clear its upper half.
    fn set_vector(&mut self, word: ArmInstruction, mut value: ArmVector) {
        if !word.bit(30) {
            value.iter_mut().skip(8).for_each(|byte| *byte = 0);
        }
        self.set_whole(word.register(0), value);
    }

    fn set_whole(&mut self, number: u32, value: ArmVector) {
        if let Some(register) = usize::try_from(number).ok().and_then(|number| self.vector.get_mut(number)) {
            *register = value;
        }
    }

    pub(super) fn simd(&mut self, word: ArmInstruction) -> Result<(), ExecutionError> {
        let first = self.vector_of(word.register(5));
        let second = self.vector_of(word.register(16));
        if word.matches(0x9ff8_0400, 0x0f00_0400) {
            // MOVI, MVNI
            let value = constant(word).ok_or_else(|| not_understood(word))?;
            self.set_vector(word, joined(value, value));
        } else if word.matches(0xbfe0_fc00, 0x0ea0_1c00) {
            // ORR, which is MOV
            self.set_vector(word, each(first, second, |left, right| left | right));
        } else if word.matches(0xbfe0_fc00, 0x2e20_1c00) {
            // EOR
            self.set_vector(word, each(first, second, |left, right| left ^ right));
        } else if word.matches(0xffe0_fc00, 0x4ec0_3800) {
            // ZIP1 of 64-bit halves
            self.set_vector(word, joined(halves(first).0, halves(second).0));
        } else if word.matches(0xbfe0_fc00, 0x0e00_0c00) {
            // DUP of a general register
            let value = self.get(word.register(5));
            let value = match word.bits(16, 5).trailing_zeros() {
                0 => (value & 0xff).wrapping_mul(0x0101_0101_0101_0101),
                1 => (value & 0xffff).wrapping_mul(0x0001_0001_0001_0001),
                2 => (value & 0xffff_ffff).wrapping_mul(0x0000_0001_0000_0001),
                3 => value,
                _ => return Err(not_understood(word)),
            };
            self.set_vector(word, joined(value, value));
        } else if word.matches(0xffef_fc00, 0x4e08_1c00) {
            // INS of a general register to a 64-bit half
            let (low, high) = halves(self.vector_of(word.register(0)));
            let value = self.get(word.register(5));
            self.set_vector(word, if word.bit(20) { joined(low, value) } else { joined(value, high) });
        } else if word.matches(0xffef_fc00, 0x4e08_3c00) {
            // UMOV of a 64-bit half
            let (low, high) = halves(first);
            self.set(word.register(0), if word.bit(20) { high } else { low });
        } else {
            return self.scalar(word, first);
        }
        Ok(())
    }

    /// FMOV between register files.
    fn scalar(&mut self, word: ArmInstruction, first: ArmVector) -> Result<(), ExecutionError> {
        let (low, high) = halves(first);
        let number = self.get(word.register(5));
        let target = word.register(0);
        match word.0 & 0xffff_fc00 {
            // FMOV Wd, Sn; FMOV Xd, Dn; FMOV Xd, Vn.D[1]
            0x1e26_0000 => self.set(target, low & 0xffff_ffff),
            0x9e66_0000 => self.set(target, low),
            0x9eae_0000 => self.set(target, high),
            // FMOV Sd, Wn; FMOV Dd, Xn; FMOV Vd.D[1], Xn
            0x1e27_0000 => self.set_whole(target, joined(number & 0xffff_ffff, 0)),
            0x9e67_0000 => self.set_whole(target, joined(number, 0)),
            0x9eaf_0000 => {
                let kept = halves(self.vector_of(target)).0;
                self.set_whole(target, joined(kept, number));
            }
            // FMOV Sd, Sn; FMOV Dd, Dn
            0x1e20_4000 => self.set_whole(target, joined(low & 0xffff_ffff, 0)),
            0x1e60_4000 => self.set_whole(target, joined(low, 0)),
            _ => return Err(not_understood(word)),
        }
        Ok(())
    }
}

/// `AdvSIMDExpandImm` (J1.1.3), without the forms for floating-point numbers and trailing ones.
fn constant(word: ArmInstruction) -> Option<u64> {
    let byte = u64::from(word.bits(16, 3) << 5 | word.bits(5, 5));
    let mode = word.bits(12, 4);
    let inverted = word.bit(29);
    let value = match mode {
        0b0000 | 0b0010 | 0b0100 | 0b0110 => (byte << (mode * 4)).wrapping_mul(0x0000_0001_0000_0001),
        0b1000 | 0b1010 => (byte << ((mode & 2) * 4)).wrapping_mul(0x0001_0001_0001_0001),
        0b1110 if inverted => {
            // Each bit expands to a byte of ones.
            return Some((0..8).filter(|bit| byte >> bit & 1 == 1).fold(0, |value, bit| value | 0xff << (bit * 8)));
        }
        0b1110 => byte.wrapping_mul(0x0101_0101_0101_0101),
        _ => return None,
    };
    Some(if inverted { !value } else { value })
}

fn each(left: ArmVector, right: ArmVector, change: impl Fn(u8, u8) -> u8) -> ArmVector {
    let mut result = left;
    result.iter_mut().zip(right).for_each(|(byte, other)| *byte = change(*byte, other));
    result
}

fn halves(vector: ArmVector) -> (u64, u64) {
    let number = u128::from_le_bytes(vector);
    let part = |number: u128| u64::try_from(number & u128::from(u64::MAX)).unwrap_or_default();
    (part(number), part(number >> 64))
}

fn joined(low: u64, high: u64) -> ArmVector {
    (u128::from(low) | u128::from(high) << 64).to_le_bytes()
}
