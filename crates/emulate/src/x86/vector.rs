//! Vector instructions that copy, clear and combine bytes.

use iced_x86::{EncodingKind, Instruction, Mnemonic, OpKind, Register};

use super::super::error::ExecutionError;
use super::super::memory::Memory;
use super::{X86, not_understood};

type X86Vector = [u8; 32];

impl X86 {
    pub(super) fn vector(&mut self, instruction: &Instruction, memory: &mut Memory<'_>) -> Result<(), ExecutionError> {
        let is_vex = instruction.encoding() != EncodingKind::Legacy;
        // Masks preserve elements, and broadcasts repeat one.
        if instruction.op_mask() != Register::None || instruction.is_broadcast() {
            return Err(not_understood(instruction));
        }
        match instruction.mnemonic() {
            Mnemonic::Movdqa
            | Mnemonic::Movdqu
            | Mnemonic::Movaps
            | Mnemonic::Movups
            | Mnemonic::Movapd
            | Mnemonic::Movupd
            | Mnemonic::Lddqu
            | Mnemonic::Vmovdqa
            | Mnemonic::Vmovdqu
            | Mnemonic::Vmovaps
            | Mnemonic::Vmovups
            | Mnemonic::Vmovapd
            | Mnemonic::Vmovupd => {
                let size = Self::size(instruction, 0).max(Self::size(instruction, 1));
                let value = self.operand(instruction, 1, size, memory)?;
                self.put(instruction, &value, size, is_vex, memory)
            }
            // Moves between registers of either kind clear the rest of the vector.
            Mnemonic::Movq | Mnemonic::Vmovq | Mnemonic::Movd | Mnemonic::Vmovd => {
                let size = if matches!(instruction.mnemonic(), Mnemonic::Movq | Mnemonic::Vmovq) { 8 } else { 4 };
                let value = self.operand(instruction, 1, size, memory)?;
                if is_vector(instruction.op0_register()) && instruction.op0_kind() == OpKind::Register {
                    return self.put(instruction, &value, 16, is_vex, memory);
                }
                self.write(instruction, low(&value), memory)
            }
            Mnemonic::Movhps | Mnemonic::Movhpd => self.half(instruction, 8, memory),
            Mnemonic::Movlps | Mnemonic::Movlpd => self.half(instruction, 0, memory),
            Mnemonic::Pxor
            | Mnemonic::Xorps
            | Mnemonic::Xorpd
            | Mnemonic::Vpxor
            | Mnemonic::Vxorps
            | Mnemonic::Vxorpd => {
                let size = Self::size(instruction, 0);
                let count = instruction.op_count();
                let left = self.operand(instruction, count - 2, size, memory)?;
                let right = self.operand(instruction, count - 1, size, memory)?;
                let mut result = left;
                result.iter_mut().zip(right).for_each(|(byte, other)| *byte ^= other);
                self.put(instruction, &result, size, is_vex, memory)
            }
            // Combines the low halves.
            Mnemonic::Punpcklqdq | Mnemonic::Vpunpcklqdq => {
                let count = instruction.op_count();
                let left = self.operand(instruction, count - 2, 16, memory)?;
                let right = self.operand(instruction, count - 1, 16, memory)?;
                self.put(instruction, &joined(low(&left), low(&right)), 16, is_vex, memory)
            }
            Mnemonic::Pinsrq | Mnemonic::Vpinsrq => {
                let count = instruction.op_count();
                let vector = self.operand(instruction, count - 3, 16, memory)?;
                let value = self.read(instruction, count - 2, memory)?;
                let first = low(&vector);
                let second = high(&vector);
                let is_high = instruction.immediate8() & 1 == 1;
                let result = if is_high { joined(first, value) } else { joined(value, second) };
                self.put(instruction, &result, 16, is_vex, memory)
            }
            Mnemonic::Vzeroupper => {
                self.vector.iter_mut().flat_map(|vector| vector.iter_mut().skip(16)).for_each(|byte| *byte = 0);
                Ok(())
            }
            _ => Err(not_understood(instruction)),
        }
    }

    /// The first `size` bytes of an operand.
    fn operand(
        &self,
        instruction: &Instruction,
        operand: u32,
        size: usize,
        memory: &mut Memory<'_>,
    ) -> Result<X86Vector, ExecutionError> {
        let mut value = [0; 32];
        let part = value.get_mut(..size).ok_or_else(|| not_understood(instruction))?;
        match instruction.op_kind(operand) {
            OpKind::Register if is_vector(instruction.op_register(operand)) => {
                let register = self.vector.get(instruction.op_register(operand).number());
                let bytes = register.and_then(|bytes| bytes.get(..size)).ok_or_else(|| not_understood(instruction))?;
                part.copy_from_slice(bytes);
            }
            OpKind::Memory => memory.read(self.address(instruction, operand)?, part)?,
            _ => {
                let number = self.read(instruction, operand, memory)?.to_le_bytes();
                part.copy_from_slice(number.get(..size).ok_or_else(|| not_understood(instruction))?);
            }
        }
        Ok(value)
    }

    /// Writes `size` bytes to the first operand. VEX forms clear the rest of a register.
    fn put(
        &mut self,
        instruction: &Instruction,
        value: &X86Vector,
        size: usize,
        is_vex: bool,
        memory: &mut Memory<'_>,
    ) -> Result<(), ExecutionError> {
        let bytes = value.get(..size).ok_or_else(|| not_understood(instruction))?;
        if instruction.op0_kind() == OpKind::Memory {
            return memory.write(self.address(instruction, 0)?, bytes);
        }
        let register = instruction.op0_register();
        let target = self.vector.get_mut(register.number()).filter(|_| is_vector(register));
        let target = target.ok_or_else(|| not_understood(instruction))?;
        if is_vex {
            target.fill(0);
        }
        target.get_mut(..size).ok_or(ExecutionError::OutOfBounds)?.copy_from_slice(bytes);
        Ok(())
    }

    /// Moves eight bytes between memory and a half of a vector.
    fn half(&mut self, instruction: &Instruction, at: usize, memory: &mut Memory<'_>) -> Result<(), ExecutionError> {
        let (from_memory, register) = match (instruction.op0_kind(), instruction.op1_kind()) {
            (OpKind::Register, OpKind::Memory) => (true, instruction.op0_register()),
            (OpKind::Memory, OpKind::Register) => (false, instruction.op1_register()),
            _ => return Err(not_understood(instruction)),
        };
        let address = self.address(instruction, u32::from(from_memory))?;
        let vector = self.vector.get_mut(register.number()).and_then(|vector| vector.get_mut(at..at + 8));
        let half = vector.ok_or_else(|| not_understood(instruction))?;
        if from_memory { memory.read(address, half) } else { memory.write(address, half) }
    }
}

fn is_vector(register: Register) -> bool {
    register.is_xmm() || register.is_ymm()
}

fn low(vector: &X86Vector) -> u64 {
    vector.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn high(vector: &X86Vector) -> u64 {
    vector.get(8..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// A vector of two halves, with zeros above.
fn joined(first: u64, second: u64) -> X86Vector {
    let mut vector = [0; 32];
    for (place, byte) in vector.iter_mut().zip(first.to_le_bytes().into_iter().chain(second.to_le_bytes())) {
        *place = byte;
    }
    vector
}
