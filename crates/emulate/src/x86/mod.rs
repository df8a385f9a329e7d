//! x86-64: the instructions that compilers generate for constructors, strings and maps (Intel SDM volume 2).

mod arithmetic;
mod vector;

use iced_x86::{Code, ConditionCode, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

use super::Arguments;
use super::Cpu;
use super::error::ExecutionError;
use super::memory::{LARGEST_BLOCK, Memory, RETURN, STACK, THREAD};

use arithmetic::X86Flags;

/// Bytes of the longest instruction.
const LONGEST: usize = 15;

/// Registers and flags.
#[derive(Default)]
pub(super) struct X86 {
    general: [u64; 16],
    vector: [[u8; 32]; 16],
    flags: X86Flags,
    ip: u64,
}

impl Cpu for X86 {
    fn enter(&mut self, entry: u64, memory: &mut Memory<'_>) -> Result<(), ExecutionError> {
        self.ip = entry;
        self.set(Register::RSP, STACK);
        self.push(RETURN, memory)
    }

    fn at(&self) -> u64 {
        self.ip
    }

    fn step(&mut self, memory: &mut Memory<'_>) -> Result<(), ExecutionError> {
        let code = memory.code(self.ip, LONGEST)?;
        let instruction = Decoder::with_ip(64, &code, self.ip, DecoderOptions::NONE).decode();
        if instruction.is_invalid() {
            return Err(ExecutionError::NoInstruction);
        }
        self.ip = instruction.next_ip();
        self.execute(&instruction, memory)
    }

    fn arguments(&self) -> Arguments {
        [Register::RDI, Register::RSI, Register::RDX, Register::RCX, Register::R8, Register::R9].map(|r| self.get(r))
    }

    fn leave(&mut self, result: u64, memory: &mut Memory<'_>) -> Result<(), ExecutionError> {
        self.set(Register::RAX, result);
        self.ip = self.pop(memory)?;
        Ok(())
    }

    fn result(&self) -> u64 {
        self.get(Register::RAX)
    }
}

/// Zero-extends the lowest `size` bytes.
const fn cut(value: u64, size: usize) -> u64 {
    match size {
        0 => 0,
        1..8 => value & ((1 << (size * 8)) - 1),
        _ => value,
    }
}

/// Sign-extends the lowest `size` bytes.
const fn extend(value: u64, size: usize) -> u64 {
    match size {
        0 => 0,
        1..8 => {
            let unused = 64 - size * 8;
            ((value << unused).cast_signed() >> unused).cast_unsigned()
        }
        _ => value,
    }
}

fn not_understood(instruction: &Instruction) -> ExecutionError {
    ExecutionError::UnknownInstruction(format!("{:?}", instruction.mnemonic()))
}

impl X86 {
    /// The value of a register, which callers have checked to be a general one.
    fn get(&self, register: Register) -> u64 {
        debug_assert!(register.is_gpr(), "{register:?}");
        let full = self.general.get(register.full_register().number()).copied().unwrap_or_default();
        let high = matches!(register, Register::AH | Register::BH | Register::CH | Register::DH);
        cut(if high { full >> 8 } else { full }, register.size())
    }

    fn set(&mut self, register: Register, value: u64) {
        debug_assert!(register.is_gpr(), "{register:?}");
        let high = matches!(register, Register::AH | Register::BH | Register::CH | Register::DH);
        let size = register.size();
        if let Some(full) = self.general.get_mut(register.full_register().number()) {
            *full = match size {
                // A write of 32 bits clears the upper half.
                4 | 8 => cut(value, size),
                _ if high => *full & !0xff00 | cut(value, 1) << 8,
                _ => *full & !cut(u64::MAX, size) | cut(value, size),
            };
        }
    }

    fn push(&mut self, value: u64, memory: &mut Memory<'_>) -> Result<(), ExecutionError> {
        let top = self.get(Register::RSP).wrapping_sub(8);
        self.set(Register::RSP, top);
        memory.store(top, 8, value)
    }

    fn pop(&mut self, memory: &mut Memory<'_>) -> Result<u64, ExecutionError> {
        let top = self.get(Register::RSP);
        self.set(Register::RSP, top.wrapping_add(8));
        memory.pointer(top)
    }

    fn address(&self, instruction: &Instruction, operand: u32) -> Result<u64, ExecutionError> {
        let value = |register: Register, _, _| match register {
            Register::FS | Register::GS => Some(THREAD),
            Register::CS | Register::DS | Register::ES | Register::SS => Some(0),
            register if register.is_gpr() => Some(self.get(register)),
            _ => None,
        };
        instruction.virtual_address(operand, 0, value).ok_or_else(|| not_understood(instruction))
    }

    /// Size of an operand in bytes.
    fn size(instruction: &Instruction, operand: u32) -> usize {
        match instruction.op_kind(operand) {
            OpKind::Register => instruction.op_register(operand).size(),
            _ => instruction.memory_size().size(),
        }
    }

    fn read(&self, instruction: &Instruction, operand: u32, memory: &mut Memory<'_>) -> Result<u64, ExecutionError> {
        match instruction.op_kind(operand) {
            OpKind::Register if instruction.op_register(operand).is_gpr() => {
                Ok(self.get(instruction.op_register(operand)))
            }
            OpKind::Memory => memory.load(self.address(instruction, operand)?, Self::size(instruction, operand)),
            OpKind::NearBranch64 => Ok(instruction.near_branch_target()),
            _ => instruction.try_immediate(operand).map_err(|_other| not_understood(instruction)),
        }
    }

    fn write(&mut self, instruction: &Instruction, value: u64, memory: &mut Memory<'_>) -> Result<(), ExecutionError> {
        match instruction.op0_kind() {
            OpKind::Register if instruction.op0_register().is_gpr() => {
                self.set(instruction.op0_register(), value);
                Ok(())
            }
            OpKind::Memory => memory.store(self.address(instruction, 0)?, Self::size(instruction, 0), value),
            _ => Err(not_understood(instruction)),
        }
    }

    fn execute(&mut self, instruction: &Instruction, memory: &mut Memory<'_>) -> Result<(), ExecutionError> {
        match instruction.mnemonic() {
            Mnemonic::Nop | Mnemonic::Endbr64 | Mnemonic::Prefetcht0 => Ok(()),
            Mnemonic::Mov | Mnemonic::Movzx => {
                let value = self.read(instruction, 1, memory)?;
                self.write(instruction, value, memory)
            }
            Mnemonic::Movsx | Mnemonic::Movsxd => {
                let value = extend(self.read(instruction, 1, memory)?, Self::size(instruction, 1));
                self.write(instruction, value, memory)
            }
            Mnemonic::Lea => {
                let address = self.address(instruction, 1)?;
                self.write(instruction, address, memory)
            }
            Mnemonic::Push | Mnemonic::Pop if Self::size(instruction, 0) == 2 => Err(not_understood(instruction)),
            Mnemonic::Push => {
                let value = self.read(instruction, 0, memory)?;
                self.push(value, memory)
            }
            Mnemonic::Pop => {
                let value = self.pop(memory)?;
                self.write(instruction, value, memory)
            }
            Mnemonic::Leave => {
                self.set(Register::RSP, self.get(Register::RBP));
                let frame = self.pop(memory)?;
                self.set(Register::RBP, frame);
                Ok(())
            }
            Mnemonic::Call => {
                let target = self.read(instruction, 0, memory)?;
                self.push(self.ip, memory)?;
                self.ip = target;
                Ok(())
            }
            Mnemonic::Jmp => {
                self.ip = self.read(instruction, 0, memory)?;
                Ok(())
            }
            Mnemonic::Ret if instruction.op_count() == 0 => {
                self.ip = self.pop(memory)?;
                Ok(())
            }
            Mnemonic::Cbw => {
                self.set(Register::AX, extend(self.get(Register::AL), 1));
                Ok(())
            }
            Mnemonic::Cwde => {
                self.set(Register::EAX, extend(self.get(Register::AX), 2));
                Ok(())
            }
            Mnemonic::Cdqe => {
                self.set(Register::RAX, extend(self.get(Register::EAX), 4));
                Ok(())
            }
            Mnemonic::Xchg => {
                let left = self.read(instruction, 0, memory)?;
                let right = self.read(instruction, 1, memory)?;
                self.write(instruction, right, memory)?;
                self.set(instruction.op1_register(), left);
                Ok(())
            }
            _ if instruction.condition_code() != ConditionCode::None => self.conditional(instruction, memory),
            _ if instruction.is_string_instruction() => self.string(instruction, memory),
            _ if arithmetic::is_known(instruction.mnemonic()) => self.calculate(instruction, memory),
            _ => self.vector(instruction, memory),
        }
    }

    /// Jcc, SETcc, CMOVcc.
    fn conditional(&mut self, instruction: &Instruction, memory: &mut Memory<'_>) -> Result<(), ExecutionError> {
        let holds = self.flags.meet(instruction.condition_code());
        if instruction.is_jcc_short_or_near() {
            if holds {
                self.ip = instruction.near_branch_target();
            }
            return Ok(());
        }
        if instruction.op_count() == 1 {
            return self.write(instruction, u64::from(holds), memory);
        }
        if instruction.op0_kind() != OpKind::Register || instruction.op_count() != 2 {
            return Err(not_understood(instruction));
        }
        // CMOVcc clears the upper half of a 32-bit target even if the condition does not hold.
        let value = self.read(instruction, u32::from(holds), memory)?;
        self.write(instruction, value, memory)
    }

    /// MOVS and STOS, repeated or not. The direction flag is clear at every call (psABI 3.2.1).
    fn string(&mut self, instruction: &Instruction, memory: &mut Memory<'_>) -> Result<(), ExecutionError> {
        let (size, is_move) = match instruction.code() {
            Code::Movsb_m8_m8 => (1, true),
            Code::Movsw_m16_m16 => (2, true),
            Code::Movsd_m32_m32 => (4, true),
            Code::Movsq_m64_m64 => (8, true),
            Code::Stosb_m8_AL => (1, false),
            Code::Stosw_m16_AX => (2, false),
            Code::Stosd_m32_EAX => (4, false),
            Code::Stosq_m64_RAX => (8, false),
            _ => return Err(not_understood(instruction)),
        };
        let repeats = instruction.has_rep_prefix();
        let count = if repeats { self.get(Register::RCX) } else { 1 };
        if count > LARGEST_BLOCK {
            return Err(ExecutionError::Excess(format!("it moves {size} bytes {count} times")));
        }
        let mut from = self.get(Register::RSI);
        let mut to = self.get(Register::RDI);
        for _ in 0..count {
            let value = if is_move { memory.load(from, size)? } else { self.get(Register::RAX) };
            memory.store(to, size, value)?;
            from = from.wrapping_add(if is_move { size as u64 } else { 0 });
            to = to.wrapping_add(size as u64);
        }
        self.set(Register::RSI, from);
        self.set(Register::RDI, to);
        if repeats {
            self.set(Register::RCX, 0);
        }
        Ok(())
    }
}
