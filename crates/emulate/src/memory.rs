//! The memory of an emulated call: the mapped image, and separate regions for the stack, the heap and imported symbols. Pages are
//! created when they are touched, up to a limit.

use std::collections::BTreeMap;

use super::elf_image::{ElfImage, RelocationTarget};
use super::error::ExecutionError;

/// Size of a page in bytes.
const PAGE: usize = 4096;

/// Size of a page, as an address.
const PAGE_BYTES: u64 = PAGE as u64;

/// Maximum number of pages that one call may touch, 32 MiB. `GetBuildOptions()` of torch 2.9.0 touches 31 pages.
const MOST_PAGES: usize = 8192;

/// Maximum number of bytes that one call may read and write, so that a few instructions cannot cause endless work.
const MOST_BYTES: u64 = 64 << 20;

/// Maximum number of bytes of one string or copied block.
pub(super) const LARGEST_BLOCK: u64 = 1 << 20;

/// The thread block, to which `fs` on x86-64 and `TPIDR_EL0` on AArch64 point. It has the stack protector's cookie.
pub(super) const THREAD: u64 = 0x4000_0000_0000;
/// An address outside of all regions, to which unsupported relocations point.
const NOWHERE: u64 = 0x4800_0000_0000;
/// Region of the imported symbols. Each has a slot; a call into it calls the function of that name.
const IMPORTS: u64 = 0x5000_0000_0000;
/// Size of a slot in bytes. The largest supported variable is the empty `std::string::_Rep`.
const SLOT: u64 = 64;
/// Imported variables for which zeros are correct: the empty string of the old ABI, the cookie of the stack protector (any value
/// works), and the flag for a single thread, which only saves atomic instructions.
const ZEROED_IMPORTS: &[&str] = &["_ZNSs4_Rep20_S_empty_rep_storageE", "__libc_single_threaded", "__stack_chk_guard"];
/// Return address of the outermost call.
pub(super) const RETURN: u64 = 0x5800_0000_0000;
const HEAP: u64 = 0x6000_0000_0000;
/// Top of the stack, which grows down.
pub(super) const STACK: u64 = 0x7000_0000_0000;
const REGION: u64 = 1 << 24;

/// Memory by address.
pub(super) struct Memory<'a> {
    image: &'a ElfImage<'a>,
    pages: BTreeMap<u64, Box<[u8; PAGE]>>,
    heap: u64,
    /// Number of bytes read and written.
    moved: u64,
}

impl<'a> Memory<'a> {
    pub(super) const fn new(image: &'a ElfImage<'a>) -> Self {
        Self { image, pages: BTreeMap::new(), heap: HEAP, moved: 0 }
    }

    /// The name of the import whose slot contains an address.
    pub(super) fn import(&self, address: u64) -> Result<Option<String>, ExecutionError> {
        let slot = address.checked_sub(IMPORTS).map(|within| within / SLOT).and_then(|slot| u32::try_from(slot).ok());
        Ok(slot.map(|index| self.image.symbol(index).map(|symbol| symbol.name)).transpose()?)
    }

    /// Allocates zeroed memory.
    pub(super) fn allocate(&mut self, size: u64) -> Result<u64, ExecutionError> {
        if size > LARGEST_BLOCK || self.heap - HEAP + size > REGION {
            return Err(ExecutionError::Excess(format!("it allocates {size} bytes of memory")));
        }
        let address = self.heap;
        self.heap += size.next_multiple_of(16).max(16);
        Ok(address)
    }

    fn spend(&mut self, bytes: usize) -> Result<(), ExecutionError> {
        self.moved += bytes as u64;
        if self.moved > MOST_BYTES {
            return Err(ExecutionError::Excess(format!("it reads and writes more than {MOST_BYTES} bytes")));
        }
        Ok(())
    }

    pub(super) fn read(&mut self, address: u64, buffer: &mut [u8]) -> Result<(), ExecutionError> {
        self.spend(buffer.len())?;
        let mut at = address;
        let mut rest = buffer;
        while !rest.is_empty() {
            let source = self.page(at)?;
            let count = source.len().min(rest.len());
            let (now, later) = rest.split_at_mut(count);
            now.copy_from_slice(source.get(..count).ok_or(ExecutionError::OutOfBounds)?);
            rest = later;
            at = at.wrapping_add(count as u64);
        }
        Ok(())
    }

