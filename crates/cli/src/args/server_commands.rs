//! The table of the commands that send requests to a server, compared with what can be typed. `tests/command_line` goes through it.

use std::collections::BTreeSet;

use clap::Command;

/// A block for each command.
const TABLE: &str = include_str!("../../tests/command_line/servers.txt");

/// Returns the paths of the commands that have a flag for a server.
fn commands_for_servers(command: &Command, path: &str) -> Vec<String> {
    let below = command.get_subcommands().flat_map(|below| {
        let path = format!("{path} {}", below.get_name());
        commands_for_servers(below, path.trim())
    });
    let mut found: Vec<_> = below.collect();
    if command.get_arguments().any(|arg| arg.get_long() == Some("server")) {
        found.push(path.to_owned());
    }
    found
}

#[test]
fn every_command_for_a_server_has_its_row() {
    let root = super::command(|_| false);
    let mut rows = BTreeSet::new();
    for block in TABLE.split("\n\n").filter(|block| !block.starts_with('#')) {
        let typed = block.trim().lines().next().expect("a command");
        let (mut command, mut path) = (&root, Vec::new());
        for word in typed.split(' ') {
            let Some(below) = command.find_subcommand(word) else { break };
            (command, path) = (below, [path, vec![word]].concat());
        }
        let has = |field: &str| block.contains(&format!("\n{field}: "));
        assert!(has("right") && has("unknown"), "{typed}: `right` and `unknown`");
        let prints_names = command.get_arguments().any(|arg| {
            arg.get_id() == "format"
                && arg.get_possible_values().iter().any(|it| it.matches("name", false))
        });
        assert_eq!(has("next"), prints_names, "{typed}: `next`");
        assert!(rows.insert(path.join(" ")), "{typed} is there twice");
    }
    let commands: BTreeSet<_> = commands_for_servers(&root, "").into_iter().collect();
    assert_eq!(rows, commands);
}
