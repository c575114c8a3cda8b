package config

import (
	"slices"
	"strings"
)

// Values of serve.denials: a refusal tells an agent the reason, or only that the call was refused.
const (
	DenialsExplain = "explain"
	DenialsOpaque  = "opaque"
)

// Values of serve.record. If the configuration names a ledger, the gateway always records.
const (
	RecordKeep = "keep"
	RecordNone = "none"
)

// Values of approvals.on_pending: the answer to an agent whose call is held.
const (
	PendingResult = "result"
	PendingError  = "error"
)

// Values of servers.NAME.sessions, which selects the callers that share a session with the server.
const (
	SessionsIdentity = "identity"
	SessionsSession  = "session"
	SessionsOne      = "one"
)

// RunID is the placeholder of the run's id in serve.decide_url.
const RunID = "{run_id}"

// ExposeAll means every word of [Exposable].
const ExposeAll = "all"

// Exposable returns the words of expose, in the order of the documentation: the parts of MCP that
// the gateway can relay.
func Exposable() []string {
	return []string{
		"tools", "progress", "cancellation", "logging", "resources", "prompts", "completion", "sampling",
		"elicitation", "roots", "input_required",
	}
}

// Serve has the settings of the gateway. They judge no call, so they are not part of
// [policy.Content] or of traces: an operator may change them without changing a decision.
type Serve struct {
	Listen, Admin string   // HOST:PORT, on this machine unless there is TLS
	Socket        string   // path of a unix socket that serves the same as Listen; may be empty
	PublicURL     string   // scheme and host at which agents reach Listen; may be empty
	AdminURL      string   // the same for people and Admin
	TLS           TLS      // TLS of both addresses
	Denials       string   // [DenialsExplain], [DenialsOpaque]
	Record        string   // [RecordKeep], [RecordNone]
	Hosts         []string // further accepted values of the Host header
	DecideURL     string   // URL where approvers decide, possibly with [RunID]; may be empty
	Sessions      int      // maximum of concurrent sessions
	// Time for which a held call's request is kept open, in milliseconds; 0: not at all.
	Hold      int64
	OnPending string // [PendingResult], [PendingError]
	// Time between a web hook's reminder and a held call's expiry, in milliseconds; 0: no reminder.
	RemindBefore int64
	ClaimWithin  int64 // time after an approval in which a client that makes the call itself asks again, in milliseconds
	ReportWithin int64 // time for the report about a call that a client makes itself, in milliseconds
	// ToolReports has the times of tools for which ReportWithin does not hold, by server.
	ToolReports   Table[Table[int64]] `json:"-"`
	CatalogMaxAge int64               // the maximum age of a tool list, in milliseconds; 0: list before every call
	Expose        []Exposure          `json:"-"` // one for each MCP server, in the order of Content.Servers
	Rate          *Rate               `json:"-"` // limits of agents' calls; nil: no limits

	ServerSessions int // maximum of sessions with all stdio servers together
	Held           int // maximum of one caller's calls that wait for approvers
}

// ReportTime returns how many milliseconds the gateway waits for the report about a call of a tool.
func (s *Serve) ReportTime(server, tool string) int64 {
	if i := s.ToolReports.index(server); i >= 0 {
		if tools := s.ToolReports[i].Value; tools.index(tool) >= 0 {
			return tools[tools.index(tool)].Value
		}
	}
	return s.ReportWithin
}

// Exposure lists the kinds of messages that the gateway relays for one server.
type Exposure struct {
	Server string
	Words  []string // words of [Exposable]; empty: nothing is relayed; all words if the file has "all"
	// Sessions selects the callers that share a session with the server. Only with
	// [SessionsSession] may the server send requests to clients.
	Sessions string
}

// TLS names the PEM files of the gateway's addresses. Without Cert, the addresses do not use TLS.
type TLS struct {
	Cert, Key string
	ClientCA  string // empty if clients need no certificate
}

// AdminOrigin returns the scheme, the host and the port at which people reach Admin.
func (s *Serve) AdminOrigin() string { return s.originOf(s.AdminURL, s.Admin) }

// PublicOrigin returns the scheme, the host and the port at which agents reach Listen.
func (s *Serve) PublicOrigin() string { return s.originOf(s.PublicURL, s.Listen) }

func (s *Serve) originOf(url, address string) string {
	switch {
	case url != "":
		return url
	case s.TLS.Cert != "":
		return "https://" + address
	}
	return "http://" + address
}

// ServesUnrecorded reports whether the gateway records nothing.
func (l *Loaded) ServesUnrecorded() bool { return l.DefaultLedger && l.Serve.Record == RecordNone }

