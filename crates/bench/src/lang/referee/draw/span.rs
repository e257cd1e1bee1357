//! Random statements about one span.

use super::{
    super::{
        RefereeRule,
        document::{Arithmetic, Operand, Operator, Property, RefereeStatement, Scope, ValueFilter},
        trace,
        value::{PATTERNS, RefereeValue},
    },
    Author, EQUALITIES, ORDERS,
};

impl Author<'_> {
    /// Generates a statement about the content of a span.
    pub(super) fn of_span(&mut self, depth: usize) -> RefereeStatement {
        if depth > 0 && self.dice.once_in(3) {
            let left = Box::new(self.of_span(depth - 1));
            return match self.dice.below(3) {
                0 => RefereeStatement::Not(left),
                1 => RefereeStatement::And(left, Box::new(self.of_span(depth - 1))),
                _ => RefereeStatement::Or(left, Box::new(self.of_span(depth - 1))),
            };
        }
        match self.dice.below(16) {
            0..4 => self.of_property(),
            4 => self.of_item(),
            5 => self.exists(),
            6 => self.scoped(),
            7 if self.drawn.has(RefereeRule::NothingFound) => self.filtered(),
            8 => self.computed(),
            _ => {
                let names = ["num", "dbl", "txt", "flag", "doc", "tags", "mix", "ghost"];
                let name = self.dice.pick(&names);
                self.of_attribute(name)
            }
        }
    }

    fn of_property(&mut self) -> RefereeStatement {
        match self.dice.below(8) {
            0 | 1 => {
                let duration = self.duration();
                self.compared(Operand::Property(Property::Duration), &ORDERS, duration)
            }
            2 => {
                let property = self.choose(&[Property::Depth, Property::Children]);
                let number = RefereeValue::Int(self.dice.below(4) as i64);
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
                    let list = RefereeValue::List(vec![value, self.word(property)]);
                    let within = self.compared(Operand::Property(property), &[Operator::In], list);
                    return self.maybe_without(within);
                }
                self.compared(Operand::Property(property), &EQUALITIES, value)
            }
        }
    }

    pub(super) fn maybe_without(&mut self, statement: RefereeStatement) -> RefereeStatement {
        if self.dice.once_in(3) {
            RefereeStatement::Without(Box::new(statement))
        } else {
            statement
        }
    }

    fn of_attribute(&mut self, name: &str) -> RefereeStatement {
        let left = Operand::Attribute(name.to_owned());
        let value = trace::attribute(self.dice, name);
        match name {
            "num" | "dbl" => {
                let name = self.dice.pick(&["num", "dbl"]);
                let value = trace::attribute(self.dice, name);
                match self.dice.below(6) {
                    0 => {
                        let between = RefereeStatement::Between(left, RefereeValue::Int(0), value);
                        self.maybe_without(between)
                    }
                    1 => {
                        let list = RefereeValue::List(vec![value, RefereeValue::Int(1)]);
                        let within = self.compared(left, &[Operator::In], list);
                        self.maybe_without(within)
                    }
                    _ => self.compared(left, &ORDERS, value),
                }
            }
            "mix" => match value {
                RefereeValue::Int(_) => self.compared(left, &ORDERS, value),
                _ => self.compared(left, &EQUALITIES, value),
            },
            "flag" => self.compared(left, &EQUALITIES, value),
            "tags" => {
                let tag = RefereeValue::text(self.dice.pick(&["web", "eu"]));
                match self.dice.below(3) {
                    0 => self.compared(left, &EQUALITIES, value),
                    1 => {
                        let tags = RefereeValue::List(vec![tag]);
                        self.compared(left, &[Operator::Contains], tags)
                    }
                    _ => {
                        let contains = self.compared(left, &[Operator::Contains], tag);
                        self.maybe_without(contains)
                    }
                }
            }
            "doc" => {
                let part =
                    RefereeValue::text(self.dice.pick(&[r#"{"id":1}"#, r#"{"id":2}"#, "tea"]));
                let contains = self.compared(left, &[Operator::Contains], part);
                self.maybe_without(contains)
            }
            _ => self.of_text(left),
        }
    }

    fn of_text(&mut self, left: Operand) -> RefereeStatement {
        let text = trace::attribute(self.dice, "txt");
        match self.dice.below(5) {
            0 => {
                let part = RefereeValue::text(self.dice.pick(&["c", "x1", "5", "og"]));
                let operators = [Operator::Contains, Operator::StartsWith, Operator::EndsWith];
                let statement = self.compared(left, &operators, part);
                self.maybe_without(statement)
            }
            1 => {
                let pattern = RefereeValue::text(self.dice.pick(&PATTERNS));
                let matches = self.compared(left, &[Operator::Matches], pattern);
                self.maybe_without(matches)
            }
            2 => {
                let list = RefereeValue::List(vec![text, RefereeValue::text("dog")]);
                let within = self.compared(left, &[Operator::In], list);
                self.maybe_without(within)
            }
            _ => self.compared(left, &EQUALITIES, text),
        }
    }

    fn exists(&mut self) -> RefereeStatement {
        let names = ["num", "txt", "doc", "tags", "ghost", "region", "host.name"];
        let operand = Operand::Attribute(self.dice.pick(&names).to_owned());
        self.maybe_without(RefereeStatement::Exists(operand))
    }

    /// Generates a condition on one event or link.
    fn of_item(&mut self) -> RefereeStatement {
        if self.dice.once_in(3) {
            let name = self.dice.pick(&["trace_id", "span_id"]).to_owned();
            let exists = RefereeStatement::Exists(Operand::Attribute(name));
            return RefereeStatement::Link(self.dice.once_in(2).then(|| Box::new(exists)));
        }
        if self.dice.once_in(4) {
            return RefereeStatement::Event(None);
        }
        let name = RefereeValue::text(self.dice.pick(&["exception", "retry"]));
        let left = Operand::Attribute("name".to_owned());
        let mut condition = self.compared(left, &EQUALITIES, name);
        if self.dice.once_in(2) {
            let attribute = self.dice.pick(&["num", "txt", "flag"]);
            let more = self.of_attribute(attribute);
            condition = RefereeStatement::And(Box::new(condition), Box::new(more));
        }
        RefereeStatement::Event(Some(Box::new(condition)))
    }

    fn scoped(&mut self) -> RefereeStatement {
        let (scope, name, value) = match self.dice.below(6) {
            0 => (Scope::Resource, "service.name", RefereeValue::text("s0")),
            1 => (Scope::Resource, "region", RefereeValue::text("eu")),
            2 => (Scope::Library, "name", RefereeValue::text("lib")),
            3 => (Scope::Event, "txt", RefereeValue::text("cat")),
            4 => (Scope::Link, "span_id", RefereeValue::Text(trace::id_text(1))),
            _ => (Scope::Event, "name", RefereeValue::text("retry")),
        };
        let operand = Operand::Scoped(scope, name.to_owned());
        if self.dice.once_in(3) {
            return self.maybe_without(RefereeStatement::Exists(operand));
        }
        self.compared(operand, &[Operator::Equal], value)
    }

    fn filtered(&mut self) -> RefereeStatement {
        let of = |name: &str, filter| {
            Operand::Filter(Box::new(Operand::Attribute(name.to_owned())), filter)
        };
        let path = |path: &str| of("doc", ValueFilter::JsonPath(path.to_owned()));
        let length = |operand| Operand::Filter(Box::new(operand), ValueFilter::Length);
        let skus = |skus: &[&str]| {
            RefereeValue::List(skus.iter().map(|sku| RefereeValue::text(sku)).collect())
        };
        let (operand, value) = match self.dice.below(8) {
            0 => (path("$.id"), RefereeValue::Int(1)),
            1 => (path("$.nested.id"), RefereeValue::Int(1)),
            2 => (path("$.lines[0].sku"), RefereeValue::text("tea")),
            3 => (of("txt", ValueFilter::Regex("[0-9]+".to_owned())), RefereeValue::text("15")),
            4 => (of("tags", ValueFilter::GetIndex(0)), RefereeValue::text("web")),
            5 => (path("$.lines[*].sku"), skus(&["tea", "cup"])),
            6 => (length(path("$.ghost")), RefereeValue::Int(0)),
            _ => (of("tags", ValueFilter::Length), RefereeValue::Int(1)),
        };
        match self.dice.below(4) {
            0 => self.maybe_without(RefereeStatement::Exists(operand)),
            1 if !matches!(value, RefereeValue::List(_)) => {
                let list = RefereeValue::List(vec![value]);
                let within = self.compared(operand, &[Operator::In], list);
                self.maybe_without(within)
            }
            _ => self.compared(operand, &EQUALITIES, value),
        }
    }

    fn computed(&mut self) -> RefereeStatement {
        let operator = self.choose(&[
            Arithmetic::Plus,
            Arithmetic::Minus,
            Arithmetic::Times,
            Arithmetic::Divided,
        ]);
        let left = Operand::Attribute(self.dice.pick(&["num", "dbl"]).to_owned());
        let right = Operand::Literal(RefereeValue::Int(self.dice.below(3) as i64));
        // In a selector a computed value has to be on the left.
        let computed = Operand::Arithmetic(Box::new(left), operator, Box::new(right));
        let value = trace::attribute(self.dice, "dbl");
        self.compared(computed, &ORDERS[2..], value)
    }
}
