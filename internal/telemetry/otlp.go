package telemetry

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// OTLP is a collector that takes spans over OTLP/HTTP.
type OTLP struct {
	Endpoint string            // the URL to which /v1/traces is appended
	Headers  map[string]string // sent with every request
	Sample   float64           // the share of traces whose spans are exported, from 0 to 1
}

// Bounds of the export. Spans that find the queue full are dropped.
const (
	maxQueued     = 8192
	maxBatch      = 512
	batchTime     = 2 * time.Second // the time that a span waits for others
	exportTime    = 10 * time.Second
	maxAnswer     = 64 << 10 // the longest answer of the collector
	maxErrorShown = 300
)

// NewTracer returns a Tracer for a collector, which it does not contact yet. The tracer calls
// report when the export begins to fail, and when it works again. Such a line quotes the collector,
// in part, after mask has taken the secrets out. Every option is set, because the library would
// take it from its environment variables otherwise.
func NewTracer(collector OTLP, version string, mask func(string) string, report func(line string)) (*Tracer, error) {
	client := &http.Client{
		Timeout:       exportTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			MaxIdleConnsPerHost: 1,
			IdleConnTimeout:     time.Minute,
			ForceAttemptHTTP2:   true,
		},
	}

	exporter, err := otlptracehttp.New(context.Background(),
		otlptracehttp.WithEndpointURL(strings.TrimSuffix(collector.Endpoint, "/")+"/v1/traces"),
		otlptracehttp.WithHeaders(collector.Headers),
		otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf),
		otlptracehttp.WithCompression(otlptracehttp.NoCompression),
		otlptracehttp.WithTLSClientConfig(nil), otlptracehttp.WithHTTPClient(client),
		otlptracehttp.WithTimeout(exportTime),
		otlptracehttp.WithMaxResponseSize(maxAnswer),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
			Enabled:         true,
			InitialInterval: time.Second,
			MaxInterval:     exportTime,
			MaxElapsedTime:  exportTime,
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("telemetry.otlp: %w", err)
	}

	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(&reporting{SpanExporter: exporter, mask: mask, report: report},
			sdktrace.WithMaxQueueSize(maxQueued),
			sdktrace.WithMaxExportBatchSize(maxBatch), sdktrace.WithBatchTimeout(batchTime),
			sdktrace.WithExportTimeout(exportTime)),
		sdktrace.WithIDGenerator(drawn{}), sdktrace.WithSampler(sdktrace.AlwaysSample()),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "pgfsm"),
			attribute.String("service.version", version))),
		sdktrace.WithRawSpanLimits(sdktrace.SpanLimits{
			AttributeValueLengthLimit:   -1,
			AttributeCountLimit:         sdktrace.DefaultAttributeCountLimit,
			EventCountLimit:             1,
			LinkCountLimit:              1,
			AttributePerEventCountLimit: 1,
			AttributePerLinkCountLimit:  1,
		}),
	)

	return &Tracer{provider: provider, tracer: provider.Tracer(instrumentation), sample: collector.Sample}, nil
}

// reporting reports when an exporter begins to fail and when it works again. So a collector that is
// down does not flood the log.
type reporting struct {
	sdktrace.SpanExporter
	mask   func(string) string
	report func(line string)
	failed atomic.Bool
}

// ExportSpans exports spans or drops them.
func (r *reporting) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := r.SpanExporter.ExportSpans(ctx, spans)
	switch failed := r.failed.Swap(err != nil); {
	case err != nil && !failed:
		reason := r.mask(err.Error()) // it quotes the collector
		if len(reason) > maxErrorShown {
			reason = strings.ToValidUTF8(reason[:maxErrorShown], "") + "…"
		}
		r.report("spans cannot be exported and are dropped until the collector takes them: " + reason)
	case err == nil && failed:
		r.report("spans are exported again")
	}
	return nil
}
