package config

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Values of serve.denials: a refusal tells an agent the reason, or only that the call was refused.
const (
	DenialsExplain = "explain"
	DenialsOpaque  = "opaque"
)

// Values of serve.record. With a ledger, the gateway always records.
const (
	RecordKeep = "keep"
	RecordNone = "none"
)

// Values of approvals.on_pending: the answer to an agent whose call is held.
const (
	PendingResult = "result"
	PendingError  = "error"
)

// Values of servers.NAME.sessions: who shares a session with the server.
const (
	SessionsIdentity = "identity"
	SessionsSession  = "session"
	SessionsOne      = "one"
)

// Bounds and defaults of the gateway. Times are in milliseconds.
const (
	DefaultListen     = "127.0.0.1:8787"
	DefaultAdmin      = "127.0.0.1:9464"
	DefaultSessions   = 1000
	MaxSessions       = 10_000
	MaxHosts          = 64
	MaxHostBytes      = 259 // of a name and a port
	MaxHold           = 10 * 60_000
	DefaultCatalogAge = 60_000
	MaxCatalogAge     = 60 * 60_000

	MinIdleTimeout     = 1_000
	DefaultIdleTimeout = 2 * 60_000
	MaxIdleTimeout     = 24 * 60 * 60_000

	DefaultServerSessions = 48
	MaxServerSessions     = 10_000
	DefaultHeld           = 50
	MaxHeld               = 10_000

	DefaultRemindBefore = 15 * 60_000
	MaxRemindBefore     = 24 * 60 * 60_000
)

// RunID is the placeholder of the run's id in serve.decide_url.
const RunID = "{run_id}"

// ExposeAll means every word of [Exposable].
const ExposeAll = "all"

// Exposable are the words of expose, in the order of the documentation: the parts of MCP that the gateway can relay.
func Exposable() []string {
	return []string{"tools", "progress", "cancellation", "logging", "resources", "prompts", "completion", "sampling", "elicitation",
		"roots", "input_required"}
}

// defaultExpose is the default of expose.
const defaultExpose = "[tools, progress, cancellation, logging]"

// Serve has the settings of the gateway. They judge no call, so they are not part of [policy.Content] or of traces: an operator may change them without
// changing a decision.
type Serve struct {
	Listen, Admin string     // HOST:PORT, on this machine unless there is TLS
	PublicURL     string     // scheme and host at which agents reach Listen; may be empty
	AdminURL      string     // the same for people and Admin
	TLS           TLS        // of both addresses
	Denials       string     // [DenialsExplain], [DenialsOpaque]
	Record        string     // [RecordKeep], [RecordNone]
	Hosts         []string   // further values of the Host header that are answered
	DecideURL     string     // where approvers decide, possibly with [RunID]; may be empty
	Sessions      int        // the most sessions at once
	Hold          int64      // how long the request of a held call is kept open, in milliseconds; 0: not at all
	OnPending     string     // [PendingResult], [PendingError]
	RemindBefore  int64      // how long before a held call expires web hooks get a reminder, in milliseconds; 0: never
	CatalogMaxAge int64      // the maximum age of a tool list, in milliseconds; 0: list before every call
	Expose        []Exposure // of each server, in the order of Content.Servers
	Rate          *Rate      // how often agents may call; nil: it is not limited

	ServerSessions int // the most sessions with all stdio servers together
	Held           int // the most calls of one caller that wait for approvers
}

// Exposure lists the kinds of messages that the gateway relays for one server.
type Exposure struct {
	Server string
	Words  []string // of [Exposable]; none if nothing passes. All of them where the file says all
	// Sessions says who shares a session with the server. Only with [SessionsSession] may it ask clients anything.
	Sessions string
}

// needsSession are the words of [Exposable] that need [SessionsSession].
var needsSession = []string{"sampling", "elicitation", "roots"}

