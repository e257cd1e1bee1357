//! A text description of a plan, for users who want to check the effect of a configuration. Secrets are shown as `***`.

use std::fmt::{self, Write};

use source::format_size;

use super::duration::written;
use crate::plan::{
    BATCH_BYTES_MAX, BATCH_ITEMS_MAX, Buffer, Compression, Destination, Durability, Exporter,
    Level, Otlp, Plan, Transport, shown,
};

/// Describes what the plan will do, exporter by exporter, then lists its notes.
pub fn describe(plan: &Plan) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _infallible = write_plan(&mut out, plan);
    out
}

fn write_plan(out: &mut String, plan: &Plan) -> fmt::Result {
    if plan.disabled {
        writeln!(out, "everything is disabled by OTEL_SDK_DISABLED\n")?;
    }
    for exporter in &plan.exporters {
        write_exporter(out, exporter)?;
        out.push('\n');
    }
    if plan.exporters.is_empty() {
        writeln!(out, "nothing is exported\n")?;
    }
    let prometheus = if plan.prometheus { "may be fetched" } else { "may not be fetched" };
    writeln!(out, "metrics {prometheus} by Prometheus")?;
    for (key, value) in &plan.resource {
        writeln!(out, "resource: {key} = {value}")?;
    }
    for note in &plan.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}

fn write_exporter(out: &mut String, exporter: &Exporter) -> fmt::Result {
    let line = |out: &mut String, what: &str, value: &str| writeln!(out, "  {what:<13}{value}");
    writeln!(out, "{}", exporter.name)?;
    line(out, "service.name", &exporter.service_name)?;
    line(out, "carries", &carries(exporter))?;
    match &exporter.destination {
        Destination::Stdout => line(out, "to", "standard output")?,
        Destination::Log(path) => line(out, "to", &format!("the file {}", path.display()))?,
        Destination::Otlp(otlp) => write_otlp(out, exporter, otlp)?,
    }
    if exporter.signals.spans || exporter.signals.logs {
        let (throttle, bytes) = (written(exporter.throttle), format_size(BATCH_BYTES_MAX as u64));
        let full = format!("{BATCH_ITEMS_MAX} items or {bytes}");
        line(out, "sends", &format!("a full batch ({full}) at once, others every {throttle}"))?;
        line(out, "keeps", &keeps(&exporter.buffer))?;
        line(out, "when full", &when_full(exporter))?;
    }
    Ok(())
}

fn write_otlp(out: &mut String, exporter: &Exporter, otlp: &Otlp) -> fmt::Result {
    let line = |out: &mut String, what: &str, value: &str| writeln!(out, "  {what:<13}{value}");
    let transport = match otlp.transport {
        Transport::Grpc => "gRPC",
        Transport::Http => "HTTP",
    };
    let compression = match otlp.compression {
        Compression::Gzip => "gzip",
        Compression::None => "not compressed",
    };
    line(
        out,
        "by",
        &format!("OTLP over {transport}, {compression}, {} for a request", written(otlp.timeout)),
    )?;
    let mut urls: Vec<(String, Vec<&str>)> = Vec::new();
    for signal in exporter.signals.carried() {
        let url = shown(otlp.endpoint(signal)).trim_end_matches('/').to_owned();
        match urls.iter_mut().find(|(known, _)| *known == url) {
            Some((_, signals)) => signals.push(signal.as_str()),
            None => urls.push((url, vec![signal.as_str()])),
        }
    }
    for (url, signals) in urls {
        line(out, "to", &format!("{url} ({})", signals.join(", ")))?;
    }
    for header in &otlp.headers {
        line(out, "header", &format!("{}: {}", header.name, header.value))?;
    }
    let files = [
        ("trusts", &otlp.tls.ca_file),
        ("certificate", &otlp.tls.cert_file),
        ("key", &otlp.tls.key_file),
    ];
    for (what, file) in files {
        if let Some(file) = file {
            line(out, what, &file.display().to_string())?;
        }
    }
    let retry = otlp.retry;
    line(
        out,
        "retries",
        &format!("after {}, at last every {}", written(retry.initial), written(retry.max)),
    )
}

fn carries(exporter: &Exporter) -> String {
    let mut parts = Vec::new();
    if exporter.signals.spans {
        parts.push(match exporter.level {
            None | Some(Level::Trace) => format!("all spans of {} % of traces", exporter.sampling),
            Some(level) => format!(
                "of {} % of traces the spans from level {} on, and those that failed with those around them",
                exporter.sampling,
                level.as_str()
            ),
        });
    }
    if exporter.signals.logs {
        parts
            .push(format!("logs from level {} on", exporter.level.unwrap_or(Level::Info).as_str()));
    }
    if let Some(interval) = exporter.signals.metrics {
        parts.push(format!("metrics every {}", written(interval)));
    }
    let condition = if exporter.always { "" } else { "; only where a role names it" };
    format!("{}{condition}", parts.join(", "))
}

fn keeps(buffer: &Buffer) -> String {
    let memory = format!("{} in memory", format_size(buffer.memory));
    let Some(directory) = &buffer.directory else {
        return format!("{memory}; what is queued at the end is lost");
    };
    let survives = match buffer.durability {
        Durability::Memory => "written only for lack of memory and at the end",
        Durability::Process => "survives the process but for some milliseconds",
        Durability::WriteThrough => "survives the process",
        Durability::Host => "survives the machine but for some hundred milliseconds",
    };
    format!("{memory}, {} in {}; {survives}", format_size(buffer.disk), directory.display())
}

fn when_full(exporter: &Exporter) -> String {
    match (exporter.lossy, exporter.buffer.hold) {
        (true, _) => "drops, and counts what it drops".to_owned(),
        (false, None) => "holds the producer until there is room".to_owned(),
        (false, Some(hold)) => {
            format!("holds the producer for {}, then drops and counts", written(hold))
        }
    }
}