// DecideAt returns the URL where approvers decide about a run; empty if the configuration has none.
func (s *Serve) DecideAt(run string) string { return strings.ReplaceAll(s.DecideURL, RunID, run) }

// needsSession lists the words of [Exposable] that need [SessionsSession].
var needsSession = []string{"sampling", "elicitation", "roots"}

// checkAddresses requires different addresses for agents and approvers, and TLS and a known name
// for addresses that other machines can reach: the addresses receive tokens.
func (c *configFile) checkAddresses(p path) {
	s := &c.settings.Serve
	for _, setting := range []struct{ key, address, urlKey, url string }{
		{"listen", s.Listen, "public_url", s.PublicURL},
		{"admin", s.Admin, "admin_url", s.AdminURL},
	} {
		where := p.child(setting.key)
		switch address, local, _ := splitAddress(setting.address); {
		case local || address.Addr().IsLoopback():
		case s.TLS.Cert == "":
			c.addFault(where, "listen on 127.0.0.1, add serve.tls, or put a reverse proxy with TLS before it (with serve.hosts for the name that it is reached by)",
				"%s is refused: it can be reached from other machines, and tokens would cross the network unencrypted", where)
		case setting.url == "":
			c.addFault(where, "write "+setting.urlKey+": https://…, with the host name that clients use",
				"%s can be reached from other machines, and %s is missing", where, p.child(setting.urlKey))
		}
	}

	// With port 0, the system chooses different ports.
	listen, listenLocal, _ := splitAddress(s.Listen)
	admin, adminLocal, _ := splitAddress(s.Admin)
	if listen.Port() != admin.Port() || listen.Port() == 0 ||
		listen.Addr() != admin.Addr() && !listenLocal && !adminLocal {
		return
	}

	faulty := p.child("admin")
	if !c.isWritten(faulty) {
		faulty = p.child("listen")
	}

	c.addFaultAt(c.findNearest(faulty).value.at, p.String(), "choose another port for one of them",
		"%s.listen and %s.admin are one address, %s", p, p, quote(s.Admin))
}

// copyServe copies the settings of the gateway.
func (l *loader) copyServe() {
	s := l.Serve
	s.PublicURL, s.AdminURL = normalOrigin(s.PublicURL), normalOrigin(s.AdminURL)
	s.Hold, s.OnPending, s.RemindBefore = l.Approvals.Hold, l.Approvals.OnPending, l.Approvals.RemindBefore
	s.CatalogMaxAge, s.ServerSessions, s.Held = l.CatalogMaxAge, l.Limits.ServerSessions, l.Limits.Held
	if s.Rate = l.Limits.Rate; s.Rate != nil && s.Rate.Identity == (RateLimit{}) {
		s.Rate.Identity = RateLimit{PerMinute: NoLimit, Burst: NoLimit, AtOnce: NoLimit}
	}
	for _, file := range []*string{&s.Socket, &s.TLS.Cert, &s.TLS.Key, &s.TLS.ClientCA} {
		if *file != "" {
			*file = l.resolvePath(*file)
		}
	}
	for _, server := range l.Servers {
		if times := server.Value.ReportWithin; len(times) > 0 {
			s.ToolReports = append(s.ToolReports, Entry[Table[int64]]{server.Name, times})
		}
		if server.Value.Type == TypeClient {
			continue
		}
		words := []string(server.Value.Expose)
		if slices.Equal(words, []string{ExposeAll}) {
			words = Exposable()
		}
		s.Expose = append(s.Expose, Exposure{server.Name, words, server.Value.Sessions})
	}
	l.out.Serve = s
}

// Kinds of message of a web hook.
const (
	HookRequested = "requested"
	HookReminder  = "reminder"
	HookDecided   = "decided"
	HookPruned    = "pruned"
)

// A Hook is a web hook for messages about held calls and prunes.
type Hook struct {
	URL    string
	Secret string
	Events []string // [HookRequested], [HookReminder], [HookDecided], [HookPruned]
}

// OTLP is an OpenTelemetry collector that accepts spans over OTLP/HTTP.
type OTLP struct {
	Endpoint      string
	Headers       Table[string] // unresolved references in [Loaded.OTLP], resolved in [Resolved.OTLP]
	SamplePercent int           // share of exported traces
}

// MaxPercent is the upper bound of percentages.
const MaxPercent = 100

// Checkpoints holds the settings for signed states of the ledger's log.
type Checkpoints struct {
	Keys   oneOrMany `json:"key"` // paths of private key files
	Dir    string    // folder for the gateway's checkpoints; empty: it writes none
	Every  int64     // interval in milliseconds
	Origin string    // the name of a new log; empty: a random name
}
