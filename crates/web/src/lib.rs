//! The files of the web page, inside the program: what `cargo xtask web` built from `web/`, with compressed copies.
//!
//! The names of files have a hash of their content, so that a browser may keep them for good. Deliberately absent: HTTP, and
//! the page itself, which is in `web/`.

include!(concat!(env!("OUT_DIR"), "/table.rs"));

/// The word in the index that the server replaces by the path before all of its URLs, which may be empty.
pub const PREFIX: &str = "__QUALITYTRACE_PREFIX__";
/// The word in the index that the server replaces by the nonce of the response.
pub const NONCE: &str = "__QUALITYTRACE_NONCE__";

/// The name of the file with the licences of the packages in the page: the only name without a hash.
pub const LICENCES: &str = "licences.txt";

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub struct WebFile {
    /// The name in the folder `assets`.
    pub name: &'static str,
    /// The content.
    pub plain: &'static [u8],
    /// The content, compressed with Brotli.
    pub brotli: Option<&'static [u8]>,
    /// The content, compressed with gzip.
    pub gzip: Option<&'static [u8]>,
}

/// The index, with [`PREFIX`] and [`NONCE`] in it; without a page, one that states how to build it.
pub const fn index() -> &'static str {
    INDEX
}

/// Whether the program has the page.
pub const fn is_built() -> bool {
    !FILES.is_empty()
}

/// All files that the index loads.
pub const fn files() -> &'static [WebFile] {
    FILES
}

/// Returns the file of this name.
pub fn file(name: &str) -> Option<&'static WebFile> {
    FILES.iter().find(|file| file.name == name)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_index_has_what_the_server_replaces() {
        let index = super::index();
        assert!(!super::is_built() || index.contains(super::PREFIX), "{index}");
        assert!(index.contains(super::NONCE), "{index}");
    }

    #[test]
    fn every_file_is_found_by_its_name() {
        for file in super::files() {
            assert_eq!(
                super::file(file.name).map(|it| it.plain),
                Some(file.plain),
                "{}",
                file.name
            );
        }
        assert!(super::file("no such file").is_none());
    }
}
