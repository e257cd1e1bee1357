//! Parses a shape. People edit shapes, so siblings may be in any order, and every error is reported with its location.

use std::ops::Range;

use model::trace::{Kind, StatusCode};
use source::{Diagnostic, Diagnostics, Text, did_you_mean};

use crate::{
    Attribute, Count, DEPTH_MAX, Event, Keep, LINES_MAX, Link, Node, Shape, Span, What,
    literal::{Literal, quoted_end, unquoted},
    node::fold,
    write::{ABSENT, ELSEWHERE, HEAD, NO_SERVICE},
};

/// The words allowed in parentheses.
const MARKS: [&str; 10] = [
    "unspecified",
    "internal",
    "server",
    "client",
    "producer",
    "consumer",
    "unset",
    "ok",
    "error",
    "orphan",
];

/// An error with its range, and a help text.
struct Mistake {
    at: Range<usize>,
    message: String,
    help: String,
}

/// Parses a shape, or returns all its diagnostics.
pub fn read(text: &Text) -> (Option<Shape>, Vec<Diagnostic>) {
    let found = Diagnostics::new(text);
    let mut reader = Reader::default();
    let mut part = Part::Head;
    let mut at = 0;
    let mut keep: Option<Keep> = None;
    for line in text.content().split_inclusive('\n') {
        let (start, line) = (at, line.trim_end());
        at += line_bytes(text.content(), at);
        let is_first = part == Part::Head;
        let read = match part {
            Part::Head if line.is_empty() => Ok(()),
            Part::Head => {
                part = Part::Options;
                head(line, start)
            }
            Part::Options if line.is_empty() => {
                part = Part::Tree;
                Ok(())
            }
            Part::Options => reader.option(line, start, &mut keep),
            Part::Tree => reader.line(line, start),
        };
        if let Err(Mistake { at, message, help }) = read {
            found.push(found.error(source::Span::from(at), message).help(help));
            // A file that is not a shape needs no further diagnostics.
            if is_first {
                break;
            }
        }
    }
    if part == Part::Head && !found.has_errors() {
        let message = format!("`{}` is empty, and no shape", text.name());
        found.push(found.error(None, message).help("`qualitytrace shape record` writes one"));
    }
    let is_right = !found.has_errors();
    let shape = is_right.then(|| reader.finish(keep.unwrap_or_default()));
    (shape, found.into_vec())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Head,
    Options,
    Tree,
}

#[derive(Default)]
struct Reader {
    shape: Shape,
    /// The level of the previous line, valid or not, and whether it may have children.
    above: Option<(usize, bool)>,
    /// The nodes, each with its level.
    nodes: Vec<(usize, Node)>,
    /// The notes for the next node.
    notes: Vec<String>,
}

fn line_bytes(content: &str, at: usize) -> usize {
    content[at..].find('\n').map_or(content.len() - at, |end| end + 1)
}

fn head(line: &str, start: usize) -> Result<(), Mistake> {
    let line = line.trim_start_matches('\u{feff}');
    if line == HEAD {
        return Ok(());
    }
    let is_other = line.strip_prefix("qualitytrace shape ").is_some();
    let message = match is_other {
        true => format!("this is a shape of another version; this program reads `{HEAD}`"),
        false => format!("a shape begins with `{HEAD}`"),
    };
    let help = "have `qualitytrace shape record` write it anew".to_owned();
    Err(Mistake { at: start..start + line.len(), message, help })
}

impl Reader {
    fn option(&mut self, line: &str, start: usize, keep: &mut Option<Keep>) -> Result<(), Mistake> {
        let wrong = |message: String, help: &str| {
            Err(Mistake { at: start..start + line.len(), message, help: help.to_owned() })
        };
        if let Some(note) = line.strip_prefix('#') {
            self.shape.notes.push(note.to_owned());
            return Ok(());
        }
        let Some(keys) = line.strip_prefix("keep:") else {
            let help = "options stand above an empty line, the tree below it";
            return wrong("no option of a shape: there is `keep: KEY, …`".to_owned(), help);
        };
        match keys.parse::<Keep>() {
            Ok(more) => {
                *keep = Some(keep.as_ref().map_or(more.clone(), |keep| keep.and(&more)));
                Ok(())
            }
            Err(error) => wrong(error.to_string(), "keys are separated by commas"),
        }
    }

    fn line(&mut self, line: &str, start: usize) -> Result<(), Mistake> {
        let content = line.trim_start_matches(' ');
        let indent = line.len() - content.len();
        if content.is_empty() {
            return Ok(());
        }
        if let Some(note) = content.strip_prefix('#') {
            self.notes.push(note.to_owned());
            return Ok(());
        }
        let level = self.level(indent, start);
        self.above =
            Some((indent / 2, !content.starts_with(['!', '→']) && !content.starts_with("->")));
        let level = level?;
        if self.nodes.len() == LINES_MAX {
            let message = format!("a shape has at most {LINES_MAX} lines");
            return Err(Mistake { at: start..start + 1, message, help: "split it".to_owned() });
        }
        let mut cursor = Cursor { content, at: 0, start: start + indent };
        let mut node = cursor.node()?;
        node.notes = std::mem::take(&mut self.notes);
        self.nodes.push((level, node));
        Ok(())
    }

