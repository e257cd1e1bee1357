//! Parses text into a query.

use super::{
    Comparison, Condition, Json, Literal, Operand, PathSelector, Query, Segment, Start,
    pattern_source,
};
use crate::value::{json, pattern};

/// The maximum nesting depth of filters and of parentheses.
const NESTING_MAX: usize = 16;

/// The maximum index of the RFC: every common number type represents it exactly.
const INDEX_MAX: i64 = (1 << 53) - 1;

/// Parses a path. The error contains the reason and the position, in characters from 1.
pub(crate) fn parse(path: &str) -> Result<Query, String> {
    let mut parser = PathParser { path, at: 0, depth: 0 };
    let query = parser.whole();
    query.map_err(|expected| {
        let place = path[..parser.at].chars().count() + 1;
        format!("the JSON path has a mistake at its character {place}: {expected}")
    })
}

struct PathParser<'a> {
    path: &'a str,
    at: usize,
    depth: usize,
}

type PathResult<T> = Result<T, &'static str>;

impl<'a> PathParser<'a> {
    fn whole(&mut self) -> PathResult<Query> {
        if self.path.is_empty() {
            return Err("it is empty; `$` is the whole document");
        }
        let is_marked = self.take("$") || self.take("@");
        let mut segments = Vec::new();
        if !is_marked && !self.rest().starts_with(['.', '[']) {
            segments.push(Segment { is_deep: false, selectors: vec![self.behind_point()?] });
        }
        self.segments(&mut segments)?;
        if self.at < self.path.len() {
            return Err("expected `.`, `[` or the end");
        }
        Ok(Query { start: Start::Document, segments })
    }

    /// Parses `$…` or `@…` inside a filter.
    fn query(&mut self) -> PathResult<Query> {
        let start = if self.take("$") {
            Start::Document
        } else if self.take("@") {
            Start::This
        } else {
            return Err("expected a value, `@` or `$`");
        };
        let mut segments = Vec::new();
        self.segments(&mut segments)?;
        Ok(Query { start, segments })
    }

    fn segments(&mut self, segments: &mut Vec<Segment>) -> PathResult<()> {
        loop {
            let before = self.at;
            self.skip_blanks();
            let is_deep = self.take("..");
            let selectors = if self.rest().starts_with('[') {
                self.bracketed()?
            } else if is_deep || self.take(".") {
                vec![self.behind_point()?]
            } else {
                self.at = before;
                return Ok(());
            };
            segments.push(Segment { is_deep, selectors });
        }
    }

    fn behind_point(&mut self) -> PathResult<PathSelector> {
        if self.take("*") {
            return Ok(PathSelector::Wildcard);
        }
        let is_first = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
        let is_inner = |c: char| is_first(c) || c.is_ascii_digit() || c == '-';
        let rest = self.rest();
        let end = rest.find(|c: char| !is_inner(c)).unwrap_or(rest.len());
        if end == 0 || !rest.starts_with(is_first) {
            return Err(
                "expected a name or `*`; a name of other characters is written as `[\"…\"]`",
            );
        }
        self.at += end;
        Ok(PathSelector::Name(rest[..end].to_owned()))
    }

    fn bracketed(&mut self) -> PathResult<Vec<PathSelector>> {
        let mut selectors = Vec::new();
        self.take("[");
        loop {
            self.skip_blanks();
            selectors.push(self.selector()?);
            self.skip_blanks();
            if self.take("]") {
                return Ok(selectors);
            }
            if !self.take(",") {
                return Err("expected `,` or `]`");
            }
        }
    }

    fn selector(&mut self) -> PathResult<PathSelector> {
        if self.take("*") {
            return Ok(PathSelector::Wildcard);
        }
        if self.take("?") {
            self.skip_blanks();
            return self.or().map(PathSelector::Filter);
        }
        if self.rest().starts_with(['"', '\'']) {
            return self.text().map(PathSelector::Name);
        }
        let start = self.index()?;
        self.skip_blanks();
        if !self.take(":") {
            return start
                .map(PathSelector::Index)
                .ok_or("expected a name in quotes, a number, `*` or `?`");
        }
        self.skip_blanks();
        let end = self.index()?;
        self.skip_blanks();
        let mut step = None;
        if self.take(":") {
            self.skip_blanks();
            step = self.index()?;
        }
        Ok(PathSelector::Slice { start, end, step: step.unwrap_or(1) })
    }

