//! The table of the page about stores is that of their profiles.

use std::{fmt::Write, fs, path::Path};

use drivers::store::{Evidence, profiles};
use golden::Golden;

const BEGIN: &str = "<!-- generated from the profiles of the stores -->\n";
const END: &str = "<!-- end -->";

#[test]
fn the_page_of_stores_has_the_table_of_their_profiles() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/stores.md");
    let text = fs::read_to_string(&page).expect("the page");
    let (before, rest) = text.split_once(BEGIN).expect("the table begins");
    let (_, after) = rest.split_once(END).expect("the table ends");
    let mut golden = Golden::default();
    golden.compare(&page, &format!("{before}{BEGIN}{}{END}{after}", table()));
    golden.finish_among_others();
}

fn table() -> String {
    let mut table = "| store | `type` | API | version | tested against | default lag | does not keep | also changes |\n\
                     | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for (kind, profile) in profiles() {
        let evidence = match profile.evidence {
            Evidence::RealProcess => "real process",
            Evidence::RealEngine => "real engine, our front",
            Evidence::Contract => "by contract",
        };
        let lacks: Vec<_> = profile.lacks.iter().map(|detail| detail.words()).collect();
        writeln!(
            table,
            "| {} | `{kind}` | {} | {} | {evidence} | {:?} | {} | {} |",
            profile.name,
            profile.api,
            profile.version,
            profile.lag,
            lacks.join(", "),
            profile.changes
        )
        .expect("a text grows");
    }
    table
}
