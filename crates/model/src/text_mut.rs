//! Every text in an outcome and in a trace: these may contain secrets, and text of untrusted senders.
//!
//! Each structure is destructured by field name, so that a new field must be handled here. Deliberately absent: the search for
//! secrets and their replacement.

use crate::{
    Analysis, Answer, AssertionJudgement, Body, ClaimJudgement, ComparisonEvidence, Diagnosis,
    EvidenceList, EvidenceRange, EvidenceValue, Exit, Finding, GroupEvidence, GroupKeyPart,
    GroupsEvidence, Judgement, NearMiss, NoAnswer, Outcome, OutputValue, Overtaken, Place,
    PluginAnalysis, ProcessQuiet, RecordedRequest, Reply, Response, RuleAnalysis, Settlement,
    SpanEvidence, SpecJudgement, StatementEvidence, StoreGap, TreeSpan, UnansweredPeer,
    UnsettledReason,
    trace::{EntityData, EventData, LinkData, ResourceData, ScopeData, SpanData, Status, Value},
};

/// A mutable reference to a text.
#[derive(Debug, PartialEq, Eq)]
pub enum TextMut<'a> {
    /// A text.
    Text(&'a mut String),
    /// A body that is no UTF-8, but may contain texts.
    Bytes(&'a mut Vec<u8>),
    /// A body, which may be shared.
    Body(&'a mut Body),
}

impl SpanData {
    /// Returns all texts in it.
    pub fn texts_mut(&mut self) -> Vec<TextMut<'_>> {
        let Self {
            id: _,
            parent: _,
            trace_state,
            flags: _,
            name,
            kind: _,
            start: _,
            end: _,
            attributes,
            dropped_attributes: _,
            events,
            dropped_events: _,
            links,
            dropped_links: _,
            status: Status { code: _, message },
        } = self;
        let mut said: Vec<_> = [trace_state, name, message].map(TextMut::Text).into();
        pairs(attributes, &mut said);
        for EventData { at: _, name, attributes, dropped_attributes: _ } in events {
            said.push(TextMut::Text(name));
            pairs(attributes, &mut said);
        }
        for link in links {
            let LinkData {
                trace_id: _,
                span_id: _,
                trace_state,
                flags: _,
                attributes,
                dropped_attributes: _,
            } = link;
            said.push(TextMut::Text(trace_state));
            pairs(attributes, &mut said);
        }
        said
    }
}

impl ResourceData {
    /// Returns all texts in it.
    pub fn texts_mut(&mut self) -> Vec<TextMut<'_>> {
        let Self { attributes, dropped_attributes: _, entities, schema_url } = self;
        let mut said = vec![TextMut::Text(schema_url)];
        pairs(attributes, &mut said);
        for EntityData { schema_url, kind, id_keys, description_keys } in entities {
            let keys = id_keys.iter_mut().chain(description_keys);
            said.extend([schema_url, kind].into_iter().chain(keys).map(TextMut::Text));
        }
        said
    }
}

impl ScopeData {
    /// Returns all texts in it.
    pub fn texts_mut(&mut self) -> Vec<TextMut<'_>> {
        let Self { name, version, attributes, dropped_attributes: _, schema_url } = self;
        let mut said: Vec<_> = [name, version, schema_url].map(TextMut::Text).into();
        pairs(attributes, &mut said);
        said
    }
}

fn pairs<'a>(pairs: &'a mut [(String, Value)], said: &mut Vec<TextMut<'a>>) {
    for (key, value) in pairs {
        said.push(TextMut::Text(key));
        value.say(said);
    }
}

impl Value {
    fn say<'a>(&'a mut self, said: &mut Vec<TextMut<'a>>) {
        match self {
            Self::Empty | Self::Bool(_) | Self::Int(_) | Self::Double(_) => {}
            Self::Str(text) => said.push(TextMut::Text(text)),
            Self::Bytes(bytes) => said.push(TextMut::Bytes(bytes)),
            Self::Array(values) => values.iter_mut().for_each(|value| value.say(said)),
            Self::Map(values) => pairs(values, said),
        }
    }
}

impl Outcome {
    /// Returns all texts in it.
    pub fn texts_mut(&mut self) -> Vec<TextMut<'_>> {
        let Self {
            run_id: _,
            test,
            verdict: _,
            provisional: _,
            superseded,
            earlier: _,
            reasons,
            diagnoses,
            trace_id: _,
            request,
            answer,
            settlement,
            overtaken,
            judgement,
            analysis,
            steps: _,
        } = self;
        let mut said = vec![TextMut::Text(test)];
        said.extend(reasons.iter_mut().map(TextMut::Text));
        for Diagnosis { cause: _, says, spans: _, advice } in diagnoses {
            said.extend([says, advice].map(TextMut::Text));
        }
        said.extend(request.iter_mut().flat_map(RecordedRequest::texts_mut));
        said.extend(answer.iter_mut().flat_map(Answer::texts_mut));
        said.extend(settlement.iter_mut().flat_map(Settlement::texts_mut));
        let services = superseded.iter_mut().filter_map(|it| it.service.as_mut());
        said.extend(services.map(TextMut::Text));
        said.extend(overtaken.iter_mut().flat_map(Overtaken::texts_mut));
        said.extend(judgement.texts_mut());
        said.extend(analysis.iter_mut().flat_map(Analysis::texts_mut));
        said
    }
}

