// Package telemetry measures what a service does, with the names of OpenTelemetry's conventions for MCP and GenAI
// (https://github.com/open-telemetry/semantic-conventions-genai, in development). No measurement has an argument, a result or a token.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
)

// Boundaries of histograms, in seconds. The conventions give those of operations.
var (
	operationBuckets = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
	commitBuckets    = []float64{0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 10}
	waitBuckets      = []float64{10, 60, 300, 900, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600}
)

// Metrics are the measurements of one service. A nil one measures nothing. It is safe for concurrent use.
type Metrics struct {
	registry       *prometheus.Registry
	meter          metric.Meter
	server, client metric.Float64Histogram
	calls          metric.Int64Counter
	indeterminate  metric.Int64Counter
	limited        metric.Int64Counter
	waits          metric.Float64Histogram
	commits        metric.Float64Histogram
}

// New returns measurements that begin at zero.
func New() (*Metrics, error) {
	m := &Metrics{registry: prometheus.NewRegistry()}
	reader, err := otelprometheus.New(otelprometheus.WithRegisterer(m.registry), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	m.meter = sdk.NewMeterProvider(sdk.WithReader(reader)).Meter(instrumentation)
	var errs []error
	seconds := func(name, description string, boundaries []float64) metric.Float64Histogram {
		h, err := m.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), metric.WithExplicitBucketBoundaries(boundaries...))
		errs = append(errs, err)
		return h
	}
	counter := func(name, description string) metric.Int64Counter {
		c, err := m.meter.Int64Counter(name, metric.WithDescription(description))
		errs = append(errs, err)
		return c
	}
	m.server = seconds("mcp.server.operation.duration", "How long the gateway took to answer requests of agents.", operationBuckets)
	m.client = seconds("mcp.client.operation.duration", "How long servers took to answer calls.", operationBuckets)
	m.calls = counter("pgfsm.calls", "Calls of agents, by the decision and the gate that made it. A held call counts when it is held and when it ends.")
	m.indeterminate = counter("pgfsm.indeterminate", "Calls of which nobody knows whether they happened.")
	m.limited = counter("pgfsm.limited", "Requests and calls of agents that were refused because a limit was used up, by the kind of limit.")
	m.waits = seconds("pgfsm.approval.wait", "How long held calls waited for people to decide.", waitBuckets)
	m.commits = seconds("pgfsm.ledger.commit", "How long the ledger took to commit.", commitBuckets)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	m.indeterminate.Add(context.Background(), 0) // an alert needs the value before the first one
	return m, nil
}

// Served measures a request of an agent.
func (m *Metrics) Served(o Operation) {
	if m != nil {
		m.server.Record(context.Background(), o.Took.Seconds(), metric.WithAttributes(o.attributes()...))
	}
}

// Called measures a call of a server.
func (m *Metrics) Called(o Operation) {
	if m != nil {
		m.client.Record(context.Background(), o.Took.Seconds(), metric.WithAttributes(o.attributes()...))
	}
}

// Decided counts a call, by the decision about it and the gate that decided.
func (m *Metrics) Decided(decision, gate string) {
	if m != nil {
		m.calls.Add(context.Background(), 1, metric.WithAttributes(attrDecision.String(decision), attrGate.String(gate)))
	}
}

// Indeterminate counts a call for which it is unknown whether it happened.
func (m *Metrics) Indeterminate() {
	if m != nil {
		m.indeterminate.Add(context.Background(), 1)
	}
}

// Limited counts a request or a call that was refused because a limit was used up.
func (m *Metrics) Limited(by string) {
	if m != nil {
		m.limited.Add(context.Background(), 1, metric.WithAttributes(attrBy.String(by)))
	}
}

// Waited measures how long people took to decide about a held call, and what they decided.
func (m *Metrics) Waited(d time.Duration, decision string) {
	if m != nil {
		m.waits.Record(context.Background(), d.Seconds(), metric.WithAttributes(attrDecision.String(decision)))
	}
}

// Committed measures a commit of the ledger.
func (m *Metrics) Committed(d time.Duration) {
	if m != nil {
		m.commits.Record(context.Background(), d.Seconds())
	}
}

// Pending makes pgfsm_approvals_pending what read returns. If read fails, the metric is missing.
func (m *Metrics) Pending(read func(context.Context) (int64, error)) error {
	if m == nil {
		return nil
	}
	_, err := m.meter.Int64ObservableGauge("pgfsm.approvals.pending", metric.WithDescription("Held calls that wait for people."),
		metric.WithInt64Callback(func(ctx context.Context, o metric.Int64Observer) error {
			n, err := read(ctx)
			if err == nil {
				o.Observe(n)
			}
			return err
		}))
	return err
}

// ServerSessions makes pgfsm_server_sessions and pgfsm_server_sessions_limit what read returns.
func (m *Metrics) ServerSessions(read func() (open, most int)) error {
	if m == nil {
		return nil
	}
	_, err := m.meter.Int64ObservableGauge("pgfsm.server.sessions", metric.WithDescription("Processes of stdio servers."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			open, _ := read()
			o.Observe(int64(open))
			return nil
		}))
	_, err2 := m.meter.Int64ObservableGauge("pgfsm.server.sessions.limit", metric.WithDescription("limits.server_sessions."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			_, most := read()
			o.Observe(int64(most))
			return nil
		}))
	return errors.Join(err, err2)
}

// Bundle names the active bundle, as active returns its digest.
func (m *Metrics) Bundle(active func() string) error {
	if m == nil {
		return nil
	}
	_, err := m.meter.Int64ObservableGauge("pgfsm.bundle.info", metric.WithDescription("1 for the active bundle."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(1, metric.WithAttributes(attrBundle.String(active())))
			return nil
		}))
	return err
}

// Write writes all measurements in the text format of Prometheus, and returns its media type.
func (m *Metrics) Write(to io.Writer) (mime string, err error) {
	format := expfmt.NewFormat(expfmt.TypeTextPlain)
	families, err := m.registry.Gather()
	if err != nil && len(families) == 0 {
		return "", err
	}
	encoder := expfmt.NewEncoder(to, format)
	for _, f := range families {
		if err := encoder.Encode(f); err != nil {
			return "", err
		}
	}
	return string(format), nil
}
