//! What a node cannot show, and when it shows what it can.

use std::time::Duration;

use drivers::store::{Completeness, QueryResult};
use http::Method;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{
    conformance::told,
    sample::{decoded, flat, fresh},
};

use super::{
    node::{ELASTICSEARCH, OPENSEARCH, SearchNode, call, open, unique},
    writers::DATA_PREPPER,
};

/// The installed nodes.
fn nodes() -> impl Iterator<Item = (SearchNode, String)> {
    [OPENSEARCH, ELASTICSEARCH].into_iter().filter_map(|node| Some((node, node.url()?)))
}

/// Makes an index whose documents are found, with these settings.
async fn make_index(node: SearchNode, name: &str, settings: serde_json::Value) {
    let mappings = (DATA_PREPPER.mapping)();
    node.put(name, &json!({ "settings": settings, "mappings": mappings })).await;
}

async fn partial(node: SearchNode, index: &str) -> String {
    let client = open(node.kind, &node.url().expect("it is installed"), Some(index));
    match client.store.query(fresh(), None).await {
        QueryResult::Spans { completeness: Completeness::Partial(why), .. } => why,
        other => unreachable!("{}", told(&other)),
    }
}

/// Two complete and equal answers in a row are followed by further spans.
async fn equal_answers(node: SearchNode) {
    let Some(url) = node.url() else { return };
    let index = unique("equal-answers");
    // Longer than two queries of a busy machine.
    make_index(node, &index, json!({ "number_of_replicas": 0, "refresh_interval": "5s" })).await;
    let (client, sent) = (open(node.kind, &url, Some(&index)), flat(fresh(), 20_000));
    let mut has_equal_answers = false;
    for part in DATA_PREPPER.documents(&sent).chunks(1_000) {
        node.add(&index, part).await;
        if has_equal_answers {
            continue;
        }
        if client.store.query(sent.id(), None).await == QueryResult::Nothing {
            let refresh = format!("{url}/{index}/_refresh");
            call(Method::POST, refresh, String::new()).await;
            continue;
        }
        let first = client.store.query(sent.id(), None).await;
        let second = client.store.query(sent.id(), None).await;
        assert_eq!(told(&second), "1 messages, Complete");
        let has_all = decoded(sent.id(), &second).len() == sent.len();
        has_equal_answers = first == second && !has_all;
    }
    // Both were complete, and yet neither proves that there are no more.
    assert!(has_equal_answers, "{}", node.kind);
    assert_eq!(client.lag().with(None), Duration::from_secs(6));
    let end = Instant::now() + Duration::from_secs(20);
    while decoded(sent.id(), &client.store.query(sent.id(), None).await).len() < sent.len() {
        assert!(Instant::now() < end, "it does not show all");
        // The node decides when it refreshes, and reports nothing.
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn equal_answers_of_opensearch_are_followed_by_further_spans() {
    equal_answers(OPENSEARCH).await;
}

#[tokio::test]
async fn equal_answers_of_elasticsearch_are_followed_by_further_spans() {
    equal_answers(ELASTICSEARCH).await;
}

#[tokio::test]
async fn an_index_that_does_not_exist_is_refused_and_a_pattern_without_one_proves_nothing() {
    for (node, url) in nodes() {
        let result = open(node.kind, &url, Some("typing-eror")).store.query(fresh(), None).await;
        let message = "it has no index `typing-eror`".to_owned();
        assert_eq!(result, QueryResult::Refused { message });
        assert_eq!(partial(node, "typing-eror-*").await, "no index matches `typing-eror-*` yet");
    }
}

#[tokio::test]
async fn the_lag_is_that_of_the_index() {
    for (node, url) in nodes() {
        let slow = unique("slow");
        let client = open(node.kind, &url, Some(&format!("{slow}-*")));
        assert_eq!(client.store.lag(), Duration::from_secs(2), "before the first query");
        for (number, interval) in [(1, "500ms"), (2, "5s")] {
            let settings = json!({ "refresh_interval": interval });
            make_index(node, &format!("{slow}-{number}"), settings).await;
        }
        assert_eq!(client.store.query(fresh(), None).await, QueryResult::Nothing);
        assert_eq!(client.store.lag(), Duration::from_secs(6));

        let manual = unique("manual");
        make_index(node, &manual, json!({ "refresh_interval": "-1" })).await;
        let why = format!(
            "the index `{manual}` shows new documents only after a refresh by hand: its `refresh_interval` is -1"
        );
        assert_eq!(partial(node, &manual).await, why);
    }
}

#[tokio::test]
async fn the_lag_is_that_of_the_cluster_where_the_index_has_none() {
    let Some(url) = OPENSEARCH.url() else { return };
    let index = unique("by-default");
    make_index(OPENSEARCH, &index, json!({})).await;
    let of_cluster = |interval: Option<&str>| {
        let body = json!({ "transient": { "cluster.default.index.refresh_interval": interval } });
        async move { OPENSEARCH.put("_cluster/settings", &body).await }
    };
    of_cluster(Some("3s")).await;
    let client = open(OPENSEARCH.kind, &url, Some(&index));
    let result = client.store.query(fresh(), None).await;
    of_cluster(None).await;
    assert_eq!((result, client.store.lag()), (QueryResult::Nothing, Duration::from_secs(4)));
}

#[tokio::test]
async fn a_missing_shard_or_a_closed_index_proves_nothing() {
    for (node, url) in nodes() {
        // One of two shards may be on the only node.
        let settings = json!({
            "number_of_shards": 2, "number_of_replicas": 0,
            "index.routing.allocation.total_shards_per_node": 1,
        });
        let index = unique("missing-shard");
        make_index(node, &format!("{index}?wait_for_active_shards=0"), settings).await;
        let client = open(node.kind, &url, Some(&index));
        let expected = match node.kind {
            // It opens a point in time over the other shard, and counts none as failed.
            "opensearch" => "1 of 2 shards answered",
            _ => "503 Service Unavailable",
        };
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let why = match client.store.query(fresh(), None).await {
                QueryResult::Spans { completeness: Completeness::Partial(why), .. } => why,
                QueryResult::Failed { message, .. } => message,
                other => unreachable!("{}", told(&other)),
            };
            if why.starts_with(expected) {
                break;
            }
            assert!(Instant::now() < end, "{why}");
            // The node decides when it starts the shard that it may have.
            sleep(Duration::from_millis(50)).await;
        }

        let closed = unique("closed");
        for number in [1, 2] {
            let settings = json!({ "number_of_replicas": 0 });
            make_index(node, &format!("{closed}-{number}"), settings).await;
        }
        let (status, answer) =
            call(Method::POST, format!("{url}/{closed}-2/_close"), String::new()).await;
        assert!(status.is_success(), "{answer}");
        let why = format!("the index `{closed}-2` is closed");
        assert_eq!(partial(node, &format!("{closed}-*")).await, why);
    }
}

#[tokio::test]
async fn a_document_that_is_no_span_is_named() {
    let Some(url) = OPENSEARCH.url() else { return };
    let index = unique("strange");
    make_index(OPENSEARCH, &index, json!({ "number_of_replicas": 0 })).await;
    let sent = flat(fresh(), 2);
    let mut documents = DATA_PREPPER.documents(&sent);
    documents.push(json!({ "traceId": sent.id(), "spanId": "a1", "body": "a log record" }));
    for (number, document) in documents.iter().enumerate() {
        OPENSEARCH.put_document(&format!("{index}/_doc/{number}?refresh=true"), document).await;
    }
    let client = open(OPENSEARCH.kind, &url, Some(&index));
    let result = client.store.query(sent.id(), None).await;
    assert_eq!(decoded(sent.id(), &result).len(), 2);
    let why = format!(
        "the document `2` of `{index}` is unreadable: it is no span as Jaeger, Data Prepper or an OpenTelemetry \
         exporter writes one"
    );
    assert_eq!(told(&result), format!("1 messages, Partial({why:?})"));

    // A pattern that matches more than spans proves nothing either.
    let other = unique("other");
    let mappings = json!({ "properties": { "x": { "type": "long" } } });
    OPENSEARCH.put(&other, &json!({ "mappings": mappings })).await;
    let why =
        format!("the index `{other}` has none of the fields `traceId`, `traceID` and `trace_id`");
    assert_eq!(partial(OPENSEARCH, &format!("{other}*")).await, why);
}

#[tokio::test]
async fn the_other_product_is_named() {
    let (Some(one), Some(other)) = (OPENSEARCH.url(), ELASTICSEARCH.url()) else { return };
    for (node, url, question) in
        [(ELASTICSEARCH, one, "is it OpenSearch?"), (OPENSEARCH, other, "is it Elasticsearch?")]
    {
        let index = unique("product");
        let there = if node.kind == "opensearch" { ELASTICSEARCH } else { OPENSEARCH };
        make_index(there, &index, json!({})).await;
        let result = open(node.kind, &url, Some(&index)).store.query(fresh(), None).await;
        let QueryResult::Refused { message } = &result else { unreachable!("{}", told(&result)) };
        assert!(message.ends_with(question), "{message}");
    }
}

#[tokio::test]
async fn more_indices_than_fit_into_a_path_are_read() {
    let Some(url) = OPENSEARCH.url() else { return };
    let sent = flat(fresh(), 30);
    let many = unique("many");
    let name = |number: usize| format!("{many}-{}-{number}", "x".repeat(180));
    for (number, document) in DATA_PREPPER.documents(&sent).into_iter().enumerate() {
        let settings = json!({ "number_of_shards": 1, "number_of_replicas": 0 });
        make_index(OPENSEARCH, &name(number), settings).await;
        OPENSEARCH.add(&name(number), &[document]).await;
        let refresh = format!("{url}/{}/_refresh", name(number));
        call(Method::POST, refresh, String::new()).await;
    }
    let result =
        open(OPENSEARCH.kind, &url, Some(&format!("{many}-*"))).store.query(sent.id(), None).await;
    assert_eq!(told(&result), "1 messages, Complete");
    assert_eq!(decoded(sent.id(), &result).len(), 30);
}
