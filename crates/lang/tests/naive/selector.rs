//! A separate syntax tree of selectors, and its printer.
//!
//! If there are several notations with the same meaning, the generator chooses one at random.

use super::super::chance::Dice;

#[derive(Clone, Debug)]
pub(crate) struct Selector {
    /// At least one.
    pub(crate) parts: Vec<Part>,
}

#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// At least one. The first combinator only counts if there is a start span.
    pub(crate) hops: Vec<(Combinator, Step)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Combinator {
    Descendant,
    Child,
    Adjacent,
    Sibling,
    Parent,
    Ancestor,
    Linked,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) condition: Option<Condition>,
    pub(crate) pseudos: Vec<Pseudo>,
    pub(crate) position: Option<Position>,
}

#[derive(Clone, Debug)]
pub(crate) enum Pseudo {
    Root,
    Leaf,
    Orphan,
    Has(Selector),
    Not(Selector),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Position {
    First,
    Last,
    Nth(usize),
}

#[derive(Clone, Debug)]
pub(crate) enum Condition {
    Compare { left: Name, comparator: Comparator, is_negated: bool, right: Operand },
    Between { value: Name, is_negated: bool, low: Operand, high: Operand },
    In { value: Name, is_negated: bool, list: Vec<Literal> },
    Exists { value: Name, is_negated: bool },
    Not(Box<Condition>),
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Event(Option<Box<Condition>>),
    Link(Option<Box<Condition>>),
}

/// A bare name in `span[…]`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Name(pub(crate) String);

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Comparator {
    Equal,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Contains,
    StartsWith,
    EndsWith,
    Matches,
}

#[derive(Clone, Debug)]
pub(crate) enum Operand {
    Literal(Literal),
    Name(Name),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    /// With its spelling, in a notation with the same meaning.
    Int(i128, String),
    Double(f64, String),
    /// In nanoseconds.
    Duration(i128),
    Text(String),
    List(Vec<Literal>),
}

impl Selector {
    pub(crate) fn write(&self, dice: &mut Dice) -> String {
        self.written(dice, |_| String::new())
    }

    fn relative(&self, dice: &mut Dice) -> String {
        self.written(dice, |combinator| match combinator {
            Combinator::Descendant => String::new(),
            other => format!("{} ", other.symbol()),
        })
    }

    fn written(&self, dice: &mut Dice, begin: fn(Combinator) -> String) -> String {
        let part = |part: &Part, dice: &mut Dice| {
            let mut text = String::new();
            for (at, (combinator, step)) in part.hops.iter().enumerate() {
                let between = match (at, combinator) {
                    (0, combinator) => begin(*combinator),
                    (_, Combinator::Descendant) if dice.once_in(2) => " ".to_owned(),
                    (_, combinator) => format!(" {} ", combinator.symbol()),
                };
                text.push_str(&between);
                text.push_str(&step.write(dice));
            }
            text
        };
        let parts: Vec<String> = self.parts.iter().map(|it| part(it, dice)).collect();
        parts.join(", ")
    }
}

impl Combinator {
    fn symbol(self) -> &'static str {
        match self {
            Self::Descendant => ">>",
            Self::Child => ">",
            Self::Adjacent => "+",
            Self::Sibling => "~",
            Self::Parent => "<",
            Self::Ancestor => "<<",
            Self::Linked => "=>",
        }
    }
}

impl Step {
    fn write(&self, dice: &mut Dice) -> String {
        let mut text = format!("span[{}]", inside(self.condition.as_ref(), dice));
        for pseudo in &self.pseudos {
            text.push_str(&match pseudo {
                Pseudo::Root => ":root".to_owned(),
                Pseudo::Leaf => ":leaf".to_owned(),
                Pseudo::Orphan => ":orphan".to_owned(),
                Pseudo::Has(selector) => format!(":has({})", selector.relative(dice)),
                Pseudo::Not(selector) => format!(":not({})", selector.write(dice)),
            });
        }
        text.push_str(&match self.position {
            None => String::new(),
            Some(Position::First) => ":first".to_owned(),
            Some(Position::Last) => ":last".to_owned(),
            Some(Position::Nth(number)) => format!(":nth_child({number})"),
        });
        text
    }
}

