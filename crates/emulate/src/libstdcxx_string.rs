//! `std::string` of libstdc++, in both of its layouts (`bits/basic_string.h`, `bits/cow_string.h`).

use super::Arguments;
use super::error::ExecutionError;
use super::memory::{LARGEST_BLOCK, Memory};

/// The ABI of a `std::string`. Mangled names differ between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringAbi {
    /// Reference-counted: one pointer to the characters, which follow the length, capacity and count.
    Old,
    /// Since GCC 5: pointer, length, and capacity or up to 15 inline characters.
    Cxx11,
}

impl StringAbi {
    /// Size of the object in bytes.
    pub(super) const fn size(self) -> u64 {
        match self {
            Self::Old => 8,
            Self::Cxx11 => 32,
        }
    }

    /// The characters of a string.
    pub(super) fn read(self, at: u64, memory: &mut Memory<'_>) -> Result<Vec<u8>, ExecutionError> {
        let data = memory.pointer(at)?;
        let length = match self {
            Self::Old => memory.pointer(data.wrapping_sub(REP))?,
            Self::Cxx11 => memory.pointer(at.wrapping_add(8))?,
        };
        memory.block(data, length)
    }

    /// Creates a string in memory that is uninitialized, or has a string that need not be freed.
    fn write(self, at: u64, text: &[u8], memory: &mut Memory<'_>) -> Result<u64, ExecutionError> {
        let length = text.len() as u64;
        let data = match self {
            Self::Old => {
                let block = memory.allocate(REP + length + 1)?;
                memory.store(block, 8, length)?;
                memory.store(block + 8, 8, length)?;
                block + REP
            }
            Self::Cxx11 => {
                memory.store(at.wrapping_add(8), 8, length)?;
                if length <= IN_PLACE {
                    at.wrapping_add(16)
                } else {
                    memory.store(at.wrapping_add(16), 8, length)?;
                    memory.allocate(length + 1)?
                }
            }
        };
        memory.store(at, 8, data)?;
        memory.write(data, text)?;
        memory.store(data.wrapping_add(length), 1, 0)?;
        Ok(at)
    }
}

/// Bytes of `_Rep` before the characters of an old string.
const REP: u64 = 24;

/// Maximum number of inline characters of a new string.
const IN_PLACE: u64 = 15;

/// Members of the two classes. Their mangled names differ only in the class.
const CLASSES: &[(&str, StringAbi)] =
    &[("NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE", StringAbi::Cxx11), ("NSs", StringAbi::Old)];

