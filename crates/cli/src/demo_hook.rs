//! The demo shop as a server gets it: for first runs, in the server's own process.

use ::demo::{Config, Fault, UnknownFault};
use model::{Faulty, World};
use server::{DemoError, DemoFault, DemoSettings, DemoShop, OpenShop, ShopOpening};

use crate::init;

/// The shop, as a server starts it in its own process.
pub(crate) const HOOK: DemoShop = DemoShop { faults, test: init::first_test, open };

fn faults() -> Vec<DemoFault> {
    let fault = |fault: Fault| DemoFault { name: fault.as_str(), about: fault.about() };
    Fault::ALL.into_iter().map(fault).collect()
}

fn open(settings: DemoSettings, world: World) -> ShopOpening {
    let DemoSettings { address, faults, otlp, token } = settings;
    // The server's own environment has no effect: its endpoint may be that of another receiver.
    let header = |token: model::Secret| {
        let value = format!("authorization=Bearer%20{}", token.expose());
        ("OTEL_EXPORTER_OTLP_HEADERS", value)
    };
    let environment = token.map(header).into_iter().collect();
    Box::pin(async move {
        let faults: Result<Vec<Fault>, UnknownFault> =
            faults.iter().map(|name| name.parse()).collect();
        let faults = faults.map_err(|error| refused(model::Fault::Invalid, &error))?;
        let config =
            Config { http: address, otlp: Some(otlp), faults, environment, processes: None };
        let shop = ::demo::start(config, world).await;
        let shop = shop.map_err(|error| refused(error.fault(), &error))?;
        Ok(OpenShop { address: shop.http(), close: Box::pin(shop.shutdown()) })
    })
}

fn refused(fault: model::Fault, error: &impl std::error::Error) -> DemoError {
    DemoError { fault, reason: error.to_string() }
}
