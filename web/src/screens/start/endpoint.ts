/** The environment variables by which OpenTelemetry's SDKs send their spans to this server. */

import type { Schemas } from "../../api/client.ts";

export type OtlpProtocol = "grpc" | "http/protobuf";

/** `fallback` is the host of the page, for a server that listens on all addresses. */
export function environmentOf(
  receiver: Pick<Schemas["Receiver"], "endpoint" | "isTokenRequired">,
  protocol: OtlpProtocol,
  names: { readonly fallback: string; readonly token: string },
): string[] {
  const { endpoint, isTokenRequired } = receiver;
  if (!endpoint) {
    return [];
  }
  const host = endpoint.host ?? names.fallback;
  const name = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
  const port = protocol === "grpc" ? endpoint.grpcPort : endpoint.httpPort;
  return [
    `OTEL_EXPORTER_OTLP_ENDPOINT=${endpoint.isTls ? "https" : "http"}://${name}:${port}`,
    `OTEL_EXPORTER_OTLP_PROTOCOL=${protocol}`,
    ...(isTokenRequired ? [`OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20${names.token}`] : []),
  ];
}