    fn index(&mut self) -> PathResult<Option<i64>> {
        let rest = self.rest();
        let digits = rest.strip_prefix('-').unwrap_or(rest);
        let length = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let written = &rest[..rest.len() - digits.len() + length];
        if written.is_empty() {
            return Ok(None);
        }
        let is_padded = length > 1 && digits.starts_with('0');
        let index = written.parse().ok().filter(|index: &i64| index.abs() <= INDEX_MAX);
        match index {
            Some(index) if !is_padded && written != "-0" => {
                self.at += written.len();
                Ok(Some(index))
            }
            _ => Err("expected a whole number"),
        }
    }

    /// Parses a text in single or double quotes, with the escapes of JSON.
    fn text(&mut self) -> PathResult<String> {
        const NO_END: &str = "the text that begins here has no end";
        let quote = if self.rest().starts_with('"') { '"' } else { '\'' };
        let mut as_json = String::from("\"");
        let mut chars = self.rest().char_indices().skip(1);
        loop {
            match chars.next().ok_or(NO_END)? {
                (end, c) if c == quote => {
                    as_json.push('"');
                    let Ok(Json::Text(text)) = json::read(&as_json) else {
                        return Err("the text that begins here has a wrong escape");
                    };
                    self.at += end + 1;
                    return Ok(text);
                }
                (_, '"') => as_json.push_str("\\\""),
                (_, '\\') => match chars.next().ok_or(NO_END)?.1 {
                    '\'' if quote == '\'' => as_json.push('\''),
                    '"' if quote == '\'' => {
                        return Err("the text that begins here has a wrong escape");
                    }
                    c => as_json.extend(['\\', c]),
                },
                (_, c) => as_json.push(c),
            }
        }
    }

