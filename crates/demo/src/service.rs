//! The five services: their names, their routes, and a running service.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use model::World;
use serde::{Deserialize, Serialize};
use telemetry::Telemetry;
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{self, JoinSet},
};

use crate::{
    StartError,
    database::{Database, System},
    fault::Fault,
    gateway,
    orders::{self, Ledger},
    payments,
    pipeline::{self, Destination},
    queue,
    spans::{Open, Spans},
    stock,
    web::{self, Call, Caller, Reply},
};

/// How long the export of the last spans may take.
const LAST_SPANS_MAX: Duration = Duration::from_millis(500);

/// One of the five services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Service {
    /// Accepts the requests of customers.
    Gateway,
    /// Accepts orders.
    Orders,
    /// Lists the products and reserves them.
    Stock,
    /// Charges cards.
    Payments,
    /// Sends a parcel for each message of the queue.
    Shipping,
}

impl Service {
    /// All five services, each after those that it calls.
    pub const ALL: [Self; 5] =
        [Self::Shipping, Self::Payments, Self::Stock, Self::Orders, Self::Gateway];

    /// Returns the `service.name`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Orders => "orders",
            Self::Stock => "stock",
            Self::Payments => "payments",
            Self::Shipping => "shipping",
        }
    }

    /// Returns the routes; none for the consumer of the queue.
    pub(crate) fn routes(self) -> &'static [&'static str] {
        match self {
            Self::Gateway => &["GET /products", "POST /orders", "GET /orders/{order}"],
            Self::Orders => &["POST /orders", "GET /orders/{order}"],
            Self::Stock => &["GET /products", "POST /reservations"],
            Self::Payments => &["POST /charges"],
            Self::Shipping => &[],
        }
    }

    fn database(self, faults: &[Fault]) -> Database {
        let system = if self == Self::Gateway { System::Redis } else { System::Postgres };
        let name = if self == Self::Gateway { "sessions" } else { self.as_str() };
        Database::new(name, system, faults)
    }
}

/// The addresses of the services. A service that is not started yet has port 0, where nothing listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AddressBook([SocketAddr; 5]);

impl AddressBook {
    pub(crate) const fn empty() -> Self {
        Self([ANY_PORT; 5])
    }

    pub(crate) fn note(&mut self, service: Service, at: SocketAddr) {
        self.0[service as usize] = at;
    }

    pub(crate) fn of(&self, service: Service) -> SocketAddr {
        self.0[service as usize]
    }
}

/// The listen address of a service that only the other services call.
pub(crate) const ANY_PORT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The configuration of one service.
#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    pub(crate) service: Service,
    pub(crate) listen: SocketAddr,
    pub(crate) book: AddressBook,
    pub(crate) faults: Vec<Fault>,
    pub(crate) destination: Destination,
}

/// The shared state of a service's handlers.
#[derive(Debug)]
pub(crate) struct Staff {
    pub(crate) service: Service,
    pub(crate) spans: Spans,
    pub(crate) caller: Caller,
    pub(crate) database: Database,
    pub(crate) book: AddressBook,
    pub(crate) faults: Vec<Fault>,
    pub(crate) ledger: Ledger,
}

impl Staff {
    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    /// Processes a request, within its span.
    pub(crate) async fn handle(&self, span: &mut Open, call: Call) -> Reply {
        match self.service {
            Service::Gateway => gateway::handle(self, span, call).await,
            Service::Orders => orders::handle(self, span, call).await,
            Service::Stock => stock::handle(self, span, call).await,
            Service::Payments => payments::handle(self, span, call).await,
            Service::Shipping => unreachable_by_http(),
        }
    }
}

/// A service without routes gets no call.
fn unreachable_by_http() -> Reply {
    Reply::refuse(http::StatusCode::NOT_FOUND, "there is no such page")
}

/// A running service.
#[derive(Debug)]
pub(crate) struct RunningService {
    pub(crate) address: SocketAddr,
    telemetry: Arc<Telemetry>,
    stop: watch::Sender<()>,
    tasks: JoinSet<()>,
}

impl RunningService {
    /// Starts a service. It accepts requests when this returns, whether or not a receiver accepts its spans.
    pub(crate) async fn start(assignment: Assignment, world: World) -> Result<Self, StartError> {
        let Assignment { service, listen, book, faults, destination } = assignment;
        let listener = TcpListener::bind(listen).await;
        let listener = listener.map_err(|error| StartError::listening(listen, error))?;
        let address = listener.local_addr();
        let address = address.map_err(|error| StartError::listening(listen, error))?;
        let telemetry = pipeline::start(service, &destination, &faults, world)?;
        let staff = Arc::new(Staff {
            service,
            spans: Spans::new(&telemetry),
            caller: Caller::new(),
            database: service.database(&faults),
            book,
            faults,
            ledger: Ledger::default(),
        });
        let (stop, stopped) = watch::channel(());
        let mut tasks = JoinSet::new();
        match service {
            Service::Shipping => tasks.spawn(queue::serve(listener, staff, stopped)),
            _ => tasks.spawn(web::serve(listener, staff, stopped)),
        };
        Ok(Self { address, telemetry, stop, tasks })
    }

    /// Stops accepting requests, and waits for the active ones.
    pub(crate) async fn close(&mut self) {
        // The send fails if all tasks have ended, which is fine.
        let _ended = self.stop.send(());
        while self.tasks.join_next().await.is_some() {}
    }

    /// Exports the last spans if a receiver accepts them. Other spans are dropped: it is a demo.
    pub(crate) async fn end(self) {
        let telemetry = self.telemetry;
        let last = task::spawn_blocking(move || telemetry.shutdown(LAST_SPANS_MAX));
        let _report = last.await;
    }
}

impl StartError {
    fn listening(at: SocketAddr, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::AddrInUse => Self::Taken(at),
            _ => Self::Listen(at, error),
        }
    }
}
