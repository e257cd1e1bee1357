//! OpenSearch and Elasticsearch, by a point in time and `search_after`.
//!
//! Both have the same API, but for the paths of a point in time. Who wrote an index decides the form of its documents, so each
//! document is recognised by what it holds: [`jaeger`], and [`otel`] for Data Prepper, the Simple Schema and the OTel mode of the
//! Collector. A document in another form makes the answer partial.
//!
//! Every answer counts: the point in time and each page state how many shards they cover, and the first page how many documents
//! match. Deliberately absent: a range of times, which would cut traces whose clocks disagree, and Elastic APM's own documents.

mod api;
mod document;
mod harvest;
mod jaeger;
mod layout;
mod otel;
mod source;

use std::{
    collections::BTreeSet,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use model::{SpanDetail, Timestamp, TraceId};

use super::{Evidence, Query, QueryResult, Store, StoreProfile, connection::StoreConnection};
use api::{Product, SearchApi};
use harvest::SpanHarvest;
use layout::{FieldGroup, IndexLayout};

pub(super) const OPENSEARCH: StoreProfile = StoreProfile {
    name: "OpenSearch",
    api: "point in time and `search_after`, by HTTP",
    version: "2.19.6",
    evidence: Evidence::RealProcess,
    lacks: &[],
    changes: "what the writer of the index changes, see below",
    lag: Duration::from_secs(2),
    pause_max: Duration::from_secs(1),
    spans_max: None,
};

pub(super) const ELASTICSEARCH: StoreProfile =
    StoreProfile { name: "Elasticsearch", version: "7.17.28; 8 and 9 by contract", ..OPENSEARCH };

/// The indices of the writers that are known, if the user names none.
const KNOWN_PATTERNS: &str = "jaeger-span-*,otel-v1-apm-span-*,ss4o_traces-*,traces-*.otel-*";

/// What is added to the interval in which an index is refreshed: a refresh takes time, and so does the writer's last batch.
const REFRESH_MARGIN: Duration = Duration::from_secs(1);

/// The maximum documents of a page. An index answers at most 10,000 by default.
const PAGE_HITS_MAX: usize = 5_000;

#[derive(Debug)]
pub(super) struct SearchStore {
    api: SearchApi,
    profile: &'static StoreProfile,
    /// The indices, as the user names them.
    pattern: String,
    /// The lag in nanoseconds, once the indices were read; zero before.
    lag: AtomicU64,
    /// The interval in which the cluster refreshes indices that set none, once it was read.
    cluster_refresh: OnceLock<Duration>,
    /// What the writers of the documents that were read do not keep of spans.
    lacks: Mutex<BTreeSet<SpanDetail>>,
}

pub(super) fn open_opensearch(connection: StoreConnection, index: Option<&str>) -> Box<dyn Store> {
    open(Product::OpenSearch, connection, index)
}

pub(super) fn open_elasticsearch(
    connection: StoreConnection,
    index: Option<&str>,
) -> Box<dyn Store> {
    open(Product::Elasticsearch, connection, index)
}

fn open(product: Product, connection: StoreConnection, index: Option<&str>) -> Box<dyn Store> {
    let profile = match product {
        Product::OpenSearch => &OPENSEARCH,
        Product::Elasticsearch => &ELASTICSEARCH,
    };
    Box::new(SearchStore {
        api: SearchApi::new(product, connection),
        profile,
        pattern: index.filter(|it| !it.is_empty()).unwrap_or(KNOWN_PATTERNS).to_owned(),
        lag: AtomicU64::new(0),
        cluster_refresh: OnceLock::new(),
        lacks: Mutex::default(),
    })
}

impl Store for SearchStore {
    fn profile(&self) -> &StoreProfile {
        self.profile
    }

    fn lag(&self) -> Duration {
        match self.lag.load(Ordering::Relaxed) {
            0 => self.profile.lag,
            nanos => Duration::from_nanos(nanos),
        }
    }

    fn lacks(&self) -> Vec<SpanDetail> {
        self.lacks.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }

    fn query(&self, trace: TraceId, _since: Option<Timestamp>) -> Query<'_> {
        Box::pin(async move { self.find(trace).await.unwrap_or_else(|failure| failure) })
    }
}

