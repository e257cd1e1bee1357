//! A record in the journal: one item in its wire format, behind its scope.
//!
//! Because each item carries its scope, a batch is assembled by copying bytes: the resource from the segment's head,
//! then each scope once with its items behind it. Deliberately absent: decoding. The content of an item is not read
//! again.

use crate::plan::Signal;

/// Field 1 of an export request: `resource_spans`, `resource_logs`; field 2 of those: `scope_spans`, `scope_logs`.
const RESOURCE_ITEMS: u8 = 1 << 3 | 2;
const SCOPE_ITEMS: u8 = 2 << 3 | 2;

/// A parsed record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item<'a> {
    pub(crate) signal: Signal,
    /// The fields of `ScopeSpans` or `ScopeLogs` except the items: `scope` and `schema_url`.
    pub(crate) scope: &'a [u8],
    /// The item with its tag and length, as a field of `ScopeSpans` or `ScopeLogs`.
    pub(crate) item: &'a [u8],
}

/// Begins a record in `out`: the signal, and the scope that `scope` encodes. The item follows.
pub(crate) fn begin(out: &mut Vec<u8>, signal: Signal, scope: impl FnOnce(&mut Vec<u8>)) {
    out.push(match signal {
        Signal::Spans => 0,
        Signal::Logs => 1,
        Signal::Metrics => 2,
    });
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    scope(out);
    let length = u32::try_from(out.len() - at - 4).unwrap_or(u32::MAX);
    out[at..at + 4].copy_from_slice(&length.to_le_bytes());
}

/// Parses a record; `None` for a record that this version did not write.
pub(crate) fn read(record: &[u8]) -> Option<Item<'_>> {
    let (signal, rest) = record.split_first()?;
    let signal = match signal {
        0 => Signal::Spans,
        1 => Signal::Logs,
        _ => return None,
    };
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (scope, item) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    Some(Item { signal, scope, item })
}

/// The items of one scope in a request.
struct Scope<'a> {
    fields: &'a [u8],
    items: Vec<&'a [u8]>,
    /// The total number of bytes.
    length: usize,
}

/// Builds the export request of these items, which are of one signal. `head` contains the fields of `ResourceSpans` or
/// `ResourceLogs` except the scopes: `resource` and `schema_url`.
pub(crate) fn request(head: &[u8], items: &[Item<'_>]) -> Vec<u8> {
    // A batch has few scopes, so a list is searched faster than a map.
    let mut scopes: Vec<Scope<'_>> = Vec::new();
    for item in items {
        let at = scopes.iter().rposition(|scope| scope.fields == item.scope).unwrap_or_else(|| {
            let fields = item.scope;
            scopes.push(Scope { fields, items: Vec::new(), length: fields.len() });
            scopes.len() - 1
        });
        scopes[at].items.push(item.item);
        scopes[at].length += item.item.len();
    }
    let length = |scope: &Scope<'_>| 1 + varint_len(scope.length) + scope.length;
    let length = head.len() + scopes.iter().map(length).sum::<usize>();
    let mut out = Vec::with_capacity(1 + varint_len(length) + length);
    out.push(RESOURCE_ITEMS);
    put_varint(&mut out, length);
    out.extend_from_slice(head);
    for scope in scopes {
        out.push(SCOPE_ITEMS);
        put_varint(&mut out, scope.length);
        out.extend_from_slice(scope.fields);
        scope.items.iter().for_each(|item| out.extend_from_slice(item));
    }
    out
}

fn varint_len(value: usize) -> usize {
    (value.max(1).ilog2() as usize) / 7 + 1
}

fn put_varint(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
