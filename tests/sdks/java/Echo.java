// The echo service on the Java SDK, instrumented by the Java agent. What it must send: ../README.md.

import static io.opentelemetry.api.common.AttributeKey.booleanArrayKey;
import static io.opentelemetry.api.common.AttributeKey.booleanKey;
import static io.opentelemetry.api.common.AttributeKey.doubleArrayKey;
import static io.opentelemetry.api.common.AttributeKey.doubleKey;
import static io.opentelemetry.api.common.AttributeKey.longArrayKey;
import static io.opentelemetry.api.common.AttributeKey.longKey;
import static io.opentelemetry.api.common.AttributeKey.stringArrayKey;
import static io.opentelemetry.api.common.AttributeKey.stringKey;
import static io.opentelemetry.api.common.AttributeKey.valueKey;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.common.KeyValue;
import io.opentelemetry.api.common.Value;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.api.trace.TraceFlags;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.api.trace.Tracer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Map;

public final class Echo {
    private static final long SAFE = (1L << 53) - 1;
    private static final byte[] BYTES = {0x00, 0x7f, (byte) 0x80, (byte) 0xff};

    private static final Attributes ATTRIBUTES = Attributes.builder()
        .put(stringKey("text"), "plain")
        .put(stringKey("text.empty"), "")
        .put(stringKey("text.unicode"), "Grüße, 世界 🦀")
        .put(stringKey("text.escapes"), "tab\t line\n quote\" slash\\ bell\u0007 del\u007f")
        .put(booleanKey("flag.true"), true)
        .put(booleanKey("flag.false"), false)
        .put(longKey("int.max"), Long.MAX_VALUE)
        .put(longKey("int.min"), Long.MIN_VALUE)
        .put(longKey("int.zero"), 0L)
        .put(longKey("int.safe.max"), SAFE)
        .put(longKey("int.safe.min"), -SAFE)
        .put(doubleKey("double.fraction"), 0.1)
        .put(doubleKey("double.whole"), 3.0)
        .put(doubleKey("double.negative"), -2.5)
        .put(doubleKey("double.largest"), Double.MAX_VALUE)
        .put(doubleKey("double.smallest"), Double.MIN_VALUE)
        .put(doubleKey("double.infinite"), Double.POSITIVE_INFINITY)
        .put(doubleKey("double.nan"), Double.NaN)
        .put(stringArrayKey("texts"), "a", "", "ß")
        .put(stringArrayKey("texts.none"))
        .put(booleanArrayKey("flags"), true, false)
        .put(longArrayKey("ints"), -1L, 0L, SAFE)
        .put(doubleArrayKey("doubles"), 0.5, -2.25, 1e-9)
        .put(valueKey("bytes"), Value.of(BYTES))
        .put(valueKey("bytes.empty"), Value.of(new byte[0]))
        .put(valueKey("mixed"), Value.of(Value.of("a"), Value.of(1), Value.of(true), Value.of(0.5), Value.of(BYTES),
            Value.empty(), Value.of(Value.of("inner"))))
        .put(valueKey("map"), Value.of(KeyValue.of("text", Value.of("ß")), KeyValue.of("int", Value.of(1)),
            KeyValue.of("flag", Value.of(true)), KeyValue.of("double", Value.of(0.5)),
            KeyValue.of("inner", Value.of(Map.of("list", Value.of(Value.of(1), Value.of("two"))))),
            KeyValue.of("nothing", Value.empty())))
        .put(valueKey("map.empty"), Value.of(Map.of()))
        .build();

    private static final Tracer TRACER = GlobalOpenTelemetry.get().getTracer("echo", "1.2.3");
    private static final HttpClient CLIENT = HttpClient.newHttpClient();

    public static void main(String[] arguments) throws IOException {
        int port = Integer.parseInt(System.getenv("PORT"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.createContext("/echo", Echo::echo);
        server.createContext("/plain", exchange -> answer(exchange, "plain"));
        server.start();
    }

    private static void echo(HttpExchange exchange) throws IOException {
        kinds();
        failedCall();
        answer(exchange, "echo");
    }

    private static void answer(HttpExchange exchange, String text) throws IOException {
        byte[] body = text.getBytes();
        exchange.sendResponseHeaders(200, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    private static void kinds() {
        SpanContext linked = SpanContext.createFromRemoteParent("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331",
            TraceFlags.getSampled(), TraceState.builder().put("vendor", "value").build());
        Span span = TRACER.spanBuilder("kinds")
            .setSpanKind(SpanKind.PRODUCER)
            .setAllAttributes(ATTRIBUTES)
            .addLink(linked, Attributes.of(stringKey("link.text"), "ß", longKey("link.int"), 7L))
            .startSpan();
        span.addEvent("noted", Attributes.builder().put("event.text", "ß").put("event.int", 7).put("event.double", 0.25)
            .put("event.flags", true, false).build());
        span.setStatus(StatusCode.ERROR, "it went wrong: Größe 🚫");
        span.end();
    }

    /** Nobody listens on the port of `discard`. */
    private static void failedCall() {
        try {
            CLIENT.send(HttpRequest.newBuilder(URI.create("http://127.0.0.1:9/nobody")).build(),
                HttpResponse.BodyHandlers.discarding());
        } catch (IOException expected) {
            // That is the point.
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }
}
