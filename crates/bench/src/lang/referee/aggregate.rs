//! Aggregates, groups, gaps and self times: enumerates every possible result of the selection.

use super::{
    clocks::shifts,
    document::{Aggregate, Operand, Part, Summary},
    operand::{Choice, count},
    select::{Court, Focus, Unsaid},
    truth::{Member, Truths},
    value::{RefereeValue, equal},
};

/// The upper bound of spans with an open selection; all their subsets are enumerated.
const OPEN_SPANS_MAX: usize = 6;
/// The upper bound of other hosts with children of a span; all possible offsets of their clocks are enumerated.
const REMOTE_HOSTS_MAX: usize = 2;

/// A group: its keys, and its spans.
type Group = (Vec<Choice>, Vec<usize>);

impl Court<'_> {
    /// Returns every set of spans that the selection may select among the present spans; none where there are too many.
    fn subsets(&self, members: &[Member]) -> Option<Vec<Vec<usize>>> {
        let open = members.iter().filter(|it| **it == Member::Maybe).count();
        if open > OPEN_SPANS_MAX {
            self.unsaid.set(Some(Unsaid::OpenSpans));
            return None;
        }
        let mut all = vec![Vec::new()];
        for (span, member) in members.iter().enumerate() {
            let with: Vec<Vec<usize>> = all
                .iter()
                .map(|set: &Vec<usize>| set.iter().copied().chain([span]).collect())
                .collect();
            match member {
                Member::No => {}
                Member::Maybe => all.extend(with),
                Member::Yes => all = with,
            }
        }
        Some(all)
    }

    pub(super) fn aggregate(&self, it: &Aggregate, focus: Focus<'_>) -> Vec<Choice> {
        let members = self.select(&it.selection, focus);
        if it.summary == Summary::Count {
            let (least, most) = self.number(&members);
            return vec![count(least, most)];
        }
        let Some(subsets) = self.subsets(&members) else { return vec![Choice::Any] };
        subsets.iter().flat_map(|spans| self.summary(it, spans)).collect()
    }

    /// Evaluates a predicate of an operand; for an aggregate with keys, of each of its groups.
    pub(super) fn in_groups(
        &self,
        operand: &Operand,
        focus: Focus<'_>,
        holds: impl Fn(&[Choice]) -> Truths,
    ) -> Truths {
        let Operand::Aggregate(aggregate) = operand else {
            return holds(&self.choices(operand, focus));
        };
        if aggregate.keys.is_empty() {
            return holds(&self.choices(operand, focus));
        }
        let members = self.select(&aggregate.selection, focus);
        let Some(subsets) = self.subsets(&members) else { return Truths::ANY };
        let mut truths = Truths::EMPTY;
        for spans in subsets {
            truths |= self.all_groups(aggregate, &spans, &holds);
        }
        truths
    }

    fn all_groups(
        &self,
        aggregate: &Aggregate,
        spans: &[usize],
        holds: impl Fn(&[Choice]) -> Truths,
    ) -> Truths {
        let mut groups: Vec<Group> = Vec::new();
        for span in spans {
            let focus = Focus { span: Some(*span), ..Focus::default() };
            let key: Vec<_> =
                aggregate.keys.iter().flat_map(|key| self.choices(key, focus)).collect();
            if key.contains(&Choice::Any) {
                self.unsaid.set(Some(Unsaid::DroppedKey));
            }
            match groups.iter_mut().find(|(other, _)| is_same(other, &key)) {
                Some((_, spans)) => spans.push(*span),
                None => groups.push((key, vec![*span])),
            }
        }
        // A comparison of no group evaluates like a comparison of no span.
        if groups.is_empty() {
            groups.push((Vec::new(), Vec::new()));
        }
        let mut truths = Truths::TRUE;
        let mut is_undefined = false;
        for (_, spans) in &groups {
            let choices = match aggregate.summary {
                Summary::Count => {
                    vec![count(
                        spans.len(),
                        if self.is_complete { spans.len() } else { usize::MAX },
                    )]
                }
                _ => self.summary(aggregate, spans),
            };
            let of_group = holds(&choices);
            is_undefined |= of_group.may_be(Truths::UNDEFINED);
            truths = truths.and(of_group);
        }
        if is_undefined && truths.may_be(Truths::FALSE) {
            self.unsaid.set(Some(Unsaid::UndefinedInOneGroup));
        }
        // A later group may be undefined too.
        if self.is_complete {
            return truths;
        }
        if is_undefined {
            self.unsaid.set(Some(Unsaid::UndefinedInOneGroup));
        }
        truths.and(Truths::ANY)
    }

    /// Evaluates the aggregate of these spans, and where further spans may come, of those too.
    fn summary(&self, it: &Aggregate, spans: &[usize]) -> Vec<Choice> {
        let Some(operand) = &it.operand else { return vec![Choice::Absent] };
        let mut choices: Vec<Choice> = Vec::new();
        for span in spans {
            choices.extend(self.choices(operand, Focus { span: Some(*span), ..Focus::default() }));
        }
        if it.summary == Summary::Values {
            // The distinct values are the present ones.
            choices.retain(|choice| *choice != Choice::Absent);
        } else if choices.contains(&Choice::Absent) {
            // One span without a value makes the aggregate absent, whatever spans come later.
            return vec![Choice::Absent];
        }
        let mut values = Vec::new();
        for choice in &choices {
            match choice {
                Choice::Value(value) => values.push(value.clone()),
                _ => return self.of_ranges(it, operand, &choices),
            }
        }
        if values.is_empty() {
            return vec![if self.is_complete { Choice::Absent } else { Choice::Any }];
        }
        let now = summarize(it.summary, &values);
        match it.summary {
            _ if self.is_complete => vec![now],
            Summary::Min | Summary::Max if values.iter().all(|it| it.number().is_some()) => {
                self.of_ranges(it, operand, &choices)
            }
            _ => later(it.summary, now),
        }
    }

    /// Where a value is a range, or unknown: returns the minimum and the maximum.
    fn of_ranges(&self, it: &Aggregate, operand: &Operand, choices: &[Choice]) -> Vec<Choice> {
        let known: Vec<&RefereeValue> = choices
            .iter()
            .filter_map(|choice| if let Choice::Value(value) = choice { Some(value) } else { None })
            .collect();
        match it.summary {
            // If known values differ, there is no common value, whatever the others are.
            Summary::Value if known.iter().any(|value| !equal(value, known[0])) => {
                return vec![Choice::Absent];
            }
            Summary::Values if !known.is_empty() => {
                return vec![Choice::AtLeast(known.into_iter().cloned().collect())];
            }
            _ => {}
        }
        let mut ranges = Vec::new();
        let mut may_lack = !self.is_complete && may_be_absent(operand);
        for choice in choices {
            match choice {
                Choice::Range(low, high) => ranges.push((*low, *high)),
                Choice::Lacking => ranges.push((f64::NEG_INFINITY, f64::INFINITY)),
                Choice::Any => {
                    may_lack = true;
                    if matches!(it.summary, Summary::Min | Summary::Max) {
                        self.unsaid.set(Some(Unsaid::ExtremeOfDropped));
                    }
                    ranges.push((f64::NEG_INFINITY, f64::INFINITY));
                }
                Choice::Value(value) => match value.number() {
                    Some(number) => ranges.push((number, number)),
                    None => return vec![Choice::Any],
                },
                Choice::Absent | Choice::AtLeast(_) => return vec![Choice::Any],
            }
        }
        if !self.is_complete {
            ranges.push((f64::NEG_INFINITY, f64::INFINITY));
        }
        let (mut lows, mut highs): (Vec<f64>, Vec<f64>) = ranges.into_iter().unzip();
        lows.sort_by(f64::total_cmp);
        highs.sort_by(f64::total_cmp);
        let last = lows.len() - 1;
        let range = match it.summary {
            Summary::Min => Choice::Range(lows[0], highs[0]),
            Summary::Max => Choice::Range(lows[last], highs[last]),
            _ if !self.is_complete => return vec![Choice::Any],
            Summary::Sum => Choice::Range(lows.iter().sum(), highs.iter().sum()),
            Summary::Avg => {
                let number = lows.len() as f64;
                Choice::Range(lows.iter().sum::<f64>() / number, highs.iter().sum::<f64>() / number)
            }
            Summary::Percentile(percent) => {
                let rank = rank(percent, lows.len());
                Choice::Range(lows[rank], highs[rank])
            }
            Summary::Value => {
                may_lack |= lows.len() > 1;
                Choice::Range(lows[0], highs[last])
            }
            Summary::Values | Summary::Count => return vec![Choice::Any],
        };
        if may_lack { vec![range, Choice::Absent] } else { vec![range] }
    }

    /// Evaluates the gap from the end of the first span to the start of the second.
    pub(super) fn gap(&self, from: &Part, to: &Part, focus: Focus<'_>) -> Vec<Choice> {
        let (first, second) = (self.select_part(from, focus), self.select_part(to, focus));
        let mut choices = Vec::new();
        let (Some(first), Some(second)) = (self.subsets(&first), self.subsets(&second)) else {
            return vec![Choice::Any];
        };
        for first in &first {
            for second in &second {
                match (first.as_slice(), second.as_slice()) {
                    ([first], [second]) => {
                        choices.push(self.gap_of(*first, *second));
                        if !self.is_complete {
                            choices.push(Choice::Absent);
                        }
                    }
                    ([_, _, ..], _) | (_, [_, _, ..]) => choices.push(Choice::Absent),
                    _ if self.is_complete => choices.push(Choice::Absent),
                    _ => choices.push(Choice::Any),
                }
            }
        }
        choices
    }

    fn gap_of(&self, first: usize, second: usize) -> Choice {
        if first == second {
            return Choice::Absent;
        }
        let Some(end) = self.spans[first].end else { return Choice::Lacking };
        let gap = i128::from(self.spans[second].start) - i128::from(end);
        if self.clocks.is_one_host(first, second) {
            return Choice::Value(RefereeValue::Duration(gap));
        }
        let (least, most) = self.clocks.shift(second, first);
        let add = |shift: Option<i128>, none: f64| shift.map_or(none, |shift| (gap + shift) as f64);
        Choice::Range(add(least, f64::NEG_INFINITY), add(most, f64::INFINITY))
    }

    /// Evaluates the part of a span that none of its children covers, for all possible clock offsets.
    pub(super) fn self_time(&self, span: usize) -> Vec<Choice> {
        let here = &self.spans[span];
        let Some(end) = here.end else { return vec![Choice::Lacking] };
        let whole = (i128::from(here.start), i128::from(end));
        let children = self.children(span);
        let mut hosts: Vec<usize> = children.iter().map(|child| self.clocks.host(*child)).collect();
        hosts.retain(|host| *host != self.clocks.host(span));
        hosts.sort_unstable();
        hosts.dedup();
        if children.iter().any(|child| self.spans[*child].end.is_none()) {
            self.unsaid.set(Some(Unsaid::ChildWithoutEnd));
            return vec![Choice::Range(0.0, (whole.1 - whole.0) as f64)];
        }
        if hosts.len() > REMOTE_HOSTS_MAX {
            self.unsaid.set(Some(Unsaid::RemoteHosts));
            return vec![Choice::Any];
        }
        let mut range: Option<(i128, i128)> = None;
        // In both orders, since a later host may bound a clock too.
        for _ in 0..hosts.len().max(1) {
            hosts.reverse();
            for way in self.ways(span, &hosts, &children) {
                let covers = children.iter().map(|child| {
                    let host = self.clocks.host(*child);
                    let shift = hosts.iter().position(|it| *it == host).map_or(0, |at| way[at]);
                    let child = &self.spans[*child];
                    let end = child.end.map_or(0, i128::from);
                    (i128::from(child.start) + shift, end + shift)
                });
                let time = uncovered(whole, covers.collect());
                let (low, high) = range.unwrap_or((time, time));
                range = Some((low.min(time), high.max(time)));
            }
        }
        let Some((low, high)) = range else { return vec![Choice::Any] };
        let low = if self.is_complete { low } else { 0 };
        if low == high {
            return vec![Choice::Value(RefereeValue::Duration(low))];
        }
        vec![Choice::Range(low as f64, high as f64)]
    }

    /// Returns the relevant combinations of offsets of these hosts' clocks to the clock of the span.
    fn ways(&self, span: usize, hosts: &[usize], children: &[usize]) -> Vec<Vec<i128>> {
        let here = self.clocks.host(span);
        let edges = |index: &usize| {
            let span = &self.spans[*index];
            [Some(span.start), span.end].into_iter().flatten().map(i128::from)
        };
        let mut ways: Vec<Vec<i128>> = vec![Vec::new()];
        for host in hosts {
            let of_host: Vec<usize> = children
                .iter()
                .copied()
                .filter(|child| self.clocks.host(*child) == *host)
                .collect();
            let moved: Vec<i128> = of_host.iter().flat_map(edges).collect();
            let mut next = Vec::new();
            for way in ways {
                // The fixed times: the span, its children on its own host, and those of earlier hosts.
                let mut fixed: Vec<i128> = edges(&span).collect();
                for child in children {
                    let of = self.clocks.host(*child);
                    let at = hosts.iter().position(|it| *it == of);
                    match at {
                        None => fixed.extend(edges(child)),
                        Some(at) if at < way.len() => {
                            fixed.extend(edges(child).map(|it| it + way[at]));
                        }
                        Some(_) => {}
                    }
                }
                let bounds = self.clocks.shift_of_hosts(*host, here);
                let mut candidates = shifts(bounds, [&moved, &fixed]);
                for (other, of) in way.iter().zip(hosts) {
                    let (least, most) = self.clocks.shift_of_hosts(*host, *of);
                    candidates.extend(least.into_iter().chain(most).map(|apart| other + apart));
                }
                let is_within = |shift: &i128| {
                    bounds.0.is_none_or(|least| *shift >= least)
                        && bounds.1.is_none_or(|most| *shift <= most)
                };
                for shift in candidates.into_iter().filter(is_within) {
                    let is_allowed = way.iter().zip(hosts).all(|(other, of)| {
                        let (least, most) = self.clocks.shift_of_hosts(*host, *of);
                        let apart = shift - other;
                        least.is_none_or(|least| apart >= least)
                            && most.is_none_or(|most| apart <= most)
                    });
                    if is_allowed {
                        next.push(way.iter().copied().chain([shift]).collect());
                    }
                }
            }
            ways = next;
        }
        ways
    }
}