    pub(super) fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), ExecutionError> {
        self.spend(bytes.len())?;
        let mut at = address;
        let mut rest = bytes;
        while !rest.is_empty() {
            let target = self.page(at)?;
            let (now, later) = rest.split_at(target.len().min(rest.len()));
            target.get_mut(..now.len()).ok_or(ExecutionError::OutOfBounds)?.copy_from_slice(now);
            rest = later;
            at = at.wrapping_add(now.len() as u64);
        }
        Ok(())
    }

    /// A number of 1 to 8 bytes.
    pub(super) fn load(&mut self, address: u64, size: usize) -> Result<u64, ExecutionError> {
        let mut bytes = [0; 8];
        self.read(address, bytes.get_mut(..size).ok_or(ExecutionError::WideNumber)?)?;
        Ok(u64::from_le_bytes(bytes))
    }

    pub(super) fn store(&mut self, address: u64, size: usize, value: u64) -> Result<(), ExecutionError> {
        self.write(address, value.to_le_bytes().get(..size).ok_or(ExecutionError::WideNumber)?)
    }

    pub(super) fn pointer(&mut self, address: u64) -> Result<u64, ExecutionError> {
        self.load(address, 8)
    }

    pub(super) fn block(&mut self, address: u64, size: u64) -> Result<Vec<u8>, ExecutionError> {
        if size > LARGEST_BLOCK {
            return Err(ExecutionError::Excess(format!("it reads a block of {size} bytes at {address:#x}")));
        }
        let mut bytes = vec![0; usize::try_from(size)?];
        self.read(address, &mut bytes)?;
        Ok(bytes)
    }

    /// The bytes of a NUL-terminated string, without the NUL.
    pub(super) fn c_string(&mut self, address: u64) -> Result<Vec<u8>, ExecutionError> {
        let mut text = Vec::new();
        loop {
            let page = self.page(address.wrapping_add(text.len() as u64))?;
            let is_end = page.contains(&0);
            text.extend(page.iter().take_while(|byte| **byte != 0));
            if is_end {
                self.spend(text.len())?;
                return Ok(text);
            }
            if text.len() as u64 > LARGEST_BLOCK {
                return Err(ExecutionError::Excess(format!("the string at {address:#x} is not terminated")));
            }
        }
    }

    /// The available bytes of code, up to the length of the longest instruction.
    pub(super) fn code(&mut self, address: u64, longest: usize) -> Result<Vec<u8>, ExecutionError> {
        let mut code = self.page(address)?.iter().take(longest).copied().collect::<Vec<_>>();
        let missing = longest - code.len();
        if let (1.., Ok(next)) = (missing, self.page(address.wrapping_add(code.len() as u64))) {
            code.extend(next.iter().take(missing));
        }
        Ok(code)
    }

    /// Returns an error for imported variables, whose values exist only in the process.
    fn check_import(&self, address: u64) -> Result<(), ExecutionError> {
        match self.import(address)? {
            Some(name) if !ZEROED_IMPORTS.contains(&&*name) => Err(ExecutionError::UnknownVariable(name)),
            _ => Ok(()),
        }
    }

    /// The page of an address, from that address on.
    fn page(&mut self, address: u64) -> Result<&mut [u8], ExecutionError> {
        self.check_import(address)?;
        let number = address / PAGE_BYTES;
        if !self.pages.contains_key(&number) {
            if self.pages.len() >= MOST_PAGES {
                return Err(ExecutionError::Excess(format!("it accesses more than {MOST_PAGES} pages of memory")));
            }
            let page = self.make(number * PAGE_BYTES, address)?;
            self.pages.insert(number, page);
        }
        let start = usize::try_from(address % PAGE_BYTES)?;
        let page = self.pages.get_mut(&number).and_then(|page| page.get_mut(start..));
        page.ok_or(ExecutionError::OutOfBounds)
    }

    fn make(&self, start: u64, wanted: u64) -> Result<Box<[u8; PAGE]>, ExecutionError> {
        let mut page = Box::new([0; PAGE]);
        let imports = SLOT << 32;
        let is_ours = (THREAD..THREAD + PAGE_BYTES).contains(&wanted)
            || (IMPORTS..IMPORTS + imports).contains(&wanted)
            || (HEAP..HEAP + REGION).contains(&wanted)
            || (STACK - REGION..STACK + PAGE_BYTES).contains(&wanted);
        if is_ours {
            return Ok(page);
        }
        if !self.image.holds(wanted) {
            return Err(ExecutionError::Unmapped(wanted));
        }
        self.image.read(start, page.as_mut_slice())?;
        // A relocation may start on the previous page.
        for relocation in self.image.relocations(start.saturating_sub(7), start.saturating_add(PAGE_BYTES)) {
            let value = self.resolve(relocation.value)?.to_le_bytes();
            for (index, byte) in value.into_iter().enumerate() {
                let at = relocation.address.wrapping_add(index as u64).checked_sub(start);
                if let Some(place) = at.and_then(|at| page.get_mut(usize::try_from(at).ok()?)) {
                    *place = byte;
                }
            }
        }
        Ok(page)
    }

    fn resolve(&self, target: RelocationTarget) -> Result<u64, ExecutionError> {
        Ok(match target {
            RelocationTarget::Here(address) => address,
            RelocationTarget::Other => NOWHERE,
            RelocationTarget::Symbol { index, addend } => {
                let symbol = self.image.symbol(index)?;
                match symbol.address {
                    // The process chooses the function when it starts.
                    Some(_) if symbol.is_indirect => NOWHERE,
                    Some(address) => address.wrapping_add(addend),
                    // Code tests whether a weak function exists: without threads, it does not.
                    None if symbol.is_weak && symbol.name.contains("pthread") => 0,
                    None => (IMPORTS + u64::from(index) * SLOT).wrapping_add(addend),
                }
            }
        })
    }
}
