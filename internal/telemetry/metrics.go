// Package telemetry measures what a service does, with the names of OpenTelemetry's conventions for
// MCP and GenAI (https://github.com/open-telemetry/semantic-conventions-genai, in development). No
// measurement has an argument, a result or a token.
package telemetry

import (
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/common/expfmt"
)

// Boundaries of histograms, in seconds. The conventions give those of operations.
var (
	operationBuckets = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
	commitBuckets    = []float64{0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 10}
	waitBuckets      = []float64{10, 60, 300, 900, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600}
)

// operationLabels are the labels of operations, in the order of [Operation.labelValues].
var operationLabels = []string{"mcp_method_name", "gen_ai_operation_name", "pgfsm_server", "gen_ai_tool_name",
	"error_type"}

// Metrics are the measurements of one service. It is safe for concurrent use.
type Metrics struct {
	registry       *prometheus.Registry
	server, client *prometheus.HistogramVec
	calls          *prometheus.CounterVec
	indeterminate  prometheus.Counter
	reported       *prometheus.CounterVec
	limited        *prometheus.CounterVec
	connections    *prometheus.CounterVec
	waits          *prometheus.HistogramVec
	commits        prometheus.Histogram
}

// New returns measurements that begin at zero.
func New() *Metrics {
	registry := prometheus.NewRegistry()
	create := promauto.With(registry)
	counter := func(name, help string) prometheus.CounterOpts { return prometheus.CounterOpts{Name: name, Help: help} }
	seconds := func(name, help string, buckets []float64) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}
	}

	return &Metrics{
		registry: registry,
		server: create.NewHistogramVec(seconds("mcp_server_operation_duration_seconds",
			"How long the gateway took to answer requests of agents.", operationBuckets), operationLabels),
		client: create.NewHistogramVec(seconds("mcp_client_operation_duration_seconds",
			"How long servers took to answer calls.", operationBuckets), operationLabels),
		calls: create.NewCounterVec(counter("pgfsm_calls_total",
			"Calls of agents, by the decision and the gate that made it. A held call counts when it is held and when it ends."), []string{"decision", "gate"}),
		indeterminate: create.NewCounter(counter("pgfsm_indeterminate_total",
			"Calls of which nobody knows whether they happened.")),
		reported: create.NewCounterVec(counter("pgfsm_reported_total",
			"Calls that their client makes itself, by what it reported: reported, rewritten or unreported."), []string{"end"}),
		limited: create.NewCounterVec(counter("pgfsm_limited_total",
			"Requests and calls of agents that were refused because a limit was used up, by the kind of limit."),
			[]string{"by"}),
		connections: create.NewCounterVec(counter("pgfsm_connections_changed_total",
			"Connections of people that were made or ended at the console, or lost because a server refused them."), []string{"change"}),
		waits: create.NewHistogramVec(seconds("pgfsm_approval_wait_seconds",
			"How long held calls waited for people to decide.", waitBuckets), []string{"decision"}),
		commits: create.NewHistogram(seconds("pgfsm_ledger_commit_seconds", "How long the ledger took to commit.",
			commitBuckets)),
	}
}

// Served measures a request of an agent.
func (m *Metrics) Served(o Operation) {
	m.server.WithLabelValues(o.labelValues()...).Observe(o.Took.Seconds())
}

// Called measures a call of a server.
func (m *Metrics) Called(o Operation) {
	m.client.WithLabelValues(o.labelValues()...).Observe(o.Took.Seconds())
}

// Decided counts a call, by the decision about it and the gate that decided.
func (m *Metrics) Decided(decision, gate string) { m.calls.WithLabelValues(decision, gate).Inc() }

// Reported counts a call that its client makes itself, by its end: reported, rewritten or unreported.
func (m *Metrics) Reported(end string) { m.reported.WithLabelValues(end).Inc() }

// Indeterminate counts a call for which it is unknown whether it happened.
func (m *Metrics) Indeterminate() { m.indeterminate.Inc() }

