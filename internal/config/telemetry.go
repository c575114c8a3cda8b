package config

// OTLP is a collector of OpenTelemetry, which takes spans over OTLP/HTTP.
type OTLP struct {
	Endpoint      string
	Headers       []Pair // values as written in [Loaded.OTLP], with references resolved in [Resolved.OTLP]
	SamplePercent int    // of the traces
}

// MaxPercent is all of something.
const MaxPercent = 100

var otlpShape = &shape{form: object, cross: crossOTLP, keys: []key{
	{name: "endpoint", required: true, shape: &shape{form: text, max: MaxURLBytes, match: urlPattern, what: "an http or https URL", check: checkBaseURL},
		doc:     "The address of the collector. pgfsm appends `/v1/traces`. No user name, no password, no query: put secrets into `headers`. Redirects are refused.",
		example: `"https://otel.example.com:4318"`},
	{name: "headers", shape: &shape{form: table, max: MaxHeaders, name: headerName, what: "header", secret: true,
		cross: crossHeaders, each: &shape{form: text, secret: true, check: checkReferences}},
		doc:     "HTTP headers for the collector. Values may contain references, and are secrets. With headers, `endpoint` must be https, or on this machine.",
		example: `{Authorization: "Bearer ${env:OTEL_TOKEN}"}`},
	{name: "sample_percent", shape: &shape{form: integer, max: MaxPercent}, initial: number(MaxPercent),
		doc: "The share of traces that are exported. pgfsm decides by chance, and does not obey the sampled flag of agents."},
}}

// crossOTLP requires https or loopback for headers.
func crossOTLP(j *judge, n *node, path string) {
	at, headers := n.get("endpoint"), n.member("headers")
	if at != nil && headers != nil && len(headers.value.members) > 0 && readable(at.text) {
		j.src.fault(headers.at, join(path, "headers"), "use https", "%s could be read on the way: endpoint is plain http", join(path, "headers"))
	}
}

// telemetry copies the settings of the export of spans.
func (l *loader) telemetry() {
	n := l.file.root.get("telemetry").get("otlp")
	if n == nil {
		return
	}
	to := &OTLP{Endpoint: n.str("endpoint"), SamplePercent: n.integer("sample_percent")}
	for _, h := range n.fields("headers") {
		to.Headers = append(to.Headers, Pair{h.key, h.value.text})
		l.literal(l.file.src, h.value, "the value of header "+h.key, "${env:NAME}")
	}
	l.out.OTLP = to
}

// otlp resolves the headers for the collector.
func (r *resolver) otlp(l *Loaded) *OTLP {
	if l.OTLP == nil {
		return nil
	}
	to := *l.OTLP
	to.Headers = r.pairs(l.file.root.get("telemetry").get("otlp"), "headers", "telemetry.otlp")
	return &to
}