impl RecordedRequest {
    /// Returns all texts in it.
    pub fn texts_mut(&mut self) -> Vec<TextMut<'_>> {
        let Self { protocol, method, target, fields, more_fields: _, body, more_body_bytes: _ } =
            self;
        let fields = fields.iter_mut().flat_map(|(name, value)| [name, value]);
        let texts = [protocol, method, target].into_iter().chain(fields).map(TextMut::Text);
        texts.chain([TextMut::Body(body)]).collect()
    }
}

impl Answer {
    /// Returns all texts in it.
    pub fn texts_mut(&mut self) -> Vec<TextMut<'_>> {
        match self {
            Self::Response(Response { status: _, headers, body, duration_ns: _ }) => {
                let headers = headers.iter_mut().flat_map(|(name, value)| [name, value]);
                headers.map(TextMut::Text).chain([TextMut::Body(body)]).collect()
            }
            Self::Exit(Exit { code: _, stdout, stderr, duration_ns: _ }) => {
                vec![TextMut::Body(stdout), TextMut::Text(stderr)]
            }
            Self::Reply(Reply {
                protocol,
                status: _,
                status_name,
                is_error: _,
                headers,
                body,
                duration_ns: _,
            }) => {
                let headers = headers.iter_mut().flat_map(|(name, value)| [name, value]);
                let texts = headers.chain([protocol, status_name]).map(TextMut::Text);
                texts.chain([TextMut::Body(body)]).collect()
            }
            Self::NotFired => Vec::new(),
            Self::NoAnswer(NoAnswer { kind: _, message }) => vec![TextMut::Text(message)],
        }
    }
}

impl Settlement {
    /// Returns all texts in it.
    pub fn texts_mut(&mut self) -> Vec<TextMut<'_>> {
        let Self {
            unsettled,
            spans: _,
            waited_ns: _,
            silent_ns: _,
            quiet_ns: _,
            last_at: _,
            linger_ns: _,
            logs: _,
            drained: _,
            processes,
            unanswered,
            stores,
        } = self;
        let mut said = Vec::new();
        for unsettled in unsettled {
            match unsettled {
                UnsettledReason::ExpectedAbsent(names) | UnsettledReason::OtherServers(names) => {
                    said.extend(names.iter_mut().map(TextMut::Text));
                }
                UnsettledReason::StoreUnread(StoreGap { store, message })
                | UnsettledReason::StorePartial(StoreGap { store, message }) => {
                    said.extend([store, message].map(TextMut::Text));
                }
                UnsettledReason::Unproved(reason) => said.push(TextMut::Text(reason)),
                UnsettledReason::NoTelemetry
                | UnsettledReason::NotAnswered
                | UnsettledReason::ParentsAbsent(_)
                | UnsettledReason::EdgesOpen(_)
                | UnsettledReason::NotQuiet
                | UnsettledReason::NotWaited
                | UnsettledReason::TooLarge
                | UnsettledReason::SpansLost
                | UnsettledReason::Partial
                | UnsettledReason::ContextLost(_)
                | UnsettledReason::NotSampled
                | UnsettledReason::Sampled(_) => {}
            }
        }
        said.extend(stores.iter_mut().map(|it| TextMut::Text(&mut it.store)));
        for UnansweredPeer { service, peer, calls: _, declared: _ } in unanswered {
            said.extend([service, peer].map(TextMut::Text));
        }
        for process in processes {
            let ProcessQuiet {
                service,
                instance,
                spans: _,
                delay_ns: _,
                silent_ns: _,
                quiet_ns: _,
                because: _,
                arrivals: _,
            } = process;
            said.push(TextMut::Text(service));
            said.extend(instance.iter_mut().map(TextMut::Text));
        }
        said
    }
}

impl Overtaken {
    /// Returns all texts in it.
    pub fn texts_mut(&mut self) -> Vec<TextMut<'_>> {
        let Self { verdict: _, spans: _, after_ns: _, service } = self;
        service.iter_mut().map(TextMut::Text).collect()
    }
}

