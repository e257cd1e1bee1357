//! Answers that a real node gives only under load or in a failure, scripted; and that a point in time is always closed.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use drivers::store::{Completeness, QueryResult, StoreDialer};
use serde_json::{Value as Json, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::{
    conformance::told,
    sample::{decoded, flat, fresh},
};

use super::{
    node::{config, open},
    writers::{DATA_PREPPER, DocumentWriter},
};

/// A node that answers as a script states, and records what it was sent.
struct ScriptedNode {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl ScriptedNode {
    /// Answers searches with these pages, each a status and a body.
    async fn start(pages: Vec<(u16, Json)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let (mut tasks, record) = (JoinSet::new(), Arc::clone(&requests));
        let mut pages = VecDeque::from(pages);
        tasks.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let Some(line) = request_line(&mut stream).await else { continue };
                let (status, body) = match line.as_str() {
                    it if it.starts_with("GET /_cluster") => (200, json!({})),
                    it if it.starts_with("GET ") => (200, indices()),
                    it if it.starts_with("DELETE ") => (200, json!({})),
                    it if it.starts_with("POST /_search?") => {
                        pages.pop_front().unwrap_or((500, json!({})))
                    }
                    _ => (200, json!({ "id": "point-1" })),
                };
                record.lock().expect("no panic").push(line);
                let body = body.to_string();
                let head = format!(
                    "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
                let _sent = stream.write_all(head.as_bytes()).await;
            }
        });
        Self { url, requests, _tasks: tasks }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no panic").clone()
    }
}

/// Reads a request, and returns its method and path.
async fn request_line(stream: &mut TcpStream) -> Option<String> {
    let (mut read, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut buffer).await.ok()?;
        read.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&read).to_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            if count == 0 {
                return None;
            }
            continue;
        };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |it| it.parse().expect("a length"));
        if body.len() >= length || count == 0 {
            let head = String::from_utf8_lossy(&read);
            let mut words = head.split(' ');
            return Some(format!("{} {}", words.next()?, words.next()?));
        }
    }
}

fn indices() -> Json {
    json!({ "spans": { "mappings": (DATA_PREPPER.mapping)(), "settings": {} } })
}

/// A page with these documents, of so many.
fn page(documents: &[Json], total: usize) -> Json {
    let hit = |(number, source): (usize, &Json)| json!({ "_index": "spans", "_id": number.to_string(), "_source": source, "sort": [number, "a"] });
    let hits: Vec<_> = documents.iter().enumerate().map(hit).collect();
    json!({
        "pit_id": "point-2", "timed_out": false,
        "_shards": { "total": 2, "successful": 2, "skipped": 1, "failed": 0 },
        "hits": { "total": { "value": total, "relation": "eq" }, "hits": hits },
    })
}

#[tokio::test]
async fn an_answer_is_complete_only_if_all_documents_and_shards_are_in_it() {
    const WRITER: DocumentWriter = DATA_PREPPER;
    let sent = flat(fresh(), 2);
    let documents = WRITER.documents(&sent);
    let with = |path: &str, value: Json| {
        let mut page = page(&documents, 2);
        *page.pointer_mut(path).expect("it is there") = value;
        page
    };
    let partial = |why: &str| format!("1 messages, Partial({why:?})");
    let whole = || (200, page(&documents, 2));
    let cases = [
        (vec![whole()], "1 messages, Complete".to_owned()),
        (vec![(200, page(&documents[..1], 2)), (200, page(&documents[1..], 2))], "1 messages, Complete".to_owned()),
        (vec![(200, page(&documents, 3)), (200, page(&[], 3))], partial("it showed 2 of 3 documents")),
        (
            vec![(200, with("/hits/total/relation", json!("gte")))],
            partial("it does not state how many documents match"),
        ),
        (vec![(200, with("/timed_out", json!(true)))], partial("its search timed out")),
        (vec![(200, with("/_shards/failed", json!(1)))], partial("2 of 2 shards answered")),
        (vec![(200, with("/_shards/successful", json!(1)))], partial("1 of 2 shards answered")),
        (
            vec![(200, with("/hits/hits/0/_source", Json::Null))],
            partial("the document `0` of `spans` is unreadable: it has no `_source`"),
        ),
        (vec![(200, page(&[], 0))], "Nothing".to_owned()),
        (
            vec![(200, page(&documents, 4)), (404, json!({ "error": { "type": "search_context_missing_exception", "reason": "No search context found" } }))],
            "Failed { message: \"404 Not Found: No search context found\", retry_after: None }".to_owned(),
        ),
        (
            vec![(503, json!({ "error": "overloaded" }))],
            "Failed { message: \"503 Service Unavailable: {\\\"error\\\":\\\"overloaded\\\"}\", retry_after: None }".to_owned(),
        ),
    ];
    for (kind, path) in
        [("opensearch", "DELETE /_search/point_in_time"), ("elasticsearch", "DELETE /_pit")]
    {
        for (pages, expected) in &cases {
            let node = ScriptedNode::start(pages.clone()).await;
            let result = open(kind, &node.url, Some("spans")).store.query(sent.id(), None).await;
            assert_eq!(&told(&result), expected, "{kind}");
            if matches!(&result, QueryResult::Spans { completeness: Completeness::Complete, .. }) {
                assert_eq!(decoded(sent.id(), &result).len(), 2);
            }
            // Whatever the search brought, the point in time is closed last.
            let requests = node.requests();
            assert_eq!(requests.last().map(String::as_str), Some(path), "{requests:?}");
        }
    }
}

/// Pages that are small by themselves have a limit together.
#[tokio::test]
async fn pages_without_end_are_refused() {
    let documents = DATA_PREPPER.documents(&flat(fresh(), 1));
    let node = ScriptedNode::start(vec![(200, page(&documents, 1_000)); 1_000]).await;
    let config = config("opensearch", &node.url, Some("spans"));
    let dialer = StoreDialer::new(&[], None).with_answers_up_to(20_000);
    let client = dialer.open(&config).expect("it can be queried");
    let result = client.store.query(fresh(), None).await;
    let message = "its answer has more than 20000 bytes".to_owned();
    assert_eq!(result, QueryResult::Refused { message });
    assert!(node.requests().len() < 60, "{}", node.requests().len());
}
