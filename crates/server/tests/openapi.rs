//! The API's document is as `docs/api/openapi.json` has it.

use std::path::Path;

use golden::Golden;

#[test]
fn the_document_is_as_it_was_promised() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api/openapi.json");
    let mut golden = Golden::default();
    golden.compare(&file, server::openapi());
    golden.finish(1);
}