impl SearchStore {
    async fn find(&self, trace: TraceId) -> Result<QueryResult, QueryResult> {
        // Each time: an index may be new, and its spans must not be missed.
        let indices = self.api.indices(&self.pattern).await?;
        let layout = IndexLayout::of(&indices);
        self.learn_lag(&layout).await;
        let mut harvest = SpanHarvest::new(trace);
        if indices.is_empty() {
            // A wrong pattern and a new store look alike. A refusal would end every first run against a new store, which makes
            // its indices with the first span; and no answer at all would make an absent trace of a typing error. So this proves
            // nothing, and names the pattern.
            harvest.gap(format!("no index matches `{}` yet", self.pattern));
        }
        layout.gaps.iter().for_each(|gap| harvest.gap(gap.clone()));
        for (group, names) in &layout.groups {
            for names in SearchApi::parts(names) {
                self.read(group, &names, &mut harvest).await?;
            }
        }
        self.lacks.lock().unwrap_or_else(PoisonError::into_inner).extend(&harvest.lacks);
        Ok(harvest.into_result())
    }

    /// Reads the spans of the trace in some indices. The point in time is closed, whatever happens; only a query that is dropped
    /// half-way, or an answer that broke off, leaves one to expire.
    async fn read(
        &self,
        group: &FieldGroup,
        names: &[String],
        harvest: &mut SpanHarvest,
    ) -> Result<(), QueryResult> {
        let mut point = self.api.open(names).await?;
        if let Some(shards) = &point.shards {
            harvest.check_shards(shards);
        }
        let result = self.read_pages(group, &mut point.id, harvest).await;
        self.api.close(&point.id).await;
        result
    }

    async fn read_pages(
        &self,
        group: &FieldGroup,
        point: &mut String,
        harvest: &mut SpanHarvest,
    ) -> Result<(), QueryResult> {
        let (mut after, mut count) = (None, 0);
        loop {
            let request = group.request(harvest.trace, point, after.as_ref());
            let page = self.api.search(&request, &mut harvest.bytes).await?;
            if let Some(renewed) = page.pit_id {
                *point = renewed;
            }
            harvest.check_shards(&page.shards);
            if page.timed_out {
                harvest.gap("its search timed out".to_owned());
            }
            if page.hits.total.relation != "eq" {
                harvest.gap("it does not state how many documents match".to_owned());
            }
            let total = page.hits.total.value;
            let (hits, last) = (page.hits.hits.len(), page.hits.hits.last());
            after = last.and_then(|hit| hit.sort.clone()).filter(|sort| !sort.is_empty());
            count += hits as u64;
            page.hits.hits.into_iter().for_each(|hit| harvest.add(hit));
            if count >= total || hits == 0 || after.is_none() {
                if count != total {
                    harvest.gap(format!("it showed {count} of {total} documents"));
                }
                return Ok(());
            }
        }
    }

    async fn learn_lag(&self, layout: &IndexLayout) {
        let mut refresh = layout.refresh;
        if layout.has_default_refresh {
            let default = match self.cluster_refresh.get() {
                Some(known) => *known,
                None => {
                    let read = self.api.cluster_refresh().await;
                    *self.cluster_refresh.get_or_init(|| read)
                }
            };
            refresh = refresh.max(Some(default));
        }
        if let Some(refresh) = refresh {
            let lag = u64::try_from((refresh + REFRESH_MARGIN).as_nanos()).unwrap_or(u64::MAX);
            self.lag.store(lag, Ordering::Relaxed);
        }
    }
}
