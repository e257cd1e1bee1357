import { expect, it } from "vitest";
import { environmentOf } from "./endpoint.ts";

const names = { fallback: "quality.example.com", token: "TOKEN" };
const endpoint = { host: "127.0.0.1", grpcPort: 4317, httpPort: 4318, isTls: false };

it("a sender on the same machine needs an address and a protocol", () => {
  const receiver = { endpoint, isTokenRequired: false };
  expect(environmentOf(receiver, "grpc", names)).toEqual([
    "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317",
    "OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
  ]);
  expect(environmentOf(receiver, "http/protobuf", names)).toEqual([
    "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318",
    "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
  ]);
});

it("a token and TLS are part of it, and a server on all addresses has the host of the page", () => {
  const receiver = { endpoint: { ...endpoint, host: null, isTls: true }, isTokenRequired: true };
  expect(environmentOf(receiver, "grpc", names)).toEqual([
    "OTEL_EXPORTER_OTLP_ENDPOINT=https://quality.example.com:4317",
    "OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
    "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20TOKEN",
  ]);
});

it("an IPv6 address is in brackets, and a process that receives nothing has no variables", () => {
  const receiver = { endpoint: { ...endpoint, host: "::1" }, isTokenRequired: false };
  expect(environmentOf(receiver, "grpc", names)[0]).toBe("OTEL_EXPORTER_OTLP_ENDPOINT=http://[::1]:4317");
  expect(environmentOf(receiver, "grpc", { ...names, fallback: "[::1]" })).toHaveLength(2);
  expect(environmentOf({ endpoint: null, isTokenRequired: true }, "grpc", names)).toEqual([]);
});