// Limited counts a request or a call that was refused because a limit was used up.
func (m *Metrics) Limited(by string) { m.limited.WithLabelValues(by).Inc() }

// Connection counts a connection of a person that was made or has ended at the console, or that a server refused.
func (m *Metrics) Connection(change string) { m.connections.WithLabelValues(change).Inc() }

// Waited measures how long people took to decide about a held call, and what they decided.
func (m *Metrics) Waited(d time.Duration, decision string) {
	m.waits.WithLabelValues(decision).Observe(d.Seconds())
}

// Committed measures a commit of the ledger.
func (m *Metrics) Committed(d time.Duration) { m.commits.Observe(d.Seconds()) }

// A gauge is read whenever the metrics are written. If that fails, the metric is missing.
type gauge struct {
	name *prometheus.Desc
	read func() (value float64, labels []string, err error)
}

// Describe implements [prometheus.Collector].
func (g gauge) Describe(to chan<- *prometheus.Desc) { to <- g.name }

// Collect implements [prometheus.Collector].
func (g gauge) Collect(to chan<- prometheus.Metric) {
	value, labels, err := g.read()
	if err != nil {
		to <- prometheus.NewInvalidMetric(g.name, err)
		return
	}
	to <- prometheus.MustNewConstMetric(g.name, prometheus.GaugeValue, value, labels...)
}

// Pending makes pgfsm_approvals_pending what read returns. If read fails, the metric is missing.
func (m *Metrics) Pending(read func() (int, error)) {
	name := prometheus.NewDesc("pgfsm_approvals_pending", "Held calls that wait for people.", nil, nil)
	m.registry.MustRegister(gauge{name, func() (float64, []string, error) {
		n, err := read()
		return float64(n), nil, err
	}})
}

// Prunes makes pgfsm_ledger_prunes what read returns. If read fails, the metric is missing.
func (m *Metrics) Prunes(read func() (retentions, erasures int, err error)) {
	for i, kind := range []string{"retention", "erasure"} {
		name := prometheus.NewDesc("pgfsm_ledger_prunes", "Prunes that the ledger records.", nil, prometheus.Labels{"kind": kind})
		m.registry.MustRegister(gauge{name, func() (float64, []string, error) {
			retentions, erasures, err := read()
			return float64([]int{retentions, erasures}[i]), nil, err
		}})
	}
}

// ServerSessions makes pgfsm_server_sessions and pgfsm_server_sessions_limit what read returns.
func (m *Metrics) ServerSessions(read func() (open, most int)) {
	create := promauto.With(m.registry)
	create.NewGaugeFunc(prometheus.GaugeOpts{Name: "pgfsm_server_sessions", Help: "Processes of stdio servers."},
		func() float64 {
			open, _ := read()
			return float64(open)
		})
	create.NewGaugeFunc(prometheus.GaugeOpts{Name: "pgfsm_server_sessions_limit", Help: "limits.server_sessions."},
		func() float64 {
			_, most := read()
			return float64(most)
		})
}

// Bundle names the active bundle, as active returns its digest.
func (m *Metrics) Bundle(active func() string) {
	name := prometheus.NewDesc("pgfsm_bundle_info", "1 for the active bundle.", []string{"digest"}, nil)
	m.registry.MustRegister(gauge{name, func() (float64, []string, error) { return 1, []string{active()}, nil }})
}

// Write writes all measurements in the text format of Prometheus, and returns its media type.
func (m *Metrics) Write(w io.Writer) (mime string, err error) {
	format := expfmt.NewFormat(expfmt.TypeTextPlain)
	families, err := m.registry.Gather()
	if err != nil && len(families) == 0 {
		return "", err
	}
	encoder := expfmt.NewEncoder(w, format)
	for _, f := range families {
		if err := encoder.Encode(f); err != nil {
			return "", err
		}
	}
	return string(format), nil
}