    fn level(&self, indent: usize, start: usize) -> Result<usize, Mistake> {
        let wrong = |message: &str| Mistake {
            at: start..start + indent.max(1),
            message: message.to_owned(),
            help: "what is under a span is indented by two spaces more".to_owned(),
        };
        let level = indent / 2;
        match self.above {
            _ if indent % 2 == 1 => Err(wrong("this is indented by an odd number of spaces")),
            None if level > 0 => Err(wrong("the first line of the tree is indented")),
            Some((above, _)) if level > above + 1 => Err(wrong("this is indented too far")),
            Some((above, false)) if level > above => {
                Err(wrong("nothing may be under an event or a link"))
            }
            _ if level >= DEPTH_MAX => Err(wrong("this is deeper than a shape may be")),
            _ => Ok(level),
        }
    }

    fn finish(mut self, keep: Keep) -> Shape {
        // A note after the last node belongs to no node; it is preserved anyway.
        self.shape.notes.append(&mut self.notes);
        let mut below: Vec<Vec<Node>> = vec![Vec::new(); DEPTH_MAX + 1];
        for (level, mut node) in self.nodes.into_iter().rev() {
            node.children = std::mem::take(&mut below[level + 1]);
            fold(&mut node.children);
            below[level].push(node);
        }
        let mut roots = std::mem::take(&mut below[0]);
        fold(&mut roots);
        Shape { keep, roots, ..self.shape }
    }
}

/// The parse position in a line.
struct Cursor<'a> {
    content: &'a str,
    at: usize,
    /// The offset of the content in the file.
    start: usize,
}

impl<'a> Cursor<'a> {
    fn node(&mut self) -> Result<Node, Mistake> {
        let what = if self.takes("! ") {
            let name = self.name()?;
            What::Event(Event { name, attributes: self.attributes()? })
        } else if self.takes("→ ") || self.takes("-> ") {
            What::Link(self.link()?)
        } else {
            let (service, name) = self.label()?;
            let mut span = Span {
                service,
                name,
                kind: Kind::Internal,
                status: StatusCode::Unset,
                is_orphan: false,
                attributes: Vec::new(),
            };
            self.marks(&mut span)?;
            span.attributes = self.attributes()?;
            What::Span(span)
        };
        let count = self.count()?;
        if self.at < self.content.len() {
            let help = "a line is `SERVICE: NAME (MARKS) [KEY=VALUE, …] ×COUNT`; odd names stand in quotes";
            return Err(self.mistake(
                self.at..self.content.len(),
                "this is more than a line holds",
                help,
            ));
        }
        Ok(Node { count, ..Node::new(what) })
    }

    fn link(&mut self) -> Result<Link, Mistake> {
        for (words, link) in [(ELSEWHERE, Link::Elsewhere), (ABSENT, Link::Absent)] {
            let is_whole = self.rest().strip_prefix(words).is_some_and(|behind| {
                behind.is_empty() || behind.starts_with(" ×") || behind.starts_with(" x")
            });
            if is_whole {
                self.at += words.len();
                return Ok(link);
            }
        }
        let (service, name) = self.label()?;
        Ok(Link::Span { service, name })
    }

    /// Parses `SERVICE: NAME`.
    fn label(&mut self) -> Result<(Option<String>, String), Mistake> {
        let help = "a line is `SERVICE: NAME`; without a service, `-: NAME`";
        let service = match self.quoted()? {
            Some(service) => Some(service),
            None => {
                let Some(end) = self.rest().find(": ").filter(|end| *end > 0) else {
                    let all = self.at..self.content.len();
                    return Err(self.mistake(all, "a service and `: ` are expected", help));
                };
                let word = &self.rest()[..end];
                self.at += end;
                (word != NO_SERVICE).then(|| word.to_owned())
            }
        };
        if !self.takes(": ") {
            let all = self.at..self.content.len();
            return Err(self.mistake(all, "`: ` is expected behind the service", help));
        }
        Ok((service, self.name()?))
    }

    fn name(&mut self) -> Result<String, Mistake> {
        if let Some(name) = self.quoted()? {
            return Ok(name);
        }
        let rest = self.rest();
        let mut end = rest.find(['(', '[', '×']).unwrap_or(rest.len());
        if end == rest.len()
            && let Some((before, last)) = rest.rsplit_once(' ')
            && last.strip_prefix('x').is_some_and(|count| Count::parse(count).is_some())
        {
            end = before.len();
        }
        let name = rest[..end].trim_end();
        if name.is_empty() {
            let all = self.at..self.content.len();
            return Err(self.mistake(all, "a name is expected", "an empty name is written `\"\"`"));
        }
        self.at += name.len();
        Ok(name.to_owned())
    }

