//! The step `storage`: the folders that training writes to by default.

use super::{Field, Nullable};

objects! {
    /// The folders that training writes to by default.
    #[schemars(rename = "storage")]
    pub struct StorageBody is step "storage" {
        pub folders: Field<Vec<UsedFolder>>,
    }

    /// A folder, and the result of creating a file in it.
    pub struct UsedFolder {
        /// Purpose of the folder.
        #[serde(rename = "use")]
        pub kept: Field<String>,
        pub path: Nullable<String>,
        /// The variable or file that names the folder; null for the working directory.
        pub named_by: Nullable<String>,
        /// Reason why the folder has no path.
        pub unnamed: Nullable<String>,
        /// The folder or its nearest existing ancestor, which the following fields describe.
        pub existing: Nullable<String>,
        /// Name of the error of creating a file; null on success.
        pub error: Nullable<String>,
        /// True if its mode lets this user create files, regardless of mounts and capabilities.
        pub permitted: Nullable<bool>,
        pub mount: Nullable<String>,
        pub file_system: Nullable<String>,
        pub free_bytes: Nullable<i64>,
        pub free_inodes: Nullable<i64>,
    }
}
