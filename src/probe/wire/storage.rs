//! The step `storage`: the folders that training writes to without being asked.

use super::{Field, Nullable, StepBody};

impl StepBody for StorageBody {
    const STEP: &'static str = "storage";
}

objects! {
    /// The folders that training writes to without being asked.
    #[schemars(rename = "storage")]
    pub struct StorageBody {
        pub folders: Field<Vec<UsedFolder>>,
    }

    /// A folder, and whether a file can be made in it.
    pub struct UsedFolder {
        /// What is kept there.
        #[serde(rename = "use")]
        pub kept: Field<String>,
        pub path: Nullable<String>,
        /// The variable or file that names the folder; null for the working folder.
        pub named_by: Nullable<String>,
        /// Why there is no such folder.
        pub unnamed: Nullable<String>,
        /// The folder, or the nearest above it that is there: what follows is about that.
        pub existing: Nullable<String>,
        /// The name of the error with which no file could be made; null if one could.
        pub error: Nullable<String>,
        /// Whether its mode lets this user make files, whatever mounts and capabilities allow.
        pub permitted: Nullable<bool>,
        pub mount: Nullable<String>,
        pub file_system: Nullable<String>,
        pub free_bytes: Nullable<i64>,
        pub free_inodes: Nullable<i64>,
    }
}