// crossSessions refuses to expose questions of a server whose sessions are shared: nothing says whom it asks.
func crossSessions(j *judge, n *node, path string) {
	if n.str("sessions") == SessionsSession {
		return
	}
	for _, w := range n.texts("expose") {
		if slices.Contains(needsSession, w) {
			j.src.fault(n.get("expose").at, join(path, "expose"), "write sessions: "+SessionsSession+" as well, or leave "+w+" out",
				"%s has %s, but clients share the sessions with the server", join(path, "expose"), w)
			return
		}
	}
}

// TLS names the PEM files of the gateway's addresses. Without Cert they have no TLS.
type TLS struct {
	Cert, Key string
	ClientCA  string // empty if clients need no certificate
}

// AdminOrigin is the scheme, the host and the port at which people reach Admin.
func (s *Serve) AdminOrigin() string { return s.origin(s.AdminURL, s.Admin) }

// PublicOrigin is the scheme, the host and the port at which agents reach Listen.
func (s *Serve) PublicOrigin() string { return s.origin(s.PublicURL, s.Listen) }

func (s *Serve) origin(url, address string) string {
	switch {
	case url != "":
		return url
	case s.TLS.Cert != "":
		return "https://" + address
	}
	return "http://" + address
}

// DecideAt is the URL where approvers decide about a run; empty if the configuration has none.
func (s *Serve) DecideAt(run string) string { return strings.ReplaceAll(s.DecideURL, RunID, run) }

