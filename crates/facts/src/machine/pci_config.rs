//! The configuration space of a PCI device (PCI Express Base Specification, 7.5 to 7.7).

/// Bytes that any user may read; the kernel shows the rest only to root.
pub(super) const PUBLIC: usize = 64;

const STATUS: usize = 0x06;
const CAPABILITIES: usize = 0x34;
const EXTENDED: usize = 0x100;
const EXPRESS: u8 = 0x10;
const ACS: u16 = 0x0d;
/// The Access Control Services that redirect peer-to-peer traffic to the root complex: P2P Request Redirect and P2P
/// Completion Redirect.
const REDIRECT: u16 = 0b1100;

/// Returns true for the configuration space of a downstream port of a PCIe switch where ACS redirects peer-to-peer
/// traffic; `None` if the bytes end too early.
pub(super) fn redirects(config: &[u8]) -> Option<bool> {
    if !is_downstream_port(config)? {
        return Some(false);
    }
    Some(access_control(config)? & REDIRECT != 0)
}

fn is_downstream_port(config: &[u8]) -> Option<bool> {
    // Bit 4: Capabilities List.
    if word(config, STATUS)? & 0x10 == 0 {
        return Some(false);
    }
    let mut at = usize::from(*config.get(CAPABILITIES)?);
    // At most as many as fit: a broken list may be a ring.
    for _ in 0..48 {
        if at < PUBLIC {
            return Some(false);
        }
        if *config.get(at)? == EXPRESS {
            return Some(word(config, at + 2)? >> 4 & 0xf == 6);
        }
        at = usize::from(*config.get(at + 1)?);
    }
    Some(false)
}

/// The ACS control bits; 0 without ACS.
fn access_control(config: &[u8]) -> Option<u16> {
    let mut at = EXTENDED;
    // At most as many as fit, as above.
    for _ in 0..960 {
        let id = word(config, at)?;
        let next = word(config, at + 2)? >> 4;
        if id == ACS {
            return word(config, at + 6);
        }
        at = usize::from(next);
        if at < EXTENDED {
            break;
        }
    }
    Some(0)
}

fn word(config: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes([*config.get(at)?, *config.get(at + 1)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a port of this type, with ACS as its second extended capability.
    fn config(kind: u8, control: u8) -> Vec<u8> {
        let mut config = vec![0; 4096];
        let mut put = |at: usize, bytes: &[u8]| config[at..at + bytes.len()].copy_from_slice(bytes);
        put(STATUS, &[0x10, 0]);
        put(CAPABILITIES, &[0x40]);
        put(0x40, &[0x01, 0x68]);
        put(0x68, &[EXPRESS, 0, kind << 4 | 2, 0]);
        put(0x100, &[0x01, 0, 0x02, 0x15]);
        put(0x150, &[0x0d, 0, 0x01, 0]);
        put(0x156, &[control]);
        config
    }

    #[test]
    fn only_downstream_ports_with_acs_redirect() {
        assert_eq!(redirects(&config(6, 0b1_1101)), Some(true));
        assert_eq!(redirects(&config(6, 0b1_0001)), Some(false));
        // Traffic through a root port is at the root complex already.
        assert_eq!(redirects(&config(4, 0b1_1101)), Some(false));
        assert_eq!(redirects(&config(6, 0b1_1101)[..PUBLIC]), None);
        assert_eq!(redirects(&config(6, 0b1_1101)[..256]), None);
        let mut ring = config(6, 0);
        ring[0x102..0x104].copy_from_slice(&[0x02, 0x10]);
        assert_eq!(redirects(&ring), Some(false));
    }
}
