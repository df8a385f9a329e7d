//! The step `storage`: the folders that training writes to by default.

use super::Field;

objects! {
    /// The folders that training writes to by default.
    pub struct StorageBody is step "storage" {
        pub folders: Field<Vec<UsedFolder>>,
    }

    /// A folder, and the result of creating a file in it.
    pub struct UsedFolder {
        /// Purpose of the folder.
        #[serde(rename = "use")]
        pub kept: Field<String>,
        pub path: Field<String>,
        /// The variable or file that names the folder; null for the working directory.
        pub named_by: Field<String>,
        /// Reason why the folder has no path.
        pub unnamed: Field<String>,
        /// The folder or its nearest existing ancestor, which the following fields describe.
        pub existing: Field<String>,
        /// Name of the error of creating a file; null on success.
        pub error: Field<String>,
        /// True if its mode lets this user create files, regardless of mounts and capabilities.
        pub permitted: Field<bool>,
        pub mount: Field<String>,
        pub file_system: Field<String>,
        pub free_bytes: Field<i64>,
        pub free_inodes: Field<i64>,
    }
}