/// Calls a member of `std::string`; `None` for an unknown name.
pub(super) fn call(name: &str, arguments: &Arguments, memory: &mut Memory<'_>) -> Result<Option<u64>, ExecutionError> {
    let Some(rest) = name.strip_prefix("_Z") else { return Ok(None) };
    let constant = rest.replacen("NK", "N", 1);
    let member = CLASSES.iter().find_map(|(class, abi)| constant.strip_prefix(class).map(|member| (member, *abi)));
    let Some((member, abi)) = member else { return Ok(None) };
    let &[this, second, third, fourth, ..] = arguments;
    let result = match member {
        // basic_string(): an empty string
        "C1Ev" | "C2Ev" => abi.write(this, b"", memory)?,
        // basic_string(const char *, const allocator &)
        "C1EPKcRKS3_" | "C2EPKcRKS3_" | "C1IS3_EEPKcRKS3_" | "C2IS3_EEPKcRKS3_" | "C1EPKcRKSaIcE" | "C2EPKcRKSaIcE" => {
            let text = memory.c_string(second)?;
            abi.write(this, &text, memory)?
        }
        // basic_string(const char *, size_t, const allocator &), _M_construct<bool>(const char *, size_t)
        "C1EPKcmRKS3_" | "C2EPKcmRKS3_" | "C1EPKcmRKSaIcE" | "C2EPKcmRKSaIcE" | "12_M_constructILb1EEEvPKcm"
        | "12_M_constructILb0EEEvPKcm" => {
            let text = memory.block(second, third)?;
            abi.write(this, &text, memory)?
        }
        // basic_string(const basic_string &), basic_string(basic_string &&): a moved string may keep its text
        "C1ERKS4_" | "C2ERKS4_" | "C1EOS4_" | "C2EOS4_" | "C1ERKSs" | "C2ERKSs" | "C1EOSs" | "C2EOSs"
        // operator=, assign
        | "9_M_assignERKS4_" | "aSERKS4_" | "aSEOS4_" | "aSERKSs" | "6assignERKS4_" | "6assignERKSs" => {
            let text = abi.read(second, memory)?;
            abi.write(this, &text, memory)?
        }
        // _M_construct<const char *>(begin, end, forward_iterator_tag), and _M_construct<char *>
        "12_M_constructIPKcEEvT_S8_St20forward_iterator_tag" | "12_M_constructIPcEEvT_S7_St20forward_iterator_tag" => {
            let text = memory.block(second, third.checked_sub(second).ok_or(ExecutionError::NegativeString)?)?;
            abi.write(this, &text, memory)?
        }
        // _M_create(size_t &capacity, size_t old): allocates room; a growing capacity at least doubles
        "9_M_createERmm" => {
            let wanted = memory.pointer(second)?;
            let capacity = if wanted > third && wanted < third.saturating_mul(2) { third * 2 } else { wanted };
            if capacity > LARGEST_BLOCK {
                return Err(ExecutionError::Excess(format!("it creates a string of {capacity} bytes")));
            }
            memory.store(second, 8, capacity)?;
            memory.allocate(capacity + 1)?
        }
        // _Rep::_S_create(size_t capacity, size_t old, const allocator &)
        "4_Rep9_S_createEmmRKSaIcE" => {
            if this > LARGEST_BLOCK {
                return Err(ExecutionError::Excess(format!("it creates a string of {this} bytes")));
            }
            let block = memory.allocate(REP + this + 1)?;
            memory.store(block + 8, 8, this)?;
            block
        }
        // Members that an unoptimised build calls: _M_data, _M_local_data, _M_capacity, _M_set_length, _S_copy_chars,
        // _Rep::_M_refdata, and the constructor of the part that holds the pointer
        "7_M_dataEv" => memory.pointer(this)?,
        "7_M_dataEPc" | "12_Alloc_hiderC1EPcRKS3_" | "12_Alloc_hiderC1EPcRKSaIcE" => {
            memory.store(this, 8, second)?;
            this
        }
        "13_M_local_dataEv" => this.wrapping_add(16),
        "4_Rep10_M_refdataEv" => this.wrapping_add(REP),
        "11_M_capacityEm" => {
            memory.store(this.wrapping_add(16), 8, second)?;
            this
        }
        "13_M_set_lengthEm" => {
            memory.store(this.wrapping_add(8), 8, second)?;
            let end = memory.pointer(this)?.wrapping_add(second);
            memory.store(end, 1, 0)?;
            this
        }
        _ if member.starts_with("13_S_copy_charsE") => {
            let text = memory.block(second, third.checked_sub(second).ok_or(ExecutionError::NegativeString)?)?;
            memory.write(this, &text)?;
            this
        }
        // _S_empty_rep(): another empty string is equivalent
        "12_S_empty_repEv" => memory.allocate(REP + 1)?,
        // _Rep::_M_set_length_and_sharable(size_t)
        "4_Rep26_M_set_length_and_sharableEm" => {
            memory.store(this, 8, second)?;
            memory.store(this.wrapping_add(REP).wrapping_add(second), 1, 0)?;
            this
        }
        // append(const char *, size_t), _M_append
        "6appendEPKcm" | "9_M_appendEPKcm" => {
            let mut text = abi.read(this, memory)?;
            text.extend(memory.block(second, third)?);
            abi.write(this, &text, memory)?
        }
        // append(const char *)
        "6appendEPKc" => {
            let mut text = abi.read(this, memory)?;
            text.extend(memory.c_string(second)?);
            abi.write(this, &text, memory)?
        }
        // compare(const basic_string &), compare(const char *)
        "7compareERKS4_" | "7compareERKSs" => {
            sign(abi.read(this, memory)?.cmp(&abi.read(second, memory)?))
        }
        "7compareEPKc" => sign(abi.read(this, memory)?.cmp(&memory.c_string(second)?)),
        // _M_replace(position, length, const char *, size_t)
        "10_M_replaceEmmPKcm" => {
            let [.., fifth, _] = arguments;
            let mut text = abi.read(this, memory)?;
            let new = memory.block(fourth, *fifth)?;
            let at = |place: u64| usize::try_from(place).ok().filter(|place| *place <= text.len());
            let range = at(second).zip(second.checked_add(third).and_then(at));
            let (from, to) = range.ok_or(ExecutionError::ReplacedBehindEnd)?;
            text.splice(from..to, new);
            abi.write(this, &text, memory)?
        }
        // Destructors, _M_dispose, _M_destroy: no memory is reused
        "D1Ev" | "D2Ev" | "10_M_disposeEv" | "10_M_destroyEm" | "4_Rep10_M_destroyERKSaIcE"
        | "4_Rep10_M_disposeERKSaIcE" => 0,
        _ => return Ok(None),
    };
    Ok(Some(result))
}

/// An `int` that compares to zero as `order` says.
pub(super) const fn sign(order: std::cmp::Ordering) -> u64 {
    match order {
        std::cmp::Ordering::Less => 0xffff_ffff,
        std::cmp::Ordering::Equal => 0,
        std::cmp::Ordering::Greater => 1,
    }
}