impl Judgement {
    /// Returns all texts in it.
    pub fn texts_mut(&mut self) -> Vec<TextMut<'_>> {
        let Self { verdict: _, specs, claims, outputs, tree } = self;
        let mut said = Vec::new();
        for SpecJudgement { name, selector, place, verdict: _, matched: _, assertions } in specs {
            said.extend(name.iter_mut().chain([selector]).map(TextMut::Text));
            said.push(place.texts_mut());
            said.extend(assertions.iter_mut().flat_map(AssertionJudgement::texts_mut));
        }
        for claim in claims {
            let ClaimJudgement {
                name,
                claim,
                place,
                verdict: _,
                decided: _,
                reason,
                spans,
                more_spans: _,
                evidence,
            } = claim;
            said.extend(name.iter_mut().chain([claim]).chain(reason).map(TextMut::Text));
            said.push(place.texts_mut());
            said.extend(spans.iter_mut().flat_map(SpanEvidence::texts_mut));
            said.extend(evidence.iter_mut().flat_map(StatementEvidence::texts_mut));
        }
        for OutputValue { name, value, reason } in outputs {
            said.extend([name].into_iter().chain(value).chain(reason).map(TextMut::Text));
        }
        for span in tree {
            let TreeSpan { span_id: _, name, service, depth: _, duration_ns: _, is_error: _ } =
                span;
            said.extend([name].into_iter().chain(service).map(TextMut::Text));
        }
        said
    }
}

impl AssertionJudgement {
    fn texts_mut(&mut self) -> Vec<TextMut<'_>> {
        let Self {
            assertion,
            place,
            verdict: _,
            decided: _,
            reason,
            spans,
            more_spans: _,
            evidence,
        } = self;
        let texts = [assertion].into_iter().chain(reason).map(TextMut::Text);
        let spans = spans.iter_mut().flat_map(SpanEvidence::texts_mut);
        let values = evidence.iter_mut().flat_map(StatementEvidence::texts_mut);
        texts.chain([place.texts_mut()]).chain(spans).chain(values).collect()
    }
}

impl SpanEvidence {
    fn texts_mut(&mut self) -> [TextMut<'_>; 2] {
        let Self { span_id: _, name, verdict: _, found } = self;
        [name, found].map(TextMut::Text)
    }
}

impl StatementEvidence {
    fn texts_mut(&mut self) -> Vec<TextMut<'_>> {
        let Self { comparisons, groups, nearest, deciding: _, more_deciding: _ } = self;
        let mut texts = Vec::new();
        for ComparisonEvidence { span_id: _, subject, operator, expected, found } in comparisons {
            texts.extend([subject, operator].map(TextMut::Text));
            expected.iter_mut().chain(found).for_each(|value| value.add_texts(&mut texts));
        }
        let groups = groups.iter_mut();
        for group in groups.flat_map(|GroupsEvidence { worst, more: _, broken: _ }| worst) {
            let GroupEvidence { key, value, spans: _, holds: _ } = group;
            for GroupKeyPart { name, value } in key {
                texts.push(TextMut::Text(name));
                value.add_texts(&mut texts);
            }
            value.add_texts(&mut texts);
        }
        for NearMiss { span_id: _, name, selector, condition, found } in nearest {
            texts.extend([name, selector, condition].map(TextMut::Text));
            found.iter_mut().for_each(|value| value.add_texts(&mut texts));
        }
        texts
    }
}

impl EvidenceValue {
    fn add_texts<'a>(&'a mut self, texts: &mut Vec<TextMut<'a>>) {
        match self {
            Self::Absent | Self::Null | Self::Boolean(_) | Self::DurationNs(_) => {}
            // A secret may consist of digits.
            Self::Number(text) | Self::Text(text) | Self::Json(text) => {
                texts.push(TextMut::Text(text));
            }
            Self::List(EvidenceList { items, more: _ })
            | Self::AnyOf(EvidenceList { items, more: _ }) => {
                items.iter_mut().for_each(|value| value.add_texts(texts));
            }
            Self::Between(range) => {
                let EvidenceRange { low, high } = &mut **range;
                [low, high].into_iter().for_each(|value| value.add_texts(texts));
            }
        }
    }
}

impl Place {
    fn texts_mut(&mut self) -> TextMut<'_> {
        let Self { file, line: _, column: _ } = self;
        TextMut::Text(file)
    }
}

impl Analysis {
    /// Returns all texts in it.
    pub fn texts_mut(&mut self) -> Vec<TextMut<'_>> {
        let Self { score: _, minimum_score: _, plugins } = self;
        let mut said = Vec::new();
        for PluginAnalysis { id, score: _, rules } in plugins {
            said.push(TextMut::Text(id));
            for RuleAnalysis { id, level: _, weight: _, findings, more_findings: _ } in rules {
                said.push(TextMut::Text(id));
                for Finding { span_id: _, name, message } in findings {
                    said.extend([name, message].map(TextMut::Text));
                }
            }
        }
        said
    }
}