fn is_same(left: &[Choice], right: &[Choice]) -> bool {
    left.len() == right.len()
        && left.iter().zip(right).all(|pair| match pair {
            (Choice::Value(left), Choice::Value(right)) => is_one(left, right),
            (left, right) => left == right,
        })
}

/// Whether two values count as one distinct value: a text that holds a number differs from the number.
fn is_one(left: &RefereeValue, right: &RefereeValue) -> bool {
    let is_text = |value: &RefereeValue| matches!(value, RefereeValue::Text(_));
    is_text(left) == is_text(right) && equal(left, right)
}

/// Returns the length of an interval that the others do not cover.
fn uncovered((start, end): (i128, i128), mut covers: Vec<(i128, i128)>) -> i128 {
    covers.sort_unstable();
    let (mut here, mut free) = (start, 0);
    for (from, to) in covers {
        if from > here {
            free += from.min(end) - here.min(end);
        }
        here = here.max(to);
    }
    free + (end - here.min(end))
}

fn summarize(summary: Summary, values: &[RefereeValue]) -> Choice {
    let mut numbers: Vec<&RefereeValue> =
        values.iter().filter(|it| it.number().is_some()).collect();
    let are_numbers = numbers.len() == values.len();
    let number = |value: &&RefereeValue| value.number().unwrap_or(f64::NAN);
    numbers.sort_by(|left, right| number(left).total_cmp(&number(right)));
    match summary {
        Summary::Value => {
            let is_shared = values.iter().all(|value| equal(value, &values[0]));
            if is_shared { Choice::Value(values[0].clone()) } else { Choice::Absent }
        }
        Summary::Values => {
            let mut different: Vec<RefereeValue> = Vec::new();
            for value in values {
                if !different.iter().any(|other| is_one(other, value)) {
                    different.push(value.clone());
                }
            }
            Choice::Value(RefereeValue::List(different))
        }
        _ if !are_numbers => Choice::Absent,
        Summary::Min => Choice::Value(numbers[0].clone()),
        Summary::Max => Choice::Value(numbers[numbers.len() - 1].clone()),
        Summary::Percentile(percent) => {
            Choice::Value(numbers[rank(percent, numbers.len())].clone())
        }
        Summary::Sum => sum(values),
        Summary::Avg => match sum(values) {
            Choice::Value(RefereeValue::Duration(nanos)) if nanos % values.len() as i128 == 0 => {
                Choice::Value(RefereeValue::Duration(nanos / values.len() as i128))
            }
            Choice::Value(sum) => {
                let average = sum.number().unwrap_or(f64::NAN) / values.len() as f64;
                Choice::Range(average, average)
            }
            other => other,
        },
        Summary::Count => count(values.len(), values.len()),
    }
}