    fn or(&mut self) -> PathResult<Condition> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err("it is nested too deeply");
        }
        let mut any = vec![self.and()?];
        while self.take_operator("||") {
            any.push(self.and()?);
        }
        self.depth -= 1;
        Ok(one_or(any, Condition::Or))
    }

    fn and(&mut self) -> PathResult<Condition> {
        let mut all = vec![self.basic()?];
        while self.take_operator("&&") {
            all.push(self.basic()?);
        }
        Ok(one_or(all, Condition::And))
    }

    fn basic(&mut self) -> PathResult<Condition> {
        let is_negated = self.take("!");
        self.skip_blanks();
        let before = self.at;
        let condition = if self.take("(") {
            self.skip_blanks();
            let condition = self.or()?;
            self.skip_blanks();
            self.expect(")")?;
            condition
        } else if let Some(condition) = self.matches()? {
            condition
        } else {
            self.comparison(before, is_negated)?
        };
        Ok(if is_negated { Condition::Not(Box::new(condition)) } else { condition })
    }

    /// Parses a comparison, or a single query, which tests for existence.
    fn comparison(&mut self, start: usize, is_negated: bool) -> PathResult<Condition> {
        const COMPARISONS: [(&str, Comparison); 6] = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::AtMost),
            (">=", Comparison::AtLeast),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let query = if self.rest().starts_with(['$', '@']) { Some(self.query()?) } else { None };
        let literal = if query.is_none() { Some(self.operand()?) } else { None };
        let before = self.at;
        self.skip_blanks();
        let comparison = COMPARISONS.iter().find(|(written, _)| self.take(written));
        match (comparison, query) {
            (None, Some(query)) => {
                self.at = before;
                Ok(Condition::Exists(query))
            }
            (None, None) => Err("expected a comparison such as `==`"),
            (Some(_), _) if is_negated => {
                self.at = start;
                Err("`!` stands before a comparison in parentheses only")
            }
            (Some((_, comparison)), query) => {
                let left = match (query, literal) {
                    (Some(query), _) => self.singular(query, start)?,
                    (None, Some(operand)) => operand,
                    (None, None) => return Err("expected a value"),
                };
                self.skip_blanks();
                Ok(Condition::Compare { left, comparison: *comparison, right: self.operand()? })
            }
        }
    }

    fn operand(&mut self) -> PathResult<Operand> {
        let rest = self.rest();
        if rest.starts_with(['"', '\'']) {
            return self.text().map(|text| Operand::Literal(Json::Text(text)));
        }
        if rest.starts_with(['$', '@']) {
            let start = self.at;
            let query = self.query()?;
            return self.singular(query, start);
        }
        for (word, value) in
            [("true", Json::Bool(true)), ("false", Json::Bool(false)), ("null", Json::Null)]
        {
            if self.take(word) {
                return Ok(Operand::Literal(value));
            }
        }
        if self.take("length(") {
            let operand = self.argument(Self::operand)?;
            self.end_of_call()?;
            return Ok(Operand::Length(Box::new(operand)));
        }
        for (call, make) in
            [("count(", Operand::Count as fn(Query) -> Operand), ("value(", Operand::Value)]
        {
            if self.take(call) {
                let query = self.argument(Self::query)?;
                self.end_of_call()?;
                return Ok(make(query));
            }
        }
        self.number()
    }

    /// Returns the query as an operand of a comparison; `start` is its position.
    fn singular(&mut self, query: Query, start: usize) -> PathResult<Operand> {
        if query.is_singular() {
            return Ok(Operand::Query(query));
        }
        self.at = start;
        Err("what is compared has to be one value: names and indices only")
    }

    fn number(&mut self) -> PathResult<Operand> {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'))
            .unwrap_or(rest.len());
        match json::read(&rest[..end]) {
            Ok(number) => {
                self.at += end;
                Ok(Operand::Literal(number))
            }
            Err(_) => Err("expected a value, `@` or `$`"),
        }
    }

    fn matches(&mut self) -> PathResult<Option<Condition>> {
        let is_whole = self.take("match(");
        if !is_whole && !self.take("search(") {
            return Ok(None);
        }
        let text = self.argument(Self::operand)?;
        self.expect(",")?;
        let pattern = self.argument(Self::operand)?;
        self.end_of_call()?;
        let compiled = match &pattern {
            Operand::Literal(Json::Text(pattern)) if pattern::check(pattern).is_ok() => {
                Some(Literal::from(pattern_source(pattern, is_whole)))
            }
            _ => None,
        };
        Ok(Some(Condition::Matches { text, pattern, is_whole, compiled }))
    }

    fn argument<T>(&mut self, read: impl Fn(&mut Self) -> PathResult<T>) -> PathResult<T> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err("it is nested too deeply");
        }
        self.skip_blanks();
        let argument = read(self)?;
        self.skip_blanks();
        self.depth -= 1;
        Ok(argument)
    }

    fn end_of_call(&mut self) -> PathResult<()> {
        if self.take(")") { Ok(()) } else { Err("expected the `)` that ends the arguments") }
    }

    fn expect(&mut self, word: &str) -> PathResult<()> {
        match (self.take(word), word) {
            (true, _) => Ok(()),
            (false, ")") => Err("expected `)`"),
            (false, _) => Err("expected `,` and another argument"),
        }
    }

    fn take_operator(&mut self, operator: &str) -> bool {
        let before = self.at;
        self.skip_blanks();
        let taken = self.take(operator);
        if taken {
            self.skip_blanks();
        } else {
            self.at = before;
        }
        taken
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    fn take(&mut self, word: &str) -> bool {
        let is_there = self.rest().starts_with(word);
        if is_there {
            self.at += word.len();
        }
        is_there
    }

    fn rest(&self) -> &'a str {
        &self.path[self.at..]
    }
}

fn one_or(mut several: Vec<Condition>, join: fn(Vec<Condition>) -> Condition) -> Condition {
    match several.pop() {
        Some(one) if several.is_empty() => one,
        Some(last) => {
            several.push(last);
            join(several)
        }
        None => join(several),
    }
}