/// Prints the content of brackets; there an `and` may be a space or a comma.
fn inside(condition: Option<&Condition>, dice: &mut Dice) -> String {
    match condition {
        None => String::new(),
        Some(Condition::And(all)) => {
            let between = dice.pick(&[" and ", " ", ", "]);
            let all: Vec<String> = all.iter().map(|it| it.operand(Binding::And, dice)).collect();
            all.join(between)
        }
        Some(condition) => condition.operand(Binding::Or, dice),
    }
}

/// The minimum precedence to print without parentheses.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Binding {
    Or,
    And,
    Not,
}

impl Condition {
    fn operand(&self, needed: Binding, dice: &mut Dice) -> String {
        let binding = match self {
            Self::Or(_) => Binding::Or,
            Self::And(_) => Binding::And,
            _ => Binding::Not,
        };
        let text = self.text(dice);
        if binding < needed || dice.once_in(8) { format!("({text})") } else { text }
    }

    fn text(&self, dice: &mut Dice) -> String {
        let joined = |all: &[Self], word: &str, binding, dice: &mut Dice| {
            let all: Vec<String> = all.iter().map(|it| it.operand(binding, dice)).collect();
            all.join(word)
        };
        match self {
            Self::And(all) => joined(all, " and ", Binding::Not, dice),
            Self::Or(all) => joined(all, " or ", Binding::And, dice),
            Self::Not(inner) => format!("not {}", inner.operand(Binding::Not, dice)),
            Self::Event(inner) => format!("event[{}]", inside(inner.as_deref(), dice)),
            Self::Link(inner) => format!("link[{}]", inside(inner.as_deref(), dice)),
            Self::Exists { value, is_negated } => {
                format!("{} {}", value.write(dice), word("exists", *is_negated, dice))
            }
            Self::In { value, is_negated, list } => {
                let list: Vec<String> = list.iter().map(Literal::write).collect();
                let word = word("in", *is_negated, dice);
                format!("{} {word} [{}]", value.write(dice), list.join(", "))
            }
            Self::Between { value, is_negated, low, high } => {
                let word = word("between", *is_negated, dice);
                let (low, high) = (low.write(), high.write());
                format!("{} {word} {low} and {high}", value.write(dice))
            }
            Self::Compare { left, comparator, is_negated, right } => {
                let (left, right) = (left.write(dice), right.write());
                let symbol = match (comparator, is_negated) {
                    (Comparator::Equal, false) => "=",
                    (Comparator::Equal, true) => "!=",
                    (Comparator::Matches, false) if dice.once_in(2) => "=~",
                    (Comparator::Matches, true) if dice.once_in(2) => "!~",
                    (Comparator::Less, _) => "<",
                    (Comparator::AtMost, _) => "<=",
                    (Comparator::Greater, _) => ">",
                    (Comparator::AtLeast, _) => ">=",
                    (named, _) => {
                        let word = word(named.word(), *is_negated, dice);
                        return format!("{left} {word} {right}");
                    }
                };
                let blank = if dice.once_in(2) { " " } else { "" };
                format!("{left}{blank}{symbol}{blank}{right}")
            }
        }
    }
}

impl Comparator {
    fn word(self) -> &'static str {
        match self {
            Self::Contains => "contains",
            Self::StartsWith => "starts-with",
            Self::EndsWith => "ends-with",
            _ => "matches",
        }
    }
}

fn word(word: &str, is_negated: bool, dice: &mut Dice) -> String {
    match is_negated {
        false => word.to_owned(),
        true if dice.once_in(2) => format!("not {word}"),
        true => format!("not-{word}"),
    }
}

impl Name {
    fn write(&self, dice: &mut Dice) -> String {
        match dice.below(8) {
            0 => quoted(&self.0),
            1 => format!("attr:{}", self.0),
            _ => self.0.clone(),
        }
    }
}

impl Operand {
    fn write(&self) -> String {
        match self {
            Self::Literal(literal) => literal.write(),
            // A bare word on this side would be a text without its quotes.
            Self::Name(name) => format!("attr:{}", name.0),
        }
    }
}

impl Literal {
    fn write(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(bool) => bool.to_string(),
            Self::Int(_, spelling) | Self::Double(_, spelling) => spelling.clone(),
            Self::Duration(nanos) if nanos % 1_000_000 == 0 => format!("{}ms", nanos / 1_000_000),
            Self::Duration(nanos) => format!("{nanos}ns"),
            Self::Text(text) => quoted(text),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(Self::write).collect();
                format!("[{}]", items.join(", "))
            }
        }
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