/// Returns the index of the smallest value that this percentage of all values do not exceed.
fn rank(percent: u8, number: usize) -> usize {
    (usize::from(percent) * number).div_ceil(100).max(1) - 1
}

fn sum(values: &[RefereeValue]) -> Choice {
    let mut whole = 0_i128;
    let mut is_duration = false;
    for value in values {
        match value {
            RefereeValue::Int(int) => whole += i128::from(*int),
            RefereeValue::Duration(nanos) => {
                whole += nanos;
                is_duration = true;
            }
            _ => {
                let sum = values.iter().filter_map(RefereeValue::number).sum();
                return Choice::Value(RefereeValue::Double(sum));
            }
        }
    }
    if is_duration {
        return Choice::Value(RefereeValue::Duration(whole));
    }
    i64::try_from(whole).map_or(Choice::Range(whole as f64, whole as f64), |whole| {
        Choice::Value(RefereeValue::Int(whole))
    })
}

/// Whether a span may lack the operand; every span has times, even one that does not report them.
fn may_be_absent(operand: &Operand) -> bool {
    !matches!(operand, Operand::Property(_))
}

/// Returns the possible values of a summary when further spans may come.
fn later(summary: Summary, now: Choice) -> Vec<Choice> {
    match (summary, now) {
        // Different values stay different.
        (Summary::Value, now) => vec![now, Choice::Absent],
        (Summary::Values, Choice::Value(RefereeValue::List(items))) => {
            vec![Choice::AtLeast(items)]
        }
        _ => vec![Choice::Any],
    }
}