var (
	originURL   = &shape{form: text, max: MaxURLBytes, match: urlPattern, what: "an http or https URL", check: checkOrigin}
	address     = &shape{form: text, max: MaxHostBytes, what: "an address", check: checkAddress}
	hostPattern = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?$`)
	allPattern  = regexp.MustCompile(`^` + ExposeAll + `$`)
)

var exposeShape = &shape{form: list, max: int64(len(Exposable())), unique: ".", what: "word", each: &shape{form: text, enum: Exposable()},
	alt: &shape{form: text, match: allPattern, what: "a list of words or the word all"}}

var serveShape = &shape{form: object, cross: crossServe, keys: []key{
	{name: "listen", shape: address, initial: DefaultListen,
		doc: "The gateway's address for agents, over HTTP: a loopback address and a port. With `tls` and `public_url`, any IP address. Port 0 means any free port."},
	{name: "admin", shape: address, initial: DefaultAdmin,
		doc: "The admin address, for the console, the API and health checks. It must differ from `listen`. With `tls` and `admin_url`, any IP address."},
	{name: "public_url", shape: originURL, example: "https://mcp.example.com",
		doc: "The scheme, the host and the port at which agents reach `listen`, directly or through a proxy. Capitals and the port 443 make no difference."},
	{name: "admin_url", shape: originURL, example: "https://approvals.example.com",
		doc: "The same for people and `admin`. Links to the console begin with it."},
	{name: "tls", shape: &shape{form: object, keys: []key{
		{name: "cert", shape: filePath, required: true, example: "tls.crt",
			doc: "The file with the certificate, followed by those of intermediate CAs, in PEM."},
		{name: "key", shape: filePath, required: true, example: "tls.key", doc: "The file with the certificate's private key, in PEM."},
		{name: "client_ca", shape: filePath, example: "clients-ca.crt",
			doc: "The file with the CAs of clients' certificates, in PEM. With it, every client of both addresses must present a certificate."},
	}}, absent: true, example: "{cert: tls.crt, key: tls.key}",
		doc: "TLS for both addresses. pgfsm reads the files again when they change. With TLS, every client needs a token, also on this machine."},
	{name: "denials", shape: &shape{form: text, enum: []string{DenialsExplain, DenialsOpaque}}, initial: DenialsExplain,
		doc: "`explain`: a refusal tells the agent the reason and what it can do. `opaque`: a refusal by the operator's rules says only `refused`."},
	{name: "record", shape: &shape{form: text, enum: []string{RecordKeep, RecordNone}}, initial: RecordKeep,
		doc: "`keep`: the gateway records runs, in the ledger or in `traces.dir`. `none`: without a ledger, the gateway records nothing; for trials " +
			"and measurements."},
	{name: "hosts", shape: &shape{form: list, max: MaxHosts, unique: ".", what: "host",
		each: &shape{form: text, max: MaxHostBytes, match: hostPattern, what: "a host name, alone or with a port"}},
		doc: "Further host names that the gateway accepts in the Host header, such as those of a proxy.", example: "[mcp.example.com]"},
	{name: "decide_url", shape: &shape{form: text, max: MaxURLBytes, match: urlPattern, what: "an http or https URL",
		check: checkDecideURL}, example: `"https://approvals.example.com/runs/{run_id}"`,
		doc: "The URL at which approvers decide about held calls: https, or http on this machine. pgfsm replaces `{run_id}` by the run's id. Agents " +
			"show the URL, and web hooks carry it: put no secret into it. Without this key it is the console's page at the admin address."},
	{name: "sessions", shape: &shape{form: integer, min: 1, max: MaxSessions}, initial: number(DefaultSessions),
		doc: "The maximum number of agent sessions at once."},
}}

// checkAddress checks the form of an address; [crossServe] checks who can reach it.
func checkAddress(s string) fault {
	if _, _, ok := splitAddress(s); !ok {
		return fault{"is not HOST:PORT with a port from 0 to 65535", "write one like 127.0.0.1:9000"}
	}
	return fault{}
}

// checkOrigin checks a URL that is only a scheme, a host and a port.
func checkOrigin(s string) fault {
	f := checkURL(s)
	u, err := url.Parse(s)
	switch {
	case f != (fault{}):
		return f
	case err != nil || u.Path != "" || strings.Contains(s, "?"):
		return fault{"has more than a scheme, a host and a port", "write one like https://mcp.example.com, without / at the end"}
	case u.Scheme != "https" && !loopback(u):
		return fault{"is http and leaves this machine", "write https"}
	}
	return fault{}
}

// normalOrigin writes the scheme and the host of a checked URL in small letters, and leaves out the scheme's own port (RFC 3986, section 6.2.2 and 6.2.3):
// clients compare such URLs with those that they use.
func normalOrigin(s string) string {
	scheme, host, _ := strings.Cut(strings.ToLower(s), "://")
	switch scheme {
	case "":
		return ""
	case "https":
		host = strings.TrimSuffix(host, ":443")
	default:
		host = strings.TrimSuffix(host, ":80")
	}
	return scheme + "://" + host
}

// splitAddress reads HOST:PORT. local is true for the name localhost, which is given as 127.0.0.1 and may be any address of
// the loopback; other names are given as an address that is not on it. ok is false for what is no host and port.
func splitAddress(s string) (at netip.AddrPort, local, ok bool) {
	host, port, found := cutLast(s, ":")
	n, err := strconv.ParseUint(port, 10, 16)
	if !found || host == "" || err != nil || strconv.FormatUint(n, 10) != port {
		return at, false, false
	}
	if strings.EqualFold(host, "localhost") {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(n)), true, true
	}
	inner, bracketed := strings.CutPrefix(host, "[")
	if bracketed {
		if inner, ok = strings.CutSuffix(inner, "]"); !ok {
			return at, false, false
		}
	}
	if bracketed != strings.Contains(inner, ":") {
		return at, false, false
	}
	ip, err := netip.ParseAddr(inner)
	if err != nil { // a name: what it stands for is decided elsewhere, and may change
		ip = netip.IPv4Unspecified()
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(n)), false, true
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// checkDecideURL checks the URL where approvers decide. It may have a fragment.
func checkDecideURL(s string) fault {
	plain := strings.ReplaceAll(s, RunID, "run")
	if strings.ContainsAny(plain, "{}") || strings.Contains(s, "$"+RunID) {
		return fault{"has braces that are not those of {run_id}", "write {run_id} where the run's id belongs, or leave it out"}
	}
	base, _, _ := strings.Cut(plain, "#")
	f := checkURL(base)
	u, err := url.Parse(base)
	switch {
	case err == nil && u.User != nil:
		return fault{f.problem, "remove it: agents see this URL"}
	case f != (fault{}):
		return f
	}
	if u.Scheme != "https" && !loopback(u) {
		return fault{"is http and leaves this machine", "write https"}
	}
	_, behind, _ := strings.Cut(s, "://")
	if host := behind[:strings.IndexAny(behind+"/", "/?#")]; strings.Contains(host, RunID) {
		return fault{"has {run_id} in its host", "write it behind the host"}
	}
	return fault{}
}

// crossServe requires different addresses for agents and approvers, and TLS and a known name for addresses that other machines can reach:
// the addresses receive tokens.
func crossServe(j *judge, n *node, path string) {
	for _, of := range [][2]string{{"listen", "public_url"}, {"admin", "admin_url"}} {
		m := n.member(of[0])
		if m == nil {
			continue
		}
		at, local, ok := splitAddress(m.value.text)
		switch where := join(path, of[0]); {
		case !ok || local || at.Addr().IsLoopback():
		case n.get("tls") == nil:
			j.src.fault(m.value.at, where, "listen on 127.0.0.1, add serve.tls, or put a reverse proxy with TLS before it (with serve.hosts for the name that it is reached by)",
				"%s is refused: it can be reached from other machines, and tokens would cross the network unencrypted", where)
		case n.get(of[1]) == nil:
			j.src.fault(m.value.at, where, "write "+of[1]+": https://…, with the host name that clients use",
				"%s can be reached from other machines, and %s is missing", where, join(path, of[1]))
		}
	}
	if at := n.get("decide_url"); at != nil && strings.Contains(at.text, "@") {
		j.src.hide(at) // it may contain a password
	}
	where := func(key, initial string) (string, *node) {
		if m := n.get(key); m != nil {
			return m.text, m
		}
		return initial, nil
	}
	listen, at := where("listen", DefaultListen)
	admin, second := where("admin", DefaultAdmin)
	if second != nil {
		at = second
	}
	a, aNamed, aOK := splitAddress(listen)
	b, bNamed, bOK := splitAddress(admin)
	if at == nil || !aOK || !bOK || a.Port() != b.Port() || a.Port() == 0 || a.Addr() != b.Addr() && !aNamed && !bNamed {
		return
	}
	j.src.fault(at.at, path, "choose another port for one of them", "%s.listen and %s.admin are one address, %s", path, path, quote(admin))
}

// serve takes over how the gateway works.
func (l *loader) serve() {
	root := l.file.root
	n, held := root.get("serve"), root.get("approvals")
	l.out.Serve = Serve{
		Listen: n.str("listen"), Admin: n.str("admin"), Denials: n.str("denials"), Record: n.str("record"),
		Hosts: n.texts("hosts"), DecideURL: n.str("decide_url"), Sessions: n.integer("sessions"),
		PublicURL: normalOrigin(n.str("public_url")), AdminURL: normalOrigin(n.str("admin_url")),
		Hold: held.millis("hold"), OnPending: held.str("on_pending"), RemindBefore: held.millis("remind_before"),
		CatalogMaxAge:  root.millis("catalog_max_age"),
		ServerSessions: root.get("limits").integer("server_sessions"), Held: root.get("limits").integer("held"),
	}
	if files := n.get("tls"); files != nil {
		l.out.Serve.TLS = TLS{Cert: l.file.resolve(files.str("cert")), Key: l.file.resolve(files.str("key"))}
		if ca := files.str("client_ca"); ca != "" {
			l.out.Serve.TLS.ClientCA = l.file.resolve(ca)
		}
	}
	for _, m := range root.fields("servers") {
		// Only the configuration's expose counts, even for a server of a client's file.
		words := m.value.texts("expose")
		if m.value.str("expose") == ExposeAll {
			words = Exposable()
		}
		l.out.Serve.Expose = append(l.out.Serve.Expose, Exposure{m.key, slices.Clone(words), m.value.str("sessions")})
	}
}