    fn marks(&mut self, span: &mut Span) -> Result<(), Mistake> {
        if !self.takes(" (") {
            return Ok(());
        }
        let Some(end) = self.rest().find(')') else {
            let all = self.at - 1..self.content.len();
            return Err(self.mistake(all, "this is not closed", "`)` is missing"));
        };
        for word in self.rest()[..end].split(", ") {
            let number = |prefix: &str| word.strip_prefix(prefix).and_then(|it| it.parse().ok());
            match word {
                "unspecified" => span.kind = Kind::Unspecified,
                "internal" => span.kind = Kind::Internal,
                "server" => span.kind = Kind::Server,
                "client" => span.kind = Kind::Client,
                "producer" => span.kind = Kind::Producer,
                "consumer" => span.kind = Kind::Consumer,
                "unset" => span.status = StatusCode::Unset,
                "ok" => span.status = StatusCode::Ok,
                "error" => span.status = StatusCode::Error,
                "orphan" => span.is_orphan = true,
                _ if number("kind ").is_some() => {
                    span.kind = number("kind ").map_or(span.kind, Kind::from_number);
                }
                _ if number("status ").is_some() => {
                    span.status = number("status ").map_or(span.status, StatusCode::from_number);
                }
                _ => {
                    let help = match did_you_mean(word, MARKS) {
                        Some(meant) => format!("did you mean `{meant}`?"),
                        None => format!("there are {}", MARKS.join(", ")),
                    };
                    let at = self.at..self.at + end;
                    return Err(self.mistake(
                        at,
                        &format!("`{word}` is no kind and no status"),
                        &help,
                    ));
                }
            }
        }
        self.at += end + 1;
        Ok(())
    }

    fn attributes(&mut self) -> Result<Vec<Attribute>, Mistake> {
        let mut attributes: Vec<Attribute> = Vec::new();
        if !self.takes(" [") {
            return Ok(attributes);
        }
        loop {
            let from = self.at;
            let key = self.word(&['=', ',', ']'])?;
            let help = "attributes are `[KEY=VALUE, KEY=VALUE]`; odd values stand in quotes";
            if !self.takes("=") {
                return Err(self.mistake(
                    from..self.content.len(),
                    "`KEY=VALUE` is expected",
                    help,
                ));
            }
            let value_from = self.at;
            let _value = self.word(&[',', ']'])?;
            let Some(value) = Literal::parse(&self.content[value_from..self.at]) else {
                return Err(self.mistake(value_from..self.at, "this is no value", help));
            };
            if attributes.iter().any(|earlier| earlier.key == key) {
                let message = format!("the attribute `{key}` is written twice");
                return Err(self.mistake(from..self.at, &message, "leave one of them out"));
            }
            attributes.push(Attribute { key, value });
            if self.takes("]") {
                break;
            }
            if !self.takes(", ") && !self.takes(",") {
                return Err(self.mistake(self.at..self.content.len(), "this is not closed", help));
            }
        }
        attributes.sort();
        Ok(attributes)
    }

    fn count(&mut self) -> Result<Count, Mistake> {
        if !self.takes(" ×") && !self.takes(" x") {
            return Ok(Count::exactly(1));
        }
        let help = "counts are `×3`, `×2..5` or `×2..`; `x` will do for `×`";
        let all = self.at..self.content.len();
        let count = Count::parse(self.rest());
        let count = count.ok_or_else(|| self.mistake(all, "this is no count", help))?;
        self.at = self.content.len();
        Ok(count)
    }

    /// Parses a quoted text, or everything up to one of these characters.
    fn word(&mut self, ends: &[char]) -> Result<String, Mistake> {
        if let Some(word) = self.quoted()? {
            return Ok(word);
        }
        let end = self.rest().find(ends).unwrap_or(self.rest().len());
        let word = self.rest()[..end].to_owned();
        self.at += end;
        Ok(word)
    }

    fn quoted(&mut self) -> Result<Option<String>, Mistake> {
        let rest = self.rest();
        if !rest.starts_with('"') {
            return Ok(None);
        }
        let end = quoted_end(rest).unwrap_or(rest.len());
        let Some(text) = unquoted(&rest[..end]) else {
            let help = "in quotes, `\\\"`, `\\\\`, `\\n`, `\\t` and `\\u{…}` are known";
            return Err(self.mistake(self.at..self.at + end, "these quotes are not right", help));
        };
        self.at += end;
        Ok(Some(text))
    }

    fn rest(&self) -> &'a str {
        &self.content[self.at..]
    }

    fn takes(&mut self, words: &str) -> bool {
        let is_next = self.rest().starts_with(words);
        if is_next {
            self.at += words.len();
        }
        is_next
    }

    fn mistake(&self, at: Range<usize>, message: &str, help: &str) -> Mistake {
        let at = self.start + at.start..self.start + at.end.max(at.start);
        Mistake { at, message: message.to_owned(), help: help.to_owned() }
    }
}
