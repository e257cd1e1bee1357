//! What documents say of one span.

use super::{
    super::{
        Rule,
        document::{Arithmetic, Filter, Operand, Operator, Property, Scope, Statement},
        trace,
        value::{PATTERNS, Value},
    },
    Author, EQUALITIES, ORDERS,
};

impl Author<'_> {
    /// A statement about what a span has.
    pub(super) fn of_span(&mut self, depth: usize) -> Statement {
        if depth > 0 && self.dice.once_in(3) {
            let left = Box::new(self.of_span(depth - 1));
            return match self.dice.below(3) {
                0 => Statement::Not(left),
                1 => Statement::And(left, Box::new(self.of_span(depth - 1))),
                _ => Statement::Or(left, Box::new(self.of_span(depth - 1))),
            };
        }
        match self.dice.below(16) {
            0..4 => self.of_property(),
            4 => self.of_item(),
            5 => self.exists(),
            6 => self.scoped(),
            7 if self.drawn.has(Rule::NothingFound) => self.filtered(),
            8 => self.computed(),
            _ => {
                let names = ["num", "dbl", "txt", "flag", "doc", "tags", "mix", "ghost"];
                let name = self.dice.pick(&names);
                self.of_attribute(name)
            }
        }
    }

    fn of_property(&mut self) -> Statement {
        match self.dice.below(8) {
            0 | 1 => {
                let duration = self.duration();
                self.compared(Operand::Property(Property::Duration), &ORDERS, duration)
            }
            2 => {
                let property = self.choose(&[Property::Depth, Property::Children]);
                let number = Value::Int(self.dice.below(4) as i64);
                self.compared(Operand::Property(property), &ORDERS, number)
            }
            3 if self.may_order => {
                let duration = self.duration();
                self.compared(Operand::Property(Property::SelfTime), &ORDERS, duration)
            }
            _ => {
                let all = [Property::Name, Property::Kind, Property::Status, Property::Service];
                let property = self.choose(&all);
                let value = self.word(property);
                if self.dice.once_in(4) {
                    let list = Value::List(vec![value, self.word(property)]);
                    let within = self.compared(Operand::Property(property), &[Operator::In], list);
                    return self.maybe_without(within);
                }
                self.compared(Operand::Property(property), &EQUALITIES, value)
            }
        }
    }

    pub(super) fn maybe_without(&mut self, statement: Statement) -> Statement {
        if self.dice.once_in(3) { Statement::Without(Box::new(statement)) } else { statement }
    }

    fn of_attribute(&mut self, name: &str) -> Statement {
        let left = Operand::Attribute(name.to_owned());
        let value = trace::attribute(self.dice, name);
        match name {
            "num" | "dbl" => {
                let name = self.dice.pick(&["num", "dbl"]);
                let value = trace::attribute(self.dice, name);
                match self.dice.below(6) {
                    0 => {
                        let between = Statement::Between(left, Value::Int(0), value);
                        self.maybe_without(between)
                    }
                    1 => {
                        let list = Value::List(vec![value, Value::Int(1)]);
                        let within = self.compared(left, &[Operator::In], list);
                        self.maybe_without(within)
                    }
                    _ => self.compared(left, &ORDERS, value),
                }
            }
            "mix" => match value {
                Value::Int(_) => self.compared(left, &ORDERS, value),
                _ => self.compared(left, &EQUALITIES, value),
            },
            "flag" => self.compared(left, &EQUALITIES, value),
            "tags" => {
                let tag = Value::text(self.dice.pick(&["web", "eu"]));
                match self.dice.below(3) {
                    0 => self.compared(left, &EQUALITIES, value),
                    1 => {
                        let tags = Value::List(vec![tag]);
                        self.compared(left, &[Operator::Contains], tags)
                    }
                    _ => {
                        let contains = self.compared(left, &[Operator::Contains], tag);
                        self.maybe_without(contains)
                    }
                }
            }
            "doc" => {
                let part = Value::text(self.dice.pick(&[r#"{"id":1}"#, r#"{"id":2}"#, "tea"]));
                let contains = self.compared(left, &[Operator::Contains], part);
                self.maybe_without(contains)
            }
            _ => self.of_text(left),
        }
    }

    fn of_text(&mut self, left: Operand) -> Statement {
        let text = trace::attribute(self.dice, "txt");
        match self.dice.below(5) {
            0 => {
                let part = Value::text(self.dice.pick(&["c", "x1", "5", "og"]));
                let operators = [Operator::Contains, Operator::StartsWith, Operator::EndsWith];
                let statement = self.compared(left, &operators, part);
                self.maybe_without(statement)
            }
            1 => {
                let pattern = Value::text(self.dice.pick(&PATTERNS));
                let matches = self.compared(left, &[Operator::Matches], pattern);
                self.maybe_without(matches)
            }
            2 => {
                let list = Value::List(vec![text, Value::text("dog")]);
                let within = self.compared(left, &[Operator::In], list);
                self.maybe_without(within)
            }
            _ => self.compared(left, &EQUALITIES, text),
        }
    }

    fn exists(&mut self) -> Statement {
        let names = ["num", "txt", "doc", "tags", "ghost", "region", "host.name"];
        let operand = Operand::Attribute(self.dice.pick(&names).to_owned());
        self.maybe_without(Statement::Exists(operand))
    }

    /// Of an event or a link for which all holds.
    fn of_item(&mut self) -> Statement {
        if self.dice.once_in(3) {
            let name = self.dice.pick(&["trace_id", "span_id"]).to_owned();
            let exists = Statement::Exists(Operand::Attribute(name));
            return Statement::Link(self.dice.once_in(2).then(|| Box::new(exists)));
        }
        if self.dice.once_in(4) {
            return Statement::Event(None);
        }
        let name = Value::text(self.dice.pick(&["exception", "retry"]));
        let left = Operand::Attribute("name".to_owned());
        let mut condition = self.compared(left, &EQUALITIES, name);
        if self.dice.once_in(2) {
            let attribute = self.dice.pick(&["num", "txt", "flag"]);
            let more = self.of_attribute(attribute);
            condition = Statement::And(Box::new(condition), Box::new(more));
        }
        Statement::Event(Some(Box::new(condition)))
    }

    fn scoped(&mut self) -> Statement {
        let (scope, name, value) = match self.dice.below(6) {
            0 => (Scope::Resource, "service.name", Value::text("s0")),
            1 => (Scope::Resource, "region", Value::text("eu")),
            2 => (Scope::Library, "name", Value::text("lib")),
            3 => (Scope::Event, "txt", Value::text("cat")),
            4 => (Scope::Link, "span_id", Value::Text(trace::id_text(1))),
            _ => (Scope::Event, "name", Value::text("retry")),
        };
        let operand = Operand::Scoped(scope, name.to_owned());
        if self.dice.once_in(3) {
            return self.maybe_without(Statement::Exists(operand));
        }
        self.compared(operand, &[Operator::Equal], value)
    }

    fn filtered(&mut self) -> Statement {
        let of = |name: &str, filter| {
            Operand::Filter(Box::new(Operand::Attribute(name.to_owned())), filter)
        };
        let path = |path: &str| of("doc", Filter::JsonPath(path.to_owned()));
        let length = |operand| Operand::Filter(Box::new(operand), Filter::Length);
        let skus = |skus: &[&str]| Value::List(skus.iter().map(|sku| Value::text(sku)).collect());
        let (operand, value) = match self.dice.below(8) {
            0 => (path("$.id"), Value::Int(1)),
            1 => (path("$.nested.id"), Value::Int(1)),
            2 => (path("$.lines[0].sku"), Value::text("tea")),
            3 => (of("txt", Filter::Regex("[0-9]+".to_owned())), Value::text("15")),
            4 => (of("tags", Filter::GetIndex(0)), Value::text("web")),
            5 => (path("$.lines[*].sku"), skus(&["tea", "cup"])),
            6 => (length(path("$.ghost")), Value::Int(0)),
            _ => (of("tags", Filter::Length), Value::Int(1)),
        };
        match self.dice.below(4) {
            0 => self.maybe_without(Statement::Exists(operand)),
            1 if !matches!(value, Value::List(_)) => {
                let list = Value::List(vec![value]);
                let within = self.compared(operand, &[Operator::In], list);
                self.maybe_without(within)
            }
            _ => self.compared(operand, &EQUALITIES, value),
        }
    }

    fn computed(&mut self) -> Statement {
        let operator = self.choose(&[
            Arithmetic::Plus,
            Arithmetic::Minus,
            Arithmetic::Times,
            Arithmetic::Divided,
        ]);
        let left = Operand::Attribute(self.dice.pick(&["num", "dbl"]).to_owned());
        let right = Operand::Literal(Value::Int(self.dice.below(3) as i64));
        // In a selector the value of a computation has to be on the left.
        let computed = Operand::Arithmetic(Box::new(left), operator, Box::new(right));
        let value = trace::attribute(self.dice, "dbl");
        self.compared(computed, &ORDERS[2..], value)
    }
}
