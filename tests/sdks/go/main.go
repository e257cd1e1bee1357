// The echo service on the Go SDK, instrumented by otelhttp. What it must send: ../README.md.
//
// Go has no automatic set-up: each program chooses its exporter by itself. This one reads the protocol from the
// environment, as programs with `autoexport` do; endpoint, delays, sampler and resource are read by the SDK.
package main

import (
	"context"
	"io"
	"log"
	"math"
	"net/http"
	"os"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const safe = 1<<53 - 1

var raw = []byte{0x00, 0x7f, 0x80, 0xff}

var attributes = []attribute.KeyValue{
	attribute.String("text", "plain"),
	attribute.String("text.empty", ""),
	attribute.String("text.unicode", "Grüße, 世界 🦀"),
	attribute.String("text.escapes", "tab\t line\n quote\" slash\\ bell\x07 del\x7f"),
	attribute.Bool("flag.true", true),
	attribute.Bool("flag.false", false),
	attribute.Int64("int.max", math.MaxInt64),
	attribute.Int64("int.min", math.MinInt64),
	attribute.Int64("int.zero", 0),
	attribute.Int64("int.safe.max", safe),
	attribute.Int64("int.safe.min", -safe),
	attribute.Float64("double.fraction", 0.1),
	attribute.Float64("double.whole", 3),
	attribute.Float64("double.negative", -2.5),
	attribute.Float64("double.largest", math.MaxFloat64),
	attribute.Float64("double.smallest", math.SmallestNonzeroFloat64),
	attribute.Float64("double.infinite", math.Inf(1)),
	attribute.Float64("double.nan", math.NaN()),
	attribute.StringSlice("texts", []string{"a", "", "ß"}),
	attribute.StringSlice("texts.none", []string{}),
	attribute.BoolSlice("flags", []bool{true, false}),
	attribute.Int64Slice("ints", []int64{-1, 0, safe}),
	attribute.Float64Slice("doubles", []float64{0.5, -2.25, 1e-9}),
	attribute.ByteSlice("bytes", raw),
	attribute.ByteSlice("bytes.empty", []byte{}),
	attribute.Slice("mixed", attribute.StringValue("a"), attribute.IntValue(1), attribute.BoolValue(true),
		attribute.Float64Value(0.5), attribute.ByteSliceValue(raw), attribute.Value{},
		attribute.StringSliceValue([]string{"inner"})),
	attribute.Map("map", attribute.String("text", "ß"), attribute.Int("int", 1), attribute.Bool("flag", true),
		attribute.Float64("double", 0.5),
		attribute.Map("inner", attribute.Slice("list", attribute.IntValue(1), attribute.StringValue("two"))),
		attribute.KeyValue{Key: "nothing"}),
	attribute.Map("map.empty"),
}

func main() {
	exporter, err := exporter(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	otel.SetTracerProvider(sdk.NewTracerProvider(sdk.WithBatcher(exporter)))
	otel.SetTextMapPropagator(
		propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}))
	http.Handle("GET /echo", otelhttp.NewHandler(http.HandlerFunc(echo), "echo"))
	http.Handle("GET /plain", otelhttp.NewHandler(http.HandlerFunc(plain), "plain"))
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}

// HTTP with protobuf or with JSON is told apart by the exporter itself.
func exporter(ctx context.Context) (*otlptrace.Exporter, error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL") == "grpc" {
		return otlptracegrpc.New(ctx)
	}
	return otlptracehttp.New(ctx)
}

func echo(w http.ResponseWriter, r *http.Request) {
	kinds(r.Context())
	failedCall(r.Context())
	io.WriteString(w, "echo")
}

func plain(w http.ResponseWriter, _ *http.Request) {
	io.WriteString(w, "plain")
}

func kinds(ctx context.Context) {
	traceID, _ := trace.TraceIDFromHex("0af7651916cd43dd8448eb211c80319c")
	spanID, _ := trace.SpanIDFromHex("b7ad6b7169203331")
	state, _ := trace.ParseTraceState("vendor=value")
	link := trace.Link{
		SpanContext: trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: traceID, SpanID: spanID, TraceFlags: trace.FlagsSampled, TraceState: state, Remote: true,
		}),
		Attributes: []attribute.KeyValue{attribute.String("link.text", "ß"), attribute.Int("link.int", 7)},
	}
	tracer := otel.Tracer("echo", trace.WithInstrumentationVersion("1.2.3"))
	_, span := tracer.Start(ctx, "kinds", trace.WithSpanKind(trace.SpanKindProducer), trace.WithLinks(link),
		trace.WithAttributes(attributes...))
	span.AddEvent("noted", trace.WithAttributes(attribute.String("event.text", "ß"), attribute.Int("event.int", 7),
		attribute.Float64("event.double", 0.25), attribute.BoolSlice("event.flags", []bool{true, false})))
	span.SetStatus(codes.Error, "it went wrong: Größe 🚫")
	span.End()
}

// Nobody listens on the port of `discard`.
func failedCall(ctx context.Context) {
	client := http.Client{Transport: otelhttp.NewTransport(http.DefaultTransport)}
	request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:9/nobody", nil)
	if response, err := client.Do(request); err == nil {
		response.Body.Close()
	}
}
